package driver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"tare/area"
	"tare/internal/design"
	"tare/internal/kit"
	"tare/internal/load"
	"tare/internal/probe"
	"tare/internal/proc"
)

// Target measures operations that programs perform and time themselves, with one arm per treatment. The arms run side
// by side and take turns.
type Target struct {
	c     Config
	grace time.Duration // 0: defaultGrace

	mu      sync.Mutex
	journal area.Journal
	arms    []*arm
	born    int // processes started so far, for names
	sources map[string]sources
	tallies map[string]*tally
	asking  []float64 // seconds that requests of no calls took
	notes   []string
}

var _ area.Target = (*Target)(nil)

// New makes a target. It starts nothing.
func New(c Config) *Target {
	return &Target{c: c.withDefaults(), sources: map[string]sources{}, tallies: map[string]*tally{}}
}

// arm is one treatment.
type arm struct {
	treatment   design.Treatment
	program     Program
	preparation Preparation
	log         string
	folder      bool         // its folder may exist
	prepared    *area.Change // what the program may have made; nil: nothing, or nothing outside the folder
	description Description
	files       map[string]os.FileInfo // see Program.Files
	first       proc.ID                // the first process
	named       map[proc.ID]area.Change
	counts      map[string][]string // the metrics that the program counts, by operation
	ticks       map[clocked]*ticks
	live        *process               // under Target.mu
	calls       *kit.Callers[struct{}] // of guard: as many as the program takes at once
	conditions  map[string]string      // that the program offers, by name
	failed      sync.Once              // a call, of which a note tells
	unproved    string                 // what the program says of its proof; see Verified
}

// Prepare implements area.Target: it makes a folder, starts a program, and sends it describe and prepare.
func (t *Target) Prepare(ctx context.Context, tr design.Treatment, j area.Journal) error {
	setting, err := t.c.Arm(tr)
	if err != nil {
		return err
	}
	program, err := setting.Program.absolute()
	if err != nil {
		return err
	}
	parent, err := filepath.Abs(t.c.Parent)
	if err != nil {
		return fmt.Errorf("find the folder for drivers' files: %w", err)
	}
	a := &arm{
		treatment: tr, program: program, counts: map[string][]string{}, ticks: map[clocked]*ticks{},
		calls: kit.NewCallers(struct{}{}),
	}
	folder, run := newFolder(parent, t.c.Area)
	a.preparation = Preparation{Run: run, Treatment: tr.ID, Levels: map[string]string{}, Folder: folder}
	maps.Copy(a.preparation.Levels, setting.Levels) // never nil, though it may be empty: programs read it
	if err := t.addArm(a, j); err != nil {
		return err
	}
	if err := makeFolder(j, t.c.Area, folder); err != nil {
		return err
	}
	if err := t.begin(ctx, a); err != nil {
		return err
	}
	if err := t.process(a).unchanged(t.first()); err != nil {
		return err
	}
	if err := t.c.refuse(a); err != nil {
		return err
	}
	a.preparation.Operations = t.c.chosen(a.description)
	a.calls = kit.NewCallers(make([]struct{}, max(1, a.description.AtOnce))...)
	t.note("the calls were made by " + strings.TrimSpace(a.description.Name+" "+a.description.Version))
	t.note(a.description.Notes...)
	if err := t.prepare(ctx, a); err != nil {
		return err
	}
	if t.c.Fresh {
		return t.end(ctx, a)
	}
	return nil
}

// addArm adds an arm before any of it is made, so that Close finds it.
func (t *Target) addArm(a *arm, j area.Journal) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if slices.ContainsFunc(t.arms, func(x *arm) bool { return x.treatment.ID == a.treatment.ID }) {
		return fmt.Errorf("treatment %q is prepared already", a.treatment.ID)
	}
	a.folder = true
	if t.c.Env.Dir != "" {
		a.log = filepath.Join(t.c.Env.Dir, fmt.Sprintf("driver-%02d.log", len(t.arms)+1))
	}
	t.arms, t.journal = append(t.arms, a), j
	return nil
}

// first returns the arm that was prepared first, whose program is that of the run.
func (t *Target) first() *arm {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.arms[0]
}

// refuse checks the request against the program's description: it may be another program than the one that preflight
// saw.
func (c Config) refuse(a *arm) error {
	for _, f := range a.description.Check(c.Operations, []design.Treatment{{Levels: a.preparation.Levels}}, nil) {
		if f.Severity == area.Error {
			return errors.New(f.Message + "; " + f.Hint)
		}
	}
	return nil
}

func (t *Target) arm(tr design.Treatment) (*arm, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, a := range t.arms {
		if a.treatment.ID == tr.ID {
			return a, nil
		}
	}
	return nil, fmt.Errorf("treatment %q has not been prepared", tr.ID)
}

// note adds notes for the report, once each, and reports whether any is new.
func (t *Target) note(texts ...string) (fresh bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, n := range texts {
		if n != "" && !slices.Contains(t.notes, n) {
			t.notes = append(t.notes, n)
			fresh = true
		}
	}
	return fresh
}

// Enter implements area.Target: with Config.Fresh, it starts a new process, which reuses what the first one prepared.
func (t *Target) Enter(ctx context.Context, tr design.Treatment) error {
	a, err := t.arm(tr)
	if err != nil || !t.c.Fresh {
		return err
	}
	if t.process(a) != nil {
		return fmt.Errorf("treatment %q has been entered already", tr.ID)
	}
	if err = t.begin(ctx, a); err == nil {
		err = t.process(a).unchanged(a)
	}
	if err == nil {
		err = t.prepare(ctx, a)
	}
	if err != nil {
		return errors.Join(err, t.end(context.WithoutCancel(ctx), a))
	}
	return nil
}

