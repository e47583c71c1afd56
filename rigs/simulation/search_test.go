package simulation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tare/internal/capacity"
	"tare/internal/load"
	"tare/internal/signature"
	"tare/rigs/hosttest"
)

// goals are what every kind must reach over the tested instances: shares in percent, seconds at most (0: no limit).
type goals struct {
	within2, within5, class, seconds float64
}

// most kinds find the capacity within 2 % and name it; these are told apart.
var expected = map[string]goals{
	"mm1":               {0, 75, 100, 0}, // limited by the noise of a short observation
	"mmc":               {0, 75, 100, 0},
	"pauses":            {50, 75, 75, 0},
	"collapse":          {0, 75, 100, 0},
	"accept-queue":      {75, 100, 75, 0},
	"cfs":               {75, 100, 100, 0},
	"cfs-other-period":  {75, 100, 100, 0},
	"token-bucket":      {100, 100, 100, 20},
	"gcra":              {100, 100, 100, 20},
	"leaky-queue":       {100, 100, 100, 0}, // a queue that drops calls has to last
	"sliding-log":       {0, 50, 100, 0},
	"two-level-bucket":  {50, 50, 100, 0}, // a second allowance may outlast any patience
	"errors-20%-queue":  {0, 0, 0, 0},
	"slow":              {0, 25, 0, 0},
	"slow-bucket":       {50, 75, 100, 0},
	"short-timeout":     {50, 75, 75, 0},
	"processor-sharing": {0, 25, 100, 0}, // responses grow long before it does no more
	"sliding-counter":   {100, 100, 75, 0},
	"errors-1%-queue":   {75, 75, 75, 0},
}

// TestSearchFindsTheTruth searches four servers of each kind, and the first one again on a host of whose processors a
// tenth is stolen, in bursts of up to 30 ms. There hardly a search is lost that a quiet host answers, numbers and
// classes are hardly ever worse, none is given for the client's limit, and all together take at most 1.5 times as long.
func TestSearchFindsTheTruth(t *testing.T) {
	hosttest.SkipIfShort(t)
	const seed, stolenShare = 7, 0.1
	again := 1
	if hosttest.IsLong() {
		again = 4
	}
	var s stolenStudy
	t.Run("kinds", func(t *testing.T) {
		for _, k := range Kinds() {
			t.Run(k.Name, func(t *testing.T) {
				t.Parallel()
				studies, err := RunAll(t.Context(), []Kind{k}, seed, 4, 1)
				if err != nil {
					t.Fatal(err)
				}
				checkStudy(t, k, studies[0])
				for i, quiet := range studies[0].Outcomes[:again] {
					stolen, err := RunStolen(t.Context(), k, seed, i, stolenShare)
					if err != nil {
						t.Error(err)
					}
					s.take(t, k, i, quiet, stolen)
				}
			})
		}
	})
	t.Logf("%d searches were answered, %d not; %d numbers and %d classes are worse; %.2f times as long",
		s.answered, s.lost, s.off, s.misnamed, s.stolen/s.quiet)
	n := s.answered + s.lost
	if 20*s.lost > n || 20*s.off > n || 20*s.misnamed > n || s.stolen > 1.5*s.quiet {
		t.Error("more than 5 % of the searches are worse on the stolen host, or they take more than 1.5 times as long")
	}
}

func checkStudy(t *testing.T, k Kind, s Study) {
	t.Helper()
	g, ok := expected[k.Name]
	if !ok {
		g = goals{100, 100, 100, 0}
	}
	if s.Outcomes[0].Truth.Capacity > 0 {
		if w := s.Within(0.02); w < g.within2 {
			t.Errorf("%.0f %% within 2 %%, want %.0f %%", w, g.within2)
		}
		if w := s.Within(0.05); w < g.within5 {
			t.Errorf("%.0f %% within 5 %%, want %.0f %%", w, g.within5)
		}
	}
	if a := s.Accuracy(); a < g.class {
		t.Errorf("%.0f %% of the classes are right, want %.0f %%", a, g.class)
	}
	if g.seconds > 0 && s.Seconds(0.5) > g.seconds {
		t.Errorf("takes %.1f s, want at most %.0f s", s.Seconds(0.5), g.seconds)
	}
	for i, o := range s.Outcomes {
		checkOutcome(t, k, i, o)
	}
}

