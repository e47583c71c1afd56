package signature

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"tare/internal/load"
)

func TestFailure(t *testing.T) {
	certainties := map[Class]Certainty{
		ConnectionRefused: Shown, PortExhaustion: Shown, FDExhaustion: Shown, TokenBucket: Shown, FixedWindow: Shown,
		ConcurrencyLimit: Shown, Queue: Shown, CPUThrottling: Shown, Client: NotKnown, Unknown: NotKnown,
	}
	met := map[Class]Class{CPUThrottling: Queue, Client: Unknown}
	for class, e := range scenes() {
		t.Run(string(class), func(t *testing.T) {
			if class == TokenBucket {
				e.Sharp = Sharp{Held: e.Capacity, Failed: e.Windows[1].Rate, Goodput: e.Capacity}
			}
			f, want, certainty := Classify(e).Failure(), class, Likely
			if x, ok := met[class]; ok {
				want = x
			}
			if x, ok := certainties[class]; ok {
				certainty = x
			}
			if f.Class != want || f.Certainty != certainty {
				t.Errorf("failure %s, %s; want %s, %s; scores %v", f.Class, f.Certainty, want, certainty, f.Scores)
			}
			if len(f.Evidence) == 0 || len(f.Excluded) > mostExcluded {
				t.Errorf("evidence %q, excluded %v", f.Evidence, f.Excluded)
			}
			for _, x := range f.Excluded {
				if x.What == "" || x.By == "" || x.What == f.Class.definition().phrase {
					t.Errorf("excluded %+v of %s", x, f.Class)
				}
				t.Logf("not %s: %s", x.What, x.By)
			}
		})
	}
}

// TestLimitThatDelays: a limit on the rate that holds some calls back and refuses the others is a steady one. That its
// calls have waited excludes only a limit that lets none wait.
func TestLimitThatDelays(t *testing.T) {
	const rate, burst, takes = 50, 20, 50 * ms
	next := time.Second // when the next call passes
	e := scene(104, rate, func(_ int, at time.Duration) load.Call {
		if passes := max(at, next); passes-at <= burst*time.Second/rate {
			next = passes + time.Second/rate
			return load.Call{Conn: 1, Done: passes + takes}
		}
		return load.Call{Conn: 1, Done: at + ms/2, Outcome: load.Refused}
	})
	e.BaseP50, e.BaseP99, e.BaseMean = takes, takes, takes
	f := Classify(e).Failure()
	waited := 0
	for _, x := range f.Excluded {
		if strings.HasSuffix(x.By, "they had waited") {
			waited++
			if !strings.HasSuffix(x.What, "that lets no call wait") {
				t.Errorf("not %s: %s", x.What, x.By)
			}
		}
	}
	if f.Class != Shedding || waited != 1 {
		t.Errorf("failure %s, excluded %+v", f.Class, f.Excluded)
	}
}

// TestSlowerWithoutQueue: calls of a limit on the rate that took longer under overload, for whatever reason, are not
// said to be as fast as ever in one line and to have waited in the next, and what their times exclude is marked.
func TestSlowerWithoutQueue(t *testing.T) {
	const parts, pass = 10, 5
	r := rand.New(rand.NewPCG(1, 2))
	var passing []int // of each ten calls, in an order that chance makes of what the limit sees
	e := scene(104, 104*pass/parts, func(i int, at time.Duration) load.Call {
		if i%parts == 0 {
			passing = r.Perm(parts)
		}
		if passing[i%parts] >= pass {
			return load.Call{Conn: 1, Done: at + 2*ms, Outcome: load.Refused}
		}
		return load.Call{Conn: 1, Done: at + 8*ms}
	})
	e.BaseP50, e.BaseP99, e.BaseMean = ms, 2*ms, ms
	by := map[string]Exclusion{}
	for _, x := range Classify(e).Failure().Excluded {
		by[x.What] = x
	}
	for what, want := range map[string]string{
		tokenBucket.phrase: "they had waited", shedding.phrase: "too few for a queue in which a call takes 8 ms",
	} {
		if x := by[what]; !strings.HasSuffix(x.By, want) || !x.ByTimes {
			t.Errorf("%+v excludes %s, want %q", x, what, want)
		}
	}
	if x := by[collapse.phrase]; x.By == "" || x.ByTimes {
		t.Errorf("%+v excludes a collapse, which refusals contradict", x)
	}
}

// TestFailureOfThrottledService: without a queue that was seen, nothing is known of how a throttled service fails.
func TestFailureOfThrottledService(t *testing.T) {
	e := scenes()[Unknown]
	e.Local.Throttled = new(0.97)
	v := Classify(e)
	if f := v.Failure(); v.Class != CPUThrottling || f.Class != Unknown || f.Certainty != NotKnown {
		t.Errorf("class %s, failure %s (%s)", v.Class, f.Class, f.Certainty)
	}
}

