package exec

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"tare/area"
	"tare/areas/exec/gobench"
	"tare/internal/build"
	"tare/internal/kit"
	"tare/internal/unit"
)

// benchFlags are the flags of tare bench.
type benchFlags struct {
	blocks  int
	cpuTime bool
	env     []string
}

// benches is tare bench in a shell.
type benches struct{ *area.Shell }

// commands is area.Parts.Commands.
func commands() []area.Command { return []area.Command{benchCommand(), benchDriver()} }

func benchCommand() area.Command {
	var f benchFlags
	return area.Command{
		Use: "bench OLD NEW [-- PACKAGES -bench X …]", Short: "Compare benchmarks of two builds: Go, criterion, JMH",
		Group: area.AskWithoutFile, Asks: true, Least: 2, Most: 2, After: true,
		Long: "Builds the Go benchmarks of two git revisions of the repository in this folder, of two module versions\n" +
			"(path@version), or takes two test binaries (go test -c), and runs them interleaved in blocks, in random\n" +
			"order, with OLD a second time as the A/A arm. Each benchmark is an operation.\n\n" +
			"After -- stand packages (default: .), the flags -bench, -skip, -cpu, -short and -benchtime of go test, and\n" +
			"flags of go build such as -tags=x. -benchtime 50ms is how long a batch lasts.\n\n" +
			"OLD and NEW may also be two benchmark binaries of Rust's criterion (cargo bench --no-run) or two jars of Java's\n" +
			"JMH, with -bench, -skip, -benchtime and -warmup DURATION after --.",
		Example: "  tare bench HEAD~1 HEAD\n  tare bench v1.2.0 HEAD -- ./... -bench 'Open|Close'\n" +
			"  tare bench golang.org/x/text@v0.33.0 golang.org/x/text@v0.42.0 -- ./unicode/norm -bench NFC\n" +
			"  tare bench old/benchmarks.jar new/benchmarks.jar -- -bench Codec",
		Flags: func(s *flag.FlagSet) {
			s.IntVar(&f.blocks, "blocks", 0, "the most blocks to measure (default: that of tare run)")
			s.Func("env", "name of an environment variable that the benchmarks get; repeatable",
				func(name string) error { f.env = append(f.env, name); return nil })
			s.BoolVar(&f.cpuTime, "cpu-time", false,
				"compare CPU time, for busy hosts: that of the process, with what a benchmark does while its timer is stopped")
		},
		Run: func(ctx context.Context, sh *area.Shell, args []string) error {
			return benches{sh}.bench(ctx, args, &f)
		},
	}
}

// benchDriver is the program of the experiments that tare bench composes.
func benchDriver() area.Command {
	return area.Command{
		Use: "bench-driver PLAN", Short: "Run benchmarks (tare bench starts this itself)", Hidden: true, Least: 1, Most: 1,
		Run: func(ctx context.Context, sh *area.Shell, args []string) error {
			return gobench.Serve(ctx, args[0], sh.Stdin, sh.Stdout)
		},
	}
}

// bench builds the benchmarks, composes an experiment, and runs it.
func (a benches) bench(ctx context.Context, args []string, f *benchFlags) error {
	o, err := benchOptions(args)
	if err != nil {
		return err
	}
	if f.cpuTime && o.Span != 0 && o.Span < usualBatch {
		return area.Usage("--cpu-time needs batches of %v or more, since the start of a process takes milliseconds of it; "+
			"leave out -benchtime", usualBatch)
	}
	o.Env, o.CPUTime, o.Tell = f.env, f.cpuTime, a.Tell
	if o.Dir, err = os.Getwd(); err != nil {
		return err
	}
	x, err := a.composeBench(ctx, o, f)
	if err != nil {
		return err
	}
	return a.Ask(ctx, x)
}

// composeBench returns the experiment. An interrupt ends it, and removes what was not built to its end.
func (a benches) composeBench(ctx context.Context, o gobench.Options, f *benchFlags) (x area.Composed, err error) {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	p, file, err := gobench.Make(ctx, benchCache(a.Log, a.Getenv), o)
	switch w, isWrong := errors.AsType[*gobench.Wrong](err); {
	case ctx.Err() != nil:
		return x, area.ExitError{Code: 130, Err: errors.New("stopped before the run; nothing was measured")}
	case isWrong:
		return x, area.Usage("%w", w)
	case err != nil:
		return x, err
	}
	self, err := os.Executable()
	if err != nil {
		return x, fmt.Errorf("find tare's own executable, which runs the benchmarks: %w", err)
	}
	return area.Composed{
		Text: benchText(p, self, file, f), Label: "compares",
		What: fmt.Sprintf("%s with %s: %s", p.Sides[1].Label, p.Sides[0].Label, unit.Count(len(p.Benchmarks), "benchmark")),
	}, nil
}

