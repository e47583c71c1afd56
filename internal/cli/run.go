package cli

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"tare/internal/area"
	"tare/internal/config"
	"tare/internal/proc"
	"tare/internal/record"
	"tare/internal/run"
)

// resultsDir is where records go.
const resultsDir = "results"

func (a *app) runCommand() *cobra.Command {
	var outputs []string
	var results string
	var dryRun bool
	c := &cobra.Command{
		Use: "run FILE", Short: "Carry out an experiment and report", Args: exactly("FILE"),
		Long: "Carries out the experiment in FILE, leaves a record in a folder of its own below results/, and prints the report.\n\n" +
			"The first interrupt (Ctrl-C) undoes all changes and writes a partial report; the second one stops at once.\n\n" +
			"Exit codes: 0 pass, 1 error, 2 usage or file, 10 budget broken, 11 inconclusive, 12 run invalid, 130 interrupted.",
		RunE: func(c *cobra.Command, args []string) error {
			if dryRun {
				return a.plan(c.Context(), args[0])
			}
			outs, err := parseOutputs(outputs)
			if err != nil {
				return err
			}
			return a.run(c.Context(), args[0], results, outs)
		},
	}
	outputFlag(c, &outputs)
	c.Flags().StringVar(&results, "results", resultsDir, "folder for records")
	c.Flags().BoolVar(&dryRun, "dry-run", false, "say what would be done, as 'tare plan' does")
	return c
}

func (a *app) run(ctx context.Context, file, results string, outs []output) error {
	e, src, err := a.experiment(file)
	if err != nil {
		return err
	}
	ar, err := a.area(e.Area)
	if err != nil {
		return err
	}
	e = e.WithDefaults()
	if err := a.preflight(ctx, ar, e); err != nil {
		return err
	}
	dir, err := a.measure(ctx, ar, e, file, src, results)
	if dir == "" {
		return err
	}
	if err != nil {
		a.tell("tare: %v\n", err)
	}
	reported := a.report(dir, outs)
	a.tell("record  %s\n", dir)
	var x *exit
	if err != nil && (reported == nil || errors.As(reported, &x) && x.code != ExitInterrupted) {
		return &exit{code: ExitError, cause: err, quiet: true}
	}
	return reported
}

// preflight prints what the area found missing on this host.
func (a *app) preflight(ctx context.Context, ar area.Area, e *config.Experiment) error {
	env, err := a.areaEnv(".")
	if err != nil {
		return err
	}
	bad := 0
	for _, f := range ar.Preflight(ctx, e.Target, env) {
		if f.Severity == area.Info && !a.verbose {
			continue
		}
		a.tell("%s  %s\n", f.Severity, f.Message)
		if f.Hint != "" {
			a.tell("  next: %s\n", f.Hint)
		}
		if f.Severity == area.Error {
			bad++
		}
	}
	if bad > 0 {
		return &exit{code: ExitError, cause: errors.New("this host cannot run the experiment"), quiet: false}
	}
	return nil
}

// measure carries out the experiment and returns the record's folder, also when it failed; "" when there is none.
func (a *app) measure(ctx context.Context, ar area.Area, e *config.Experiment, file string, src []byte, results string) (dir string, err error) {
	env, err := a.areaEnv(".")
	if err != nil {
		return "", err
	}
	seed := rand.Uint64() >> 11 // fits a JSON number exactly
	if e.Seed != nil {
		seed = *e.Seed
	}
	w, err := record.Create(results, a.header(e, file, seed), src, env.Clock)
	if err != nil {
		return "", err
	}
	dir = w.Dir()
	defer func() { err = errors.Join(err, w.Close()) }()
	if env, err = a.areaEnv(dir); err != nil {
		return dir, err
	}
	unpin, err := pin(e.Pin, &env)
	if err != nil {
		return dir, errors.Join(err, w.Finish(record.Finish{Status: record.Errored, Error: err.Error()}))
	}
	defer unpin()
	unlock, err := lock(e, dir, env.Clock.Now())
	if err != nil {
		return dir, errors.Join(err, w.Finish(record.Finish{Status: record.Errored, Error: err.Error()}))
	}
	defer unlock()
	ctx, stop := a.interruptible(ctx, dir)
	defer stop()
	v := a.newView(e)
	defer v.close()
	req := request(e, seed)
	req.Area, req.Env, req.Writer, req.Events = ar, env, w, v.event
	_, err = run.Do(ctx, req)
	return dir, err
}

