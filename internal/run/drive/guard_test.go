package drive

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"tare/area"
	"tare/internal/capacity"
	"tare/internal/clock"
	"tare/internal/design"
	"tare/internal/guard"
	"tare/internal/load"
	"tare/internal/record"
	"tare/internal/run"
)

// A queueStream is a stream on a fake clock to a server that answers one call after another, each in the same time. Its
// calls that take longer than the timeout end then.
type queueStream struct {
	load.Stream // for what a guard does not use

	clock   *clock.Fake
	began   time.Time
	conf    load.Config
	service time.Duration
	path    time.Duration // by which each answer comes later
	free    time.Duration // when the server has answered all calls so far
	rng     *rand.Rand
	calls   []load.Call
	ended   int // of calls, those that Progress has counted, which are the first ones
	seen    load.Progress
	offered *[]float64 // the rates that were offered
	behind  int        // with how many of them, the first ones, the generator does not keep up: it sends half of the calls
}

func (q *queueStream) Now() time.Duration { return q.clock.Now().Sub(q.began) }

func (q *queueStream) Offer(ctx context.Context, p load.Process, poll time.Duration, stop func() bool,
) (load.Segment, error) {
	seg := load.Segment{Start: q.Now(), End: q.Now() + p.Length()}
	*q.offered = append(*q.offered, p.Peak())
	all := p.Start()
	at, more := all.Next()
	for q.Now() < seg.End && !seg.Stopped {
		if err := ctx.Err(); err != nil {
			return seg, err
		}
		q.clock.Advance(min(poll, seg.End-q.Now()))
		for ; more && seg.Start+at < q.Now(); at, more = all.Next() {
			if seg.Offered++; seg.Offered%2 == 0 || len(*q.offered) > q.behind {
				q.call(seg.Start + at)
			}
		}
		seg.Stopped = stop != nil && stop()
	}
	seg.End, seg.Sent = q.Now(), seg.Offered
	return seg, nil
}

// call makes one call, of an operation that is drawn by its weight.
func (q *queueStream) call(due time.Duration) {
	total := 0
	for _, op := range q.conf.Operations {
		total += op.Weight
	}
	k, draw := 0, q.rng.IntN(total)
	for draw >= q.conf.Operations[k].Weight {
		draw -= q.conf.Operations[k].Weight
		k++
	}
	q.free = max(q.free, due) + q.service
	done := q.free + q.path
	c := load.Call{Operation: uint8(k), Intended: due, Ready: due, Sent: due, FirstByte: done, Done: done}
	if q.conf.Operations[k].Twin != "" {
		c.Outcome = load.Denied
	}
	if c.Response() > q.conf.Timeout {
		c.Done, c.Outcome, c.FirstByte = due+q.conf.Timeout, load.Timeout, 0
	}
	q.calls = append(q.calls, c)
}

func (q *queueStream) Wait(ctx context.Context, d, poll time.Duration, done func() bool) error {
	for until := q.Now() + d; q.Now() < until && ctx.Err() == nil && (done == nil || !done()); {
		q.clock.Advance(min(poll, until-q.Now()))
	}
	return ctx.Err()
}

func (q *queueStream) Fresh(_ context.Context, _ int, _ uint64, timeout time.Duration) load.Call {
	at := q.Now()
	q.clock.Advance(min(q.service+q.path, timeout))
	if q.service+q.path > timeout {
		return load.Call{Intended: at, Sent: at, Done: q.Now(), Outcome: load.Timeout}
	}
	return load.Call{Intended: at, Sent: at, FirstByte: q.Now(), Done: q.Now()}
}

func (q *queueStream) Progress() load.Progress {
	now := q.Now()
	for ; q.ended < len(q.calls) && q.calls[q.ended].Done <= now; q.ended++ {
		q.seen.Done[q.calls[q.ended].Outcome]++
	}
	p := q.seen
	p.Now, p.Due, p.Sent, p.InFlight = now, uint64(len(q.calls)), uint64(len(q.calls)), len(q.calls)-q.ended
	return p
}

func (q *queueStream) Calls(since time.Duration) []load.Call {
	i, _ := slices.BinarySearchFunc(q.calls, since, func(c load.Call, t time.Duration) int { return int(c.Intended - t) })
	out := slices.Clone(q.calls[i:])
	for k := range out {
		if out[k].Done > q.Now() {
			out[k].Done, out[k].FirstByte, out[k].Outcome = 0, 0, 0
		}
	}
	return out
}

