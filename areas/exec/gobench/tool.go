package gobench

import (
	"archive/zip"
	"bytes"
	"context"
	"debug/buildinfo"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"tare/internal/driver"
	"tare/internal/files"
	"tare/internal/metric"
	"tare/internal/proc"
)

// A Tool is what benchmarks are written with.
type Tool string

// The tools. Those other than Go's are measured as they are built: tare builds nothing for them.
const (
	GoTest    Tool = ""
	Criterion Tool = "criterion"
	JMH       Tool = "jmh"
)

// foreign is a tool other than Go's. Each batch is a process that ends with results in files.
type foreign interface {
	// list returns the benchmarks of a file that the options choose.
	list(ctx context.Context, o Options, r runner) (listing, error)
	// batch runs one benchmark, and returns the seconds of one call.
	batch(ctx context.Context, p *Plan, b Benchmark, r runner) (float64, error)
	// says describes how a value comes about.
	says(p *Plan) string
}

func (t Tool) foreign() foreign {
	switch t {
	case Criterion:
		return criterion{}
	case JMH:
		return jmh{}
	case GoTest:
	}
	return nil
}

// Usual returns how long a batch measures and warms up by default, and how many batches a block has: the more costly
// its process is to start, the fewer.
func (t Tool) Usual() (span, warm time.Duration, rounds int) {
	switch t {
	case Criterion:
		return 50 * time.Millisecond, 50 * time.Millisecond, 10
	case JMH:
		return 500 * time.Millisecond, time.Second, 3
	case GoTest:
	}
	// Several times as long as a kernel lets a process run before another.
	return 50 * time.Millisecond, 0, 10
}

// benchmarkList is the resource in which JMH keeps the names of benchmarks.
const benchmarkList = "META-INF/BenchmarkList"

// toolOf tells what benchmarks a file holds, without running it. What is nothing else is taken for a Go test binary.
func toolOf(file string) (Tool, error) {
	if _, err := buildinfo.ReadFile(file); err == nil {
		return GoTest, nil
	}
	if z, err := zip.OpenReader(file); err == nil {
		has := slices.ContainsFunc(z.File, func(f *zip.File) bool { return f.Name == benchmarkList })
		if err := z.Close(); err != nil {
			return "", err
		}
		if !has {
			return "", wrong("%s has no JMH benchmarks (no %s); name the jar that java -jar runs them from", file, benchmarkList)
		}
		return JMH, nil
	}
	text, err := files.Read(file, mostProgram)
	if bytes.Contains(text, []byte("CRITERION_HOME")) { // the variable that criterion asks for its folder
		return Criterion, err
	}
	return GoTest, err
}

// A runner runs the file of one side.
type runner struct {
	test   Test
	folder string // for what the program writes; emptied after each run
	env    []string
	alone  bool // in a process group of its own, which ends with the context
}

// The most that is kept of what a benchmark prints, and read of what it writes.
const (
	mostOutput = 1 << 20
	mostResult = 64 << 20
	// mostProgram bounds a benchmark program, in bytes.
	mostProgram = 1 << 30
)

// tail keeps the end of what is written to it.
type tail struct {
	end     []byte
	dropped bool
}

// Write implements io.Writer.
func (t *tail) Write(p []byte) (int, error) {
	t.end = append(t.end, p...)
	if n := len(t.end) - mostOutput; n > mostOutput {
		t.end, t.dropped = slices.Clone(t.end[n:]), true
	}
	return len(p), nil
}

// run runs a command and returns the end of what it prints. A program that fails is an error with what it said.
func (r runner) run(ctx context.Context, env []string, path string, args ...string) (*tail, error) {
	ctx, stop := context.WithTimeout(ctx, listWithin)
	defer stop()
	own := proc.Command(ctx, path, args...)
	cmd, run := own.Cmd, own.Run
	if !r.alone {
		cmd = exec.CommandContext(ctx, path, args...)
		run = cmd.Run
	}
	out := &tail{}
	cmd.Dir, cmd.Stdout, cmd.Stderr = r.test.Dir, out, out
	cmd.Env = slices.Concat(r.env, env, []string{"PWD=" + filepath.Clean(r.test.Dir)})
	cmd.WaitDelay = time.Second // a benchmark may leave processes behind that hold its output open
	err := run()
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return out, fmt.Errorf("it did not end within %v: %s", listWithin, reason(string(out.end)))
	case ctx.Err() != nil:
		return out, ctx.Err()
	case err != nil:
		return out, fmt.Errorf("%s ended with %w: %s", filepath.Base(path), err, reason(string(out.end)))
	}
	return out, nil
}

