// Package run is the stage of an experiment: it prepares a target, puts treatments in force and verifies them, lets a
// drive measure them, and undoes everything. It journals all that happens: its only product is the record. Package
// run/drive has the drives.
package run

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"tare/area"
	"tare/internal/design"
	"tare/internal/kit"
	"tare/internal/load"
	"tare/internal/record"
)

// closeWithin bounds the undoing of all changes, even after an interrupt; pacedWithin does so for a target with a rate
// limit, where a thousand objects are removed one after another.
const (
	closeWithin = time.Minute
	pacedWithin = 10 * time.Minute
)

// Request is all that a run needs.
type Request struct {
	Area       area.Area
	Spec       area.Spec
	Env        area.Env
	Question   design.Question
	Treatments []design.Treatment
	Load       Load
	Seed       uint64
	Budget     []string // as written in the file; the analysis judges it
	Writer     *record.Writer
	// Blocks lay out a comparison; a capacity experiment has none.
	Blocks Blocks
	// Open opens streams of load; nil: load.Open.
	Open func(context.Context, load.Config) (load.Stream, error)
	// Events receives the run's events for a live view, from the run's own goroutine. May be nil.
	Events func(Event)
}

// Load describes the load.
type Load struct {
	load.Config // how a stream carries calls, without what depends on the arm
	Poisson     bool
	Ramp        bool         // arrivals from 0 to Rate, linearly over Duration
	Rate        float64      // 1/s; that at which a search starts, where 0 is the search's own
	Rates       []float64    // a ladder instead of a search
	Closed      *load.Closed // workers instead of a rate
	// Duration is the length of a comparison's trial, of the measured part of a soak, or of a ladder's point.
	Duration time.Duration
	// Workloads are points of a ladder that are not just a rate.
	Workloads []Workload
	SLO       time.Duration
	SLOShare  float64
	// Budgeted are the rates at which budgets want calls to be judged.
	Budgeted []float64
	MaxTime  time.Duration
	Weights  map[string]int // the mix by operation; nil: the target's own
	// Trespass is the share of calls that the control must refuse, 0…1.
	Trespass float64
	// Conditions are the names of those that the target shall bring about; nil: all that it can. Commands are conditions
	// of the file's own.
	Conditions []string
	Commands   []kit.ByCommand
	// KeepMix leaves the trespasses of the mix in it with their weights: Trespass is the share of those that it lacks.
	KeepMix bool
	Abort   *Abort
	// Turns lays out the blocks in which the treatments take turns; nil: they have trials, one after another.
	Turns *design.Turns
	// NoTurns says why they have trials of their own; empty where nothing has to be said.
	NoTurns string
	// Prove moves the levers that the target has, one after another, to try what a limit predicts.
	Prove bool
}

// workers is the number of workers of a closed loop; 0: the loop is open.
func (l *Load) workers() int {
	if l.Closed == nil {
		return 0
	}
	return l.Closed.Workers
}

// A Workload is one shape of load, offered after the target has reached a stage.
type Workload struct {
	Name    string
	Rate    float64 // 1/s during the load
	Process load.Process
	Stage   area.Stage // empty: unchanged
}

// Blocks lay out a comparison: randomised complete blocks, judged at a few looks.
type Blocks struct {
	Most        int           // maximum number of blocks
	Spare       int           // additional blocks, to replace blocks whose times cannot be used
	From        int           // complete blocks that the record holds already
	Lost        int           // of those, the blocks whose times cannot be used
	Within      time.Duration // no block starts that would end later; 0: unbounded
	Margin      float64       // the largest effect that counts as equivalent, as a share
	MarginGiven bool          // somebody set the margin
	// Factors are the varied factors, for the record.
	Factors []record.Factor
	// Sizes are the calls of a batch by operation and treatment, of a continued run; nil: calibrate them.
	Sizes map[string]map[string]int
	// Decide judges the blocks so far, at the look that was planned after look blocks, and says whether they are enough.
	// It is called at looks only, since each uses a part of the allowed error.
	Decide func(blocks, look int) (Decision, error)
}

// Decision is the result of a look.
type Decision struct {
	Stop   bool
	Reason string // why the run may stop, or what is still undecided
	Lost   int    // blocks whose times cannot be used
	Hint   string // what to do about that; empty: few are lost
	// More is how many replacement blocks must be measured before the look counts; until then the rest of the decision is
	// void.
	More int
}

