package cli

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"tare/area"
	"tare/internal/analyze"
	"tare/internal/clock"
	"tare/internal/config"
	"tare/internal/design"
	"tare/internal/doctor"
	"tare/internal/kit"
	"tare/internal/load"
	"tare/internal/proc"
	"tare/internal/ratelimit"
	"tare/internal/record"
	"tare/internal/run"
	"tare/internal/run/drive"
	"tare/internal/term"
)

// resultsDir is the folder of records.
const resultsDir = "results"

func (a *app) runCommand() *cobra.Command {
	var outputs []string
	var results string
	var dryRun, prove bool
	var resume, yes string
	var add int
	var change sourceFlags
	c := &cobra.Command{
		Use: "run [FILE]", Short: "Run an experiment and report", Args: atMostOne("FILE"),
		Long: "Runs the experiment in FILE ('-' is standard input), writes a record to a new folder below\n" +
			"results/, and prints the report.\n\n" +
			"The first interrupt (Ctrl-C) undoes all changes and writes a partial report; the second one stops\n" +
			"immediately.\n\n" +
			"--resume RUN continues a comparison that was interrupted or killed. --add-blocks N adds blocks to a\n" +
			"finished comparison, up to the next look: to RUN, or to the latest run of FILE.\n\n" +
			"Exit codes: 0 pass, 1 error, 2 usage or file, 10 budget broken, 11 inconclusive, 12 run invalid, 13 a\n" +
			"control was not in force, 14 a treatment permits what the baseline refuses, 130 interrupted, with all\n" +
			"changes undone (with 1 if something is left, as after a second interrupt).",
		RunE: func(c *cobra.Command, args []string) error {
			ctx, stop := a.interruptible(c.Context())
			defer stop()
			outs, err := parseOutputs(outputs)
			if err != nil {
				return err
			}
			return a.start(ctx, args, startFlags{
				dryRun: dryRun, yes: yes, prove: prove, resume: resume, add: add, results: results, sourceFlags: change,
			}, outs)
		},
	}
	outputFlag(c, &outputs)
	a.inconclusiveFlag(c)
	c.Flags().StringVar(&results, "results", resultsDir, "folder for records")
	c.Flags().BoolVar(&dryRun, "dry-run", false, "show what would be done, as 'tare plan' does")
	c.Flags().StringVar(&resume, "resume", "", "continue this `RUN`, a folder or a name below results/")
	c.Flags().StringVar(&yes, "yes", "",
		"with --resume or --add-blocks: continue a record that this user did not make on this host: the `NUMBER` of\n"+
			"what an earlier call has shown")
	change.add(c)
	proveFlag(c, &prove)
	c.Flags().IntVar(&add, "add-blocks", 0,
		"measure at least this many more blocks of a finished comparison, whatever load.max_time says")
	return c
}

// proveFlag is a flag of the commands that search for a capacity.
func proveFlag(c *cobra.Command, prove *bool) {
	c.Flags().BoolVar(prove, "prove", true,
		"after a search, change a limit of what tare itself started for some seconds, to try what follows from it")
}

// startFlags say how a run begins.
type startFlags struct {
	sourceFlags

	dryRun          bool
	yes             string // the number of what continuing another's record would do
	prove           bool
	resume, results string
	add             int
}

// start starts a new run or continues one, as the flags say.
func (a *app) start(ctx context.Context, args []string, f startFlags, outs []output) error {
	switch {
	case f.add < 0:
		return usage("--add-blocks %d: want a number above 0", f.add)
	case f.resume != "" && (len(args) > 0 || f.dryRun || f.given()):
		return usage("--resume takes the experiment from the record; leave out FILE, --dry-run, --full, --set and --max-rate")
	case f.yes != "" && f.resume == "" && f.add == 0:
		return usage("--yes %s: it takes the number that an earlier call has shown, and goes with --resume or --add-blocks",
			f.yes)
	case f.resume != "":
		dir, err := findRecord(f.resume, f.results)
		if err != nil {
			return err
		}
		return a.resume(ctx, dir, f.add, f.yes, outs)
	case len(args) == 0:
		return usage("name the experiment file, or a run to continue: --resume RUN")
	}
	src, err := a.read(args[0])
	if err == nil {
		src, err = f.change(src)
	}
	switch {
	case err != nil:
		return err
	case f.dryRun:
		return a.plan(ctx, src, f.full, false)
	case f.add > 0:
		dir, err := latest(f.results, src.text)
		if err != nil {
			return err
		}
		return a.resume(ctx, dir, f.add, f.yes, outs)
	}
	return a.run(ctx, src, f, outs)
}