// mostAsking bounds the number of requests of no calls, and askingWithin their total time.
const (
	mostAsking   = 50
	askingWithin = time.Second
)

// Verify implements area.Target: the program proves its treatment. Then a few requests of no calls measure what a
// request costs.
func (t *Target) Verify(ctx context.Context, tr design.Treatment) error {
	a, s, err := t.runningArm(tr)
	if err != nil {
		return err
	}
	var v Verified
	if _, err := s.client.ask(ctx, t.c.Patience, Request{Do: DoVerify}, &v); err != nil {
		return err
	}
	if len(v.Checks) == 0 {
		return fmt.Errorf("%s: it verified nothing: its answer to verify holds no checks, a sentence for each thing that "+
			"it saw", a.program.Name)
	}
	a.unproved = v.Unproved
	if log := t.c.Env.Log; log != nil {
		log.Debug("the program has verified its treatment", slog.String("treatment", tr.ID), slog.Any("checks", v.Checks))
	}
	var spent time.Duration
	for i := 0; i < mostAsking && spent < askingWithin; i++ {
		var c Cost
		none := 0
		took, err := s.client.ask(ctx, t.c.Patience, Request{
			Do: DoOperate, Operation: a.preparation.Operations[0],
			Calls: &none,
		}, &c)
		if err == nil && c.Calls != 0 {
			err = s.client.fail(fmt.Errorf("it made %d calls of %s where 0 were asked for: then it must answer at once", c.Calls,
				a.preparation.Operations[0]))
		}
		if err != nil {
			return err
		}
		spent += took
		t.mu.Lock()
		t.asking = append(t.asking, took.Seconds())
		t.mu.Unlock()
	}
	return nil
}

// Unproved is area.Can.Unproved, in the program's words.
func (t *Target) Unproved(tr design.Treatment) string {
	a, err := t.arm(tr)
	if err != nil {
		return ""
	}
	return a.unproved
}

// Operations implements area.Target.
func (t *Target) Operations(tr design.Treatment) ([]load.Operation, error) {
	a, err := t.arm(tr)
	if err != nil {
		return nil, err
	}
	var out []load.Operation
	for _, name := range a.preparation.Operations {
		o, ok := a.description.operation(name)
		switch {
		case !ok:
			return nil, fmt.Errorf("%s has no operation %q", a.program.Name, name)
		case o.Trespass != "":
			continue // see Trespasses
		case t.guards():
			out = append(out, t.called(a, o))
			continue
		}
		op := load.Operation{
			Name: name, Weight: 1, Expect: o.Expect, Most: o.Most, Harness: o.Harness, Overhead: o.Overhead,
			Span: time.Duration(o.SpanMS * float64(time.Millisecond)), Rounds: o.Rounds,
			Batch: func(ctx context.Context, n int) ([]load.BatchSample, error) { return t.batch(ctx, a, o, n) },
		}
		if t.c.Span > 0 {
			op.Span = t.c.Span
		}
		if t.c.Rounds > 0 {
			op.Rounds = t.c.Rounds
		}
		out = append(out, op)
	}
	return out, nil
}

// Endpoint implements area.Target: it is nil, since programs make their own calls.
func (*Target) Endpoint(design.Treatment) (*load.Endpoint, error) { return nil, nil }

// Probes implements area.Target: the program, and the processes that it named.
func (t *Target) Probes(tr design.Treatment) []probe.Probe {
	a, err := t.arm(tr)
	if err != nil {
		return nil
	}
	s := t.process(a)
	if s == nil || s.client == nil {
		return nil
	}
	return s.probes(a.program.Name)
}

// Leave implements area.Target: with Config.Fresh, it ends the process.
func (t *Target) Leave(ctx context.Context, tr design.Treatment) error {
	a, err := t.arm(tr)
	if err != nil || !t.c.Fresh {
		return err
	}
	t.awaitCalls(a)
	return t.end(ctx, a)
}

// Notes implements area.Target. Who measured the times is known only at the end.
func (t *Target) Notes() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := slices.Concat(t.c.Notes, t.notes)
	if len(t.arms) == 0 {
		return out
	}
	first := t.arms[0]
	var outside []string
	for _, name := range first.preparation.Operations {
		y := t.tallies[name]
		if y != nil && t.sources[name].wall == byTare {
			out = append(out, y.stopwatch(name, t.asking))
		}
		if t.sources[name].cpu == byTare {
			outside = append(outside, name)
		}
	}
	if len(outside) > 0 {
		out = append(out, joinWords(outside)+": the program does not count cpu, so that is the CPU time of its processes, "+
			"read from outside")
	}
	return out
}

// Close implements area.Target: all programs undo what they prepared and end, and their folders are removed. What could
// not be undone stays in the journal.
func (t *Target) Close(ctx context.Context) error {
	t.mu.Lock()
	arms := slices.Clone(t.arms)
	t.mu.Unlock()
	var errs []error
	for _, a := range slices.Backward(arms) {
		t.awaitCalls(a)
		if err := t.undoArm(ctx, a); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", a.treatment.ID, err))
		}
	}
	return errors.Join(errs...)
}

// Can implements area.Target.
func (t *Target) Can() area.Can {
	return area.Can{
		Enter: t.Enter, Leave: t.Leave, Probes: t.Probes, Notes: t.Notes, Trespass: t.Trespasses, Conditions: t.Conditions,
		Unproved: t.Unproved,
	}
}