// clean removes what a run has written.
func (r runner) clean() error {
	entries, err := os.ReadDir(r.folder)
	for _, f := range entries {
		remove := os.Remove
		if f.IsDir() {
			remove = files.RemoveAt
		}
		err = errors.Join(err, remove(filepath.Join(r.folder, f.Name())))
	}
	return err
}

// readResult reads a file that a benchmark has written.
func readResult(file string) ([]byte, error) {
	return files.Read(file, mostResult)
}

// listForeign lists the benchmarks of a side, in a folder below dir that is removed.
func (o Options) listForeign(ctx context.Context, dir string, tool foreign, s Side) (l listing, err error) {
	t := s.Tests[whole]
	t.File = filepath.Join(dir, t.File)
	folder, err := os.MkdirTemp(dir, "list-")
	if err != nil {
		return l, err
	}
	defer func() { err = errors.Join(err, files.RemoveAt(folder)) }()
	r := runner{
		test: t, folder: folder, alone: true, env: proc.Environment(slices.Concat(driver.Usual(), o.Env)...),
	}
	if l, err = tool.list(ctx, o, r); err != nil && ctx.Err() == nil {
		err = fmt.Errorf("%s: the benchmarks: %w", s.Label, err)
	}
	return l, err
}

// whole is the package of benchmarks that are in one file.
const whole = ""

// measure runs one batch of a benchmark of another tool than Go's.
func (s *server) measure(ctx context.Context, b Benchmark) (c driver.Cost, err error) {
	r := runner{test: s.side.Tests[whole], folder: s.folder, env: s.env, alone: s.alone}
	each, err := s.plan.Tool.foreign().batch(ctx, &s.plan, b, r)
	if err = errors.Join(err, r.clean()); err != nil {
		return c, fmt.Errorf("of %s, %s: %w", s.side.Label, b.Name, err)
	}
	return driver.Cost{Calls: 1, Total: map[string]float64{metric.Wall.Name: each}}, nil
}

// title is how the tool calls the benchmark.
func (b Benchmark) title() string {
	if b.Package == whole {
		return b.Name
	}
	return "Benchmark" + b.Name
}

// short is the part of a name that operations are called by: of JMH's, without the Java package.
func (t Tool) short(name string) string {
	if t != JMH {
		return name
	}
	method, params, _ := strings.Cut(name, "/")
	parts := strings.Split(method, ".")
	return strings.TrimSuffix(strings.Join(parts[max(0, len(parts)-2):], ".")+"/"+params, "/")
}

// skip returns a pattern for -skip that leaves a benchmark out.
func (t Tool) skip(title string) string {
	switch t {
	case GoTest:
		return strings.ReplaceAll(title, "/", "$/^")
	case JMH:
		title, _, _ = strings.Cut(title, "/") // parameters are in no pattern
	case Criterion:
	}
	return regexp.QuoteMeta(title)
}

// fit completes the options for a tool, and refuses those that it does not have.
func (o *Options) fit(t Tool) error {
	span, warm, _ := t.Usual()
	if o.Span == 0 {
		o.Span = span
	}
	switch {
	case t == GoTest && o.Warm != 0:
		return wrong("-warmup: Go benchmarks have no warm-up of their own; leave it out")
	case t == GoTest:
		if len(o.Packages) == 0 {
			o.Packages = []string{"."}
		}
		return nil
	case len(o.OnlyGo) > 0:
		return wrong("-%s: only Go benchmarks have this flag; leave it out", o.OnlyGo[0])
	case o.CPUTime:
		return wrong("--cpu-time: %s tells elapsed time only; leave it out", t)
	}
	if o.Warm == 0 {
		o.Warm = warm
	}
	o.TestFlags, o.CPU = nil, 0
	return nil
}

// patterns returns what chooses benchmarks; skip is nil if nothing is left out.
func (o Options) patterns() (match, skip *regexp.Regexp, err error) {
	if match, err = regexp.Compile(o.Match); err == nil && o.Skip != "" {
		skip, err = regexp.Compile(o.Skip)
	}
	if err != nil {
		err = wrong("%w", err)
	}
	return match, skip, err
}

// named says what a file is that holds the benchmarks of a package.
func named(pkg string) string {
	if pkg == whole {
		return "file with the benchmarks"
	}
	return "test binary of " + pkg + " is that"
}

// in says where benchmarks were looked for.
func in(packages []string) string {
	if len(packages) == 0 {
		return ""
	}
	return " in " + strings.Join(packages, " ")
}

// chosen says which benchmarks were looked for.
func (o Options) chosen() string {
	if o.Skip != "" {
		return " -bench " + o.Match + " -skip " + o.Skip
	}
	return " -bench " + o.Match
}

// example is what may stand after --.
func (t Tool) example() string {
	if t == GoTest {
		return "./... -bench Open"
	}
	return "-bench Open"
}
