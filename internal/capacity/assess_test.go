package capacity

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tare/internal/load"
)

const ms = time.Millisecond

// events are n instants at rate, from from on, with gaps that draw makes of the mean gap.
func events(n int, rate, from float64, draw func() float64) []float64 {
	t := make([]float64, n)
	for i := range t {
		from += draw() / rate
		t[i] = from
	}
	return t
}

func TestThroughputCovers(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	hit := 0
	const runs = 400
	for range runs {
		x := events(4000, 200, 0, rng.ExpFloat64)
		if e, ok := throughput(x, 1, 16); ok && e.Lo <= 200 && 200 <= e.Hi {
			hit++
		}
	}
	if c := float64(hit) / runs; c < 0.9 {
		t.Errorf("the interval holds the truth in %.0f %% of the cases", 100*c)
	}
}

func TestThroughputOfPatterns(t *testing.T) {
	one := func() float64 { return 1 }
	var windows, repetitions []float64
	for k := range 8 {
		windows = append(windows, events(50, 500, 0.7+2*float64(k), one)...)
	}
	for k := range 12 {
		from := 1.5 * float64(k)
		repetitions = append(append(repetitions, events(30, 30, from, one)...), events(70, 400, from+1, one)...)
	}
	for name, c := range map[string]struct {
		at           []float64
		from, to     float64
		want, within float64
		n            int // 0: any
	}{
		"even events": {events(1000, 100, 5, one), 5, 15, 100, 0.2, 0},
		// What came before the rate changed, an allowance that ran out, is left out.
		"150/s for 4 s, then 100/s": {append(events(600, 150, 0, one), events(1200, 100, 4, one)...), 0, 16, 100, 1, 0},
		"50 at once, every 2 s":     {windows, 0, 15.9, 25, 0.05, -6},
		"30 slow and 70 fast ones":  {repetitions, 0.2, 17.4, 100 / 1.5, 0.33, 0},
	} {
		e, ok := throughput(c.at, c.from, c.to)
		if !ok || math.Abs(e.Value-c.want) > c.within || c.n != 0 && e.N != c.n {
			t.Errorf("%s: %+v, %v, want %v/s", name, e, ok, c.want)
		}
		if name == "even events" && (e.Lo > c.want || e.Hi < c.want) {
			t.Errorf("%s: the interval is %+v", name, e)
		}
	}
}

func TestThroughputOfNothing(t *testing.T) {
	for _, x := range [][]float64{nil, {1}, {1, 1, 1, 1, 1}} {
		if e, _ := throughput(x, 0, 1); math.IsNaN(e.Value) || math.IsNaN(e.Lo) || math.IsInf(e.Hi, 0) {
			t.Errorf("%v gives %+v", x, e)
		}
	}
	if e, ok := throughput([]float64{1, 2, 3, 4, 5}, 5, 1); ok {
		t.Errorf("a stretch that ends before it begins gives %+v", e)
	}
}

