package load

import (
	"context"
	"fmt"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tare/internal/hist"
)

// lengths are how often each phase was seen, and its least and largest value.
func lengths(c *Cell) map[string][3]int64 {
	out := map[string][3]int64{}
	for _, p := range c.Phases {
		out[p.Name] = [3]int64{int64(p.Hist.Count()), p.Hist.Min(), p.Hist.Max()}
	}
	return out
}

func TestMarksBecomePhases(t *testing.T) {
	const ms = int64(time.Millisecond)
	var n atomic.Uint64
	s := open(t, netip.AddrPort{}, func(c *Config) {
		c.Operations = []Operation{{Name: "go", Weight: 1, Call: func(context.Context, uint64) Result {
			sent := time.Now()
			at := sent.Add
			r := Result{Sent: sent, Marks: []Mark{
				{Name: "post", At: at(2 * time.Millisecond)},
				{Name: "wait", From: at(2 * time.Millisecond), At: at(5 * time.Millisecond)},
				{Name: "backwards", From: at(2 * time.Millisecond), At: at(time.Millisecond)},
				{Name: "never"},
				// As a server writes it down: no monotonic clock, whole seconds.
				{
					Name: "theirs", From: sent.Truncate(time.Second).Round(0),
					At: sent.Truncate(time.Second).Round(0).Add(3 * time.Second),
				},
			}}
			if n.Add(1)%2 == 0 {
				r.Outcome, r.Marks = Wrong, r.Marks[:1]
			}
			return r
		}}}
	})
	offer(t, s, Constant{Rate: 200, Duration: 100 * time.Millisecond})
	drain(t, s)
	cells := s.Take()
	if len(cells) != 2 {
		t.Fatalf("%d cells, want one for each outcome", len(cells))
	}
	for i := range cells {
		c := &cells[i]
		k := int64(c.Response.Count())
		want := map[string][3]int64{"post": {k, 2 * ms, 2 * ms}}
		if c.Outcome == OK {
			want["wait"], want["backwards"], want["theirs"] = [3]int64{k, 3 * ms, 3 * ms}, [3]int64{k, 0, 0},
				[3]int64{k, 3000 * ms, 3000 * ms}
		}
		if d := cmp.Diff(want, lengths(c)); d != "" {
			t.Errorf("%v (-want +got):\n%s", c.Outcome, d)
		}
	}
	if len(s.Take()) > 0 {
		t.Error("a second Take has calls")
	}
}

// Calls that time out have no phases, whether the engine gave them up or they came back too late.
func TestTimeoutsHaveNoPhases(t *testing.T) {
	s := open(t, netip.AddrPort{}, func(c *Config) {
		c.Timeout = 20 * time.Millisecond
		c.Operations = []Operation{{Name: "go", Weight: 1, Call: func(context.Context, uint64) Result {
			time.Sleep(40 * time.Millisecond)
			return Result{Marks: []Mark{{Name: "post", At: time.Now()}}}
		}}}
	})
	offer(t, s, Constant{Rate: 100, Duration: 50 * time.Millisecond})
	drain(t, s)
	cells := s.Take()
	if len(cells) != 1 || cells[0].Outcome != Timeout || cells[0].Response.Count() != 5 || len(cells[0].Phases) > 0 {
		t.Errorf("%+v", cells)
	}
}

func TestPhasesAreBoundedAndMerge(t *testing.T) {
	clock := newClock()
	mark := func(tab table, name string, d time.Duration) {
		c := Call{Intended: 1, Sent: 1, Done: 2}
		tab.record(&c, footnote{})
		tab.mark(&c, []Mark{{Name: name, From: clock.opened, At: clock.opened.Add(d)}}, clock)
	}
	a, b := newTable(1), newTable(1)
	for i := range 2 * mostPhases {
		mark(a, fmt.Sprint(i), time.Duration(i))
	}
	mark(b, "new", 7)
	mark(b, "3", 9)
	kept := b[0].Phases[1].Hist
	cells := mergeTables([]table{a, b})
	want := map[string][3]int64{}
	for i := range int64(mostPhases) {
		want[fmt.Sprint(i)] = [3]int64{1, i, i}
	}
	want["3"] = [3]int64{2, 3, 9}
	if d := cmp.Diff(want, lengths(&cells[0])); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if kept.Count() != 1 || b[0].Phases[0].Name != "new" {
		t.Error("merging has changed what was merged")
	}
	var sum Cell
	sum.Response, sum.Service, sum.PoolWait, sum.Lateness = &hist.Histogram{}, &hist.Histogram{}, &hist.Histogram{},
		&hist.Histogram{}
	sum.Merge(b[0])
	sum.Merge(b[0])
	if d := cmp.Diff(map[string][3]int64{"new": {2, 7, 7}, "3": {2, 9, 9}}, lengths(&sum)); d != "" || kept.Count() != 1 {
		t.Errorf("%d left (-want +got):\n%s", kept.Count(), d)
	}
}

// BenchmarkRecordCall is what a call without marks costs the tables.
func BenchmarkRecordCall(b *testing.B) {
	t := newTable(2)
	c := Call{Operation: 1, Intended: time.Millisecond, Ready: time.Millisecond, Sent: time.Millisecond + time.Microsecond}
	n := footnote{code: 200, in: 300, out: 200}
	b.ReportAllocs()
	for i := range b.N {
		c.Done = 2*time.Millisecond + time.Duration(i&0xffff)
		t.record(&c, n)
	}
}