// Looks returns the planned looks, by the blocks that precede each.
func (b Blocks) Looks() []int {
	if b.Most == 0 {
		return nil
	}
	return design.Looks(b.Most)
}

// Event is the state of a run.
type Event struct {
	Phase     Phase
	Treatment string
	Trial     int // from 1
	Trials    int
	// Detail is what the drive says of its measuring, for its live view. It is nil in the events of the stage.
	Detail any
}

// Phase is a part of a run.
type Phase string

// The phases.
const (
	Preparing Phase = "preparing"
	Verifying Phase = "verifying"
	WarmingUp Phase = "warming up"
	Measuring Phase = "measuring"
	Looking   Phase = "looking"
	Undoing   Phase = "undoing"
)

// A Drive is a way to measure: what it does between the preparation and the end of a run.
type Drive struct {
	// Measure measures the planned trials, by means of the stage.
	Measure func(ctx context.Context, s *Stage, plan []design.Trial) error
	// Interrupted is what an interrupted trial counts as.
	Interrupted record.Status
	// ProveAgain has treatments proved in force after their trials, too: of those that last long, or overload, and in
	// which nothing is asked that must be refused.
	ProveAgain bool
}

// A Stage is one run in progress. Drives use its exported methods, and those of an Arm.
type Stage struct {
	Request
	Target area.Target
	// OnlyAllowed leaves the trespasses out of the calls, and what is a trespass out of the mix.
	OnlyAllowed bool

	drive  Drive
	start  time.Time
	trials int
	noted  []string // notes and warnings of the target that are in the record
	// placed is where generator and target run, by treatment.
	placed  map[string]*record.Placement
	renewed map[design.Trial]bool // before which the target started afresh what its treatment needs
	journal journal
	left    error // why not everything was undone, or why the record does not say so
}

// Do carries out r by a drive. It returns how the run ended, which the record also says unless writing that failed. It
// undoes all changes before it returns, even when ctx ends: its error then only says what could not be undone.
func Do(ctx context.Context, r Request, d Drive) (record.Status, error) {
	x := &Stage{
		Request: r, drive: d, start: r.Env.Clock.Now(), journal: journal{to: r.Writer}, renewed: map[design.Trial]bool{},
	}
	err := x.do(ctx)
	status := record.Complete
	switch {
	case err != nil && ctx.Err() != nil:
		status, err = record.Interrupted, nil
	case err != nil || x.left != nil:
		status = record.Errored
	}
	err = errors.Join(err, x.left)
	f := record.Finish{Status: status, Seconds: x.seconds()}
	if err != nil {
		f.Error = err.Error()
	}
	return status, errors.Join(err, x.Writer.Finish(f))
}

func (x *Stage) seconds() float64 { return x.Env.Clock.Now().Sub(x.start).Seconds() }

// Tell tells the live view what the run does.
func (x *Stage) Tell(e Event) {
	if x.Events != nil {
		e.Trials = x.trials
		x.Events(e)
	}
}

func (x *Stage) do(ctx context.Context) (err error) {
	if x.drive.Measure == nil {
		return fmt.Errorf("this tare cannot measure question %q", x.Question)
	}
	x.Target, err = x.Area.Open(ctx, x.Spec, x.Env)
	if err != nil {
		return fmt.Errorf("open the target: %w", err)
	}
	defer func() {
		err = errors.Join(err, x.notes())
		x.left = x.undo(ctx)
	}()
	plan := design.Plan(design.Experiment{
		Treatments: x.Treatments,
		Blocks:     max(1, x.Blocks.Most+x.Blocks.Spare), Seed: x.Seed,
	})
	x.trials = len(x.Treatments) * max(1, x.Blocks.Most)
	if err := x.plan(plan[:x.trials]); err != nil {
		return err
	}
	for _, t := range x.Treatments {
		if err := x.prepare(ctx, t); err != nil {
			return err
		}
	}
	if err := x.rule(ctx); err != nil {
		return err
	}
	if err := x.notes(); err != nil {
		return err
	}
	return x.drive.Measure(ctx, x, plan)
}