func TestFloorOf(t *testing.T) {
	for name, c := range map[string]struct {
		steps []tally
		want  float64
	}{
		"none":                      {nil, 0},
		"clean":                     {[]tally{{20, 0}, {20, 0}, {40, 0}}, 0},
		"a twentieth":               {[]tally{{100, 5}, {100, 4}, {200, 11}}, 0.05},
		"clean until it breaks":     {[]tally{{20, 0}, {40, 0}, {80, 9}}, 0},
		"a twentieth until it does": {[]tally{{100, 5}, {100, 5}, {100, 40}}, 0.05},
	} {
		if got := floorOf(c.steps).share(); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// TestFarBelow: the last steps far below the capacity tell how many calls fail at any rate, the slow one as long as the
// faster fits it, and none where most fail.
func TestFarBelow(t *testing.T) {
	for name, c := range map[string]struct {
		slow, fast int // failures of 100 calls, and of 200
		want       tally
	}{
		"none":              {0, 0, tally{300, 0}},
		"a twentieth":       {5, 9, tally{300, 14}},
		"the faster breaks": {4, 60, tally{100, 4}},
		"most":              {90, 180, tally{}},
	} {
		trace := confirmed(func(t *Trace) {
			for i, failed := range []int{c.slow, c.fast} {
				at := time.Duration(50+10*i) * time.Second
				t.tried(RoleConfirmLow, at, 20*float64(i+1), true, 0, 10*ms)
				s := &t.Steps[len(t.Steps)-1]
				s.Note, s.Passed, s.Segment.Start = farNote, nil, at-5*time.Second/3 // the first quarter does not count
				for c := range t.Calls.Due(at, at+5*time.Second) {
					if failed > 0 {
						c.Outcome, failed = load.Failed, failed-1
					}
				}
			}
		})
		if got := trace.farBelow(); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
	if got := confirmed(nil).farBelow(); got != (tally{}) {
		t.Errorf("without such steps: %+v", got)
	}
}

func TestBracket(t *testing.T) {
	at := func(role Role, rate float64, passed *bool, start, length time.Duration) Step {
		return Step{Role: role, Rate: rate, Passed: passed, Segment: load.Segment{Start: start, End: start + length}}
	}
	is := func(what string, steps []Step, lo, hi float64) {
		t.Helper()
		if l, h := (Trace{Steps: steps}).bracket(5, 0, 0); l != lo || h != hi {
			t.Errorf("%s: [%v, %v], want [%v, %v]", what, l, h, lo, hi)
		}
	}
	yes, no := new(true), new(false)
	steps := []Step{
		at(RoleConfirmHigh, 300, no, 1, 5), // before the last overload
		at(RoleConfirmHigh, 102, yes, 10, 5),
		at(RoleConfirmHigh, 108, no, 20, 5),
		at(RoleConfirmLow, 98, yes, 30, 5),
		at(RoleConfirmHigh, 105, nil, 40, 5), // undecided
		at(RoleRamp, 107, yes, 50, 5),
	}
	is("confirmations", steps, 102, 108)
	held := slices.Concat(steps, []Step{at(RoleConfirmHigh, 120, yes, 60, 5)})
	is("120/s held after 108/s had broken", held, 120, 0)
	is("then 100/s broke", slices.Concat(held, []Step{at(RoleConfirmLow, 100, no, 70, 5)}), 98, 100)
	is(
		"120/s held for less time than 108/s took to break",
		slices.Concat(steps, []Step{at(RoleConfirmHigh, 120, yes, 60, 4)}), 102, 108,
	)
}

func TestAim(t *testing.T) {
	a := aim{center: 100, width: 0.02, fine: 0.02}
	role, rate := a.next(1000)
	if role != RoleConfirmHigh || rate != 102 {
		t.Errorf("first %s at %v", role, rate)
	}
	a.learn(trial{rate: rate, held: true}) // it holds, against expectation
	if role, rate = a.next(1000); role != RoleConfirmHigh || rate < 105 || rate > 108 {
		t.Errorf("then %s at %v", role, rate)
	}
	a.learn(trial{rate: rate})
	for !a.done() {
		if role, rate = a.next(1000); role != RoleConfirmLow || rate <= a.lo || rate >= a.hi {
			t.Fatalf("%s at %v between %v and %v", role, rate, a.lo, a.hi)
		}
		a.learn(trial{rate: rate, held: true})
	}
	if _, rate := (aim{center: 100, width: 0.02}).next(101); rate != 101 {
		t.Errorf("with a maximum of 101/s it tries %v", rate)
	}
}

func TestPointByHand(t *testing.T) {
	sec := time.Second
	calls := load.Calls{
		{Conn: 1, Intended: 10 * sec, Ready: 10 * sec, Sent: 10 * sec, FirstByte: 10*sec + 20*ms, Done: 10*sec + 20*ms},
		{
			Conn: 2, Intended: 10*sec + 100*ms, Ready: 10*sec + 100*ms, Sent: 10*sec + 100*ms, Done: 40*sec + 100*ms,
			Outcome: load.Timeout,
		},
		{Intended: 10*sec + 200*ms, Done: 10*sec + 201*ms, Outcome: load.ConnFailed},
		{
			Conn: 1, Intended: 10*sec + 300*ms, Ready: 10*sec + 300*ms, Sent: 10*sec + 300*ms, FirstByte: 10*sec + 310*ms,
			Done: 10*sec + 310*ms, Outcome: load.Refused,
		},
		{
			Conn: 1, Intended: 10*sec + 400*ms, Ready: 10*sec + 400*ms, Sent: 10*sec + 400*ms, FirstByte: 12 * sec,
			Done: 12 * sec,
		},
	}
	trace := Trace{
		SLO: time.Second, Timeout: 30 * sec, Read: 50 * sec, Calls: calls,
		Steps: []Step{
			{Role: RolePoint, Rate: 5, Segment: load.Segment{Start: 10 * sec, End: 11 * sec, Offered: 5}},
			{Role: RoleDrain, Segment: load.Segment{Start: 11 * sec, End: 41 * sec}},
			{Role: RoleRecovery, Passed: new(true), Segment: load.Segment{Start: 41 * sec, End: 43 * sec}},
		},
	}
	got := Points(trace)
	if len(got) != 1 {
		t.Fatalf("%d points", len(got))
	}
	got[0].Audit = Audit{}
	want := Point{
		Rate: 5, Seconds: 1, Offered: 5, Sent: 4, Success: 0.4, OKInWindow: 1, Goodput: 1, GoodputSLO: new(1.0), Drain: 29.1,
		P50: 0.02, P90: 30, P99: 30, Max: 30, NoConnection: 1, NoByte: 1, BadStatus: 1, Stuck: 1, LastFailedSent: new(0.3),
		VegetaThroughput: 2 / 30.1, RecoverySeconds: new(2.0),
	}
	near := cmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) < 1e-9 })
	if d := cmp.Diff(want, got[0], near); d != "" {
		t.Errorf("−want +got:\n%s", d)
	}
}