// run runs an experiment.
func (a *app) run(ctx context.Context, src source, f startFlags, outs []output) error {
	ar, e, err := a.ready(src, f.full)
	if err == nil {
		err = enoughBlocks(e, src.set)
	}
	if err != nil {
		return err
	}
	e, out, err := a.trim(ctx, ar, e, false)
	if err != nil {
		return err
	}
	if err := a.preflight(ctx, ar, e); err != nil {
		return err
	}
	made, err := a.program(ctx, ar, e, area.Env{})
	if err != nil {
		return err
	}
	// the seed fits a JSON number exactly
	s := execution{area: ar, e: e, left: out, seed: rand.Uint64() >> 11, most: e.Blocks, prove: f.prove}
	if e.Seed != nil {
		s.seed = *e.Seed
	}
	h := a.header(e, src.file, s.seed, f.full)
	h.Program, h.Key = made.Identity, a.key()
	if s.w, err = record.Create(f.results, h, src.text, clock.System{}); err != nil {
		return err
	}
	unlock, err := lockRecord(s.w.Dir())
	if err != nil {
		return errors.Join(err, s.w.Close())
	}
	defer unlock()
	return a.finish(s.w.Dir(), a.carryOut(ctx, &s), outs)
}

// seenFirst are the exit codes of what was seen before a run ended in an error, and is often why it did.
var seenFirst = []int{ExitInvalid, ExitNotInForce, ExitPermits}

// finish reports the record in dir of a run that ended with err.
func (a *app) finish(dir string, err error, outs []output) error {
	if err != nil {
		n, isPrepare := errors.AsType[*run.NotPrepared](err)
		if isPrepare && slices.ContainsFunc(outs, func(o output) bool { return o.form == "text" && o.file == "" }) {
			a.tell("tare: %s could not be prepared; the report says why\n", n.Treatment)
		} else {
			a.tell("tare: %v\n", err)
		}
		if hint := area.HintOf(err); hint != "" {
			a.tell("  next: %s\n", hint)
		}
	}
	rec, reported := a.report(dir, outs)
	a.tell("record  %s\n", dir)
	a.tellPending(rec)
	var x *exit
	if err != nil && (reported == nil || errors.As(reported, &x) && !slices.Contains(seenFirst, x.code)) {
		return &exit{code: ExitError, cause: err, quiet: true}
	}
	return reported
}

// tellPending lists the changes that a run did not undo, and the next step.
func (a *app) tellPending(rec *record.Record) {
	if rec == nil {
		return // the report explains it
	}
	pending := rec.Pending()
	if len(pending) == 0 {
		return
	}
	a.tell("according to the record, not undone:\n")
	for _, c := range pending {
		a.tell("  %s %q\n", c.Kind, c.ID)
	}
	a.tell("next: tare undo %s\n", rec.Dir)
}

// preflight prints what the area found missing on this host. look: nothing will be measured, and all findings are
// wanted.
func (a *app) preflight(ctx context.Context, ar area.Area, e *config.Experiment) error {
	found, err := a.examine(ctx, ar, e, false)
	if err != nil {
		return err
	}
	return a.judge(found, false)
}

// limit returns a limiter of a step of the command. What the steps before it have sent counts: its first request waits
// for its turn.
func (a *app) limit(by clock.Clock, rate float64) *ratelimit.Limiter {
	l := ratelimit.New(by, rate).After(a.limiter)
	if l != nil {
		a.limiter = l
	}
	return l
}

// examine asks the area what is missing on this host.
func (a *app) examine(ctx context.Context, ar area.Area, e *config.Experiment, look bool) ([]area.Finding, error) {
	env, err := a.areaEnv(".")
	if err != nil {
		return nil, err
	}
	env.Trespasses, env.Treatments, env.Look = e.Load.Trespass > 0, e.Arms(), look
	env.Operations = e.Load.Operations.Names()
	env.Limit = a.limit(env.Clock, float64(e.Load.MaxRate))
	found := append(kit.ExposedSecrets(e.Target, env.Treatments), tryPins(e.Pin)...)
	return append(found, ar.Preflight(ctx, e.Target, env)...), nil
}

