// Package run carries out an experiment: it measures a target under load, under each treatment, and journals all that
// happens. Its only product is the record.
package run

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"tare/internal/area"
	"tare/internal/capacity"
	"tare/internal/design"
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
	Engine   load.Engine
	Poisson  bool
	Ramp     bool // arrivals from 0 to Rate, linearly over Duration
	Timeout  time.Duration
	MaxRate  float64 // 1/s; 0: no bound
	MaxConns int
	Start    float64       // first rate of a search, 1/s; 0: the search's own
	Rates    []float64     // a ladder instead of a search
	Rate     float64       // of a trial of a comparison, or of a soak, 1/s
	Closed   *load.Closed  // workers instead of a rate
	Duration time.Duration // of a trial of a comparison, or of the measured part of a soak
	Point    time.Duration
	// Workloads are points of a ladder that are not just a rate.
	Workloads []Workload
	GrowGap   time.Duration // least time between two new connections; 0: the engine's own
	SLO       time.Duration
	SLOShare  float64
	MaxTime   time.Duration
	Weights   map[string]int // the mix by operation; nil: the target's own
	Spin      time.Duration
	Precise   bool
	Shards    int
	Abort     *Abort
}

// Event is the state of a run.
type Event struct {
	Phase     Phase
	Treatment string
	Trial     int // from 1
	Trials    int
	Note      string
	// Capacity is set while a search or a ladder runs.
	Capacity *capacity.Event
	// Block is set while blocks are measured, Look after a judgement of them.
	Block *Block
	Look  *record.Look
	// Soak is set while a soak is under load.
	Soak *Soak
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

// runner is one run in progress.
type runner struct {
	Request
	drive  drive
	target area.Target
	start  time.Time
	begun  time.Time // start of the first block: preparation precedes it
	trials int
	// sizes are the calls of a batch by operation and treatment.
	sizes map[string]map[string]int
	noted []string // notes of the target that are in the record
	due   []int    // remaining looks, by their planned blocks
	again int      // the block after which the first of them is repeated
	// placed is where generator and target run, by treatment.
	placed  map[string]*record.Placement
	journal journal
	left    error // why not everything was undone, or why the record does not say so
}

// Do carries out r. It returns how the run ended, which the record also says unless writing that failed. It undoes all
// changes before it returns, even when ctx ends: its error then only says what could not be undone.
func Do(ctx context.Context, r Request) (record.Status, error) {
	x := &runner{Request: r, start: r.Env.Clock.Now(), journal: journal{to: r.Writer}}
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

func (x *runner) seconds() float64 { return x.Env.Clock.Now().Sub(x.start).Seconds() }

func (x *runner) event(e Event) {
	if x.Events != nil {
		e.Trials = x.trials
		x.Events(e)
	}
}

func (x *runner) do(ctx context.Context) (err error) {
	if x.drive, err = x.driveOf(); err != nil {
		return err
	}
	x.target, err = x.Area.Open(ctx, x.Spec, x.Env)
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
	if err := x.notes(); err != nil {
		return err
	}
	return x.drive.all(ctx, plan)
}

// notes writes those notes of the target that are not in the record yet: some are known only at the end.
func (x *runner) notes() error {
	for _, n := range x.target.Notes() {
		if slices.Contains(x.noted, n) {
			continue
		}
		x.noted = append(x.noted, n)
		if err := x.Writer.Note(record.Note{Text: n}); err != nil {
			return err
		}
	}
	return nil
}

// undo undoes everything. An interrupt must not cut it short.
func (x *runner) undo(ctx context.Context) error {
	x.event(Event{Phase: Undoing})
	within := closeWithin
	if x.Env.Limit != nil {
		within = pacedWithin
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), within)
	defer cancel()
	if e := x.target.Close(ctx); e != nil {
		return fmt.Errorf("undo what the run created: %w", errors.Join(e, x.journal.lost()))
	}
	return x.journal.lost()
}

func (x *runner) plan(trials []design.Trial) error {
	l := x.Load
	arrivals := "constant"
	switch {
	case l.Poisson:
		arrivals = "poisson"
	case l.Ramp:
		arrivals = "ramp"
	}
	workers := 0
	if l.Closed != nil {
		workers = l.Closed.Workers
	}
	return x.Writer.Plan(record.Plan{
		Treatments: x.Treatments, Trials: trials, Load: record.Load{
			Engine: string(l.Engine), Arrivals: arrivals, Timeout: l.Timeout.Seconds(), MaxRate: l.MaxRate,
			MaxConnections: l.MaxConns, Rates: l.Rates,
			Rate: l.Rate, Workers: workers, Duration: l.Duration.Seconds(),
		}, Budget: x.Budget, Margin: x.Blocks.Margin, Factors: x.Blocks.Factors, Blocks: x.Blocks.Most,
		Looks: x.Blocks.looks(),
	})
}

func (x *runner) prepare(ctx context.Context, t design.Treatment) error {
	x.event(Event{Phase: Preparing, Treatment: t.ID})
	begin := x.Env.Clock.Now()
	err := x.target.Prepare(ctx, t, &x.journal)
	p := record.Prepare{Treatment: t.ID, Seconds: x.Env.Clock.Now().Sub(begin).Seconds()}
	if err != nil {
		p.Error = err.Error()
		err = fmt.Errorf("prepare %s: %w", t.ID, err)
	}
	return errors.Join(err, x.Writer.Prepare(p))
}

// open opens a stream of load.
func (x *runner) open(ctx context.Context, c load.Config) (load.Stream, error) {
	if x.Open != nil {
		return x.Open(ctx, c)
	}
	return load.Open(ctx, c)
}

// treatment returns a planned treatment.
func (x *runner) treatment(id string) design.Treatment {
	for _, t := range x.Treatments {
		if t.ID == id {
			return t
		}
	}
	return design.Treatment{ID: id}
}