func (q *queueStream) DropIdle()         {}
func (q *queueStream) Reset()            {}
func (q *queueStream) Take() []load.Cell { return nil }
func (q *queueStream) Close() error      { return nil }
func (q *queueStream) Meter() load.Meter { return load.Meter{} }

// A refusing target has one operation and its trespass, and one condition.
type refusing struct{ exactTarget }

func (*refusing) Operations(design.Treatment) ([]load.Operation, error) {
	return []load.Operation{{Name: "read", Weight: 1, Wire: serverCall{"/", "yes"}}}, nil
}

func (r *refusing) Can() area.Can {
	return area.Can{
		Enter: r.Enter, Leave: r.Leave,
		Trespass: func(design.Treatment) ([]load.Operation, error) {
			return []load.Operation{{Name: "intrude", Twin: "read", Weight: 1, Wire: serverCall{"/", "no"}}}, nil
		},
		Conditions: func(design.Treatment) []area.Condition {
			return []area.Condition{{Name: "shaken", Title: "shaken queue", Idle: true, Impose: func(context.Context,
			) (func(context.Context) error, error) {
				return nil, nil
			}}}
		},
	}
}

// queueCapacity is the capacity of the server behind a queueStream, in 1/s.
const queueCapacity = 300

// guardedRun is what a guard of that server recorded, and the rates that it offered.
type guardedRun struct {
	points  []guard.Point
	end     guard.End
	offered []float64
	took    time.Duration
}

func guardQueue(t *testing.T, l run.Load) guardedRun { return guardQueueBehind(t, l, 0, 0) }