// tryPins returns a finding for each list of processors to which no process can be bound on this host.
func tryPins(p config.Pin) (found []area.Finding) {
	all, err := proc.Allowed()
	if err != nil {
		return nil // the run says so, if it has to bind anything
	}
	for _, x := range []struct {
		path string
		list config.CPUs
	}{{"pin.generator", p.Generator}, {"pin.target", p.Target}} {
		cpus, err := x.list.List()
		if err == nil && len(cpus) > 0 {
			err = errors.Join(proc.Pin(cpus), proc.Pin(all))
		}
		if err != nil {
			found = append(found, area.Finding{
				Path: x.path, Severity: area.Error, Message: x.path + ": " + err.Error(), Hint: "name processors that tare may use",
			})
		}
	}
	return found
}

// isRunnable reports whether none of the findings keeps the experiment from running.
func isRunnable(found []area.Finding) bool {
	return !slices.ContainsFunc(found, func(f area.Finding) bool { return f.Severity == area.Error })
}

// judge prints findings, including merely informative ones for a plan (look). It fails if one of them keeps the
// experiment from running.
func (a *app) judge(found []area.Finding, look bool) error {
	for _, f := range found {
		if f.Severity == area.Info && !a.verbose && !look {
			continue
		}
		a.tellFinding(f)
	}
	return unrunnable(found)
}

// tellFinding prints a finding.
func (a *app) tellFinding(f area.Finding) {
	a.judged(a.Stderr, f.Severity.String(), "  %s\n", f.Message)
	hint := f.Hint
	if a.isOneLine {
		hint = asFlags.Replace(hint)
	}
	if hint != "" {
		a.tell("  next: %s\n", hint)
	}
}

// unrunnable is the error about findings that keep an experiment from running.
func unrunnable(found []area.Finding) error {
	if isRunnable(found) {
		return nil
	}
	return &exit{code: ExitError, cause: errors.New("the experiment cannot start: resolve the errors above")}
}

// execution is one execution of a run: a new run, or a continued one.
type execution struct {
	area  area.Area
	e     *config.Experiment
	seed  uint64
	w     *record.Writer
	left  []string                  // what was left out of the file, and why
	from  int                       // complete blocks of a continued run
	lost  int                       // of those, the ones whose times are unusable
	most  int                       // largest number of blocks
	added bool                      // it is the user who asked for that number, whatever time it takes
	sizes map[string]map[string]int // calls per batch, of a continued run
	prove bool                      // move the target's levers after a search
}

// carryOut measures, and finishes the record.
func (a *app) carryOut(ctx context.Context, s *execution) (err error) {
	dir := s.w.Dir()
	defer func() { err = errors.Join(err, s.w.Close()) }()
	env, err := a.areaEnv(dir)
	if err != nil {
		return err
	}
	env.Run, env.Trespasses = s.w.Run(), s.e.Load.Trespass > 0
	env.Treatments, env.Operations = s.e.Arms(), s.e.Load.Operations.Names()
	env.Limit = a.limit(env.Clock, float64(s.e.Load.MaxRate))
	failed := func(err error) error {
		return errors.Join(err, s.w.Finish(record.Finish{Status: record.Errored, Error: err.Error()}))
	}
	for _, text := range s.left {
		if err := s.w.Warning(record.Warning{Text: text}); err != nil {
			return failed(err)
		}
	}
	for _, f := range kit.ExposedSecrets(s.e.Target, env.Treatments) {
		if err := s.w.Note(record.Note{Text: f.Message}); err != nil {
			return failed(err)
		}
	}
	unpin, err := pin(s.e.Pin, &env)
	if err != nil {
		return failed(err)
	}
	defer unpin()
	unlock, err := lockTargets(s.e, dir, env.Clock.Now())
	if err != nil {
		return failed(err)
	}
	defer unlock()
	defer a.interrupts.begin(s.w)()
	v := term.New(a.Stderr, a.Getenv)
	defer v.Close()
	req := request(s.e, s.seed)
	req.Events = drive.NewView(s.e.Question, s.e.Name, v)
	req.Area, req.Env, req.Writer, req.Load.Prove = s.area, env, s.w, s.prove
	if s.most > 0 {
		within := time.Duration(s.e.Load.MaxTime)
		if s.added {
			within = 0
		}
		req.Blocks = run.Blocks{
			Most: s.most, Spare: design.Spare(s.most), From: s.from, Lost: s.lost, Within: within,
			Margin: float64(s.e.Margin), MarginGiven: !s.e.DefaultMargin, Factors: factors(s.e), Sizes: s.sizes,
			Decide: decide(dir, s.most),
		}
	}
	_, err = drive.Do(ctx, req)
	return err
}

