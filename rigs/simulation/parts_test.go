package simulation

import (
	"encoding/json"
	"math"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tare/internal/load"
	"tare/internal/stat"
	"tare/rigs/hosttest"
)

// compose returns a composition of the given parts with a client that waits for 10 s and a network delay of 1 ms.
func compose(parts ...Part) Composition {
	return Composition{Seed: 2, MaxRate: 5000, Timeout: 10, Latency: 0.001, Parts: parts}
}

func newPart(k PartKind, numbers ...any) Part {
	p := Part{Kind: k, With: map[string]float64{}}
	for i := 0; i < len(numbers); i += 2 {
		p.With[numbers[i].(string)] = numbers[i+1].(float64)
	}
	return p
}

func (p Part) refusing(how string) Part { p.Refusal = how; return p }

func workers(n, mean float64) Part { return newPart(service, "workers", n, "mean", mean) }

// offer returns the calls of a world after rate was offered for d, and nothing for as long as the client waits.
func offer(t *testing.T, c Composition, rate float64, d time.Duration) ([]load.Call, *World) {
	t.Helper()
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	w := c.World()
	if _, err := w.Offer(t.Context(), load.Constant{Rate: rate, Duration: d}, time.Second, nil); err != nil {
		t.Fatal(err)
	}
	if err := w.Wait(t.Context(), c.timeout()+time.Second, time.Second, nil); err != nil {
		t.Fatal(err)
	}
	return w.Calls(0), w
}

func countGood(calls []load.Call) (n int) {
	for _, c := range calls {
		if c.Outcome.Good() {
			n++
		}
	}
	return n
}

func TestRefusals(t *testing.T) {
	for _, c := range []struct {
		how     string
		outcome load.Outcome
		status  uint16
	}{
		{refuse429, load.Refused, 429},
		{refuse503, load.Refused, 503},
		{refuse500, load.Failed, 500},
		{refuseFailed, load.Failed, 200},
		{refuseWrong, load.Wrong, 200},
		{refuseReset, load.ConnFailed, 0},
		{refuseSilent, load.Timeout, 0},
		{"", load.Refused, 429},
	} {
		limit := newPart(tokenBucket, "rate", 10.0, "burst", 5.0).refusing(c.how)
		calls, _ := offer(t, compose(limit, workers(16, 0.01), newPart(tarpit, "delay", 0.5)), 100, 2*time.Second)
		bad := 0
		for _, x := range calls {
			if x.Outcome.Good() {
				continue
			}
			bad++
			reset := x.Errno == uint16(syscall.ECONNRESET)
			if x.Outcome != c.outcome || x.Status != c.status || reset != (c.outcome == load.ConnFailed) {
				t.Fatalf("%q: a refused call ended as %s with status %d", c.how, x.Outcome, x.Status)
			}
			if s := x.Service().Seconds(); x.Outcome != load.Timeout && (s < 0.5 || s > 0.52) {
				t.Fatalf("%q: a refusal took %.3f s in a tarpit of 0.5 s", c.how, s)
			}
		}
		if good := len(calls) - bad; good < 23 || good > 26 {
			t.Errorf("%q: %d calls in 2 s of 10/s and a burst of 5", c.how, good)
		}
	}
}

func TestQueuePolicies(t *testing.T) {
	serve := workers(1, 0.01)
	calls, _ := offer(t, compose(serve, newPart(shedByAge, "age", 0.2)), 200, 4*time.Second)
	for _, c := range calls {
		s, refused := c.Service().Seconds(), c.Outcome == load.Refused
		if refused && math.Abs(s-0.2013) > 0.001 || c.Outcome.Good() && s > 0.22 {
			t.Fatalf("shed by age 0.2 s: %s after %.4f s", c.Outcome, s)
		}
	}
	if n := countGood(calls); n < 380 || n > 430 {
		t.Errorf("%d calls in 4 s of 100/s and a queue of 0.2 s", n)
	}
	calls, _ = offer(t, compose(serve, newPart(shedByLength, "length", 7.0)), 200, 4*time.Second)
	for _, c := range calls {
		if s := c.Service().Seconds(); c.Outcome == load.Refused && s > 0.002 || c.Outcome.Good() && s > 0.09 {
			t.Fatalf("shed by length 7: %s after %.4f s", c.Outcome, s)
		}
	}
	calls, _ = offer(t, compose(serve, newPart(earlyDrop, "low", 5.0, "high", 50.0)), 200, 4*time.Second)
	if n, slowest := countGood(calls), longestResponse(calls); n < 390 || n > 450 || slowest < 0.15 || slowest > 0.52 {
		t.Errorf("early drop from 5 to 50: %d calls, the slowest after %.3f s", n, slowest)
	}
	calls, _ = offer(t, compose(serve, newPart(lastInFirstOut, "length", 10.0)), 200, 4*time.Second)
	late := 0
	for _, c := range calls[400:600] { // at 2 s, 200 wait
		if c.Outcome.Good() && c.Service() < 150*time.Millisecond {
			late++
		}
	}
	if late < 70 {
		t.Errorf("last in, first out: only %d of 200 late calls were served soon", late)
	}
}

