// Package gobench builds the Go benchmarks of two revisions, or takes benchmarks of other tools as they are built, and
// is the driver that runs them for the area exec.
package gobench

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"tare/internal/build"
	"tare/internal/driver"
	"tare/internal/files"
	"tare/internal/proc"
)

// Options say what is compared.
type Options struct {
	Old, New   string // git revisions, module versions (path@version), or test binaries
	Dir        string // the folder in which tare was started
	Packages   []string
	BuildFlags []string // of go test -c: -tags=x
	// TestFlags choose benchmarks: -test.bench=X, -test.skip=X, -test.short.
	TestFlags   []string
	Match, Skip string        // what -bench and -skip say
	Warm        time.Duration // how long a batch warms up; only of other tools than Go's
	CPU         int           // GOMAXPROCS
	Span        time.Duration // how long a batch of the faster side lasts, about; 0: as usual
	CPUTime     bool          // compare the CPU time of processes, too
	Env         []string      // variables that benchmarks get besides driver.Usual: names
	OnlyGo      []string      // flags that were given and that only Go's benchmarks have
	// Tell says what is being done.
	Tell func(format string, args ...any)
}

// Factor is the factor whose levels are the two sides.
const Factor = "revision"

// A Plan is what the driver reads: what to run.
type Plan struct {
	Tool       Tool        `json:"tool,omitempty"`
	Sides      [2]Side     `json:"sides"` // the old, the new
	Benchmarks []Benchmark `json:"benchmarks"`
	Flags      []string    `json:"flags"`
	CPU        int         `json:"cpu"`
	CPUTime    bool        `json:"cpu_time,omitempty"`
	// Of other tools than Go's: how long a batch measures, and how long it warms up.
	Span  time.Duration `json:"span,omitempty"`
	Warm  time.Duration `json:"warm,omitempty"`
	Notes []string      `json:"notes,omitempty"`
}

// A Side is one of the two revisions.
type Side struct {
	Label string          `json:"label"` // level of Factor
	Tests map[string]Test `json:"tests"` // by package, relative to the module
}

// A Test is a test binary.
type Test struct {
	File   string `json:"file"`
	Dir    string `json:"dir"` // in which it runs
	SHA256 string `json:"sha256"`
}

// A Benchmark exists on both sides.
type Benchmark struct {
	Operation string `json:"operation"` // its name in experiments
	Package   string `json:"package"`
	Name      string `json:"name"` // as Go prints it, without Benchmark and GOMAXPROCS: Open/size=10
	// Calls is how many calls a batch has, on both sides: a benchmark's fixed costs are the same share of both.
	Calls int `json:"calls"`
	// Takes is how long a batch takes, with its process: the mean of the arms, when each was tried.
	Takes time.Duration `json:"takes"`
	// Of JMH: the method, and its parameters, which are in the name, too.
	Method string            `json:"method,omitempty"`
	Params map[string]string `json:"params,omitempty"`
}

// Wrong is an error in what the user asked for.
type Wrong struct{ error }

// Unwrap returns the cause.
func (w *Wrong) Unwrap() error { return w.error }

func wrong(format string, args ...any) error { return &Wrong{fmt.Errorf(format, args...)} }

// planFormat changes with the fields of Plan: a plan of an earlier tare is not read again.
const planFormat = 2

// planFile is the name of the plan in the folder of what was built.
const planFile = "plan.json"

// Make builds both sides, lists their benchmarks, and returns the plan and its file. It uses again what was built from
// the same inputs before. Whatever is left of a build that fails or is interrupted is removed.
func Make(ctx context.Context, cache build.Cache, o Options) (p Plan, file string, err error) {
	sources, err := o.sources(ctx)
	if err != nil {
		return p, "", err
	}
	tool := sources[0].Tool
	if err := o.fit(tool); err != nil {
		return p, "", err
	}
	for i := range sources {
		if err := o.checkout(ctx, cache, &sources[i]); err != nil {
			return p, "", err
		}
	}
	inputs, err := json.Marshal([]any{
		sources[0], sources[1], o.Packages, o.BuildFlags, o.TestFlags, o.CPU, o.Span, o.CPUTime, o.Env, o.Dir, o.Match,
		o.Skip, o.Warm, planFormat,
	})
	if err != nil {
		return p, "", err
	}
	var toolchain string
	if tool == GoTest {
		if toolchain, err = o.toolchain(ctx); err != nil {
			return p, "", err
		}
	}
	sum := sha256.Sum256(append(inputs, toolchain...))
	dir, err := cache.Get(ctx, build.Recipe{
		Name: "gobench-" + hex.EncodeToString(sum[:8]), Lock: "gobench", Within: time.Hour,
		Make: func(ctx context.Context, dir string) error { return o.make(ctx, dir, sources) },
	})
	if err != nil {
		return p, "", err
	}
	file = filepath.Join(dir, planFile)
	p, err = Read(file)
	return p, file, err
}