func TestDescribedRecovery(t *testing.T) {
	dropped := 31 * time.Second
	v := &Recovery{
		Start: time.Second, Deadline: 60 * time.Second, Complete: true, Recovered: true, DroppedIdle: &dropped,
		Probes: []Probe{{At: 1 * time.Second}, {At: 32 * time.Second, Good: true}, {At: 33 * time.Second, Good: true}},
	}
	r := Assess(Trace{Recovery: v})
	if r.Wedged || r.RecoverySeconds == nil || *r.RecoverySeconds != 31 || !r.IdleDropped {
		t.Errorf("%+v", r)
	}
	if want := "recovers after 31.0 s, after the client had closed its idle connections at 30.0 " +
		"s"; r.RecoveryNote != want {
		t.Errorf("note %q, want %q", r.RecoveryNote, want)
	}
	// Probes of a second each: it had come back before the idle connections were closed.
	v.DroppedIdle, v.Probes = new(33500*time.Millisecond), v.Probes[1:]
	if r := Assess(Trace{Recovery: v}); r.IdleDropped || r.RecoveryNote != "recovers after 31.0 s" {
		t.Errorf("idle connections closed meanwhile: %+v", r)
	}
	v.DroppedIdle = &dropped
	v.Recovered, v.Probes = false, []Probe{{At: 60 * time.Second}}
	for good, want := range map[int]bool{0: false, 9: false, 10: false, 11: true, 20: true} {
		tr := Trace{Recovery: v, Stop: StopFailing, Steps: []Step{{
			Role: RoleRamp, Rate: 10, Segment: load.Segment{End: 2 * time.Second, Offered: 20},
		}}}
		calls := make(load.Calls, 20)
		for i := range calls {
			calls[i] = load.Call{Intended: time.Duration(i) * time.Second / 10, Done: 3 * time.Second, Status: 200}
			if i >= good {
				calls[i].Outcome, calls[i].Status = load.Refused, 503
			}
		}
		tr.Calls = calls
		if r := Assess(tr); r.Wedged != want {
			t.Errorf("%d of 20 calls were answered well at first: wedged %v, want %v (%s)", good, r.Wedged, want, r.RecoveryNote)
		}
		said := failures(tr.Calls.Due(0, time.Minute), uint64(21-good))
		if want := fmt.Sprintf(" well: %d × 503, 1 failed without an answer", 20-good); good < 20 && said != want {
			t.Errorf("%q, want %q", said, want)
		}
	}
	v.Complete = false
	if r := Assess(Trace{Recovery: v}); r.Wedged || r.RecoverySeconds != nil {
		t.Errorf("an interrupted probe says %+v", r)
	}
}

