package signature

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"tare/internal/load"
	"tare/internal/stat"
)

// calm is a generator that had nothing to wait for, in a closed loop of 50 workers at 10,000/s.
func calm() Conduct {
	return Conduct{
		Workers: 50, Rate: 10000, Mean: 5e-3, P99: 8e-3, Times: true, LatenessP99: 2e-6, LatenessLimit: 1e-3,
		AchievedRatio: 1,
		Effort: &load.Effort{
			Seconds: 10, Busy: 0.3, Queued: new(0.002), Loops: 1,
			Unread: &load.Delays{N: 10000, Mean: 30e-6, P99: 120e-6}, CPU: 3,
			Host: &load.Processors{All: 20, Busy: 13},
		},
	}
}

// punctual is one in an open loop of 1,000/s.
func punctual() Conduct {
	c := calm()
	c.Workers, c.Rate, c.Effort.Unread = 0, 1000, nil
	return c
}

func TestGeneratorVerdicts(t *testing.T) {
	for _, c := range []struct {
		name   string
		of     func() Conduct
		change func(*Conduct)
		want   GeneratorVerdict
		doubt  string
	}{
		{"a calm closed loop", calm, func(*Conduct) {}, RuledOut, ""},
		{"its thread runs all the time, and reads late", calm, func(c *Conduct) {
			c.Effort.Busy, c.Effort.Unread.Mean = 1, 3e-3
		}, Limiting, "on average 30 of 50 calls had been answered and waited until it read the answer"},
		{
			"its thread runs all the time", calm, func(c *Conduct) { c.Effort.Busy = 0.99 }, Possible,
			"its busiest thread ran 99 % of the time",
		},
		{
			"a fifth of the workers wait for it", calm, func(c *Conduct) { c.Effort.Unread.Mean = 1e-3 }, Possible,
			"on average 10 of 50 calls",
		},
		{
			"the slowest responses are its own", calm, func(c *Conduct) { c.Effort.Unread.P99 = 3e-3 }, Possible,
			"answers waited up to 3 ms (p99)",
		},
		{
			"no processor", calm, func(c *Conduct) { c.Effort.Queued = new(0.08) }, Possible,
			"had no processor for 8 % of the time",
		},
		{
			"threads of std without a processor", calm, func(c *Conduct) { c.Effort.Loops, c.Effort.Queued = 0, new(8.0) },
			Possible, "on average 8 of its threads",
		},
		{"few threads of std without a processor", calm, func(c *Conduct) {
			c.Effort.Loops, c.Effort.Queued = 0,
				new(0.5)
		}, RuledOut, ""},
		{
			"std with processors that are full", calm, func(c *Conduct) { c.Effort.Loops, c.Effort.Busy = 0, 0.97 }, Possible,
			"it used 97 % of the processors",
		},
		{"throttled", calm, func(c *Conduct) { c.Effort.Host.Throttled = 0.2 }, Possible, "held it back for 200 ms of 10 s"},
		{
			"stolen", calm, func(c *Conduct) { c.Effort.Host.Stolen = 2 }, Possible,
			"the hypervisor took 10 % of its processors' time",
		},
		{
			"workers that are not in flight", calm, func(c *Conduct) { c.Mean = 3e-3 }, Possible,
			"30 calls in progress with 50 workers",
		},
		{"workers that pause on purpose", calm, func(c *Conduct) { c.Mean, c.Idle = 3e-3, true }, RuledOut, ""},
		{"late in a closed loop", calm, func(c *Conduct) { c.LatenessP99 = 5e-3 }, Limiting, "sent late"},
		{
			"a closed loop without kernel's accounts", calm, func(c *Conduct) { c.Effort.Queued, c.Effort.Unread = nil, nil },
			Possible, "waited to be read is not known",
		},
		{"a closed loop of an older record", calm, func(c *Conduct) { c.Effort = nil }, Possible, Unrecorded},
		{"shared processors with time to spare", calm, func(c *Conduct) { c.Shared = 2 }, RuledOut, ""},
		{
			"shared processors that are full", calm, func(c *Conduct) { c.Shared, c.Effort.Host.Busy = 2, 19.6 }, Possible,
			"it shared 2 processors with the target, 98 % busy, of which it used 15 %",
		},
		{"full processors, of which it uses little", calm, func(c *Conduct) {
			c.Shared, c.Effort.Host.Busy, c.Effort.CPU = 2,
				19.6, 0.4
		}, RuledOut, ""},
		{
			"shared processors of which nothing is known", calm, func(c *Conduct) { c.Shared, c.Effort.Host = 2, nil }, Possible,
			"is not known",
		},
		{"a punctual open loop", punctual, func(*Conduct) {}, RuledOut, ""},
		{
			"late", punctual, func(c *Conduct) { c.LatenessP99 = 1.2e-3 }, Limiting,
			"sent late: p99 1.2 ms, where 1 ms is allowed",
		},
		{"sent too little", punctual, func(c *Conduct) { c.AchievedRatio = 0.97 }, Limiting, "97.0 % of what was due"},
		{
			"late for such responses", punctual, func(c *Conduct) { c.LatenessP99, c.P99 = 0.9e-3, 2e-3 }, Possible,
			"up to 900 µs late",
		},
		{
			"late for such responses, of which nothing is claimed", punctual,
			func(c *Conduct) { c.LatenessP99, c.P99, c.Times = 0.9e-3, 2e-3, false }, RuledOut, "",
		},
		{
			"an open loop whose thread runs all the time", punctual, func(c *Conduct) { c.Effort.Busy = 0.95 }, Possible,
			"ran 95 % of the time",
		},
		{
			"an open loop that waited for a processor and sent in time", punctual,
			func(c *Conduct) { c.Effort.Queued = new(0.2) }, RuledOut, "",
		},
		{
			"an open loop that had no processor for a third of the time", punctual,
			func(c *Conduct) { c.Effort.Queued = new(0.33) }, Possible, "33 % of the time",
		},
		{"an open loop of an older record", punctual, func(c *Conduct) { c.Effort = nil }, Possible, Unrecorded},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := c.of()
			c.change(&x)
			o := x.Judge()
			if o.Verdict != c.want || !strings.Contains(o.Because(), c.doubt) || (c.want == RuledOut) != (len(o.Doubts) == 0) {
				t.Errorf("%s %q, want %s with %q", o.Verdict, o.Doubts, c.want, c.doubt)
			}
		})
	}
}