// Read reads a plan. Paths of test binaries in the file are relative to its folder.
func Read(file string) (p Plan, err error) {
	text, err := files.Read(file, mostResult)
	if err != nil {
		return p, fmt.Errorf("read what tare bench built: %w; run tare bench again", err)
	}
	if err := json.Unmarshal(text, &p); err != nil {
		return p, fmt.Errorf("read %s: %w; run tare bench again", file, err)
	}
	return p.below(filepath.Dir(file)), nil
}

// below returns the plan with paths of test binaries below a folder.
func (p Plan) below(dir string) Plan {
	for i, s := range p.Sides {
		p.Sides[i].Tests = map[string]Test{}
		for name, t := range s.Tests {
			t.File = filepath.Join(dir, t.File)
			p.Sides[i].Tests[name] = t
		}
	}
	return p
}

// make fills the folder of a recipe.
func (o Options) make(ctx context.Context, dir string, sources [2]source) error {
	p := Plan{Tool: sources[0].Tool, Flags: o.TestFlags, CPU: o.CPU, CPUTime: o.CPUTime, Span: o.Span, Warm: o.Warm}
	var found [2]listing
	for i, s := range sources {
		if s.Binary == "" {
			o.Tell("building %s\n", s.Label)
		}
		side, err := o.build(ctx, dir, fmt.Sprintf("side%d", i), s)
		if err != nil {
			return err
		}
		p.Sides[i] = side
		o.Tell("listing the benchmarks of %s\n", s.Label)
		if tool := p.Tool.foreign(); tool != nil {
			found[i], err = o.listForeign(ctx, dir, tool, side)
		} else {
			found[i], err = o.list(ctx, dir, side)
		}
		if err != nil {
			return err
		}
	}
	var err error
	if p.Benchmarks, err = o.common(p.Tool, found, p.Sides); err != nil {
		return err
	}
	for i, s := range sources {
		p.Notes = append(p.Notes, found[i].notes(s)...)
	}
	if err := o.try(ctx, dir, p); err != nil {
		return err
	}
	text, err := json.MarshalIndent(p, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, planFile), text, 0o600)
}

// try runs a batch of each benchmark as the driver will, and notes in the plan how long it takes.
func (o Options) try(ctx context.Context, dir string, p Plan) error {
	folder, err := os.MkdirTemp(dir, "try-")
	if err != nil {
		return err
	}
	s := server{
		plan: p.below(dir), folder: folder, alone: true, fixed: map[string]float64{},
		env: proc.Environment(slices.Concat(driver.Usual(), o.Env)...),
	}
	o.Tell("trying each benchmark, for how long the run will take\n")
	for i := range p.Benchmarks {
		b := &p.Benchmarks[i]
		var of [2]time.Duration
		for side := range of {
			s.side = &s.plan.Sides[side]
			took, err := s.takes(ctx, *b)
			if err != nil {
				return errors.Join(err, files.RemoveAt(folder))
			}
			of[side] = took
		}
		b.Takes = (2*of[0] + of[1]) / 3 // the old one is also the A/A arm
	}
	return files.RemoveAt(folder)
}

// common returns the benchmarks, which must be the same on both sides.
func (o Options) common(tool Tool, found [2]listing, sides [2]Side) (out []Benchmark, err error) {
	for i := range found {
		if len(found[i].names) == 0 {
			return nil, wrong("no benchmark of %s matches%s%s; name others after --, such as -- %s", sides[i].Label,
				o.chosen(), in(o.Packages), tool.example())
		}
	}
	for i := range found {
		if only := found[i].without(found[1-i]); len(only) > 0 {
			return nil, wrong("only %s has %s; leave out what %s lacks with -skip after --, such as -skip '^%s$'",
				sides[i].Label, strings.Join(only, ", "), sides[1-i].Label, tool.skip(only[0]))
		}
	}
	many := map[string]bool{}
	for _, n := range found[0].names {
		many[n.Package] = true
	}
	taken := map[string]bool{}
	for _, b := range found[0].names {
		name := tool.short(b.Name)
		if len(many) > 1 {
			name = b.Package + "." + name
		}
		b.Operation = plainName(name, taken)
		if i := found[1].index(b); i >= 0 {
			b.Calls = batchOf(b.Calls, found[1].names[i].Calls)
		}
		out = append(out, b)
	}
	return out, nil
}

// batchOf returns how many calls make a batch, given how many each side makes in Span. The batches of the slower side
// may last 4 times as long; if it is slower than that, those of the faster one are shorter.
func batchOf(a, b int) int { return min(max(a, b), 4*min(a, b)) }

// plainName returns a name that experiments and budgets can hold, and that is not taken.
func plainName(name string, taken map[string]bool) string {
	const most = 64
	plain := strings.Map(func(r rune) rune {
		if (r|0x20 < 'a' || r|0x20 > 'z') && (r < '0' || r > '9') && r != '.' && r != '-' {
			return '_'
		}
		return r
	}, name)
	if len(plain) > most || taken[plain] {
		sum := sha256.Sum256([]byte(name))
		plain = plain[:min(len(plain), most-9)] + "-" + hex.EncodeToString(sum[:4])
	}
	taken[plain] = true
	return plain
}