// TestTargetsThatAnswerPartlyDoNotStayDown: what fails at any rate fails after the load as well, and a target that
// answers most fresh calls, the last ones among them, is not down.
func TestTargetsThatAnswerPartlyDoNotStayDown(t *testing.T) {
	answers := func(pattern string) *Recovery {
		v := &Recovery{Limit: time.Second / 2, Deadline: 30 * time.Second, Complete: true}
		for i, answer := range pattern {
			v.Probes = append(v.Probes, Probe{At: time.Duration(i) * time.Second / 2, Good: answer == '+', Outcome: load.Failed})
		}
		return v
	}
	for name, c := range map[string]struct {
		pattern string
		share   int // of 100 calls, so many fail at any rate
		wedged  bool
		back    float64 // seconds; negative: it did not come back
		note    string
	}{
		"one of five places is dead": {strings.Repeat("-++++", 12), 20, false, 0.5, "recovers immediately"},
		"later": {
			strings.Repeat("-", 21) + strings.Repeat("++++-", 8), 20, false, 10.5, "recovers after 10.5 s",
		},
		"a busy host":               {"++--++-+++", 0, false, -1, "partly: answered 7 of 10 fresh calls well"},
		"all fail":                  {strings.Repeat("-", 60), 20, true, -1, "wedged: "},
		"the last fail":             {strings.Repeat("++-", 18) + "------", 20, true, -1, "wedged: "},
		"far more than at any rate": {strings.Repeat("--+", 20), 20, true, -1, "wedged: "},
		"five in a row":             {"-+++++", 0, false, 0.5, "recovers immediately"},
	} {
		tr := Trace{Recovery: answers(c.pattern), Stop: StopMaxRate}
		var calls load.Calls
		for i := range 300 {
			at := time.Duration(i) * time.Second / 100
			if i%100 == 0 {
				segment := load.Segment{Start: at, End: at + time.Second, Offered: 100}
				tr.Steps = append(tr.Steps, Step{Role: RoleRamp, Rate: 100, Passed: new(true), Segment: segment})
			}
			call := load.Call{Intended: at, Sent: at, Done: at + time.Millisecond, Status: 200}
			if i%100 < c.share {
				call.Outcome = load.Failed
			}
			calls = append(calls, call)
		}
		tr.Calls, tr.Read = calls, 4*time.Second
		r := Assess(tr)
		back := -1.0
		if r.RecoverySeconds != nil {
			back = *r.RecoverySeconds
		}
		if r.Wedged != c.wedged || back != c.back || !strings.HasPrefix(r.RecoveryNote, c.note) ||
			(r.AtLeast == 0) != c.wedged {
			t.Errorf("%s: wedged %v, back after %v s, at least %v: %s", name, r.Wedged, back, r.AtLeast, r.RecoveryNote)
		}
	}
}

// TestAnUnknownCapacityHasNoValue: what broke, and was not seen to hold, is not a capacity of 0.
func TestAnUnknownCapacityHasNoValue(t *testing.T) {
	if x, how := (Result{Valid: true, Broke: true}).Interval(); !math.IsNaN(x.Value) || !math.IsNaN(x.Lo) || how == "" {
		t.Errorf("%+v, %q", x, how)
	}
	if x, _ := (Result{Valid: true, Broke: true, AtMost: 104}).Interval(); x.Value != 104 || x.Hi != 104 {
		t.Errorf("a rate that broke: %+v", x)
	}
}

// FuzzAssess feeds arbitrary traces and calls: no panic, no number that JSON cannot hold.
func FuzzAssess(f *testing.F) {
	f.Add([]byte(`{"steps":[{"role":"ramp","rate":10,"segment":{"Start":0,"End":2000000000,"Offered":20},"passed":true},{"role":"overload","rate":20,`+
		`"attempt":1,"segment":{"Start":2000000000,"End":5000000000,"Offered":60}},{"role":"confirm-high","rate":12,"passed":false},{"role":"point","rate":3}],`+
		`"timeout":30000000000,"stop":"found","recovery":{"recovered":true,"complete":true,"probes":[{"at":5,"good":true}]}}`), []byte("calls are made of eight bytes each, these too"))
	f.Add([]byte(`{"steps":[{"role":"overload","rate":-1,"segment":{"Start":-5,"End":9}}]}`), []byte{})
	f.Add([]byte(`{}`), []byte("12345678"))
	f.Fuzz(func(t *testing.T, raw, calls []byte) {
		var trace Trace
		if json.Unmarshal(raw, &trace) != nil {
			return
		}
		trace.Calls = callsFrom(calls)
		for _, v := range []any{Assess(trace), Points(trace)} {
			if _, err := json.Marshal(v); err != nil {
				t.Errorf("%+v: %v", v, err)
			}
		}
	})
}