// searched is the trace of a search of a world.
func searched(t *testing.T, w *World, o capacity.Options) capacity.Trace {
	t.Helper()
	trace, err := capacity.Search(t.Context(), w, o, nil)
	if err != nil {
		t.Fatal(err)
	}
	return trace
}

// checkOutcome checks what holds for every search, whatever the server.
func checkOutcome(t *testing.T, k Kind, i int, o Outcome) {
	t.Helper()
	_, opts, _ := Instance(k, 7, i)
	r := o.Result
	if o.Peak > opts.MaxRate*(1+1e-9) {
		t.Errorf("%d: %v/s was offered, above the maximum of %v/s", i, o.Peak, opts.MaxRate)
	}
	if o.Truth.Capacity == 0 && r.Broke {
		t.Errorf("%d: the search claims a capacity of %v/s of a server without one", i, r.Rate)
	}
	if o.Truth.Stop != capacity.StopFound && r.Stop != o.Truth.Stop {
		t.Errorf("%d: it ended with %q (%s), want %q", i, r.Stop, r.Reason, o.Truth.Stop)
	}
	if r.Broke && !(r.Lo <= r.Rate && r.Rate <= r.Hi) {
		t.Errorf("%d: the rate %v is outside its interval [%v, %v]", i, r.Rate, r.Lo, r.Hi)
	}
	if r.VerifiedLow > 0 && r.VerifiedHigh > 0 && r.VerifiedLow >= r.VerifiedHigh {
		t.Errorf("%d: %v/s held and %v/s broke", i, r.VerifiedLow, r.VerifiedHigh)
	}
	if len(r.Signature.Evidence) == 0 && r.Broke {
		t.Errorf("%d: %s without evidence", i, r.Signature.Class)
	}
	if r.Seconds > opts.MaxSeconds+1 {
		t.Errorf("%d: it took %v s, above the maximum of %v s", i, r.Seconds, opts.MaxSeconds)
	}
}

func kind(t *testing.T, name string) Kind {
	t.Helper()
	for _, k := range Kinds() {
		if k.Name == name {
			return k
		}
	}
	t.Fatalf("no kind %q", name)
	return Kind{}
}

// TestAssessSurvivesJSON: the numbers depend on the trace and its calls alone, also after a round trip through JSON.
func TestAssessSurvivesJSON(t *testing.T) {
	for _, name := range []string{
		"token-bucket", "mm1", "accept-queue", "concurrency-limit", "collapse", "no-limit",
		"client-limited", "dead",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, o, _ := Instance(kind(t, name), 3, 1)
			o.MaxSeconds = 60
			trace := searched(t, w, o)
			first := capacity.Assess(trace)
			raw, err := json.Marshal(trace)
			if err != nil {
				t.Fatal(err)
			}
			var again capacity.Trace
			if err := json.Unmarshal(raw, &again); err != nil {
				t.Fatal(err)
			}
			again.Calls = trace.Calls
			if d := cmp.Diff(first, capacity.Assess(again)); d != "" {
				t.Errorf("the journey changed the result (−before +after):\n%s", d)
			}
			if first.RecoveryNote == "" && first.Broke {
				t.Error("it broke, and nothing is said about the recovery")
			}
			if _, err := json.Marshal(first); err != nil {
				t.Errorf("the result has no JSON: %v", err)
			}
		})
	}
}

// gkeServer is a server like that of the published report: 100m of CPU, 64 connections, a backlog of 1024, about 150
// calls a second.
func gkeServer() *World {
	k := Kind{Name: "gke", make: func(r *recipe) {
		r.capacity = 160
		r.throttle(0.1)
		q, ok := r.world.server.(open)
		if !ok {
			return
		}
		r.is(&backlog{serve: q.rule, slots: 64, backlog: 1024}, signature.AcceptQueue)
	}}
	w, _, _ := Instance(k, 1, 1)
	w.maxRate = 2000
	return w
}