// decide judges the blocks that the record in dir holds, out of at most most planned ones.
func decide(dir string, most int) func(int, int) (run.Decision, error) {
	return func(_, look int) (run.Decision, error) {
		rec, err := record.Open(dir)
		if err != nil {
			return run.Decision{}, err
		}
		rep, err := analyze.Analyze(rec, analyze.Options{})
		if err != nil {
			return run.Decision{}, err
		}
		stop, reason := analyze.Decide(rep)
		lost, more := analyze.LostBlocks(rep, look, most)
		return run.Decision{Stop: stop, Reason: reason, Lost: lost, More: more, Hint: analyze.LossHint(rep)}, nil
	}
}

// request returns the runner's request for the file.
func request(e *config.Experiment, seed uint64) run.Request {
	l := run.Load{
		Config: e.Load.Config(seed), Poisson: e.Load.Arrivals == config.Poisson, Ramp: e.Load.Arrivals == config.Ramp,
		Rate: float64(e.Load.Rate), Duration: time.Duration(e.Load.Duration), MaxTime: time.Duration(e.Load.MaxTime),
		Trespass: float64(e.Load.Trespass), KeepMix: e.Load.KeepMix,
	}
	l.Conditions, l.Commands = e.Load.BroughtAbout()
	l.Turns, l.NoTurns = e.LayTurns()
	if w := e.Load.Closed; w != nil {
		l.Closed = &load.Closed{Workers: w.Workers, Ramp: time.Duration(w.Ramp)}
	}
	for _, r := range e.Load.Rates {
		l.Rates = append(l.Rates, float64(r))
	}
	for i, w := range e.Load.Workloads {
		l.GrowGap = time.Microsecond // simultaneous callers do not wait for each other's connections
		l.Workloads = append(l.Workloads, run.Workload{
			Name: w.Title(), Rate: w.PerSecond(), Process: w.Process(e.Load.Arrivals, seed+uint64(i)), Stage: w.Stage(),
		})
	}
	if s := e.Load.SLO; s != nil {
		l.SLO, l.SLOShare = time.Duration(s.Limit), float64(s.Share)
	}
	budgets, _ := e.Budgets() // they were parsed before
	for i := range budgets {
		if at := budgets[i].At; at > 0 {
			l.Budgeted = append(l.Budgeted, at)
		}
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
	return run.Request{Spec: e.Target, Question: e.Question, Treatments: e.Arms(), Load: l, Seed: seed, Budget: e.Budget}
}

// header describes the experiment, the tool and the host.
func (a *app) header(e *config.Experiment, file string, seed uint64, full bool) record.Header {
	v, commit := buildVersion()
	h := record.Header{
		Tool:       record.Tool{Version: v, Commit: commit},
		Experiment: record.Experiment{Name: e.Name, File: file, Seed: seed, Full: full},
		Area:       e.Area,
		Question:   e.Question,
		Host:       record.Host{CPUs: runtime.NumCPU(), Go: runtime.Version(), Arch: runtime.GOARCH},
	}
	h.Host.Name, _ = os.Hostname() // absent if unknown
	h.Host.Kernel = doctor.Kernel()
	return h
}

// pin binds the generator (this process) and the embedded servers to their processors.
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
	// The generator's event loops keep their share of the scheduler while they sleep; the search needs one of its own.
	procs := runtime.GOMAXPROCS(max(2, n))
	return func() {
		runtime.GOMAXPROCS(procs)
		_ = proc.Pin(all)
	}, err
}
