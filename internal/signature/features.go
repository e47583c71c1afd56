package signature

import (
	"iter"
	"math"
	"slices"
	"time"

	"tare/internal/load"
	"tare/internal/stat"
)

// features are the inputs of the scores, and the scores. Shares are of the calls scheduled in the judged window.
type features struct {
	Evidence
	found                        map[Class]classScore
	window                       Window
	n                            int
	good, refused, failed, timed int
	left                         int                   // calls of the window that had not ended at its end
	rejects                      func(*load.Call) bool // whether a call was rejected, in whatever form
	rejected                     int                   // rejected calls, without those that fail at any rate
	gatewayTimeouts              int                   // rejected calls with status 504
	rejection, acceptance        latencies             // service times of rejected and of served calls
	behindService                bool                  // see isRefusedBehindService
	eventual                     latencies             // of those that were served in the end, after the window too
	endedWell                    float64               // their share of the calls of the window
	dial                         map[Class]int
	away                         float64 // share of the window in which no call could connect
	audit                        Audit
	done                         []float64 // when good calls ended in the window, ascending, s
	overtaking                   float64   // share of the outstanding calls that were overtaken
	outstanding                  int
	revived                      bool // calls that were due after the window were answered well
	hung                         bool // the overtaken calls are much older than the slowest answer
	newestFirst                  bool // some of the overtaken calls were answered later
	stuckFirst, stuckLater       int  // overtaken on connections that never answered, or that did
	fills                        []int
	fillRates                    []float64
	fillWaits                    int     // calls of the last fill that still waited for a connection at its end
	fall                         float64 // how much goodput fell below its best, 0…1
	best, late                   float64 // goodput at its best and at the end of the window, 1/s
	clumps                       float64 // variance ÷ mean of the answers in quarters of a second, at least 1
	slower                       float64 // median response late in the window ÷ BaseP50
	before                       float64 // that of the last good calls up to its end, however long ago; only if late is 0
	drift, wantDrift             float64 // s/s
	lateDrift                    float64 // of the calls due in the second half of the window
	fifo                         float64 // correlation of the instants of sending and of the answer
	period, beat                 float64 // the scheduler's rhythm
	gaps                         float64 // share of the window in long gaps between completions
	gapCount                     int
	longest                      float64
	// share of the calls about as long as the longest gap, outside of the window, that later calls overtook
	singly          float64
	turn            float64 // a fixed window's period
	turns           int
	inGroups        bool    // calls are accepted in groups that follow each other as soon as a call takes
	separation      float64 // 2·AUC − 1 of calls in flight at rejected against accepted calls, with its level
	level           int
	acceptVariation float64 // of accepted calls per eighth of the window's last two thirds
	// of their counts: variance ÷ mean, 1 where chance decides; -1 where they are too few
	dispersion float64
	unequal    float64 // variance ÷ mean² of the service times of served calls
	// median response, s, of the calls that were served while others were turned away a little above the capacity; 0: none
	// were
	mildly float64
	// how well the number of calls accepted in a window before separates refused from accepted ones, 0…1, and that window
	// in s; and how many had been accepted before refusals, relative to what Sharp.Held allows: see countBefore
	counted, countWindow, allowed float64

	bursts    [2]int  // calls accepted of the last two bursts, each from rest
	burstSize float64 // calls in each of them
	// burstWaits is whether those that were accepted took longer than calls do well below the capacity.
	burstWaits bool
}

// latencies are quantiles of service times in seconds; all are 0 where there are none.
type latencies struct{ p10, p50, p90, p99, most float64 }

func latenciesOf(x []float64) latencies {
	if len(x) == 0 {
		return latencies{}
	}
	slices.Sort(x)
	return latencies{
		p10: stat.SortedQuantile(x, 0.1), p50: stat.SortedQuantile(x, 0.5), p90: stat.SortedQuantile(x, 0.9),
		p99: stat.SortedQuantile(x, 0.99), most: x[len(x)-1],
	}
}

// extract computes the features of the first overload. It returns nil without an overload, or without calls in it.
func extract(e Evidence) *features {
	f := &features{Evidence: e, dial: map[Class]int{}, found: map[Class]classScore{}}
	if f.Calls == nil {
		f.Calls = load.Calls(nil)
	}
	overloads := f.windowsOf("overload")
	if len(overloads) == 0 {
		return nil
	}
	f.window = overloads[0]
	f.done = f.completions(f.window.Start, f.window.End)
	f.count()
	if f.n == 0 {
		return nil
	}
	f.audit = AuditCalls(f.due(), min(f.Now, f.window.End), 0)
	f.countRejected()
	f.examineOutstanding()
	f.countStuck()
	f.trend()
	f.measureGaps()
	f.findTurns()
	f.separateByLoad()
	f.countBefore()
	f.countBursts()
	f.busy()
	return f
}

// due yields the calls that were due in the judged window.
func (f *features) due() iter.Seq[*load.Call] { return f.Calls.Due(f.window.Start, f.window.End) }

func (f *features) share(n int) float64 { return float64(n) / float64(f.n) }

