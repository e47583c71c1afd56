package drive

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"tare/area"
	"tare/internal/capacity"
	"tare/internal/clock"
	"tare/internal/design"
	"tare/internal/limit"
	"tare/internal/load"
	"tare/internal/run"
	"tare/internal/signature"
	"tare/internal/term"
)

// A slotTarget serves so many calls at a time, in virtual time, through the streams that it opens.
type slotTarget struct {
	exactTarget
	clock   *clock.Fake
	slots   int
	takes   time.Duration // of one call; 0: no call is answered
	secure  *tls.Config
	offered func(load.Process) // called before each segment
	opened  []load.Config
	back    error // of the lever
	broken  error // of each segment
	moved   bool
	fresh   int
	leads   int // by how many slots more the lever gives
}

func (v *slotTarget) Can() area.Can {
	return area.Can{Endpoint: v.Endpoint, Levers: v.Levers}
}

func (v *slotTarget) Endpoint(design.Treatment) (*load.Endpoint, error) {
	return &load.Endpoint{Addr: netip.MustParseAddrPort("192.0.2.1:80"), TLS: v.secure}, nil
}

func (v *slotTarget) Levers(design.Treatment) []area.Lever {
	if v.leads == 0 {
		return nil
	}
	return []area.Lever{{
		Limit: "slots", From: "4", To: "8", Factor: 2,
		Move: func(context.Context) (func(context.Context) error, error) {
			v.slots, v.moved = v.slots+v.leads, true
			return func(ctx context.Context) error {
				v.slots, v.moved = v.slots-v.leads, false
				return errors.Join(v.back, ctx.Err())
			}, nil
		},
	}}
}

// A slotStream is a stream of calls to a slotTarget.
type slotStream struct {
	load.Stream
	to    *slotTarget
	conns int
	calls []load.Call
}

func (s *slotStream) Offer(ctx context.Context, p load.Process, _ time.Duration, _ func() bool) (load.Segment, error) {
	s.to.offered(p)
	if err := errors.Join(ctx.Err(), s.to.broken); err != nil {
		return load.Segment{}, err
	}
	seg := load.Segment{Start: time.Second, End: time.Second + p.Length()}
	free := make([]time.Duration, s.conns) // when each connection, and each slot, is free again
	slots := make([]time.Duration, s.to.slots)
	for a := p.Start(); ; seg.Offered++ {
		at, more := a.Next()
		if !more {
			break
		}
		c := load.Call{Intended: seg.Start + at}
		conn, slot := least(free), least(slots)
		if sent := max(c.Intended, *conn); sent < seg.End {
			c.Ready, c.Sent = sent, sent
			if s.to.takes == 0 {
				*conn = time.Hour
			} else if c.Done = max(sent, *slot) + s.to.takes; c.Done <= seg.End {
				c.FirstByte, *conn, *slot = c.Done-time.Millisecond, c.Done, c.Done
			} else {
				*conn, *slot, c.Done = c.Done, c.Done, 0
			}
		}
		s.calls = append(s.calls, c)
	}
	s.to.clock.Advance(p.Length())
	return seg, nil
}

func least(of []time.Duration) *time.Duration {
	return &of[slices.Index(of, slices.Min(of))]
}

func (s *slotStream) Fresh(context.Context, int, uint64, time.Duration) load.Call {
	s.to.fresh++
	if s.to.takes == 0 {
		return load.Call{}
	}
	return load.Call{Done: 1}
}

func (s *slotStream) Now() time.Duration { return s.to.clock.Now().Sub(time.Unix(0, 0)) }
func (s *slotStream) Wait(_ context.Context, d, _ time.Duration, _ func() bool) error {
	s.to.clock.Advance(d)
	return nil
}

func (s *slotStream) Calls(time.Duration) []load.Call { return s.calls }
func (s *slotStream) Reset()                          {}

// Progress counts the calls that ended, each with an answer of 300 bytes.
func (s *slotStream) Progress() (p load.Progress) {
	for i := range s.calls {
		if s.calls[i].Done != 0 {
			p.Done[load.OK]++
			p.BytesIn += 300
		}
	}
	return p
}

