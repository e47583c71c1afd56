package doctor

import (
	"bytes"
	"context"
	"math"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"tare/internal/proc"
	"tare/rigs/hosttest"
)

// TestStallsAreMeasured watches this host briefly. Whatever else runs here, what is said must be consistent.
func TestStallsAreMeasured(t *testing.T) {
	hosttest.SkipIfShortUnlessRaced(t)
	cpus, err := proc.Allowed()
	if err != nil {
		t.Fatal(err)
	}
	x := &examiner{Options: Options{Time: time.Second}, root: fstest.MapFS{}, cpus: len(cpus)}
	s := x.watch(t.Context(), cpus[:1], 1200*time.Millisecond)
	if s == nil {
		t.Fatal("no thread watched")
	}
	for name, v := range map[string]float64{"lost": s.Lost, "taken": s.Taken, "low": *s.TakenLow, "high": *s.TakenHigh} {
		if !(v >= 0 && v <= 1) {
			t.Errorf("%s is %v, want a share", name, v)
		}
	}
	if *s.TakenLow > *s.TakenHigh || s.Tail < 0 || s.Steal != nil || s.Throttled != 0 || s.CPUs != 1 {
		t.Errorf("%+v of a host whose /proc is empty", *s)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if s := x.watch(ctx, cpus[:1], time.Hour); s != nil {
		t.Errorf("nothing was watched: %+v", *s)
	}
}

// watched returns a thread that woke late by these times, one window after the other.
func watched(generator, first bool, late ...time.Duration) watcher {
	w := watcher{generator: generator, first: first, windows: make([]lostTime, len(late))}
	for k, d := range late {
		for range int((stallWindow - d) / nap) {
			w.note(0, k)
		}
		w.note(d, k)
	}
	return w
}

// TestStallsCountEveryMomentOfAWait: in a stall of 50 ms, 50 calls were due at 1000/s, not one.
func TestStallsCountEveryMomentOfAWait(t *testing.T) {
	const stall = 50 * time.Millisecond
	generator, ordinary := watched(true, true, stall, 0), watched(false, false, stall, 0)
	if n := len(generator.waits); n < 1000 || n > 1003 {
		t.Fatalf("%d moments in a second of sleeps of 1 ms", n)
	}
	s := summarizeStalls([]watcher{generator, ordinary}, 2*stallWindow)
	if s.Count != 1 || s.Longest != 0.05 || math.Abs(s.Taken-0.05) > 1e-9 || *s.TakenLow != 0 ||
		math.Abs(*s.TakenHigh-0.1) > 1e-9 {
		t.Errorf("%+v, want one stall of 50 ms in a second", *s)
	}
	// Of the four waits of a call each may be longer than the bound in a quarter of a percent: 2.5 of 1000 moments.
	if s.Tail < 0.047 || s.Tail > 0.05 {
		t.Errorf("p99 bound %v, want what the first 2 or 3 ms of the stall leave", s.Tail)
	}
}

// TestTakenAndLost: what a thread waits for other processes is not taken from all, unless it comes before all others.
func TestTakenAndLost(t *testing.T) {
	for _, c := range []struct {
		first bool
		taken float64
	}{{true, 0.1}, {false, 0.04}} {
		generator, ordinary := watched(true, c.first, 50*time.Millisecond), watched(false, false, 100*time.Millisecond)
		generator.windows[0].waited, ordinary.windows[0].waited = 30*time.Millisecond, 80*time.Millisecond
		s := summarizeStalls([]watcher{generator, ordinary}, stallWindow)
		if math.Abs(s.Taken-c.taken) > 1e-9 || math.Abs(s.Lost-0.2) > 1e-9 || math.Abs(*s.Waited-0.16) > 1e-9 ||
			s.TakenLow != nil {
			t.Errorf("real-time %t: %+v, want %v taken and 0.2 lost", c.first, *s, c.taken)
		}
	}
	blind := watched(false, false, 0)
	blind.blind = true
	if s := summarizeStalls([]watcher{watched(true, false, 0), blind}, stallWindow); s.Waited != nil {
		t.Errorf("the kernel does not tell, and yet: %v", *s.Waited)
	}
	if s := summarizeStalls([]watcher{watched(true, false, 0), {err: context.Canceled}}, stallWindow); s != nil {
		t.Errorf("no ordinary thread watched: %+v", *s)
	}
}

// TestForecast: it says what the stalls mean, whose they are, and what is not known.
func TestForecast(t *testing.T) {
	for _, c := range []struct {
		name   string
		stalls *Stalls
		want   []string
		not    string
	}{
		{"quiet", &Stalls{Seconds: 3, CPUs: 2, Lost: 0.001, Tail: 0.000123, Steal: new(0.0)}, []string{
			"within 0.2%; a service that runs here takes as many calls as on a host of its own, within 1%",
			"at most about 120 µs of a p99", "none of 1 ms or more",
		}, "not known"},
		{"stolen", &Stalls{
			Seconds: 3, CPUs: 2, Priority: true, Lost: 0.0931, Taken: 0.0904, TakenLow: new(0.041), TakenHigh: new(0.1377),
			Tail: 0.0217, Count: 43, Longest: 0.0294, Steal: new(0.0893), Waited: new(0.002),
		}, []string{
			"about 9% fewer calls than on a host of its own (4.1% to 14%, by half seconds)", "about 22 ms of a p99",
			"43 of 1 ms or more on 2 CPUs", "the longest 29 ms", "the hypervisor took 8.9% of the CPU time",
		}, "other processes"},
		{"beside others", &Stalls{
			Seconds: 3, CPUs: 1, Lost: 0.3, Taken: 0.001, Waited: new(0.29), Steal: new(0.001), Count: 1, Longest: 0.004,
		}, []string{
			"other processes compete with it: how many is not known", "an ordinary thread waited 29% of the time",
		}, "hypervisor"},
		{"throttled", &Stalls{Seconds: 3, CPUs: 1, Lost: 0.5, Taken: 0.5, Throttled: 0.5}, []string{
			"about 50% fewer", "a CPU quota stopped this process for 50% of the time",
		}, "whose they are"},
		{
			"unexplained", &Stalls{Seconds: 3, CPUs: 1, Lost: 0.05, Taken: 0.05},
			[]string{"whose they are is not known"},
			"took",
		},
		{"not watched", nil, []string{"forecast: not known"}, "searches"},
	} {
		var b bytes.Buffer
		c.stalls.forecast(&b)
		text := strings.Join(strings.Fields(b.String()), " ")
		for _, want := range c.want {
			if !strings.Contains(text, want) {
				t.Errorf("%s lacks %q:\n%s", c.name, want, b.String())
			}
		}
		if strings.Contains(text, c.not) {
			t.Errorf("%s says %q:\n%s", c.name, c.not, b.String())
		}
	}
}

// TestLatenessIsJudgedByItsMedian: a late tail spoils no run; only a generator that does not keep up does.
func TestLatenessIsJudgedByItsMedian(t *testing.T) {
	for _, c := range []struct {
		late  Lateness
		state State
		says  string
	}{
		{Lateness{P50: 20e-6, P99: 0.9e-3, Achieved: 1}, OK, ""},
		{Lateness{P50: 70e-6, P99: 5e-3, Achieved: 0.99}, Limited, "stopped for moments"},
		{Lateness{P50: 2e-3, P99: 5e-3, Achieved: 1}, Limited, "does not keep up with 1000/s"},
		{Lateness{P50: 70e-6, P99: 5e-3, Achieved: 0.98}, Limited, "does not keep up"},
	} {
		c.late.Rate, c.late.Seconds = 1000, 2
		state, cause, next := c.late.judge()
		if state != c.state || !strings.Contains(cause, c.says) || (next == "") != (c.state == OK) {
			t.Errorf("%+v: %s, %q, next %q; want %s and %q", c.late, state, cause, next, c.state, c.says)
		}
		if strings.Contains(cause, "invalid") && c.says == "stopped for moments" {
			t.Errorf("a late tail does not make a run invalid: %s", cause)
		}
	}
}
