package limit

import (
	"math"
	"slices"
	"strings"
	"testing"

	"tare/internal/signature"
)

// at is an experiment of two seconds at an even rate.
func at(inFlight int, rate, offered, service float64) Experiment {
	x := Experiment{InFlight: inFlight, Offered: offered, Seconds: 2, Counts: make([]int, 10), Service: service}
	for i := range x.Counts {
		x.Counts[i] = int(math.Round(rate / 5))
	}
	return x
}

// refusing is at of a target that refuses the rest.
func refusing(inFlight int, rate, service float64) Experiment {
	x := at(inFlight, rate, 3*rate, service)
	x.Bad = int(4 * rate)
	return x
}

// alone is an experiment with one operation.
func alone(operation string, idle, rate float64) Experiment {
	x := at(64, rate, 4*rate, idle)
	x.Operation, x.Idle = operation, idle
	return x
}

// TestBothOperations: the rates of a cheap and a dear operation tell a limit on the rate, places and the rest apart.
func TestBothOperations(t *testing.T) {
	// 100/s or eight in flight, where calls take 40 ms on average: a single call at a time is never refused
	refuses := []Experiment{at(1, 25, 300, 0.04), at(4, 100, 300, 0.04), refusing(16, 100, 0.04)}
	waits := []Experiment{at(1, 100, 300, 0.01), at(2, 100, 300, 0.02), at(4, 100, 300, 0.04)}
	lone := func(idle, service float64) Experiment {
		x := alone("a", idle, 1/service)
		x.InFlight, x.Service, x.Offered = 1, service, 400
		return x
	}
	for name, c := range map[string]struct {
		before []Experiment
		alone  []Experiment
		kind   Kind
		says   string // of its evidence
		not    string // an alternative that is excluded
	}{
		"untried": {before: refuses, kind: Unknown, says: "it refuses calls"},
		"refuses at one rate": {
			refuses, []Experiment{alone("a", 0.01, 100), alone("b", 0.1, 98)}, RateLimit, "alone, a gets", "",
		},
		"refuses in flight": {
			refuses, []Experiment{alone("a", 0.01, 800), alone("b", 0.1, 80)}, Slots, "alone, a gets", "one limit",
		},
		"refuses otherwise": {
			refuses, []Experiment{alone("a", 0.01, 400), alone("b", 0.1, 80)}, Unknown, "needs more of", "one limit",
		},
		"lets wait, one rate": {
			waits,
			[]Experiment{alone("b", 0.02, 100), alone("a", 0.002, 101), lone(0.002, 0.01)},
			RateLimit, "one call of a at a time", "",
		},
		"shares a step": {
			waits,
			[]Experiment{alone("b", 0.02, 100), alone("a", 0.009, 101), lone(0.009, 0.009)},
			Unknown, "needs no more of", "",
		},
		"lets wait, two rates": {
			waits, []Experiment{alone("b", 0.02, 50), alone("a", 0.002, 101)}, Unknown, "needs more of", "one limit",
		},
		"about as dear": {
			refuses, []Experiment{alone("a", 0.01, 100), alone("b", 0.015, 98)}, Unknown, "it refuses calls", "",
		},
		"held by the callers": {
			refuses, []Experiment{alone("a", 0.05, 1200), alone("b", 0.6, 100)}, Unknown, "it refuses calls", "",
		},
		"too few were offered": {
			refuses, []Experiment{alone("a", 0.01, 100), func() Experiment {
				x := alone("b", 0.1, 100)
				x.Offered = 100
				return x
			}()}, Unknown, "it refuses calls", "",
		},
	} {
		v := Judge(Evidence{
			Rate: 100, Lo: 98, Hi: 102, Idle: 0.003, Experiments: slices.Concat(c.before, c.alone),
			Signature: signature.Verdict{Class: signature.Unknown},
		})
		excluded := slices.ContainsFunc(v.Excluded, func(x signature.Exclusion) bool {
			return strings.HasPrefix(x.What, "one limit")
		})
		if v.Kind != c.kind || !strings.Contains(strings.Join(v.Evidence, "\n"), c.says) || excluded != (c.not != "") {
			t.Errorf("%s: %s, %q, excluded %+v; want %s, %q, %q", name, v.Kind, v.Evidence, v.Excluded, c.kind, c.says, c.not)
		}
		if strings.Contains(strings.Join(v.Evidence, "\n"), "needs more of") != (c.says == "needs more of") {
			t.Errorf("%s: %q", name, v.Evidence)
		}
	}
}