func (s *slotStream) Close() error { return nil }

// tried makes experiments on a target whose search gave a result, and returns them as they were recorded.
func (v *slotTarget) tried(
	ctx context.Context, t *testing.T, r capacity.Result, l run.Load,
) ([]limit.Experiment, error) {
	t.Helper()
	v.clock = clock.NewFake(time.Unix(0, 0))
	if v.offered == nil {
		v.offered = func(load.Process) {}
	}
	req, open := start(t, &v.exactTarget, run.Blocks{})
	req.Env.Clock, req.Load = v.clock, l
	req.Open = func(_ context.Context, c load.Config) (load.Stream, error) {
		v.opened = append(v.opened, c)
		return &slotStream{to: v, conns: c.MaxConns}, nil
	}
	a := &run.Arm{Stage: &run.Stage{Request: req, Target: v}, Treatment: design.Treatment{ID: "on"}}
	a.Trial.Treatment = "on"
	x := &experiments{Arm: a, trace: &capacity.Trace{}, found: r, arrivals: arrivals(&a.Load, 1), next: 1000}
	err := x.all(ctx)
	var out []limit.Experiment
	rec := open()
	if (v.broken != nil || v.takes == 0) != (len(rec.Warned) > 0) {
		t.Errorf("the record warns of %+v", rec.Warned)
	}
	for _, trial := range rec.Trials {
		for _, step := range trial.Steps {
			var e limit.Experiment
			if step.Name != limit.Step || json.Unmarshal(step.Payload, &e) != nil {
				t.Errorf("a step %s: %s", step.Name, step.Payload)
			}
			out = append(out, e)
		}
	}
	return out, err
}

// usualLoad is what a file gives for a search.
func usualLoad() run.Load {
	return run.Load{Config: load.Config{Timeout: 5 * time.Second, MaxConns: 4096, MaxRate: 500}, Prove: true}
}

func inFlightOf(made []limit.Experiment) (out []int) {
	for i := range made {
		out = append(out, made[i].InFlight)
	}
	return out
}

// TestExperimentsInFlight: calls in flight are doubled until the rate stands still, and each rate is the target's.
func TestExperimentsInFlight(t *testing.T) {
	v := &slotTarget{slots: 4, takes: 20 * time.Millisecond}
	v.offered = func(p load.Process) {
		if p.Peak() > 220 {
			t.Errorf("%v/s were offered, where 220/s are allowed", p.Peak())
		}
	}
	l := usualLoad()
	l.MaxRate = 220
	made, err := v.tried(t.Context(), t, capacity.Result{Rate: 200}, l)
	if err != nil || !slices.Equal(inFlightOf(made), []int{1, 2, 4, 8, 16}) {
		t.Fatalf("at most %v in flight, %v; want 1 to 16", inFlightOf(made), err)
	}
	for i, want := range []float64{50, 100, 200, 200, 200} {
		if got := made[i].Rate(); got < 0.97*want || got > 1.03*want || len(made[i].Counts) != experimentParts {
			t.Errorf("at most %d in flight: %v/s of %v, want %v/s", made[i].InFlight, got, made[i].Counts, want)
		}
		service := max(1, float64(made[i].InFlight)/4) * 0.02
		if got := made[i].Service; got < 0.9*service || got > 1.1*service || made[i].Transfer != 0.001 {
			t.Errorf("at most %d in flight: service %v s, transfer %v s", made[i].InFlight, got, made[i].Transfer)
		}
		if made[i].Bytes != 300 {
			t.Errorf("at most %d in flight: answers of %v bytes, want 300", made[i].InFlight, made[i].Bytes)
		}
		if e := made[i].Even; e == nil || *e < 0 || *e > 1 || made[i].Spread == nil || *made[i].Spread > service {
			t.Errorf("at most %d in flight: even %v, spread %v", made[i].InFlight, e, made[i].Spread)
		}
		if made[i].Late != "" || made[i].Bad != 0 || made[i].Account != nil {
			t.Errorf("at most %d in flight: %+v", made[i].InFlight, made[i])
		}
	}
	first, last := uint64(0), len(v.opened)-1
	for _, c := range v.opened[:last] {
		if c.First <= first || c.Timeout <= l.Timeout || !c.Precise {
			t.Errorf("a stream with %+v after one whose calls began at %d", c, first)
		}
		first = c.First
	}
}