// callsFrom makes a call of every eight bytes, in order of the intended instant.
func callsFrom(raw []byte) load.Calls {
	var calls load.Calls
	at := time.Duration(0)
	for ; len(raw) >= 8; raw = raw[8:] {
		at += time.Duration(raw[0]) * ms
		c := load.Call{Intended: at, Conn: uint32(raw[1] % 8), Outcome: load.Outcome(raw[2] % byte(load.Outcomes))}
		if raw[3] > 20 {
			c.Ready, c.Sent = at, at+time.Duration(raw[3]-20)*ms/8
		}
		if raw[4] > 50 {
			c.FirstByte, c.Done = at+time.Duration(raw[4])*ms, at+time.Duration(raw[4])*ms
		}
		calls = append(calls, c)
	}
	return calls
}

func TestHistory(t *testing.T) {
	var h history
	for i := range 40 {
		p := load.Progress{Now: time.Duration(i) * 50 * ms, Due: uint64(10 * i)}
		p.Done[load.OK], p.Done[load.Refused] = uint64(5*i), uint64(i)
		h.add(p)
	}
	if g := h.goodput(time.Second); g != 100 {
		t.Errorf("goodput %v, want 100", g)
	}
	if _, c := h.over(time.Second / 2); c.bad != 10 || c.rejected != 10 || c.due != 100 {
		t.Errorf("change %+v", c)
	}
	if (&history{}).goodput(time.Second) != 0 {
		t.Error("a goodput of nothing")
	}
}

func TestCheckRefusesWhatCannotHaveHappened(t *testing.T) {
	good := func() Trace {
		return Trace{
			Steps: []Step{
				{Role: RoleRamp, Rate: 10, Segment: load.Segment{Start: 0, End: time.Second, Offered: 10, Sent: 10}},
				{Role: RoleRamp, Rate: 20, Segment: load.Segment{Start: time.Second, End: 2 * time.Second, Offered: 20, Sent: 20}},
			},
			Timeout: time.Second, Read: 3 * time.Second,
			Recovery: &Recovery{
				Start: 2 * time.Second, Limit: time.Second, Deadline: time.Minute, Probes: []Probe{{At: 2 * time.Second}},
			},
		}
	}
	if x := good(); x.Check() != nil {
		t.Errorf("a sound trace: %v", x.Check())
	}
	for name, spoil := range map[string]func(*Trace){
		"a start of 30 years":  func(x *Trace) { x.Steps[0].Segment.Start = 1e18 },
		"a read at the end":    func(x *Trace) { x.Read = math.MaxInt64 },
		"a read before it all": func(x *Trace) { x.Read = math.MinInt64 },
		"backwards":            func(x *Trace) { x.Steps[1].Segment.End = 0 },
		"out of order":         func(x *Trace) { x.Steps[0].Segment = load.Segment{Start: 2e9, End: 3e9} },
		"a rate of NaN":        func(x *Trace) { x.Steps[0].Rate = math.NaN() },
		"an endless rate":      func(x *Trace) { x.MaxRate = math.Inf(1) },
		"negative calls":       func(x *Trace) { x.Steps[0].Segment.Offered = -1 },
		"a negative timeout":   func(x *Trace) { x.Timeout = -1 },
		"a late recovery":      func(x *Trace) { x.Recovery.Start = math.MaxInt64 },
		"a late probe":         func(x *Trace) { x.Recovery.Probes[0].At = math.MaxInt64 },
	} {
		x := good()
		if spoil(&x); x.Check() == nil {
			t.Errorf("%s is taken", name)
		}
	}
}