// TestScope: whose limit it is, by what was tried.
func TestScope(t *testing.T) {
	from := func(rate, offered float64) Experiment {
		x := at(4, rate, offered, 0.002)
		x.Sources = 4
		return x
	}
	bucket := signature.Verdict{Class: signature.TokenBucket, Evidence: []string{"calls were refused"}}
	for name, c := range map[string]struct {
		e           Evidence
		scope, says string
		name        string
	}{
		"untried": {Evidence{}, "", "was not tried", "a rate limit of about 100/s"},
		"left open": {
			Evidence{Callers: 4}, "", "each of the 4 callers has a limit of its own is not known", "a rate limit of about 100/s",
		},
		"by identity": {
			Evidence{Callers: 4, Scope: EachCaller, ScopeSeen: "one was refused"},
			EachCaller, "one was refused", "a rate limit on each caller",
		},
		"of all": {
			Evidence{Callers: 4, Scope: AllCallers, ScopeSeen: "granted"},
			AllCallers, "granted", "a rate limit of about 100/s for all callers together",
		},
		"each address": {
			Evidence{Experiments: []Experiment{from(300, 300)}}, EachCaller, "got 300/s", "a rate limit on each caller",
		},
		"no address": {
			Evidence{Experiments: []Experiment{from(100, 300)}}, "", "as those from one", "a rate limit of about 100/s",
		},
		"in between": {
			Evidence{Experiments: []Experiment{from(130, 300)}},
			"", "got 130/s, where those from one get 100/s, which does not",
			"a rate limit of about 100/s",
		},
		"all that was offered": {
			Evidence{Experiments: []Experiment{from(110, 110)}},
			"", "all of the 110/s that were offered, which does not tell",
			"a rate limit of about 100/s",
		},
		"none any more": {
			Evidence{Experiments: []Experiment{func() Experiment {
				x := from(0, 300)
				x.Service = 0
				return x
			}()}}, "", "got no answers any more, which does not tell", "a rate limit of about 100/s",
		},
	} {
		c.e.Rate, c.e.Lo, c.e.Hi, c.e.Signature = 100, 98, 102, bucket
		v := Judge(c.e)
		if v.Kind != RateLimit || v.Scope != c.scope || len(v.Evidence) != 2 || !strings.Contains(v.Evidence[1], c.says) ||
			v.Name() != c.name {
			t.Errorf("%s: %s, %q, %q; want %q, %q, %q", name, v.Name(), v.Scope, v.Evidence, c.name, c.scope, c.says)
		}
	}
	if v := Judge(Evidence{Local: signature.Local{Throttled: new(0.9)}}); v.Kind != CPUQuota || len(v.Evidence) != 1 {
		t.Errorf("what counts no calls says whose it is: %q", v.Evidence)
	}
}

// TestFreshConnections: what a new connection for each call does to the rate.
func TestFreshConnections(t *testing.T) {
	plain := []Experiment{at(1, 50, 300, 0.02), at(2, 100, 300, 0.02), at(4, 100, 300, 0.04)}
	for name, c := range map[string]struct {
		rate        float64
		connections int
		says        string
		excluded    bool
	}{
		"the same":     {100, 200, "", true},
		"less":         {50, 100, "connections cost it", false},
		"more":         {150, 300, "kept connections do not reach", false},
		"it kept them": {100, 4, "", false},
	} {
		x := at(4, c.rate, 300, 0.04)
		x.Fresh, x.Connections = true, c.connections
		v := Judge(Evidence{Rate: 100, Lo: 98, Hi: 102, Idle: 0.02, Experiments: append(slices.Clone(plain), x)})
		said := strings.Contains(strings.Join(v.Evidence, "\n"), "new connection for each call")
		if said != (c.says != "") || !strings.Contains(strings.Join(v.Evidence, "\n"), c.says) ||
			(len(v.Excluded) > 0) != c.excluded {
			t.Errorf("%s: %q, excluded %+v", name, v.Evidence, v.Excluded)
		}
	}
}

