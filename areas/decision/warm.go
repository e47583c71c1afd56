package decision

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"time"

	"tare/internal/load"
	"tare/internal/probe"
)

const (
	// A JVM compiles what it runs often: it is warmed up by a number of requests, or until time is over. After 20,000 the
	// first blocks of a comparison still cost ten times as much CPU as later ones, most of it the compiler's; after 80,000
	// they do not.
	warmCalls   = 80_000
	warmWithin  = 30 * time.Second
	warmWorkers = 4
	// warmCPU is the CPU time that so many calls take a JVM, in seconds.
	warmCPU = 60
	// What a JVM has still to compile afterwards is waited for: until it is idle, that is, uses less than idleShare of a
	// CPU over idleFor.
	idleFor    = time.Second
	idleShare  = 0.03
	idleWithin = 20 * time.Second
	// A rehearsal makes each timed call a few times.
	rehearseCalls   = 10
	rehearseWithin  = 5 * time.Second
	rehearseWorkers = 2
)

// rehearsal is load that is not measured.
type rehearsal struct {
	workers int
	calls   int // at least, over all operations
	within  time.Duration
}

// warm warms up a JVM.
func (p *arm) warm(ctx context.Context) error {
	if !p.launch.Java {
		return nil
	}
	if err := p.rehearse(ctx, p.warmth); err != nil {
		return fmt.Errorf("warm up %s: %w", p.kind, err)
	}
	return p.settle(ctx)
}

// feel finds out whether a decision point behind a URL is a JVM that is cold. It is not ours to warm up.
func (p *arm) feel(ctx context.Context) error {
	for _, x := range p.attached {
		samples, err := x.Read(ctx)
		_, isJVM := probe.Find(samples, subject, probe.Metaspace)
		if err != nil || !isJVM {
			continue // what cannot be read is warned of when it is sampled
		}
		cpu, _ := probe.Find(samples, subject, probe.CPU)
		counts, err := p.counted(ctx)
		if err != nil {
			counts = nil // Verify says what is wrong
		}
		if p.cold = coldness(p.session.Host, cpu, counts); p.cold != "" {
			p.env.Log.Warn("the decision point is cold", slog.String("why", p.cold))
		}
		return nil
	}
	return nil
}

// coldness says that a JVM has done too little since its start to be warm: by its own count of decisions or, where it
// keeps none, by its CPU time. Empty: it has done enough.
func coldness(host string, cpu float64, counts map[string]float64) string {
	done, decisions := fmt.Sprintf("used %.0f CPU-seconds", cpu), 0.0
	for _, n := range counts {
		decisions += n
	}
	switch {
	case counts == nil && cpu >= warmCPU, decisions >= warmCalls:
		return ""
	case counts != nil:
		done = fmt.Sprintf("made %.0f decisions", decisions)
	}
	return fmt.Sprintf("the decision point at %s is a JVM that had only %s since its start, and tare does not warm up "+
		"what it did not start: a JVM compiles what it runs often, and until then its calls cost several times as much. Ask "+
		"it %d times before a run, or look at later windows", host, done, warmCalls)
}

// settle waits until the child is idle, or time is over: a host that is busy with other things may never let it be.
func (p *arm) settle(ctx context.Context) error {
	c, _ := p.latest()
	process := probe.Process{Name: subject, PID: c.PID, StartTicks: c.StartTicks, Light: true}
	last := math.Inf(-1)
	for range int(idleWithin / idleFor) {
		samples, err := process.Read(ctx)
		if err != nil {
			return fmt.Errorf("wait until %s is idle: %w", p.kind, err)
		}
		cpu, ok := probe.Find(samples, subject, probe.CPU)
		if !ok || cpu-last < idleShare*idleFor.Seconds() {
			return nil
		}
		last = cpu
		if err := p.env.Clock.Sleep(ctx, idleFor); err != nil {
			return err
		}
	}
	return nil
}

// rehearse makes the timed calls as the load will, and returns an error when any has a wrong answer, or an operation
// has no good one.
func (p *arm) rehearse(ctx context.Context, r rehearsal) (err error) {
	ops, err := p.operations()
	if err != nil {
		return err
	}
	for i := range ops {
		ops[i].Weight = 1
	}
	s, err := load.Open(ctx, load.Config{
		Endpoint: *p.endpoint(), Operations: ops, Timeout: callTimeout,
		MaxConns: r.workers, MaxRate: p.env.Limit.Rate(), Limit: p.env.Limit, Seed: 1,
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	enough := func() bool { return s.Progress().Ended() >= uint64(r.calls) }
	const poll = 10 * time.Millisecond
	if _, err := s.Cycle(ctx, load.Closed{Workers: r.workers, Duration: r.within}, poll, enough); err != nil {
		return err
	}
	if err := s.Wait(ctx, callTimeout, poll, func() bool { return s.Progress().Open() == 0 }); err != nil {
		return err
	}
	return judgeCells(ops, s.Take())
}

// judgeCells looks for wrong answers, and for operations without a good one.
func judgeCells(ops []load.Operation, cells []load.Cell) error {
	good := make([]uint64, len(ops))
	why := make([]string, len(ops))
	for _, c := range cells {
		op := ops[c.Operation]
		if c.Outcome.Good() {
			good[c.Operation] += c.Response.Count()
			continue
		}
		text := c.Outcome.String()
		if len(c.Causes) > 0 {
			text += ": " + causeText(op, c.Causes)
		}
		if c.Outcome == load.Wrong {
			return fmt.Errorf("%s, asked as the load asks it, is not answered with %s: %s", op.Name, op.Answer, text)
		}
		why[c.Operation] = text
	}
	if i := slices.Index(good, 0); i >= 0 && why[i] != "" {
		return fmt.Errorf("%s, asked as the load asks it, has no good answer: %s", ops[i].Name, why[i])
	}
	return nil
}

// causeText returns the most frequent cause in words, with its status.
func causeText(op load.Operation, causes []load.CauseCount) string {
	most := slices.MaxFunc(causes, func(a, b load.CauseCount) int { return int(a.Count) - int(b.Count) })
	text := most.Cause.Text(op.Causes)
	if text == "" {
		return fmt.Sprintf("status %d", most.Status)
	}
	return text
}