// TestExperimentsFindTheRate: where the search knows only a rate that holds, more is offered until the target is full.
func TestExperimentsFindTheRate(t *testing.T) {
	v := &slotTarget{slots: 4, takes: 20 * time.Millisecond}
	made, err := v.tried(t.Context(), t, capacity.Result{AtLeast: 30}, usualLoad())
	if err != nil {
		t.Fatal(err)
	}
	last := made[len(made)-1]
	if got := last.Rate(); got < 190 || got > 210 || last.TookAll() {
		t.Errorf("%v/s of %v/s with %d in flight, want 200/s of more", got, last.Offered, last.InFlight)
	}
	verdict := limit.Judge(limit.Evidence{Experiments: made, Idle: 0.02})
	if len(verdict.Evidence) == 0 || !strings.Contains(verdict.Evidence[0], "full with about 4 in flight") {
		t.Errorf("what sets the rate: %q", verdict.Evidence)
	}
}

// TestExperimentsAreShort: those of a limiter, of a slow target, and of one that answers nothing.
func TestExperimentsAreShort(t *testing.T) {
	bucket := capacity.Result{Rate: 200, Burst: new(30.0)}
	bucket.Signature.Class = signature.TokenBucket
	for _, c := range []struct {
		name  string
		takes time.Duration
		found capacity.Result
		want  []int
		most  time.Duration
	}{
		{"a limiter", 20 * time.Millisecond, bucket, []int{1, 2, 4}, limiterTime},
		{"a slow target", 2 * time.Second, capacity.Result{Rate: 2}, []int{1, 2, 4}, experimentsTime},
		{"no answers", 0, capacity.Result{Rate: 200}, []int{1}, time.Second + patience},
	} {
		v := &slotTarget{slots: 4, takes: c.takes}
		made, err := v.tried(t.Context(), t, c.found, usualLoad())
		if err != nil || !slices.Equal(inFlightOf(made), c.want) {
			t.Errorf("%s: at most %v in flight, %v; want %v", c.name, inFlightOf(made), err, c.want)
		}
		if (v.fresh > 1) != (c.takes == 0) {
			t.Errorf("%s: %d fresh calls", c.name, v.fresh)
		}
		if took := v.clock.Now().Sub(time.Unix(0, 0)); took > c.most+longestPause {
			t.Errorf("%s: took %v, want at most %v", c.name, took, c.most)
		}
	}
	v := &slotTarget{slots: 4, takes: time.Millisecond}
	v.secure = &tls.Config{NextProtos: []string{"h2"}} //nolint:gosec // nobody connects
	if made, err := v.tried(t.Context(), t, capacity.Result{Rate: 200}, usualLoad()); err != nil || len(made) > 0 {
		t.Errorf("of connections that carry several calls: %v, %v", made, err)
	}
}

// TestExperimentMovesLevers: once, last, and only where that is wanted and max_rate allows it; it is set back always.
func TestExperimentMovesLevers(t *testing.T) {
	found, given := capacity.Result{Rate: 200}, usualLoad()
	tight, unproved := given, given
	tight.MaxRate, unproved.Prove = 430, false
	for _, c := range []struct {
		name string
		load run.Load
		want int
	}{{"wanted", given, 1}, {"max_rate is too low", tight, 0}, {"not wanted", unproved, 0}} {
		v := &slotTarget{slots: 4, takes: 20 * time.Millisecond, leads: 4}
		made, err := v.tried(t.Context(), t, found, c.load)
		if err != nil || len(made) != 5+c.want || v.moved {
			t.Errorf("%s: %d experiments, want %d; %v; still moved: %v", c.name, len(made), 5+c.want, err, v.moved)
			continue
		}
		for i := range made {
			if moved := made[i].Lever != nil; moved != (i == 5) {
				t.Errorf("%s: experiment %d: %+v", c.name, i, made[i].Lever)
			}
		}
		if c.want == 0 {
			continue
		}
		want := limit.Lever{Kind: limit.Slots, From: "4", To: "8", Factor: 2}
		if got := made[5].Rate(); *made[5].Lever != want || got < 390 || got > 410 || made[5].Offered != 500 {
			t.Errorf("with the lever %+v: %v/s of %v/s, want 400/s of 500/s", made[5].Lever, got, made[5].Offered)
		}
	}
}

