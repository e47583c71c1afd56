package signature

import (
	"strings"
	"testing"
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

// TestFailureOfThrottledService: without a queue that was seen, nothing is known of how a throttled service fails.
func TestFailureOfThrottledService(t *testing.T) {
	e := scenes()[Unknown]
	e.Local.Throttled = new(0.97)
	v := Classify(e)
	if f := v.Failure(); v.Class != CPUThrottling || f.Class != Unknown || f.Certainty != NotKnown {
		t.Errorf("class %s, failure %s (%s)", v.Class, f.Class, f.Certainty)
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