func TestLadderReproducesThePublishedTable(t *testing.T) {
	o := capacity.Options{MaxRate: 2000, SLO: time.Second}
	trace, err := capacity.Play(t.Context(), gkeServer(), o, nil, []capacity.Planned{
		{Rate: 10}, {Rate: 100}, {Rate: 150}, {Rate: 500}, {Rate: 1000},
	})
	if err != nil {
		t.Fatal(err)
	}
	if trace.Stop != capacity.StopLadder {
		t.Errorf("it ended with %q: %s", trace.Stop, trace.Reason)
	}
	points := capacity.Points(trace)
	if len(points) != 5 {
		t.Fatalf("%d points", len(points))
	}
	for _, p := range points[:3] {
		if p.Success != 1 || p.NoByte != 0 || p.LastFailedSent != nil {
			t.Errorf("at %v/s %.2f %% succeed, %d get no byte", p.Rate, 100*p.Success, p.NoByte)
		}
	}
	for i, want := range map[int][2]float64{3: {0.56, 0.62}, 4: {0.74, 0.84}} {
		p := points[i]
		if p.Success < want[0] || p.Success > want[1] {
			t.Errorf("at %v/s %.1f %% succeed, want %.0f to %.0f %%", p.Rate, 100*p.Success, 100*want[0], 100*want[1])
		}
		if p.Stuck != 1025 || p.NoByte != 1025 {
			t.Errorf("at %v/s %d calls are stuck and %d get no byte, want 1025", p.Rate, p.Stuck, p.NoByte)
		}
		if p.Goodput < 140 || p.Goodput > 180 {
			t.Errorf("at %v/s the goodput in the window is %.1f/s", p.Rate, p.Goodput)
		}
		if p.VegetaThroughput > 0.9*p.Goodput {
			t.Errorf("at %v/s success ÷ (attack + wait) is %.1f/s, hardly less than %.1f/s", p.Rate, p.VegetaThroughput,
				p.Goodput)
		}
		if p.Drain < 20 || p.GoodputSLO == nil || *p.GoodputSLO > p.Goodput || p.RecoverySeconds == nil && i < 4 {
			t.Errorf("at %v/s: drain %.1f s, goodput within the objective %v, recovery %v", p.Rate, p.Drain, p.GoodputSLO,
				p.RecoverySeconds)
		}
	}
}

func TestSearchNamesTheFullListenQueue(t *testing.T) {
	trace := searched(t, gkeServer(), capacity.Options{MaxRate: 2000})
	r := capacity.Assess(trace)
	if r.Signature.Class != signature.AcceptQueue || r.Signature.Stuck != 1025 {
		t.Errorf("class %s with %d stuck calls: %v", r.Signature.Class, r.Signature.Stuck, r.Signature.Evidence)
	}
	if math.Abs(r.Rate/160-1) > 0.05 {
		t.Errorf("capacity %v/s, want about 160/s", r.Rate)
	}
	// Idle connections keep the slots, and dead ones the queue: only when the idle ones are closed does it come back.
	if r.Wedged || !r.IdleDropped || r.RecoverySeconds == nil || *r.RecoverySeconds < 30 {
		t.Errorf("wedged %v, idle connections dropped %v, recovery %v: %s", r.Wedged, r.IdleDropped, r.RecoverySeconds,
			r.RecoveryNote)
	}
}

func TestSearchReportsAWedgedTarget(t *testing.T) {
	w, o, _ := Instance(kind(t, "token-bucket"), 1, 0)
	o.Timeout, w.timeout = 5*time.Second, 5*time.Second
	broken := &wedgingRule{server: w.server}
	w.server = broken
	trace, err := capacity.Search(t.Context(), w, o, func(e capacity.Event) {
		broken.dead = broken.dead || e.Step.Role == capacity.RoleRecovery
	})
	if err != nil {
		t.Fatal(err)
	}
	if r := capacity.Assess(trace); !r.Wedged || r.RecoverySeconds != nil {
		t.Errorf("wedged %v, recovery %v, %q", r.Wedged, r.RecoverySeconds, r.RecoveryNote)
	}
}

