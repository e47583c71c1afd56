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
	"strings"
	"time"

	"tare/internal/driver"
)

// rounds is how many batches of a benchmark a block has: each is a process, so that no process's luck weighs much.
const rounds = 5

// A server answers the requests of the area exec.
type server struct {
	plan    Plan
	version string
	side    *Side
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
	s := server{plan: plan, version: sum[:12]}
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
		Notes: append([]string{"each batch is a process of its own: a test binary with -test.benchtime=Nx; times are its " +
			"ns/op, which it rounds to 4 digits, and heap figures its B/op and allocs/op"}, s.plan.Notes...),
	}
	for _, b := range s.plan.Benchmarks {
		d.Operations = append(d.Operations, driver.Operation{
			Name: b.Operation, Expect: "Benchmark" + b.Name + " of " + b.Package + " passes",
			SpanMS: float64(s.plan.Span) / float64(time.Millisecond), Rounds: rounds, NoCPU: true,
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
		v.Checks = append(v.Checks, fmt.Sprintf("the test binary of %s is that of %s: SHA-256 %s", pkg, s.side.Label, t.SHA256))
	}
	return v, nil
}

// operate runs one benchmark for exactly n calls.
func (s *server) operate(ctx context.Context, operation string, n int) (c driver.Cost, err error) {
	i := slices.IndexFunc(s.plan.Benchmarks, func(b Benchmark) bool { return b.Operation == operation })
	if i < 0 || s.side == nil {
		return c, fmt.Errorf("no operation %q, or it is not prepared", operation)
	}
	b := s.plan.Benchmarks[i]
	t := s.side.Tests[b.Package]
	cmd := exec.CommandContext(ctx, t.File, arguments(s.plan.Flags, b.Name, n, s.plan.CPU)...)
	cmd.Dir = t.Dir
	cmd.Env = append(os.Environ(), "PWD="+filepath.Clean(t.Dir))
	cmd.WaitDelay = time.Second // a benchmark may leave processes behind that hold its output open
	out, err := cmd.CombinedOutput()
	results, err := parse(string(out), s.plan.CPU, err)
	switch {
	case err != nil:
		return c, fmt.Errorf("Benchmark%s of %s: %w", b.Name, s.side.Label, err)
	case len(results) != 1 || results[0].name != b.Name || results[0].calls != n:
		return c, fmt.Errorf("Benchmark%s of %s: %d calls were asked for, and it did not report them: %s", b.Name,
			s.side.Label, n, reason(string(out)))
	}
	return driver.Cost{Calls: n, Total: results[0].total}, nil
}

// pattern matches the benchmark of that name alone: -test.bench takes an expression for each level.
func pattern(name string) string {
	levels := strings.Split("Benchmark"+name, "/")
	for i, l := range levels {
		levels[i] = "^" + regexp.QuoteMeta(l) + "$"
	}
	return strings.Join(levels, "/")
}

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