// guardQueueBehind is guardQueue with answers that come later by a path, and a generator that does not keep up with the
// first rates that are offered.
func guardQueueBehind(t *testing.T, l run.Load, path time.Duration, behind int) (out guardedRun) {
	t.Helper()
	req, open := soakRequest(t, &refusing{}, l)
	req.Question = design.Guard
	clk := clock.NewFake(time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC))
	req.Env.Clock = clk
	req.Open = func(_ context.Context, conf load.Config) (load.Stream, error) {
		return &queueStream{
			clock: clk, began: clk.Now(), conf: conf, service: time.Second / queueCapacity, offered: &out.offered,
			rng: rand.New(rand.NewPCG(conf.Seed, 3)), path: path, behind: behind,
		}, nil
	}
	began := clk.Now()
	if status, err := Do(t.Context(), req); status != record.Complete || err != nil {
		t.Fatal(status, err)
	}
	out.took = clk.Now().Sub(began)
	for _, trial := range open().Trials {
		for _, s := range trial.Steps {
			var err error
			switch s.Name {
			case guard.StepPoint:
				var p guard.Point
				err = json.Unmarshal(s.Payload, &p)
				out.points = append(out.points, p)
			case guard.StepEnd:
				err = json.Unmarshal(s.Payload, &out.end)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	return out
}

func guardLoad(change func(*run.Load)) run.Load {
	l := run.Load{Config: load.Config{Timeout: 5 * time.Second, MaxConns: 4096}, Trespass: 0.1}
	change(&l)
	return l
}

// TestGuardOverloads: a guard raises its rates until the server is overloaded, well beyond that, and then brings about
// the conditions.
func TestGuardOverloads(t *testing.T) {
	g := guardQueue(t, guardLoad(func(*run.Load) {}))
	highest := slices.Max(g.offered)
	if g.end != (guard.End{Stop: guard.StopOverload}) || highest < 2*queueCapacity {
		t.Errorf("ended with %+v, the highest rate is %v/s", g.end, highest)
	}
	if last := g.points[len(g.points)-1]; last.Condition == nil || last.Condition.Error != "" {
		t.Errorf("the last point is %+v, want the condition", last)
	}
}

// TestGuardStaysBelowMaxRate: a guard never exceeds max_rate, offers it, and says that it was the reason.
func TestGuardStaysBelowMaxRate(t *testing.T) {
	g := guardQueue(t, guardLoad(func(l *run.Load) { l.MaxRate = 200 }))
	if highest := slices.Max(g.offered); g.end != (guard.End{Stop: guard.StopMaxRate}) || highest != 200 {
		t.Errorf("ended with %+v, the highest rate is %v/s", g.end, highest)
	}
}

// TestGuardKeepsItsTime: no point begins that would end after max_time, and a condition that is left out is recorded.
func TestGuardKeepsItsTime(t *testing.T) {
	const most = 40 * time.Second
	g := guardQueue(t, guardLoad(func(l *run.Load) { l.MaxTime = most }))
	if g.end.Stop != guard.StopMaxTime || g.end.Rate == 0 || g.took > most+10*time.Second {
		t.Errorf("ended with %+v after %v", g.end, g.took)
	}
	last := g.points[len(g.points)-1]
	if last.Condition != nil && (last.Name != "shaken queue" || last.Condition.Name != last.Name) {
		t.Errorf("the condition is recorded as %+v, not by its title", last)
	}
	if last.Condition == nil || !strings.Contains(last.Condition.Error, "the time for the treatment, 40s, was over") {
		t.Errorf("the last point is %+v, want the condition that was left out", last)
	}
}

// TestGuardOffersGivenRates: the rates of the file are offered, and no higher ones.
func TestGuardOffersGivenRates(t *testing.T) {
	g := guardQueue(t, guardLoad(func(l *run.Load) { l.Rates = []float64{50, 120} }))
	if want := (guard.End{Stop: guard.StopRates, Given: true}); g.end != want || slices.Max(g.offered) != 120 {
		t.Errorf("ended with %+v, offered %v", g.end, g.offered)
	}
	decided := 0.0
	for _, p := range g.points {
		decided += p.Rate * (p.Segment.End - p.Segment.Start).Seconds() * guard.Share(0.1, 50)
	}
	if decided < float64(guard.Enough()) {
		t.Errorf("%.0f trespasses, want %d", decided, guard.Enough())
	}
}

// TestGuardOfASlowRate: a low rate is offered for as long as a pass needs, if the time allows that.
func TestGuardOfASlowRate(t *testing.T) {
	g := guardQueue(t, guardLoad(func(l *run.Load) { l.Rates = []float64{10} }))
	decided := 0.0
	for _, p := range g.points {
		if p.Condition == nil {
			decided += p.Rate * (p.Segment.End - p.Segment.Start).Seconds() * guard.Share(0.1, 10)
		}
	}
	if decided < 0.95*float64(guard.Enough()) { // which calls are trespasses is drawn by lot
		t.Errorf("about %.0f trespasses, want %d", decided, guard.Enough())
	}
}

// TestGuardOfASlowTarget: a target that needs three seconds for each call answers fresh ones after each point.
func TestGuardOfASlowTarget(t *testing.T) {
	l := guardLoad(func(l *run.Load) { l.Rates, l.Timeout = []float64{50, 120}, 10*time.Second })
	if g := guardQueueBehind(t, l, 3*time.Second, 0); g.end.Stop != guard.StopRates {
		t.Errorf("ended with %+v", g.end)
	}
}

// TestGuardOffersLateRatesAgain: a given rate that the generator did not keep up with is offered once more, and not for
// ever.
func TestGuardOffersLateRatesAgain(t *testing.T) {
	l := guardLoad(func(l *run.Load) { l.Rates, l.Trespass = []float64{200, 120}, 0.5 })
	for behind, want := range map[int][]float64{0: {200, 120}, 1: {200, 120, 200}, 2: {200, 120, 200, 120}} {
		g := guardQueueBehind(t, l, 0, behind)
		if got := g.offered[:min(len(g.offered), len(want))]; !slices.Equal(got, want) {
			t.Errorf("%d late: offered %v, want %v first", behind, g.offered, want)
		}
	}
	if g := guardQueueBehind(t, l, 0, 100); len(g.offered) != 5 {
		t.Errorf("always late: offered %v, want each twice, and the condition", g.offered)
	}
}

// TestHighestServed: where a search found no capacity, a guard begins from the highest step of its ramp that held.
func TestHighestServed(t *testing.T) {
	step := func(role capacity.Role, rate float64, passed *bool) capacity.Step {
		return capacity.Step{Role: role, Rate: rate, Passed: passed}
	}
	for name, x := range map[string]struct {
		steps []capacity.Step
		want  float64
	}{
		"no step": {want: 0},
		"client-limited": {steps: []capacity.Step{
			step(capacity.RoleRamp, 20, new(true)), step(capacity.RoleRamp, 40, new(true)),
			step(capacity.RoleRamp, 80, nil), step(capacity.RoleRamp, 80, nil),
		}, want: 40},
		"nothing held": {steps: []capacity.Step{
			step(capacity.RoleRamp, 10, new(false)), step(capacity.RoleRamp, 2.5, new(false)),
		}, want: 2.5},
		"overloads do not count": {steps: []capacity.Step{
			step(capacity.RoleRamp, 40, new(true)), step(capacity.RoleOverload, 400, new(true)),
		}, want: 40},
	} {
		if got := highestServed(&capacity.Trace{Steps: x.steps}); got != x.want {
			t.Errorf("%s: %v/s, want %v/s", name, got, x.want)
		}
	}
}