func longestResponse(calls []load.Call) float64 {
	most := 0.0
	for _, c := range calls {
		if c.Outcome.Good() {
			most = max(most, c.Service().Seconds())
		}
	}
	return most
}

// TestAbandonedCalls: the queue of a server that works for abandoned calls contains those of clients that have given
// up.
func TestAbandonedCalls(t *testing.T) {
	for _, abandoned := range []float64{0, 1} {
		c := compose(newPart(service, "workers", 1.0, "mean", 0.01, "abandoned", abandoned))
		c.Timeout = 2
		w := c.World()
		p := load.Constant{Rate: 200, Duration: 20 * time.Second}
		if _, err := w.Offer(t.Context(), p, time.Second, nil); err != nil {
			t.Fatal(err)
		}
		want := 400 + 1600*abandoned // 2 s of calls, or all beyond 100/s
		if n := float64(w.server.(*composed).queue.live); math.Abs(n-want) > 10 {
			t.Errorf("abandoned %v: %v calls wait, want %v", abandoned, n, want)
		}
	}
}

func TestMemory(t *testing.T) {
	for _, refuses := range []float64{0, 1} {
		c := compose(workers(1, 0.01), newPart(stopsForever, "length", 50.0, "refuses", refuses))
		calls, w := offer(t, c, 200, 4*time.Second)
		if n := countGood(calls); n < 40 || n > 60 {
			t.Errorf("%d calls before 50 waited", n)
		}
		fresh := w.Fresh(t.Context(), 0, 0, time.Second)
		if c := fresh; c.Outcome.Good() || (c.Outcome == load.ConnFailed) != (refuses == 1) {
			t.Errorf("refuses %v: a fresh call ends as %s", refuses, c.Outcome)
		}
		if held, _ := c.sustains(60, 0, 30*time.Second); !held {
			t.Error("a copy of it is dead as well")
		}
	}
	c := compose(workers(1, 0.01), newPart(crash, "length", 50.0, "down", 3.0))
	calls, _ := offer(t, c, 200, time.Second)
	if n := countGood(calls); n < 40 || n > 60 {
		t.Errorf("%d calls before the crash", n)
	}
	w := c.World()
	if _, err := w.Offer(t.Context(), load.Constant{Rate: 200, Duration: time.Second}, time.Second, nil); err != nil {
		t.Fatal(err)
	}
	if c := w.Fresh(t.Context(), 0, 0, time.Second); c.Errno != uint16(syscall.ECONNREFUSED) {
		t.Errorf("during the crash a fresh call ends as %s", c.Outcome)
	}
	if err := w.Wait(t.Context(), 3*time.Second, time.Second, nil); err != nil {
		t.Fatal(err)
	}
	if c := w.Fresh(t.Context(), 0, 0, time.Second); !c.Outcome.Good() {
		t.Errorf("after the crash a fresh call ends as %s", c.Outcome)
	}
}

