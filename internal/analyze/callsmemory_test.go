package analyze

import (
	"testing"
	"time"

	"tare/internal/capacity"
	"tare/internal/load"
	"tare/internal/record"
)

// TestCallsInLittleRoom: what is counted of each of many calls allocates no more than their times need while they are
// put in order. A call takes 56 bytes as the generator records it.
func TestCallsInLittleRoom(t *testing.T) {
	const n = 300_000
	trace := &capacity.Trace{Read: time.Hour, Calls: make(load.Calls, n)}
	for i := range load.CallsOf(trace.Calls) {
		at := time.Duration(i) * 3 * time.Microsecond
		load.CallsOf(trace.Calls)[i] = load.Call{
			Operation: uint8(i % 2), Intended: at, Ready: at + 1, Sent: at + 2, Done: at + time.Millisecond,
		}
	}
	trace.Steps = []capacity.Step{{Role: capacity.RolePoint, Rate: n, Segment: load.Segment{End: time.Second}}}
	trial := &record.Trial{TrialBegin: record.TrialBegin{Operations: []string{"a", "b"}}}
	a := newAnalysis(&record.Record{})
	perCall := func(f func()) float64 {
		before := allocated()
		f()
		return float64(allocated()-before) / n
	}
	if got := perCall(func() { a.operations(trial, trace) }); got > 120 {
		t.Errorf(
			"the operations of a search allocate %.0f bytes a call, want three times of 8 while they are put in order", got,
		)
	}
	if got := perCall(func() { timeline("a", trace) }); got > 30 {
		t.Errorf("its timeline allocates %.0f bytes a call, want one time of 8 while it is put in order", got)
	}
	dir := experiment{blocks: 1, calls: n, seed: 1, cost: millisecond}.write(t, t.TempDir())
	r, err := record.Open(dir)
	must(t, err)
	a = newAnalysis(r)
	if got := perCall(func() {
		_, err := a.calls(r.Trials[0])
		must(t, err)
	}); got > 200 {
		t.Errorf("a trial of a comparison allocates %.0f bytes a call", got)
	}
}
