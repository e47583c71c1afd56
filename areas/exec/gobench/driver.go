package gobench

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"tare/internal/clock"
	"tare/internal/driver"
	"tare/internal/metric"
	"tare/internal/stat"
)

// A server answers the requests of the area exec.
type server struct {
	plan    Plan
	version string
	side    *Side
	folder  string             // of the treatment
	env     []string           // of the benchmarks
	alone   bool               // see runner
	fixed   map[string]float64 // CPU seconds of a process beside its calls, by its arguments
}

// Serve speaks the protocol of drivers: each batch is a process of the test binary with -test.benchtime=Nx.
func Serve(ctx context.Context, file string, in io.Reader, out io.Writer) error {
	plan, err := Read(file)
	if err != nil {
		return err
	}
	sum, err := content(file)
	if err != nil {
		return err
	}
	s := server{plan: plan, version: sum[:12], env: os.Environ(), fixed: map[string]float64{}}
	requests, answers := json.NewDecoder(bufio.NewReader(in)), json.NewEncoder(out)
	for {
		var r driver.Request
		switch err := requests.Decode(&r); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("read a request: %w", err)
		}
		ok, err := s.answer(ctx, r)
		a := driver.Answer{ID: r.ID}
		if err != nil {
			a.Error = err.Error()
		} else if a.OK, err = json.Marshal(ok); err != nil {
			return err
		}
		if err := answers.Encode(a); err != nil || r.Do == driver.DoStop {
			return err
		}
	}
}

func (s *server) answer(ctx context.Context, r driver.Request) (any, error) {
	nothing := struct{}{}
	switch r.Do {
	case driver.DoDescribe:
		return s.describe(), nil
	case driver.DoPrepare:
		s.folder = r.Folder
		return nothing, s.prepare(r.Levels[Factor])
	case driver.DoVerify:
		return s.verify()
	case driver.DoOperate:
		if r.Calls == nil || *r.Calls <= 0 {
			return driver.Cost{Total: map[string]float64{}}, nil
		}
		return s.operate(ctx, r.Operation, *r.Calls)
	case driver.DoUndo, driver.DoStop: // prepare makes nothing
		return nothing, nil
	}
	return nil, fmt.Errorf("unknown request %q", r.Do)
}

func (s *server) describe() driver.Description {
	d := driver.Description{
		Protocol: driver.Protocol, Name: "gobench", Version: s.version,
		Factors: map[string][]string{Factor: {s.plan.Sides[0].Label, s.plan.Sides[1].Label}},
		Notes: append([]string{"each value is what a process of its own says of one call, the mean of many (ns/op, which " +
			"it rounds to 4 digits, B/op, allocs/op): a test binary with -test.benchtime=Nx, the same N on both sides"},
			s.plan.Notes...),
	}
	if tool := s.plan.Tool.foreign(); tool != nil {
		d.Name, d.Notes[0] = string(s.plan.Tool), tool.says(&s.plan)
	}
	if s.plan.CPUTime {
		d.Notes = append(d.Notes, "CPU time is that of the whole process, without its start: what a benchmark does while "+
			"its timer is stopped, and garbage collection beside it, are in it")
	}
	for _, b := range s.plan.Benchmarks {
		expect := fmt.Sprintf("%s of %s passes with -test.benchtime=%dx", b.title(), b.Package, b.Calls)
		if s.plan.Tool != GoTest {
			expect = fmt.Sprintf("%s's %s ends with one result", s.plan.Tool, b.Name)
		}
		d.Operations = append(d.Operations, driver.Operation{
			Name: b.Operation, Expect: expect, Most: 1, NoCPU: !s.plan.CPUTime,
			SpanMS: min(driver.MostSpan, b.Takes).Seconds() * 1e3,
		})
	}
	return d
}

func (s *server) prepare(label string) error {
	for i := range s.plan.Sides {
		if s.plan.Sides[i].Label == label {
			s.side = &s.plan.Sides[i]
			return nil
		}
	}
	return fmt.Errorf("%s=%s: there is no such side", Factor, label)
}