func TestChangesWithTime(t *testing.T) {
	median := func(calls []load.Call) float64 {
		var s []float64
		for _, c := range calls {
			s = append(s, c.Service().Seconds())
		}
		return stat.Quantile(s, 0.5)
	}
	cold, _ := offer(t, compose(workers(8, 0.01), newPart(coldCount, "calls", 300.0, "factor", 5.0)), 50, 10*time.Second)
	if a, b := median(cold[:300]), median(cold[300:]); math.Abs(a-0.051) > 0.002 || math.Abs(b-0.011) > 0.001 {
		t.Errorf("cold by count: %.4f s, then %.4f s", a, b)
	}
	cold, _ = offer(t, compose(workers(8, 0.01), newPart(coldTime, "seconds", 4.0, "factor", 5.0)), 50, 10*time.Second)
	if a, b := median(cold[:200]), median(cold[201:]); math.Abs(a-0.051) > 0.002 || math.Abs(b-0.011) > 0.001 {
		t.Errorf("cold by time: %.4f s, then %.4f s", a, b)
	}
	scaling := newPart(autoscaling, "after", 10.0, "factor", 2.0)
	scaled, _ := offer(t, compose(workers(2, 0.01), scaling), 90, 30*time.Second)
	if a, b := median(scaled[:800]), median(scaled[1200:]); a < 0.02 || math.Abs(b-0.011) > 0.001 {
		t.Errorf("autoscaling after 10 s: %.4f s, then %.4f s", a, b)
	}
	spent, _ := offer(t, compose(workers(2, 0.01), newPart(credits, "seconds", 1.0, "factor", 4.0)), 60, 40*time.Second)
	if a, b := longestResponse(spent[:400]), longestResponse(spent[2000:]); a > 0.02 || b < 2 {
		t.Errorf("credits: the slowest of the first calls took %.3f s, of the last %.3f s", a, b)
	}
	calls, _ := offer(t, compose(workers(8, 0.01), newPart(jitter, "most", 0.004)), 50, 20*time.Second)
	var s []float64
	for _, c := range calls {
		s = append(s, c.Service().Seconds()-0.011)
	}
	lo, hi, mean := slices.Min(s), slices.Max(s), stat.Mean(s)
	if lo < -0.0003 || hi > 0.0083 || math.Abs(mean-0.004) > 0.0003 {
		t.Errorf("jitter of 4 ms either way adds %.4f to %.4f s, %.4f s on average", lo, hi, mean)
	}
}

func TestEntrance(t *testing.T) {
	calls, _ := offer(t, compose(workers(64, 0.1), newPart(connectionLimit, "limit", 10.0)), 300, 4*time.Second)
	refused := 0
	for _, c := range calls {
		if c.Errno == uint16(syscall.ECONNREFUSED) {
			refused++
		}
	}
	if n := countGood(calls); n < 350 || n > 410 || refused+n != len(calls) {
		t.Errorf("10 connections of 0.1 s each: %d of %d calls in 4 s, %d refused", n, len(calls), refused)
	}
	// Slots stay taken by idle connections, and a listen queue of backlog + 1 fills with others.
	_, w := offer(t, compose(workers(64, 0.1), newPart(acceptLimit, "slots", 10.0, "backlog", 20.0)), 300, time.Second)
	s := w.server.(*composed)
	if a := s.entrance.accept; a.taken > 10 || len(a.queue) > 21 {
		t.Errorf("%d slots are taken and %d connections wait", a.taken, len(a.queue))
	}
	// A limit per client takes no notice of other clients.
	limit := newPart(tokenBucket, "rate", 1.0, "burst", 1.0, "per_client", 1.0)
	_, w = offer(t, compose(limit, workers(8, 0.01)), 300, time.Second)
	for range 5 {
		if c := w.Fresh(t.Context(), 0, 0, time.Second); !c.Outcome.Good() {
			t.Error("a fresh call of another client is refused")
		}
	}
}

func TestComposedWorldCountsAddUp(t *testing.T) {
	for i := range 40 {
		c := Draw(3, i)
		w := c.World()
		rate := math.Min(c.MaxRate, 400)
		for _, d := range []time.Duration{3 * time.Second, 100 * time.Millisecond} {
			if _, err := w.Offer(t.Context(), load.Constant{Rate: rate, Duration: d}, time.Second, nil); err != nil {
				t.Fatal(err)
			}
			checkCounts(t, c, w)
		}
		if err := w.Wait(t.Context(), c.timeout()+time.Second, time.Second, nil); err != nil {
			t.Fatal(err)
		}
		checkCounts(t, c, w)
		s := w.server.(*composed)
		if w.Progress().Open() != 0 {
			t.Errorf("%s: %d calls are open after their timeout", c, w.Progress().Open())
		}
		if !s.queue.abandoned && s.queue.live != 0 {
			t.Errorf("%s: %d calls wait of which every client has given up", c, s.queue.live)
		}
		if s.inside < s.queue.live+s.queue.busy || s.queue.busy > s.queue.workers {
			t.Errorf("%s: %d calls inside, %d wait, %d are served by %d", c, s.inside, s.queue.live, s.queue.busy,
				s.queue.workers)
		}
	}
}