func benchCache(log *slog.Logger, getenv func(string) (string, bool)) build.Cache {
	return build.Cache{Sub: "gobench", Log: log, Getenv: getenv}
}

const (
	usualBatch = 50 * time.Millisecond // several times as long as a kernel lets a process run before another
	leastBatch = 10 * time.Millisecond
	// mostOperations is how many a file can name; without names all are measured.
	mostOperations = 32
)

// benchText writes the experiment.
func benchText(p gobench.Plan, self, file string, f *benchFlags) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("# Benchmarks of two builds; composed by tare bench, which keeps the builds in its cache")
	line("name: bench\narea: exec\nquestion: compare")
	line("target:\n  program: [%q, bench-driver, %q]", self, file)
	_, _, rounds := p.Tool.Usual() // each a process: the luck of one does not weigh much
	line("  rounds: %d\n  patience: 10m", rounds)
	if len(p.Benchmarks) <= mostOperations {
		var names []string
		for _, b := range p.Benchmarks {
			names = append(names, b.Operation)
		}
		line("  operations: %s", kit.QuoteList(names)) // quoted, since Null alone is no name in YAML
	}
	if len(f.env) > 0 {
		line("  env: [%s]", strings.Join(f.env, ", "))
	}
	line("baseline: {%s: %q}", gobench.Factor, p.Sides[0].Label)
	line("treatments:\n  - {%s: %q}", gobench.Factor, p.Sides[1].Label)
	if f.blocks != 0 {
		line("blocks: %d", f.blocks)
	}
	return b.String()
}

// benchOptions parses what stands after --, as go test would.
func benchOptions(args []string) (o gobench.Options, err error) {
	o = gobench.Options{Old: args[0], New: args[1], CPU: runtime.GOMAXPROCS(0)}
	fs := flag.NewFlagSet("", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	bench := fs.String("bench", ".", "")
	skip := fs.String("skip", "", "")
	short := fs.Bool("short", false, "")
	fs.Bool("benchmem", true, "")
	fs.IntVar(&o.CPU, "cpu", o.CPU, "")
	fs.DurationVar(&o.Span, "benchtime", 0, "")
	fs.DurationVar(&o.Warm, "warmup", 0, "")
	for _, name := range []string{"tags", "gcflags", "ldflags", "asmflags", "mod", "modfile", "pgo"} {
		fs.Func(name, "", func(v string) error { o.BuildFlags = append(o.BuildFlags, "-"+name+"="+v); return nil })
	}
	for _, name := range []string{"race", "trimpath", "msan", "asan"} {
		fs.BoolFunc(name, "", func(v string) error { o.BuildFlags = append(o.BuildFlags, "-"+name+"="+v); return nil })
	}
	for rest := args[2:]; len(rest) > 0; {
		if err := fs.Parse(rest); err != nil {
			return o, area.Usage("after --: %w; it takes packages, -bench, -skip, -cpu N, -short, -benchtime DURATION, "+
				"-warmup DURATION and flags of "+
				"go build; how often is said by --blocks", err)
		}
		if rest = fs.Args(); len(rest) > 0 {
			o.Packages, rest = append(o.Packages, rest[0]), rest[1:]
		}
	}
	o.Match, o.Skip = *bench, *skip
	fs.Visit(func(given *flag.Flag) {
		if slices.Contains([]string{"benchmem", "cpu", "short"}, given.Name) {
			o.OnlyGo = append(o.OnlyGo, given.Name)
		}
	})
	for _, d := range []time.Duration{o.Span, o.Warm} {
		if d != 0 && (d < leastBatch || d > 10*time.Second) {
			return o, area.Usage("after --: -benchtime and -warmup: want 10ms to 10s, not %v", d)
		}
	}
	if o.CPU < 1 {
		return o, area.Usage("after --: -cpu %d: want 1 processor or more", o.CPU)
	}
	o.TestFlags = []string{"-test.bench=" + *bench, "-test.short=" + strconv.FormatBool(*short)}
	if *skip != "" {
		o.TestFlags = append(o.TestFlags, "-test.skip="+*skip)
	}
	return o, nil
}

// builds is area.Parts.Builds. None is current: whether what tare bench has built is asked for again is not known.
func builds(_ context.Context, env area.Env) ([]area.Builds, error) {
	cache := benchCache(env.Log, kit.Environment(env.Getenv))
	return kit.Builds("Go benchmarks", cache, build.Survey{
		Wanted: func(string) bool { return false },
		Now:    env.Clock.Now(),
	})
}