// notes writes those notes and warnings of the target that are not in the record yet: some are known only at the end.
func (x *Stage) notes() error {
	can := x.Target.Can()
	if can.Warnings != nil {
		for _, text := range can.Warnings() {
			err := x.once(text, func() error { return x.Writer.Warning(record.Warning{Text: text}) })
			if err != nil {
				return err
			}
		}
	}
	var notes []string
	if can.Notes != nil {
		notes = can.Notes()
	}
	if x.Load.KeepMix {
		notes = append(notes, fmt.Sprintf("the file gives no load.trespass: %.3g %% of the calls, besides those of its mix, "+
			"must be refused", x.Load.Trespass*100))
	}
	for _, n := range notes {
		if err := x.once(n, func() error { return x.Writer.Note(record.Note{Text: n}) }); err != nil {
			return err
		}
	}
	return nil
}

// once writes a text of the target that is not in the record yet.
func (x *Stage) once(text string, write func() error) error {
	if slices.Contains(x.noted, text) {
		return nil
	}
	x.noted = append(x.noted, text)
	return write()
}

// undo undoes everything. An interrupt must not cut it short.
func (x *Stage) undo(ctx context.Context) error {
	x.Tell(Event{Phase: Undoing})
	within := closeWithin
	if x.Env.Limit != nil {
		within = pacedWithin
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), within)
	defer cancel()
	if e := x.Target.Close(ctx); e != nil {
		return fmt.Errorf("undo what the run created: %w", errors.Join(e, x.journal.lost()))
	}
	return x.journal.lost()
}

func (x *Stage) plan(trials []design.Trial) error {
	l := x.Load
	arrivals := "constant"
	switch {
	case l.Poisson:
		arrivals = "poisson"
	case l.Ramp:
		arrivals = "ramp"
	}
	return x.Writer.Plan(record.Plan{
		Treatments: x.Treatments, Trials: trials, Load: record.Load{
			Engine: string(l.Engine), Arrivals: arrivals, Timeout: l.Timeout.Seconds(), MaxRate: l.MaxRate,
			MaxConnections: l.MaxConns, Rates: l.Rates,
			Rate: l.Rate, Workers: l.workers(), Duration: l.Duration.Seconds(), Turns: l.Turns, NoTurns: l.NoTurns,
		}, Budget: x.Budget, Margin: x.Blocks.Margin, MarginGiven: x.Blocks.MarginGiven, Factors: x.Blocks.Factors,
		Blocks: x.Blocks.Most, Looks: x.Blocks.Looks(), Quantities: x.Area.Parts().Quantities,
	})
}

// NotPrepared is the error of a treatment that could not be prepared; the record has it, too.
type NotPrepared struct {
	Treatment string
	Cause     error
}

// Error implements error.
func (n *NotPrepared) Error() string { return fmt.Sprintf("prepare %s: %v", n.Treatment, n.Cause) }

// Unwrap returns the cause.
func (n *NotPrepared) Unwrap() error { return n.Cause }

func (x *Stage) prepare(ctx context.Context, t design.Treatment) error {
	x.Tell(Event{Phase: Preparing, Treatment: t.ID})
	begin := x.Env.Clock.Now()
	err := x.Target.Prepare(ctx, t, &x.journal)
	p := record.Prepare{Treatment: t.ID, Seconds: x.Env.Clock.Now().Sub(begin).Seconds()}
	if err != nil {
		p.Error = err.Error()
		err = &NotPrepared{t.ID, err}
	}
	return errors.Join(err, x.Writer.Prepare(p))
}

// rule writes what the controls decided about requests that were asked under every treatment.
func (x *Stage) rule(ctx context.Context) error {
	find := x.Target.Can().Rulings
	if find == nil {
		return nil
	}
	rulings, err := find(ctx)
	if err != nil {
		return err
	}
	for _, t := range x.Treatments {
		of, asked := rulings[t.ID]
		if !asked {
			continue
		}
		p := record.Prepare{Treatment: t.ID, Changed: map[string][]string{}, Unasked: of.Unasked}
		for _, r := range of.Of {
			switch {
			case r.Undecided:
				p.Undecided = append(p.Undecided, r.Request)
			case r.Refused:
				p.Refused = append(p.Refused, r.Request)
			default:
				p.Permitted = append(p.Permitted, r.Request)
			}
			if r.Known {
				p.Changed[r.Request] = append([]string{}, r.Changes...)
			}
		}
		if err := x.Writer.Prepare(p); err != nil {
			return err
		}
	}
	return nil
}

// treatment returns a planned treatment.
func (x *Stage) treatment(id string) design.Treatment {
	for _, t := range x.Treatments {
		if t.ID == id {
			return t
		}
	}
	return design.Treatment{ID: id}
}