func checkCounts(t *testing.T, c Composition, w *World) {
	t.Helper()
	p := w.Progress()
	var done [load.Outcomes]uint64
	waiting, flying := 0, 0
	calls := w.Calls(0)
	for _, x := range calls {
		switch {
		case x.Done != 0:
			done[x.Outcome]++
			if x.Done < x.Sent || x.Sent != 0 && x.Sent < x.Intended {
				t.Fatalf("%s: a call in the wrong order: %+v", c, x)
			}
		case x.Sent != 0:
			flying++
		default:
			waiting++
		}
	}
	if len(calls) != int(p.Due) || p.Done != done || p.InFlight != flying || p.Waiting != waiting {
		t.Fatalf("%s: progress %+v, but %v done, %d in flight, %d waiting of %d", c, p, done, flying, waiting, len(calls))
	}
}

func TestDrawnCompositions(t *testing.T) {
	const n = 3000
	kinds, without := map[PartKind]int{}, 0
	for i := range n {
		c := Draw(5, i)
		if err := c.Validate(); err != nil {
			t.Fatalf("composition %d: %v", i, err)
		}
		if len(c.Parts) < 3 || !c.has(service) {
			t.Fatalf("composition %d has no service, or fewer than 3 parts: %s", i, c)
		}
		for _, p := range c.Parts {
			kinds[p.Kind]++
		}
		if c.MaxRate < 2*math.Min(c.ceiling(), 1e9) && c.ceiling() > 2*c.MaxRate {
			without++
		}
	}
	for k := range mechanisms {
		if kinds[k] < n/100 {
			t.Errorf("%s is part of %d worlds of %d only", k, kinds[k], n)
		}
	}
	if without < n*5/100 || without > n*8/100 {
		t.Errorf("%d of %d worlds have no limit", without, n)
	}
	if d := cmp.Diff(Draw(5, 7), Draw(5, 7)); d != "" {
		t.Errorf("the same number gives another world: %s", d)
	}
}

func TestTruthIsReproducible(t *testing.T) {
	hosttest.SkipIfShort(t)
	for i := range 3 {
		c := Draw(9, i)
		text, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		var again Composition
		if err := json.Unmarshal(text, &again); err != nil {
			t.Fatal(err)
		}
		truth := c.Truth()
		if d := cmp.Diff(truth, again.Truth()); d != "" {
			t.Errorf("%s: truth differs when computed again:\n%s", c, d)
		}
		a, err := SearchWorld(t.Context(), c, truth)
		if err != nil {
			t.Fatal(err)
		}
		b, err := SearchWorld(t.Context(), again, truth)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(a.Result, b.Result); d != "" {
			t.Errorf("%s: results differ:\n%s", c, d)
		}
	}
}

func TestTruthsAreRemembered(t *testing.T) {
	path := filepath.Join(t.TempDir(), "truths.json")
	c := Draw(9, 1)
	var first Truth
	for range 2 {
		truths, err := OpenTruths(path)
		if err != nil {
			t.Fatal(err)
		}
		got := truths.Of(c)
		if truths.added != (first.Stop == "") {
			t.Error("it is computed again")
		}
		if first = got; first.Stop == "" {
			t.Fatal("no truth")
		}
		if err := truths.Save(); err != nil {
			t.Fatal(err)
		}
	}
	if d := cmp.Diff(first, c.Truth()); d != "" {
		t.Error(d)
	}
}

func TestShrink(t *testing.T) {
	c := compose(workers(7, 0.0123), newPart(tokenBucket, "rate", 123.4, "burst", 56.0), newPart(jitter, "most", 0.00123),
		newPart(drift, "period", 30.0, "share", 0.03))
	small := Shrink(c, func(c Composition) bool {
		p, ok := c.part(tokenBucket)
		return ok && c.has(service) && p.With["rate"] > 110
	})
	if p := small.Parts; len(p) != 2 || p[1].With["rate"] != 120 || p[0].With["mean"] != 0.01 || small.Seed != 1 {
		t.Errorf("shrunk to %s", small)
	}
	if len(c.Parts) != 4 || c.Parts[1].With["rate"] != 123.4 {
		t.Errorf("the original is now %s", c)
	}
}

