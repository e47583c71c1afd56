package capacity

import (
	"math"
	"testing"
	"time"

	"tare/internal/load"
)

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