// seconds is how long the judged window is, mid its middle.
func (f *features) seconds() float64   { return (f.window.End - f.window.Start).Seconds() }
func (f *features) mid() time.Duration { return f.window.Start + (f.window.End-f.window.Start)/2 }

// windowsOf returns the windows with a role.
func (f *features) windowsOf(role string) []Window {
	return slices.DeleteFunc(slices.Clone(f.Windows), func(w Window) bool { return w.Role != role })
}

// answers yields the good calls that ended in (from, to].
func (f *features) answers(from, to time.Duration) iter.Seq[*load.Call] {
	return func(yield func(*load.Call) bool) {
		for c := range f.until(to) {
			if c.Done > from && c.Done <= to && c.Outcome.Good() && !yield(c) {
				return
			}
		}
	}
}

// completions returns the instants, in seconds and ascending, at which good calls ended in (from, to].
func (f *features) completions(from, to time.Duration) []float64 { return Ends(f.until(to), from, to) }

// Ends returns the instants, in seconds and ascending, at which good calls ended in (from, to].
func Ends(calls iter.Seq[*load.Call], from, to time.Duration) []float64 {
	// They are many: a slice that grows would for a while take twice the memory.
	t := make([]float64, 0, CountEnds(calls, from, to))
	for c := range calls {
		if endedIn(c, from, to) {
			t = append(t, c.Done.Seconds())
		}
	}
	slices.Sort(t)
	return t
}

// CountEnds returns how many good calls ended in (from, to].
func CountEnds(calls iter.Seq[*load.Call], from, to time.Duration) (n int) {
	for c := range calls {
		if endedIn(c, from, to) {
			n++
		}
	}
	return n
}

func endedIn(c *load.Call, from, to time.Duration) bool {
	return c.Done > from && c.Done <= to && c.Outcome.Good()
}

func (f *features) count() {
	for c := range f.Calls.Due(f.window.End, math.MaxInt64) {
		if f.revived = c.Done != 0 && c.Outcome.Good(); f.revived {
			break
		}
	}
	for c := range f.due() {
		f.n++
		switch {
		case c.Outstanding(f.window.End):
			f.left++
		case c.Outcome.Good():
			f.good++
		case c.Outcome == load.Refused:
			f.refused++
		case c.Outcome == load.Timeout:
			f.timed++
		case c.Outcome == load.ConnFailed:
			f.dial[dialClass(c.Errno)]++
		default:
			f.failed++
		}
	}
	f.addDisconnected()
}

// trend compares goodput and response times over time.
func (f *features) trend() {
	mid := f.mid()
	f.late = float64(CountEnds(f.until(f.window.End), mid, f.window.End)) / max((f.window.End-mid).Seconds(), 1e-9)
	f.best = f.bestGoodput()
	f.clumps = clumpsOf(f.done, mid.Seconds(), f.window.End.Seconds())
	if f.best > 0 {
		f.fall = max(0, 1-f.late/min(f.best, f.window.Rate))
	}
	var at, response, late, sent, done []float64
	for c := range f.answers(f.window.Start, f.window.End) {
		if c.Done > mid {
			late = append(late, c.Service().Seconds())
		}
		if c.Intended >= f.window.Start {
			at, response = append(at, c.Intended.Seconds()), append(response, c.Response().Seconds())
			sent, done = append(sent, c.Sent.Seconds()), append(done, c.Done.Seconds())
		}
	}
	f.fifo = correlation(sent, done)
	if l, ok := stat.Regress(at, response); ok {
		f.drift = l.Slope
	}
	if i, _ := slices.BinarySearch(at, mid.Seconds()); i < len(at) {
		if l, ok := stat.Regress(at[i:], response[i:]); ok {
			f.lateDrift = l.Slope
		}
	}
	if f.Capacity > 0 {
		f.wantDrift = f.window.Rate/f.Capacity - 1
	}
	if base := f.BaseP50.Seconds(); base > 0 {
		if len(late) > 0 {
			f.slower = stat.Quantile(late, 0.5) / base
		}
		if f.late == 0 {
			const least = 30
			var served []float64
			for _, x := range f.newest(0, f.window.End, least, f.window.End) {
				served = append(served, x.service().Seconds())
			}
			f.before = stat.Quantile(served[:min(least, len(served))], 0.5) / base
		}
	}
}

// correlation returns Pearson's r, 0 if it is undefined.
func correlation(x, y []float64) float64 {
	l, ok := stat.Regress(x, y)
	m, back := stat.Regress(y, x)
	if !ok || !back {
		return 0
	}
	return math.Copysign(math.Sqrt(math.Max(0, l.Slope*m.Slope)), l.Slope)
}

// dispersionOf is the variance ÷ mean of the numbers of instants in n parts of the time between two.
func dispersionOf(t []float64, from, to float64, n int) float64 {
	return stat.Variance(counted(t, from, to, n)) * float64(n) / float64(len(t))
}

// counted returns how many of the instants fall into each of n parts of the time between two.
func counted(t []float64, from, to float64, n int) []float64 {
	counts := make([]float64, n)
	for _, x := range t {
		counts[min(n-1, int(float64(n)*(x-from)/(to-from)))]++
	}
	return counts
}