// TestHypotheses: what is named is settled, and what is contradicted is not open.
func TestHypotheses(t *testing.T) {
	flat := []Experiment{at(1, 50, 300, 0.02), at(2, 100, 300, 0.02), at(4, 100, 300, 0.04)}
	accounted := slices.Clone(flat)
	for i := range accounted {
		accounted[i].Account = &Account{Seconds: 2, CPU: new(1.2), Processors: 2, HostBusy: new(0.5)}
	}
	idle := slices.Clone(flat)
	for i := range idle {
		idle[i].Account = &Account{Seconds: 2, CPU: new(0.1), Processors: 2, HostBusy: new(0.5)}
		idle[i].Even, idle[i].Spread = new(0.2), new(0.0) // calls end independently of each other
	}
	tried := append(slices.Clone(flat), alone("a", 0.01, 400), alone("b", 0.1, 80))
	slots := append(slices.Clone(idle), alone("a", 0.01, 400), alone("b", 0.1, 80))
	queue, accept := signature.Queue, signature.AcceptQueue
	for name, c := range map[string]struct {
		made  []Experiment
		class signature.Class
		want  []Kind
	}{
		"no experiment":          {nil, queue, nil},
		"the rate grows":         {flat[:2], queue, nil},
		"from outside":           {flat, queue, []Kind{CPUQuota, Processors, Slots, RateLimit}},
		"connections wait":       {flat, accept, []Kind{CPUQuota, Processors, Slots, Connections, RateLimit}},
		"processors are idle":    {accounted, queue, []Kind{CPUQuota, Slots, RateLimit}},
		"slots or a limit":       {idle, queue, []Kind{Slots, RateLimit}},
		"slots":                  {slots, queue, []Kind{Slots}},
		"dear calls need more":   {tried, queue, []Kind{CPUQuota, Processors, Slots}},
		"a limiter that refuses": {flat, signature.TokenBucket, []Kind{RateLimit}},
	} {
		got := Hypotheses(Evidence{
			Rate: 100, Lo: 98, Hi: 102, Idle: 0.02, Experiments: c.made, Signature: signature.Verdict{Class: c.class},
		})
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestLoneOperation: one call at a time decides only where both operations reach the same rate, and one could reach it.
func TestLoneOperation(t *testing.T) {
	waits := []Experiment{at(1, 100, 300, 0.01), at(2, 100, 300, 0.02), at(4, 100, 300, 0.04)}
	refuses := []Experiment{at(1, 25, 300, 0.04), refusing(16, 100, 0.04)}
	for name, c := range map[string]struct {
		before []Experiment
		alone  []Experiment
		want   bool
	}{
		"same rate":                {waits, []Experiment{alone("a", 0.002, 100), alone("b", 0.02, 100)}, true},
		"one caller is too slow":   {waits, []Experiment{alone("a", 0.02, 100), alone("b", 0.08, 100)}, false},
		"other rates":              {waits, []Experiment{alone("a", 0.002, 200), alone("b", 0.02, 100)}, false},
		"refusals say it":          {refuses, []Experiment{alone("a", 0.002, 100), alone("b", 0.02, 100)}, false},
		"no operation alone":       {waits, nil, false},
		"only one operation alone": {waits, []Experiment{alone("a", 0.002, 100)}, false},
	} {
		got := LoneOperation(Evidence{Rate: 100, Lo: 98, Hi: 102, Experiments: slices.Concat(c.before, c.alone)})
		if (got != nil) != c.want || got != nil && (got.Operation != "a" || got.InFlight != 1 || got.Offered != 400) {
			t.Errorf("%s: %+v, want %v", name, got, c.want)
		}
	}
}