// TestClosedLoopsAreNotClearedBySending: of a closed loop nothing is said of lateness, which it never has.
func TestClosedLoopsAreNotClearedBySending(t *testing.T) {
	c := calm()
	o := c.Judge()
	if slices.ContainsFunc(o.Evidence, func(s string) bool {
		return strings.Contains(s, "late") ||
			strings.Contains(s, "offered")
	}) {
		t.Errorf("%q", o.Evidence)
	}
	if len(o.Evidence) != 3 {
		t.Errorf("%q: want what its threads ran, waited, and how long answers did", o.Evidence)
	}
}

// served returns the calls that a queue before a single server answers in their order, and how long each would have
// taken if the generator had not been late.
func served(
	rng *rand.Rand, n int, gap, service time.Duration, late func(due time.Duration) time.Duration,
) (load.Calls, []float64) {
	calls, punctual := make(load.Calls, n), make([]float64, n)
	var free, ideal time.Duration
	for i := range calls {
		due := time.Duration(i+1) * gap
		need := time.Duration(rng.ExpFloat64() * float64(service))
		ideal = max(ideal, due) + need
		punctual[i] = (ideal - due).Seconds()
		sent := due + late(due)
		free = max(free, sent) + need
		calls[i] = load.Call{Conn: 1, Intended: due, Ready: due, Sent: sent, FirstByte: free, Done: free}
	}
	slices.Sort(punctual)
	return calls, punctual
}

// TestOwnBoundsTheDelay: whatever the load and the stalls, a quantile of the responses less the bound is not above the
// same quantile of the responses to a generator that is never late; and the bound is no larger than what was added by
// much.
func TestOwnBoundsTheDelay(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 3))
	for run := range 300 {
		gap := time.Millisecond * time.Duration(1+rng.IntN(20))
		use := 0.2 + 0.7*rng.Float64()
		var stall stalls
		calls, punctual := served(rng, 2000, gap, time.Duration(use*float64(gap)), stall.of(rng))
		for _, q := range []float64{0.5, 0.9, 0.99, 1} {
			response := secondsOf(calls.All(), (*load.Call).Response)
			slices.Sort(response)
			got, own := stat.SortedQuantile(response, q), Own(calls.All(), q)
			if truth := stat.SortedQuantile(punctual, q); got-own > truth+shortest.Seconds() {
				t.Errorf("run %d, q %v: %.6f less at most %.6f is above %.6f", run, q, got, own, truth)
			}
		}
	}
	calls, _ := served(rng, 500, 10*time.Millisecond, time.Millisecond, func(time.Duration) time.Duration { return 0 })
	if own := Own(calls.All(), 0.99); own != 0 {
		t.Errorf("a generator that is never late owns %v s", own)
	}
}

// stalls are times in which a generator stands still, as one does whose processor is stolen.
type stalls struct{ end time.Duration }

func (s *stalls) of(rng *rand.Rand) func(time.Duration) time.Duration {
	var begin time.Duration
	return func(due time.Duration) time.Duration {
		for s.end <= due {
			begin = s.end + time.Duration(rng.ExpFloat64()*float64(200*time.Millisecond))
			s.end = begin + time.Duration(rng.Float64()*float64(30*time.Millisecond))
		}
		if due >= begin {
			return s.end - due
		}
		return 0
	}
}