// TestExperimentSetsBack: a lever is set back after an interrupt; one that cannot be set back is an error.
func TestExperimentSetsBack(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	v := &slotTarget{slots: 4, takes: 20 * time.Millisecond, leads: 4}
	v.offered = func(load.Process) {
		if v.moved {
			interrupt()
		}
	}
	made, err := v.tried(ctx, t, capacity.Result{Rate: 200}, usualLoad())
	if !errors.Is(err, context.Canceled) || len(made) != 5 || v.moved || v.slots != 4 {
		t.Errorf("after an interrupt: %v; %d experiments, still moved: %v", err, len(made), v.moved)
	}
	v = &slotTarget{slots: 4, takes: 20 * time.Millisecond, leads: 4, back: errors.New("no")}
	v.offered = func(load.Process) {
		if v.moved {
			v.broken = errors.New("the target hung up")
		}
	}
	if _, err := v.tried(t.Context(), t, capacity.Result{Rate: 200}, usualLoad()); !errors.Is(err, v.back) {
		t.Errorf("a lever that cannot be set back: %v, want %v", err, v.back)
	}
	v.back, v.moved, v.broken = nil, false, nil
	if made, err := v.tried(t.Context(), t, capacity.Result{Rate: 200}, usualLoad()); err != nil || len(made) != 5 {
		t.Errorf("an experiment that fails: %d experiments, %v; want the others, and a warning", len(made), err)
	}
}

// TestHasLimit: experiments follow only a search that broke a target which has come back.
func TestHasLimit(t *testing.T) {
	good := capacity.Result{Broke: true, Valid: true, Rate: 1, Stop: capacity.StopFound}
	bounded := good
	bounded.Rate, bounded.AtLeast = 0, 1
	if !hasLimit(&good) || !hasLimit(&bounded) {
		t.Error("none follow a search that found a capacity, or a rate that holds")
	}
	for name, change := range map[string]func(*capacity.Result){
		"nothing broke":              func(r *capacity.Result) { r.Broke, r.Stop = false, capacity.StopMaxRate },
		"the generator is the limit": func(r *capacity.Result) { r.Valid = false },
		"no rate":                    func(r *capacity.Result) { r.Rate = 0 },
		"wedged":                     func(r *capacity.Result) { r.Wedged = true },
		"it punishes overload":       func(r *capacity.Result) { r.Signature.Class = signature.Penalty },
		"a ladder":                   func(r *capacity.Result) { r.Stop = capacity.StopLadder },
		"interrupted":                func(r *capacity.Result) { r.Stop = capacity.StopCanceled },
	} {
		r := good
		if change(&r); hasLimit(&r) {
			t.Errorf("experiments follow although: %s", name)
		}
	}
}

// TestExperimentsAreShown: one line for each.
func TestExperimentsAreShown(t *testing.T) {
	var out bytes.Buffer
	show := NewView(design.Capacity, "toy", term.NewView(&out, false, nil, time.Now))
	lever := &limit.Lever{Kind: limit.CPUQuota, From: "1m", To: "2m"}
	want := ""
	for _, c := range []struct {
		e    limit.Experiment
		also string
	}{
		{limit.Experiment{}, ""},
		{limit.Experiment{Lever: lever}, ", cpu-quota 2m instead of 1m"},
		{limit.Experiment{Sources: 4}, ", from 4 source addresses"},
		{limit.Experiment{Operation: "read"}, ", only read"},
		{limit.Experiment{Fresh: true}, ", each with a new connection"},
	} {
		c.e.InFlight = 4
		show(run.Event{Phase: run.Measuring, Detail: &Experimenting{c.e}})
		want += "toy  experiment: at most 4 in flight" + c.also + "\n"
	}
	if out.String() != want {
		t.Errorf("%s\nwant\n%s", &out, want)
	}
}