// TestAgainstCollapse: how much goodput fell is said, and nothing speaks against a collapse where less was done under
// load than was confirmed, or later.
func TestAgainstCollapse(t *testing.T) {
	for name, c := range map[string]struct {
		best, late float64
		sharp      Sharp
		refused    int
		want       string
	}{
		"held":                        {100, 98, Sharp{}, 0, "goodput held: 100/s at its best, 98/s at the end"},
		"fell":                        {96, 76, Sharp{}, 0, "goodput fell by 21 %, from 96/s in its best second to 76/s at"},
		"less than was offered":       {200, 125, Sharp{}, 0, "goodput held: 130/s at its best, 125/s at the end"},
		"broke nearby":                {100, 98, Sharp{Held: 96, Failed: 102}, 0, "goodput held"},
		"less than was held":          {96, 76, Sharp{Held: 96, Failed: 102}, 0, ""},
		"calls were refused":          {96, 76, Sharp{Held: 96, Failed: 102}, 20, "goodput fell by 21 %"},
		"broke far below its best":    {120, 111, Sharp{Held: 45, Failed: 53}, 0, ""},
		"broke below what was served": {120, 111, Sharp{Failed: 53}, 0, ""},
	} {
		f := features{
			Evidence: Evidence{Sharp: c.sharp}, window: Window{Rate: 130}, n: 100, rejected: c.refused,
			best: c.best, late: c.late, fall: 1 - c.late/min(c.best, 130), slower: 5,
		}
		if got := f.collapseScore().against; !strings.HasPrefix(got, c.want) || c.want == "" && got != "" {
			t.Errorf("%s: %q speaks against it, want %q", name, got, c.want)
		}
	}
}

// TestWithheldIsNotExcluded: where no call of the overload was answered in time, after calls that were answered as fast
// as ever, a service that does less under load cannot be told from others, and is not excluded.
func TestWithheldIsNotExcluded(t *testing.T) {
	e := Evidence{
		Now: 90 * time.Second, Capacity: 1, BaseP50: time.Second, BaseP99: time.Second, BaseMean: time.Second,
		Timeout: 5 * time.Second, Windows: []Window{
			{Role: "ramp", Rate: 1, End: 40 * time.Second, Due: 40},
			{Role: "overload", Rate: 2, Start: 40 * time.Second, End: 70 * time.Second, Due: 60},
		},
	}
	var calls []load.Call
	for at := time.Duration(0); at < 70*time.Second; {
		done := at + time.Second
		c := load.Call{Conn: 1, Intended: at + 1, Ready: at + 1, Sent: at + 1, FirstByte: done, Done: done}
		if at += time.Second; c.Intended > 40*time.Second {
			at -= time.Second / 2
			c.FirstByte, c.Done, c.Outcome = 0, c.Intended+e.Timeout, load.Timeout
		}
		calls = append(calls, c)
	}
	e.Calls = load.Calls(calls)
	f := Classify(e).Failure()
	for _, x := range f.Excluded {
		if x.What == Collapse.definition().phrase {
			t.Errorf("not %s: %s", x.What, x.By)
		}
	}
	if f.Class == Collapse || f.Scores[Collapse] != ambiguous {
		t.Errorf("it fails as %s, scores %v", f.Class, f.Scores)
	}
	if said := strings.Join(f.Evidence, "; "); !strings.Contains(said, "and none was answered within 5 s") {
		t.Errorf("nothing says that callers got nothing: %s", said)
	}
}

// TestFailureByListenQueue: a listen queue that was read as full shows an accept queue that one rate only makes likely.
func TestFailureByListenQueue(t *testing.T) {
	e := scenes()[AcceptQueue]
	if f := Classify(e).Failure(); f.Class != AcceptQueue || f.Certainty != Likely {
		t.Fatalf("at one rate: %s (%s)", f.Class, f.Certainty)
	}
	full := extractStuck(t, e)
	for n, want := range map[int]Certainty{full: Shown, 1: Likely, 0: Likely} {
		e.Local.ListenQueue = &n
		if f := Classify(e).Failure(); f.Certainty != want {
			t.Errorf("%d connections in the listen queue, %d calls stuck: %s, want %s", n, full, f.Certainty, want)
		}
	}
}

func extractStuck(t *testing.T, e Evidence) int {
	t.Helper()
	f := extract(e)
	if f == nil || f.stuckNow() < 10 {
		t.Fatalf("%d calls are stuck", f.stuckNow())
	}
	return f.stuckNow()
}

func TestFailureWithoutVerdict(t *testing.T) {
	f := Verdict{Class: Queue, Evidence: []string{"none"}}.Failure()
	if f.Class != Unknown || f.Certainty != NotKnown || !strings.Contains(f.Evidence[0], "none") {
		t.Errorf("failure %+v of a verdict that was not classified", f)
	}
}

// TestFailureStatements: a sentence says no more than its certainty allows.
func TestFailureStatements(t *testing.T) {
	for _, c := range []struct {
		f                       Failure
		name, statement, clause string
	}{
		{Failure{Class: AcceptQueue, Certainty: Shown}, "accept queue", "accept queue (shown)", "it fails as accept queue"},
		{Failure{Class: Queue, Certainty: Likely}, "queue", "queue (likely)", "it likely fails as queue"},
		{Failure{Class: Queue, Certainty: NotKnown}, "", "not known from outside", "how it fails fits no known class"},
		{Failure{Class: Unknown, Certainty: Likely}, "", "not known from outside", "how it fails fits no known class"},
		{Failure{Class: Queue}, "", "not known from outside", "how it fails fits no known class"},
	} {
		if n, s, l := c.f.Name(), c.f.Statement(), c.f.Clause(); n != c.name || s != c.statement || l != c.clause {
			t.Errorf("%+v: %q, %q, %q", c.f, n, s, l)
		}
	}
}

// A throttle inside the target's process is no control group's.
func TestThrottledTextNamesNoCgroup(t *testing.T) {
	if got := throttledText(0.714); strings.Contains(got, "cgroup") || !strings.Contains(got, "71 % of its periods") {
		t.Error(got)
	}
}