// TestSilentTargetHoldsNoRate: a target that stops answering at the first confirmation holds no rate, although the ages
// of its calls fall.
func TestSilentTargetHoldsNoRate(t *testing.T) {
	for _, name := range []string{"mm1", "collapse", "leaky-queue"} {
		w, o, truth := Instance(kind(t, name), 1, 0)
		broken := &wedgingRule{server: w.server}
		w.server = broken
		trace, err := capacity.Search(t.Context(), w, o, func(e capacity.Event) {
			broken.dead = broken.dead || e.Step.Role == capacity.RoleConfirmHigh
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range trace.Steps {
			if s.Passed != nil && *s.Passed && s.Role == capacity.RoleConfirmHigh {
				t.Errorf("%s: %.4g/s is said to have held, with a target that answered nothing", name, s.Rate)
			}
		}
		if r := capacity.Assess(trace); !broken.dead || r.VerifiedLow > 0 || r.Rate > 1.1*truth.Capacity {
			t.Errorf("%s: dead %v, %v/s [%v, %v], verified from %v; the truth was %v/s", name, broken.dead, r.Rate, r.Lo, r.Hi,
				r.VerifiedLow, truth.Capacity)
		}
	}
}

// wedgingRule answers nothing once it is dead.
type wedgingRule struct {
	server
	dead bool
}

func (s *wedgingRule) request(w *World, j *job, c *conn) {
	if !s.dead {
		s.server.request(w, j, c)
	}
}

func TestSearchFindsTheObjective(t *testing.T) {
	// One worker, exponential service at 500/s: of calls that come evenly at rate λ, a share of exp(−θt) waits longer
	// than t (D/M/1).
	k := Kind{Name: "dm1", make: func(r *recipe) {
		r.capacity, r.truth.Capacity = 500, 500
		r.is(open{rule: r.line(1, 1)}, signature.Queue)
	}}
	w, o, _ := Instance(k, 5, 0)
	o.SLO, o.MaxSeconds = 50*time.Millisecond, 400
	trace := searched(t, w, o)
	r := capacity.Assess(trace)
	// σ = exp(−(1−σ)·500/λ), P(response > t) = exp(−500(1−σ)t) = 0.01 at (1−σ) = 0.1842: λ = 500·0.1842/−ln 0.8158 = 452.
	if r.SLORate < 330 || r.SLORate > 475 {
		t.Errorf("the objective holds up to %v/s, want a little below 452/s", r.SLORate)
	}
}

func TestSearchStopsWithItsContext(t *testing.T) {
	w, o, _ := Instance(kind(t, "mdc"), 1, 0)
	ctx, cancel := context.WithCancel(t.Context())
	trace, err := capacity.Search(ctx, w, o, func(e capacity.Event) {
		if e.Step.Role == capacity.RoleOverload {
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) || trace.Stop != capacity.StopCanceled {
		t.Errorf("error %v, stop %q", err, trace.Stop)
	}
	if len(load.CallsOf(trace.Calls)) == 0 || len(trace.Steps) == 0 {
		t.Error("what was measured is lost")
	}
	capacity.Assess(trace)
}

func TestSearchRejectsInvalidSettings(t *testing.T) {
	w, _, _ := Instance(kind(t, "mdc"), 1, 0)
	for _, o := range []capacity.Options{{Start: -1}, {MaxRate: math.NaN()}, {Timeout: -1}, {MaxSeconds: -3}} {
		if _, err := capacity.Search(t.Context(), w, o, nil); err == nil {
			t.Errorf("options %+v are taken", o)
		}
	}
	above := []capacity.Planned{{Rate: 20}}
	if _, err := capacity.Play(t.Context(), w, capacity.Options{MaxRate: 10}, nil, above); err == nil {
		t.Error("a ladder above the maximum is taken")
	}
}

func TestWorldCountsAddUp(t *testing.T) {
	for _, name := range []string{"token-bucket", "accept-queue", "connection-refused", "quota-hang"} {
		w, _, _ := Instance(kind(t, name), 2, 0)
		if _, err := w.Offer(t.Context(), load.Constant{Rate: 1000, Duration: 3 * time.Second}, time.Second,
			nil); err != nil {
			t.Fatal(err)
		}
		p := w.Progress()
		var done [load.Outcomes]uint64
		waiting, flying := 0, 0
		calls := w.Calls(0)
		for _, c := range calls {
			switch {
			case c.Done != 0:
				done[c.Outcome]++
			case c.Sent != 0:
				flying++
			default:
				waiting++
			}
		}
		if len(calls) != 3000 || p.Due != 3000 || p.Done != done || p.InFlight != flying || p.Waiting != waiting {
			t.Errorf("%s: progress %+v, but %v done, %d in flight, %d waiting of %d", name, p, done, flying, waiting, len(calls))
		}
		if err := w.Wait(t.Context(), 40*time.Second, time.Second, nil); err != nil {
			t.Fatal(err)
		}
		if o := w.Progress().Open(); o != 0 {
			t.Errorf("%s: %d calls are open after their timeout", name, o)
		}
		if since := w.Calls(2 * time.Second); len(since) != 1000 || since[0].Intended < 2*time.Second {
			t.Errorf("%s: %d calls since 2 s", name, len(since))
		}
	}
}

func TestOfferRejectsTooManyCalls(t *testing.T) {
	w, o, _ := Instance(kind(t, "mdc"), 1, 0)
	if _, err := w.Offer(t.Context(), load.Constant{Rate: 2 * o.MaxRate, Duration: time.Second}, time.Second,
		nil); err == nil {
		t.Error("twice the maximum is offered")
	}
}

// TestBurstsAreOfferedAsPlanned: the target is brought into its state before each burst, and read after all calls have
// ended.
func TestBurstsAreOfferedAsPlanned(t *testing.T) {
	var k Kind
	for _, k = range Kinds() {
		if k.Name == "mdc" {
			break
		}
	}
	w, o, truth := Instance(k, 1, 1)
	w.maxRate = 0
	var order []string
	note := func(what string) func(context.Context) error {
		return func(context.Context) error {
			order = append(order, fmt.Sprintf("%s with %d open", what, w.Progress().Open()))
			return nil
		}
	}
	trace, err := capacity.Play(t.Context(), w, o, nil, []capacity.Planned{
		{
			Name: "herd", Rate: 300, Process: load.Burst{Calls: 300, Over: 200 * time.Millisecond, Duration: time.Second},
			Before: note("before herd"), After: note("after herd"),
		},
		{Rate: 50, Before: note("before 50"), After: note("after 50")},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"before herd with 0 open", "after herd with 0 open", "before 50 with 0 open", "after 50 with 0 open"}
	if !slices.Equal(order, want) {
		t.Errorf("order %q, want %q", order, want)
	}
	points := capacity.Points(trace)
	if len(points) != 2 || points[0].Name != "herd" || points[0].Offered != 300 || points[1].Name != "" {
		t.Fatalf("points %+v", points)
	}
	// The last of a herd waits until the server has done all of it.
	work := 300 / truth.Capacity
	if p := points[0]; p.Success != 1 || p.Max < 0.8*work-0.2 || p.Max > 1.3*work+0.2 {
		t.Errorf("the herd: %.0f %% succeed, the slowest after %.2f s, where the work is %.2f s", 100*p.Success, p.Max, work)
	}
	broken := errors.New("no")
	if _, err := capacity.Play(t.Context(), gkeServer(), capacity.Options{}, nil, []capacity.Planned{
		{
			Name: "x", Rate: 1, Process: load.Burst{Calls: 1, Over: time.Second},
			Before: func(context.Context) error { return broken },
		},
	}); !errors.Is(err, broken) || !strings.Contains(err.Error(), "x: ") {
		t.Errorf("a stage that fails gives %v", err)
	}
}

// TestSlowServiceHasANumber: the break of a service says nothing before it has answered enough calls to be warm. One
// that takes a few calls a second needs fewer.
func TestSlowServiceHasANumber(t *testing.T) {
	for _, c := range []struct {
		name             string
		mean, maxSeconds float64
	}{
		{"4/s, 300 s", 0.25, 300},
		{"3/s, 300 s", 0.33, 300},
		{"20/s, 300 s", 0.05, 300},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := Composition{Name: c.name, Seed: 1, MaxRate: 1000, Timeout: 10, Latency: 0.002, Parts: []Part{
				{Kind: service, With: map[string]float64{"mean": c.mean, "workers": 1}},
			}}
			o := x.Options()
			o.MaxSeconds = c.maxSeconds
			trace := searched(t, x.World(), o)
			r, truth := capacity.Assess(trace), 1/c.mean
			warned := strings.Contains(strings.Join(r.Warnings, "\n"), "it may be able to take more once it is warm")
			switch {
			case r.Signature.Class.Traits().Saves:
				t.Errorf("the class is %s", r.Signature.Class)
			case r.AtLeast > 1.01*truth:
				t.Errorf("at least %.3g/s of a service that does %.3g/s", r.AtLeast, truth)
			case r.Lo > truth || r.Hi < truth || warned:
				t.Errorf("the answer is %.3g/s [%.3g, %.3g]; warnings: %q", r.Rate, r.Lo, r.Hi, r.Warnings)
			}
		})
	}
}

// perCaller decides the calls of each caller by a rule of its own.
type perCaller []open

func (s perCaller) dial(w *World, c *conn)            { s[0].dial(w, c) }
func (s perCaller) request(w *World, j *job, c *conn) { s[j.caller].request(w, j, c) }
func (s perCaller) hangup(*World, *conn)              {}
func each(callers int, rule func() rule) (out perCaller) {
	for range callers {
		out = append(out, open{rule: rule()})
	}
	return out
}

// TestLimitOwnerIsNamed: the same limits, of each caller or of all together. No sentence may be false; most must be
// printed.
func TestLimitOwnerIsNamed(t *testing.T) {
	hosttest.SkipIfShort(t)
	limits := map[string]func(rng *rand.Rand, rate float64) rule{
		"token-bucket": func(rng *rand.Rand, rate float64) rule {
			burst := 1 + rate*2*rng.Float64()
			return &bucket{rate: rate, burst: burst, tokens: burst, latency: latency{rng: rng, median: 0.003}}
		},
		"gcra": func(rng *rand.Rand, rate float64) rule {
			return &gcra{gap: 1 / rate, tolerance: 10 / rate, rejectionStatus: 429, latency: latency{rng: rng, median: 0.003}}
		},
		"fixed-window": func(rng *rand.Rand, rate float64) rule {
			return &lumps{per: rate, burst: rate, period: 1, offset: rng.Float64(), latency: latency{rng: rng, median: 0.003}}
		},
		"sliding-log": func(rng *rand.Rand, rate float64) rule {
			return &slidingLog{n: int(rate), period: 1, latency: latency{rng: rng, median: 0.003}}
		},
	}
	const seeds = 6
	for name, limit := range limits {
		for _, callers := range []int{2, 4, 20} {
			for kind, groups := range map[capacity.FindingKind]int{capacity.LimitPerCaller: callers, capacity.LimitShared: 1} {
				t.Run(fmt.Sprintf("%s/%d/%s", name, callers, kind), func(t *testing.T) {
					t.Parallel()
					said := 0
					for seed := range seeds {
						rng := rand.New(rand.NewPCG(uint64(seed), 11))
						share := float64(int(between(rng, 10, 100)))
						o := capacity.Options{MaxRate: 20_000, Callers: callers}.Defaults()
						servers := each(groups, func() rule { return limit(rng, share*float64(callers/groups)) })
						w := &World{server: servers, callers: groups, timeout: o.Timeout, maxConns: o.MaxConns, maxRate: o.MaxRate}
						trace := searched(t, w, o)
						for _, f := range capacity.Assess(trace).Findings {
							whose := f.Kind == capacity.LimitPerCaller || f.Kind == capacity.LimitShared
							if whose && f.Kind != kind {
								t.Errorf("seed %d: %s", seed, f.Sentence)
							} else if whose {
								said++
							}
						}
					}
					if said < seeds*2/3 {
						t.Errorf("said of %d of %d", said, seeds)
					}
				})
			}
		}
	}
}

// stolenStudy counts what a stolen host changes.
type stolenStudy struct {
	sync.Mutex

	answered, lost, off, misnamed int
	quiet, stolen                 float64 // seconds
}

// take compares a search on a stolen host with the same one on a quiet host.
func (s *stolenStudy) take(t *testing.T, k Kind, i int, quiet, stolen Outcome) {
	t.Helper()
	s.Lock()
	defer s.Unlock()
	s.quiet, s.stolen = s.quiet+quiet.Result.Seconds, s.stolen+stolen.Result.Seconds
	if stolen.Result.Stop == capacity.StopClient && quiet.Result.Stop != capacity.StopClient {
		t.Errorf("%s %d: %s", k.Name, i, stolen.Result.Reason)
	}
	answers := func(o Outcome) bool {
		return o.Result.Rate > 0 || o.Truth.Stop != capacity.StopFound && o.Result.Stop == o.Truth.Stop
	}
	if !answers(quiet) {
		return
	}
	r := stolen.Result
	if !answers(stolen) {
		s.lost++
		t.Logf("%s %d: no answer: %s %s %q", k.Name, i, r.Stop, r.Reason, r.Warnings)
		return
	}
	s.answered++
	if quiet.Error() < 0.05 && stolen.Error() >= 0.05 {
		s.off++
		t.Logf("%s %d: %.4g/s [%.4g, %.4g] instead of %.4g/s", k.Name, i, r.Rate, r.Lo, r.Hi, stolen.Truth.Capacity)
	}
	if quiet.Right() && !stolen.Right() {
		s.misnamed++
		t.Logf("%s %d: %s", k.Name, i, r.Signature.Class)
	}
}