// A target was cold if single calls are answered faster after the load than they were before it. If they are as slow as
// then, what is answered faster at higher rates is another answer.
func TestColdStart(t *testing.T) {
	for name, c := range map[string]struct {
		later, single time.Duration // after the first step, and after the load
		cold, other   bool
	}{
		"a cold target":                    {ms, 2 * ms, true, false},
		"quick lies":                       {ms / 10, 21 * ms, false, true},
		"as fast as ever":                  {20 * ms, 20 * ms, false, false},
		"cold, and nobody asked afterward": {ms, 0, true, false},
	} {
		trace := Trace{Stop: StopMaxRate}
		for i, rate := range []float64{10, 20, 40, 80} {
			response := c.later
			if i == 0 {
				response = 20 * ms
			}
			trace.tried(RoleRamp, time.Duration(10*i)*time.Second, rate, true, 0, response)
		}
		if c.single > 0 {
			trace.Recovery = &Recovery{Recovered: true, Complete: true}
			for range 5 {
				trace.Recovery.Probes = append(trace.Recovery.Probes, Probe{Response: c.single, Good: true})
			}
		}
		r := Assess(trace)
		cold := len(r.Findings) == 1 && r.Findings[0].Kind == ColdStart
		other := strings.Contains(strings.Join(r.Warnings, " "), "see what is answered")
		if cold != c.cold || other != c.other {
			t.Errorf("%s: findings %v, warnings %q", name, r.Findings, r.Warnings)
		}
	}
}

// What held before the last overload is no bound, and is said.
func TestHeldBeforeTheLastOverload(t *testing.T) {
	again := func(t *Trace) {
		t.tried(RoleConfirmLow, 40*time.Second, 90, true, 90, 10*ms) // a fifth failed
		t.tried(RoleOverload, 50*time.Second, 200, false, 0, 10*ms)
		t.Steps[len(t.Steps)-1].Attempt = 2
		t.tried(RoleConfirmHigh, 60*time.Second, 101, false, 0, 10*ms)
	}
	trace := confirmed(again)
	trace.Stop = StopFound
	got := strings.Join(Assess(trace).Warnings, "; ")
	if want := "to hold for certain since the last overload; before it 98/s held for 5 s"; !strings.Contains(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if got := confirmed(nil).heldBefore(0); got != "" {
		t.Errorf("of one overload: %q", got)
	}
}

// TestRose: what a target did in an earlier overload counts where it was kept busy for ten seconds, at once or after a
// drain, and where it did more in the last overload and held more since.
func TestRose(t *testing.T) {
	const sec = time.Second
	for name, c := range map[string]struct {
		later float64 // 1/s, in the last overload
		held  float64
		busy  []time.Duration // when it was kept busy for five seconds after the first overload
		drain time.Duration
		want  bool
	}{
		"at once":                   {300, 294, []time.Duration{15 * sec, 20 * sec}, 0, true},
		"half a second later":       {300, 294, []time.Duration{15500 * ms, 20500 * ms}, 0, true},
		"after a drain":             {300, 294, []time.Duration{17 * sec, 22 * sec, 27 * sec}, 15 * sec, true},
		"not for long":              {300, 294, nil, 0, false},
		"no more is done":           {152, 147, []time.Duration{15 * sec, 20 * sec}, 0, false},
		"more is done, not held":    {300, 147, []time.Duration{15 * sec, 20 * sec}, 0, false},
		"more held, it did no more": {152, 294, []time.Duration{15 * sec, 20 * sec}, 0, false},
	} {
		var trace Trace
		trace.tried(RoleRamp, 0, 50, true, 0, 10*ms)
		over := func(at time.Duration, goodput, rate float64, attempt int) {
			trace.tried(RoleOverload, at, goodput, false, 0, 10*ms)
			s := &trace.Steps[len(trace.Steps)-1]
			s.Rate, s.Attempt, s.Passed = rate, attempt, nil
		}
		over(10*sec, 150, 400, 1)
		if c.drain > 0 {
			trace.Steps = append(trace.Steps, Step{Role: RoleDrain, Segment: load.Segment{Start: c.drain, End: c.drain + sec}})
		}
		for _, at := range c.busy {
			trace.tried(RoleBusy, at, 150, false, 0, 10*ms)
		}
		over(40*sec, c.later, 500, 2)
		trace.tried(RoleConfirmLow, 50*sec, c.held, true, 0, 10*ms)
		if f := trace.rose(0); (f != nil) != c.want {
			t.Errorf("%s: %v", name, f)
		}
	}
}