// verify compares the binaries with those that were built.
func (s *server) verify() (v driver.Verified, err error) {
	if s.side == nil {
		return v, errors.New("prepare was not asked for")
	}
	for _, pkg := range sorted(s.side.Tests) {
		t := s.side.Tests[pkg]
		switch sum, err := content(t.File); {
		case err != nil:
			return v, err
		case sum != t.SHA256:
			return v, fmt.Errorf("%s was changed since it was built; run tare bench again", t.File)
		}
		v.Checks = append(v.Checks,
			fmt.Sprintf("the %s of %s: SHA-256 %s", named(pkg), s.side.Label, t.SHA256))
	}
	v.Unproved = "the files are those that were built; nothing that must be refused was asked"
	return v, nil
}

// operate runs one batch of a benchmark. It answers for one call, which costs the mean of the batch: how many calls
// make a batch is not left to a calibration, which could differ between the sides.
func (s *server) operate(ctx context.Context, operation string, calls int) (c driver.Cost, err error) {
	i := slices.IndexFunc(s.plan.Benchmarks, func(b Benchmark) bool { return b.Operation == operation })
	if i < 0 || s.side == nil || calls != 1 {
		return c, fmt.Errorf("%d calls of %q: no such operation, not prepared, or more than one call", calls, operation)
	}
	b := s.plan.Benchmarks[i]
	if s.plan.Tool != GoTest {
		return s.measure(ctx, b)
	}
	results, cpu, err := s.run(ctx, b.Package, b.Name, b.Calls)
	if err == nil && (len(results) != 1 || results[0].name != b.Name || results[0].calls != b.Calls) {
		err = fmt.Errorf("%d calls were asked for, and its output reports something else: %v", b.Calls, results)
	}
	if err != nil {
		return c, fmt.Errorf("of %s, Benchmark%s: %w", s.side.Label, b.Name, err)
	}
	c = driver.Cost{Calls: 1, Total: results[0].each}
	if s.plan.CPUTime {
		beside, err := s.beside(ctx, b)
		if err != nil {
			return c, err
		}
		c.Total[metric.CPU.Name] = max(0, cpu-beside) / float64(b.Calls)
	}
	return c, nil
}

// takes measures how long a batch takes; the first one of a process of the driver also measures what is beside the
// calls, and its share is that of one in all batches of a block.
func (s *server) takes(ctx context.Context, b Benchmark) (time.Duration, error) {
	_, _, rounds := s.plan.Tool.Usual()
	took := func() (time.Duration, error) {
		from := clock.System{}.Now()
		_, err := s.operate(ctx, b.Operation, 1)
		return clock.System{}.Now().Sub(from), err
	}
	clear(s.fixed)
	first, err := took()
	if err != nil || !s.plan.CPUTime {
		return first, err
	}
	next, err := took()
	return next + max(0, first-next)/time.Duration(rounds+1), err
}

// beside returns the CPU time that a process takes beside the calls of a batch. A test binary makes one call before it
// makes more than one.
func (s *server) beside(ctx context.Context, b Benchmark) (float64, error) {
	name := b.Name
	if b.Calls == 1 {
		name = noBenchmark
	}
	if known, ok := s.fixed[b.Package+" "+name]; ok {
		return known, nil
	}
	var seconds []float64
	for range 5 {
		_, cpu, err := s.run(ctx, b.Package, name, 1)
		if err != nil {
			return 0, err
		}
		seconds = append(seconds, cpu)
	}
	s.fixed[b.Package+" "+name] = stat.Median(seconds)
	return s.fixed[b.Package+" "+name], nil
}

// run runs a test binary, and returns what it reports and its CPU seconds.
func (s *server) run(ctx context.Context, pkg, name string, n int) ([]result, float64, error) {
	t := s.side.Tests[pkg]
	cmd := exec.CommandContext(ctx, t.File, arguments(s.plan.Flags, name, strconv.Itoa(n)+"x", s.plan.CPU)...)
	cmd.Dir = t.Dir
	cmd.Env = append(slices.Clone(s.env), "PWD="+filepath.Clean(t.Dir))
	cmd.WaitDelay = time.Second // a benchmark may leave processes behind that hold its output open
	out, err := cmd.CombinedOutput()
	results, err := parse(string(out), s.plan.CPU, err)
	if err != nil {
		return nil, 0, err
	}
	return results, (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds(), nil
}

// noBenchmark is a name that no benchmark has.
const noBenchmark = "-"

// pattern matches the benchmark of that name alone: -test.bench takes an expression for each level.
func pattern(name string) string {
	levels := strings.Split("Benchmark"+name, "/")
	for i, l := range levels {
		levels[i] = "^" + regexp.QuoteMeta(l) + "$"
	}
	return strings.Join(levels, "/")
}

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
