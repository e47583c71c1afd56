package area

import (
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A testServed is a server's counters; more adds requests to them.
type testServed struct {
	Served
	rng *rand.Rand
}

func (s *testServed) more(verb string, n int) {
	i := 0
	for i < len(s.Requests) && s.Requests[i].Verb != verb {
		i++
	}
	if i == len(s.Requests) {
		s.Requests = append(s.Requests, ServedRequests{
			Verb: verb, Buckets: []ServedBucket{{LE: 1}, {LE: 2}},
			SLIBuckets: []ServedBucket{{LE: 1}},
		})
		s.Parts = append(s.Parts, ServedPart{Part: "storage", Name: verb})
	}
	r, p := &s.Requests[i], &s.Parts[i]
	for range n {
		took := float64(s.rng.IntN(8)) / 4 // sums of quarters are exact
		r.Count, r.Seconds, p.Count, p.Seconds = r.Count+1, r.Seconds+took, p.Count+1, p.Seconds+took
		for k := range r.Buckets {
			if took <= r.Buckets[k].LE {
				r.Buckets[k].Count++
			}
		}
		if took <= 1 {
			r.SLICount, r.DryRuns, r.SLISeconds = r.SLICount+1, r.DryRuns+1, r.SLISeconds+took
			r.SLIBuckets[0].Count++
		}
	}
}

func (s *testServed) copy() *Served {
	c := s.Served
	c.Requests = append([]ServedRequests(nil), s.Requests...)
	for i := range c.Requests {
		c.Requests[i].Buckets = append([]ServedBucket(nil), c.Requests[i].Buckets...)
		c.Requests[i].SLIBuckets = append([]ServedBucket(nil), c.Requests[i].SLIBuckets...)
	}
	c.Parts = append([]ServedPart(nil), s.Parts...)
	return &c
}

// TestSince: the difference of two readings is what a second server would have counted in between.
func TestSince(t *testing.T) {
	for seed := range uint64(50) {
		all := &testServed{rng: rand.New(rand.NewPCG(seed, 1)), Served: Served{Started: 5}}
		only := &testServed{Served: Served{Started: 5}}
		all.more("GET", 10)
		all.more("POST", int(seed))
		all.more("LIST", 3)
		before := all.copy()
		state := rand.New(rand.NewPCG(seed, 2))
		all.rng, only.rng = rand.New(rand.NewPCG(seed, 3)), rand.New(rand.NewPCG(seed, 3))
		for _, verb := range []string{"GET", "POST", "PUT"} { // LIST stays as it is, PUT is new
			n := 1 + state.IntN(20)
			all.more(verb, n)
			only.more(verb, n)
		}
		kept := before.copyOf()
		got, restarted := all.Since(before)
		if restarted {
			t.Fatalf("seed %d: not restarted", seed)
		}
		if d := cmp.Diff(only.Served, got); d != "" {
			t.Errorf("seed %d (-want +got):\n%s", seed, d)
		}
		if d := cmp.Diff(kept, before); d != "" {
			t.Errorf("seed %d: before has changed: %s", seed, d)
		}
	}
}

func (s *Served) copyOf() *Served { return (&testServed{Served: *s}).copy() }

func TestSinceARestart(t *testing.T) {
	row := func(n uint64) ServedRequests {
		return ServedRequests{
			Verb: "GET", Count: n, SLICount: n, DryRuns: n, Seconds: float64(n),
			Buckets: []ServedBucket{{LE: 1, Count: n}}, SLIBuckets: []ServedBucket{{LE: 1, Count: n}},
		}
	}
	before := &Served{Started: 1, Requests: []ServedRequests{row(5)}, Parts: []ServedPart{{Part: "x", Count: 5}}}
	for name, c := range map[string]struct {
		change func(*Served)
		want   bool
	}{
		"the same":         {func(*Served) {}, false},
		"more":             {func(s *Served) { s.Requests[0] = row(6) }, false},
		"fewer":            {func(s *Served) { s.Requests[0] = row(4) }, true},
		"fewer indicated":  {func(s *Served) { s.Requests[0].SLICount-- }, true},
		"fewer dry runs":   {func(s *Served) { s.Requests[0].DryRuns-- }, true},
		"fewer in buckets": {func(s *Served) { s.Requests[0].Buckets[0].Count-- }, true},
		"a row is gone":    {func(s *Served) { s.Requests = nil }, true},
		"a part is gone":   {func(s *Served) { s.Parts = nil }, true},
		"a part has less":  {func(s *Served) { s.Parts[0].Count-- }, true},
		"another start":    {func(s *Served) { s.Started, s.Requests[0] = 2, row(9) }, true},
	} {
		after := before.copyOf()
		c.change(after)
		got, restarted := after.Since(before)
		if restarted != c.want {
			t.Errorf("%s: restarted %v", name, restarted)
		}
		if restarted && !cmp.Equal(got, *after) {
			t.Errorf("%s: %+v, want what it counts now", name, got)
		}
	}
}