func TestBadCompositions(t *testing.T) {
	for _, c := range []Composition{
		{},
		compose(newPart("magic")),
		compose(newPart(jitter)),
		compose(newPart(jitter, "most", -1.0)),
		compose(newPart(jitter, "most", 1.0, "least", 1.0)),
		compose(newPart(tokenBucket, "rate", 1.0, "burst", 1.0).refusing("418")),
		compose(Part{Kind: jitter, With: map[string]float64{"most": 1}, Distribution: "round"}),
	} {
		if c.Validate() == nil {
			t.Errorf("%s is taken", c)
		}
	}
}

// TestTruthOfSimpleCompositions: the capacity of simple compositions follows from arithmetic.
func TestTruthOfSimpleCompositions(t *testing.T) {
	of := func(parts ...Part) Composition {
		return Composition{Seed: 3, MaxRate: 2000, Timeout: 10, Latency: 0.002, Parts: parts}
	}
	part := func(k PartKind, with map[string]float64) Part { return Part{Kind: k, With: with} }
	work := func(workers, mean float64) Part {
		return part(service, map[string]float64{"workers": workers, "mean": mean})
	}
	exponential := work(4, 0.04)
	exponential.Distribution = exponentialTime
	for _, c := range []struct {
		name   string
		c      Composition
		want   float64
		within float64 // relative
	}{
		{"bucket", of(work(32, 0.01), part(tokenBucket, map[string]float64{"rate": 90, "burst": 200})), 90, 0.006},
		{"gcra", of(work(32, 0.01), part(cellRate, map[string]float64{"rate": 70, "tolerance": 0.5})), 70, 0.006},
		{"fixed window", of(work(32, 0.01), part(fixedWindow, map[string]float64{"calls": 300, "period": 5})), 60, 0.006},
		{"sliding window", of(work(32, 0.01), part(slidingWindow, map[string]float64{"calls": 120, "period": 2})), 60, 0.012},
		{
			"sliding counter", of(work(32, 0.01), part(slidingEstimate, map[string]float64{"calls": 120, "period": 2})), 60,
			0.012,
		},
		{"penalty", of(work(32, 0.01), part(penalty, map[string]float64{"calls": 400, "period": 4})), 100, 0.012},
		{"workers", of(work(3, 0.02)), 150, 0.006},
		{"exponential", of(exponential), 100, 0.02},
		{"CPU quota", of(work(4, 0.01), part(cpuQuota, map[string]float64{"period": 0.1, "share": 0.3})), 120, 0.01},
		{"pauses", of(work(2, 0.01), part(pauses, map[string]float64{"every": 0.8, "length": 0.2, "growth": 0})), 160, 0.03},
		{"credits", of(work(2, 0.01), part(credits, map[string]float64{"seconds": 40, "factor": 2})), 100, 0.01},
		{"scaled", of(work(2, 0.01), part(autoscaling, map[string]float64{"after": 20, "factor": 2})), 200, 0.006},
		{"warm", of(work(2, 0.01), part(coldCount, map[string]float64{"calls": 500, "factor": 9})), 200, 0.006},
		{"dependency", of(work(32, 0.01), part(dependency, map[string]float64{"rate": 80, "workers": 2})), 80, 0.006},
		// Little's law: 20 calls at once, 0.1 s each. Answers leave the server before the network delays them.
		{"concurrency", of(work(500, 0.1), part(concurrency, map[string]float64{"limit": 20})), 200, 0.03},
		{"errors", of(work(2, 0.01), part(errorShare, map[string]float64{"share": 0.01})), 200 / 0.99, 0.01},
		{"no limit", of(work(50, 0.01)), math.Inf(1), 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if err := c.c.Validate(); err != nil {
				t.Fatal(err)
			}
			got := c.c.sustained(c.c.MaxRate)
			if math.IsInf(c.want, 1) != math.IsInf(got, 1) || !math.IsInf(got, 1) && math.Abs(got/c.want-1) > c.within {
				t.Errorf("sustains %.2f/s, want %.2f/s", got, c.want)
			}
		})
	}
}
