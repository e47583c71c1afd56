package gobench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"tare/internal/clock"
)

// criterion runs benchmarks of criterion.rs: cargo bench --no-run builds the binary.
type criterion struct{}

func (criterion) says(p *Plan) string {
	return fmt.Sprintf("each value is the mean of one call over all samples of a process of its own: criterion warms up "+
		"for %v, which is not measured, and then takes 10 samples in about %v, unless the benchmark sets these itself",
		p.Warm, p.Span)
}

// list asks for the names, and runs each benchmark once: one that fails is found before anything is measured.
func (c criterion) list(ctx context.Context, o Options, r runner) (l listing, err error) {
	match, skip, err := o.patterns()
	if err != nil {
		return l, err
	}
	out, err := r.run(ctx, []string{"CRITERION_HOME=" + r.folder}, r.test.File, "--bench", "--list")
	if err != nil {
		return l, err
	}
	if out.dropped {
		return l, fmt.Errorf("--list printed more than %d bytes", 2*mostOutput)
	}
	for line := range strings.Lines(string(out.end)) {
		name, isOne := strings.CutSuffix(strings.TrimSpace(line), ": benchmark")
		if !isOne {
			name, isOne = strings.CutSuffix(name, ": bench")
		}
		if !isOne || !match.MatchString(name) || skip != nil && skip.MatchString(name) {
			continue
		}
		b := Benchmark{Package: whole, Name: name, Calls: 1}
		if l.index(b) >= 0 {
			return l, fmt.Errorf("two benchmarks are called %s: give them names of their own", name)
		}
		l.names = append(l.names, b)
	}
	for _, b := range l.names {
		_, err := c.batch(ctx, &Plan{Span: leastSpan, Warm: leastSpan}, b, r)
		if err = errors.Join(err, r.clean()); err != nil {
			return l, fmt.Errorf("%s: %w", b.Name, err)
		}
	}
	return l, nil
}

// leastSpan is how long a benchmark is tried.
const leastSpan = 10 * time.Millisecond

func (criterion) batch(ctx context.Context, p *Plan, b Benchmark, r runner) (float64, error) {
	from := clock.System{}.Now()
	_, err := r.run(ctx, []string{"CRITERION_HOME=" + r.folder}, r.test.File,
		"--bench", "--noplot", "--color", "never", "--sample-size", "10", "--nresamples", "1001",
		"--warm-up-time", seconds(p.Warm), "--measurement-time", seconds(p.Span), "^"+regexp.QuoteMeta(b.Name)+"$")
	if err != nil {
		return 0, err
	}
	return readSamples(r.folder, b.Name, clock.System{}.Now().Sub(from))
}

func seconds(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'f', -1, 64) }

// onlyResult returns the folder of the only result below a folder.
func onlyResult(folder string) (string, error) {
	var found []string
	err := filepath.WalkDir(folder, func(path string, _ fs.DirEntry, err error) error {
		if dir := filepath.Dir(path); filepath.Base(path) == "sample.json" && filepath.Base(dir) == "new" {
			found = append(found, dir)
		}
		return err
	})
	if err == nil && len(found) != 1 {
		err = fmt.Errorf("%d results were written, not one: criterion 0.3 or later writes new/sample.json below "+
			"CRITERION_HOME", len(found))
	}
	if err != nil {
		return "", err
	}
	return found[0], nil
}

// readSamples reads the only result below a folder. Its times are nanoseconds, unless the benchmark measures something
// else, which shows in a sum beyond the elapsed time.
func readSamples(folder, name string, took time.Duration) (float64, error) {
	dir, err := onlyResult(folder)
	if err != nil {
		return 0, err
	}
	var id struct {
		Full string `json:"full_id"`
	}
	var s struct{ Iters, Times []float64 }
	for file, to := range map[string]any{"benchmark.json": &id, "sample.json": &s} {
		text, err := readResult(filepath.Join(dir, file))
		if err != nil {
			return 0, err
		}
		if err := json.Unmarshal(text, to); err != nil {
			return 0, fmt.Errorf("criterion's %s: %w", file, err)
		}
	}
	var calls, ns float64
	for _, n := range s.Iters {
		calls += n
	}
	for _, t := range s.Times {
		ns += t
	}
	each := ns / calls / 1e9
	switch {
	case id.Full != name:
		return 0, fmt.Errorf("the result is of %q", id.Full)
	case len(s.Iters) != len(s.Times) || !(each > 0) || math.IsInf(each, 0):
		return 0, fmt.Errorf("%d samples took %v ns for %v calls: that is no time", len(s.Times), ns, calls)
	case ns > float64(took.Nanoseconds()):
		return 0, fmt.Errorf("the samples sum up to %v ns, and the process took %v: the benchmark measures something other "+
			"than time", ns, took)
	}
	return each, nil
}