// request is what the file asks the runner for.
func request(e *config.Experiment, seed uint64) run.Request {
	c := e.Load.Config(seed)
	l := run.Load{
		Engine: c.Engine, Poisson: e.Load.Arrivals == config.Poisson, Timeout: c.Timeout, MaxRate: c.MaxRate, MaxConns: c.MaxConns,
		Start: float64(e.Load.Rate), Point: time.Duration(e.Load.Duration), MaxTime: time.Duration(e.Load.MaxTime),
		Spin: c.Spin, Precise: c.Precise, Shards: c.Shards,
	}
	for _, r := range e.Load.Rates {
		l.Rates = append(l.Rates, float64(r))
	}
	for i, w := range e.Load.Workloads {
		l.GrowGap = time.Microsecond // callers that come at once do not wait for one another's connections
		l.Workloads = append(l.Workloads, run.Workload{
			Name: w.Title(), Rate: w.PerSecond(), Process: w.Process(e.Load.Arrivals, seed+uint64(i)), Stage: w.Stage(),
		})
	}
	if s := e.Load.SLO; s != nil {
		l.SLO, l.SLOShare = time.Duration(s.Limit), float64(s.Share)
	}
	if x := e.Load.Abort; x != nil {
		l.Abort = &run.Abort{Share: float64(x.Error), For: time.Duration(x.For)}
	}
	for _, o := range e.Load.Operations {
		if l.Weights == nil {
			l.Weights = map[string]int{}
		}
		l.Weights[o.Name] = o.Weight
	}
	return run.Request{Spec: e.Target, Question: e.Question, Treatments: e.Treatments(), Load: l, Seed: seed, Budget: e.Budget}
}

// header says what is run, with what, and where.
func (a *app) header(e *config.Experiment, file string, seed uint64) record.Header {
	v, commit := buildVersion()
	h := record.Header{
		Tool:       record.Tool{Version: v, Commit: commit},
		Experiment: record.Experiment{Name: e.Name, File: file, Seed: seed},
		Area:       e.Area,
		Question:   e.Question,
		Host:       record.Host{CPUs: runtime.NumCPU(), Go: runtime.Version(), Arch: runtime.GOARCH},
	}
	h.Host.Name, _ = os.Hostname() // unknown is absent
	var u unix.Utsname
	if unix.Uname(&u) == nil {
		h.Host.Kernel = unix.ByteSliceToString(u.Sysname[:]) + " " + unix.ByteSliceToString(u.Release[:])
	}
	return h
}

// pin binds the generator, that is this process, and the embedded servers to their processors.
func pin(p config.Pin, env *area.Env) (unpin func(), err error) {
	all, err := proc.Allowed()
	if err != nil {
		return nil, err
	}
	env.CPUs = all
	generator, err := p.Generator.List()
	if err != nil {
		return nil, err
	}
	if target, err := p.Target.List(); err != nil {
		return nil, err
	} else if len(target) > 0 {
		env.CPUs = target
	}
	n := len(all)
	if len(generator) > 0 {
		n = len(generator)
		err = proc.Pin(generator)
	}
	// The generator's event loops hold on to their share of the scheduler while they sleep; the search needs one of its own.
	procs := runtime.GOMAXPROCS(max(2, n))
	return func() {
		runtime.GOMAXPROCS(procs)
		_ = proc.Pin(all)
	}, err
}

// keyed is what a target section may offer: a name for the system that it points at, for systems that are not the run's own.
type keyed interface {
	LockKey() string
}

// lock keeps two runs off one target: each would measure the other.
func lock(e *config.Experiment, dir string, now time.Time) (unlock func(), err error) {
	k, ok := e.Target.(keyed)
	if !ok || k.LockKey() == "" {
		return func() {}, nil
	}
	locks := filepath.Join(os.TempDir(), fmt.Sprintf("tare-locks-%d", os.Getuid()))
	held, err := record.Lock(locks, k.LockKey(), record.Holder{Run: dir, Since: now})
	if err != nil {
		return nil, fmt.Errorf("%w; wait for it to end, or end it", err)
	}
	return func() { _ = held.Unlock() }, nil
}
