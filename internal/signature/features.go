package signature

import (
	"iter"
	"math"
	"slices"
	"syscall"
	"time"

	"tare/internal/load"
	"tare/internal/stat"
)

// features are the inputs of the scores. Shares are of the calls scheduled in the judged window.
type features struct {
	window                       Window
	n                            int
	good, refused, failed, timed int
	left                         int                   // calls of the window that had not ended at its end
	rejects                      func(*load.Call) bool // whether a call was rejected, in whatever form
	rejected                     int                   // rejected calls, without those that fail at any rate
	rejection, acceptance        latencies             // service times of rejected and of served calls
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
	// of their counts: variance ÷ mean, 1 where chance decides; 0 where they are too few
	dispersion float64
	// median response, s, of the calls that were served while others were turned away a little above the capacity; 0: none
	// were
	mildly    float64
	bursts    [2]int  // calls accepted of the last two bursts, each from rest
	burstSize float64 // calls in each of them
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

func extract(e Evidence) (features, bool) {
	f := features{dial: map[Class]int{}}
	i := slices.IndexFunc(e.Windows, func(w Window) bool { return w.Role == "overload" })
	if i < 0 {
		return f, false
	}
	f.window = e.Windows[i]
	f.done = completions(e, f.window.Start, f.window.End)
	f.count(e)
	if f.n == 0 {
		return f, false
	}
	f.audit = AuditCalls(f.due(e), min(e.Now, f.window.End), 0)
	f.countRejected(e)
	f.examineOutstanding(e)
	f.countStuck(e)
	f.trend(e)
	f.rhythm(e)
	f.findTurns(e)
	f.separateByLoad(e)
	f.countBursts(e)
	f.busy(e)
	return f, true
}

// due yields the calls that were due in the judged window.
func (f *features) due(e Evidence) iter.Seq[*load.Call] {
	return e.Calls.Due(f.window.Start, f.window.End)
}

// busy measures how long calls take when only a few are rejected: a service without capacity also makes calls wait
// then, and a limiter does not.
func (f *features) busy(e Evidence) {
	i := slices.IndexFunc(e.Windows, func(w Window) bool { return w.Role == "busy" })
	if i < 0 {
		return
	}
	w, away := e.Windows[i], 0
	var served []float64
	for c := range e.Calls.Due(w.Start, w.End) {
		switch {
		case c.Outstanding(e.Now) || c.Sent == 0:
		case c.Outcome.Good():
			served = append(served, c.Service().Seconds())
		case f.rejects(c):
			away++
		}
	}
	if n := float64(len(served) + away); len(served) > 20 && float64(away)/n > 0.02+e.ErrorFloor {
		f.mildly = stat.Quantile(served, 0.5)
	}
}

// completions returns the instants, in seconds, at which good calls ended in (from, to].
func completions(e Evidence, from, to time.Duration) []float64 {
	var t []float64
	for c := range e.until(to) {
		if c.Done > from && c.Done <= to && c.Outcome.Good() {
			t = append(t, c.Done.Seconds())
		}
	}
	slices.Sort(t)
	return t
}

func (f *features) count(e Evidence) {
	for c := range e.Calls.Due(f.window.End, math.MaxInt64) {
		if f.revived = c.Done != 0 && c.Outcome.Good(); f.revived {
			break
		}
	}
	for c := range f.due(e) {
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
	f.addDisconnected(e)
}

// addDisconnected sums the periods of at least half a second and ten calls in which no call could connect, and hardly one
// was answered.
func (f *features) addDisconnected(e Evidence) {
	var from, to, sum time.Duration
	n := 0
	end := func() {
		if n >= 10 && to-from >= 500*time.Millisecond && 10*f.answered(from, to) <= n {
			sum += to - from
		}
		n = 0
	}
	for c := range f.due(e) {
		switch {
		case unreachable(c) && !c.Outstanding(f.window.End):
			if n++; n == 1 {
				from = c.Intended
			}
			to = c.Intended
		case c.Outcome == load.ConnFailed: // cut off
		default:
			end()
		}
	}
	end()
	f.away = sum.Seconds() / max(1e-9, (f.window.End-f.window.Start).Seconds())
}

// unreachable reports whether a call could not connect, for no lack of the client's own.
func unreachable(c *load.Call) bool {
	return c.Outcome == load.ConnFailed && c.Sent == 0 &&
		!slices.Contains([]Class{PortExhaustion, FDExhaustion}, dialClass(c.Errno))
}

// answered is how many calls ended well after one instant and before another.
func (f *features) answered(from, to time.Duration) int {
	i, _ := slices.BinarySearch(f.done, from.Seconds())
	j, _ := slices.BinarySearch(f.done, to.Seconds())
	return max(0, j-i)
}

// unexpected reports whether c got an unexpected answer, or was cut off: limiters reject with 429 and 503, and some
// with 500, with a reset, or with 200 and an error document.
func unexpected(c *load.Call) bool {
	return c.Outcome == load.Failed || c.Outcome == load.Wrong || c.Outcome == load.ConnFailed && c.Sent != 0
}

// countRejected counts the rejected calls of the window, including those that learned of it later, and measures how
// long rejection took. Other answers than plain refusals count only if there are clearly more of them than at any rate.
func (f *features) countRejected(e Evidence) {
	other, n := 0, 0
	for c := range f.due(e) {
		if c.Outstanding(e.Now) {
			continue
		}
		if n++; unexpected(c) {
			other++
		}
	}
	extra := float64(other) - e.ErrorFloor*float64(n)
	plain := extra <= 0.05*float64(n)
	f.rejects = func(c *load.Call) bool {
		return c.Outcome == load.Refused || !plain && unexpected(c)
	}
	if !plain {
		f.rejected = int(extra)
	}
	f.acceptance = f.accepted(e)
	var away, served []float64
	for c := range f.due(e) {
		if c.Outstanding(e.Now) || c.Sent == 0 {
			continue
		}
		if c.Outcome.Good() {
			served = append(served, c.Service().Seconds())
			continue
		}
		if !f.rejects(c) {
			continue
		}
		away = append(away, c.Service().Seconds())
		if c.Outcome == load.Refused {
			f.rejected++
		}
	}
	f.rejection, f.eventual = latenciesOf(away), latenciesOf(served)
	f.endedWell = float64(len(served)) / float64(f.n)
}

// accepted is how long the calls took that were served in the second half of the window, by which the queue that a ramp
// left is gone; in all of it where those are few.
func (f *features) accepted(e Evidence) latencies {
	mid := f.window.Start + (f.window.End-f.window.Start)/2
	var all, late []float64
	for c := range e.until(f.window.End) {
		if c.Done > f.window.Start && c.Done <= f.window.End && c.Sent != 0 && c.Outcome.Good() {
			all = append(all, c.Service().Seconds())
			if c.Done > mid {
				late = append(late, c.Service().Seconds())
			}
		}
	}
	if len(late) >= 50 {
		return latenciesOf(late)
	}
	return latenciesOf(all)
}

func dialClass(errno uint16) Class {
	c, ok := map[syscall.Errno]Class{
		syscall.EADDRNOTAVAIL: PortExhaustion,
		syscall.EADDRINUSE:    PortExhaustion,
		syscall.EMFILE:        FDExhaustion,
		syscall.ENFILE:        FDExhaustion,
		syscall.ECONNREFUSED:  ConnectionRefused,
	}[syscall.Errno(errno)]
	if !ok {
		return Unknown
	}
	return c
}

// trend compares goodput and response times over time.
func (f *features) trend(e Evidence) {
	mid := f.window.Start + (f.window.End-f.window.Start)/2
	half := (f.window.End - mid).Seconds()
	f.late = float64(len(completions(e, mid, f.window.End))) / max(half, 1e-9)
	f.best = bestGoodput(e)
	f.clumps = clumpsOf(f.done, mid.Seconds(), f.window.End.Seconds())
	if f.best > 0 {
		f.fall = max(0, 1-f.late/min(f.best, f.window.Rate))
	}
	var at, response, late []float64
	var sent, done []float64
	for c := range e.until(f.window.End) {
		if c.Done <= f.window.Start || c.Done > f.window.End || !c.Outcome.Good() {
			continue
		}
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
	if e.Capacity > 0 {
		f.wantDrift = f.window.Rate/e.Capacity - 1
	}
	if base := e.BaseP50.Seconds(); base > 0 {
		if len(late) > 0 {
			f.slower = stat.Quantile(late, 0.5) / base
		}
		if f.late == 0 {
			f.before = stat.Quantile(lastServed(e, f.window.End, 30), 0.5) / base
		}
	}
}

// clumpsOf is the variance ÷ mean of the numbers of instants in quarters of a second between two, at least 1, which is
// that of chance: where single calls occupy a service for long, the others come in clumps.
func clumpsOf(t []float64, from, to float64) float64 {
	parts := int((to - from) * 4)
	i, _ := slices.BinarySearch(t, from)
	if t = t[i:]; parts < 4 || len(t) == 0 {
		return 1
	}
	counts := counted(t, from, to, parts)
	return min(4, max(1, stat.Variance(counts)*float64(parts)/float64(len(t))))
}

// lastServed returns the service times, in seconds, of the n good calls that ended last before an instant.
func lastServed(e Evidence, until time.Duration, n int) []float64 {
	last := newest(e, 0, until, n, until)
	last = last[:min(n, len(last))]
	served := make([]float64, len(last))
	for i, x := range last {
		served[i] = x.service().Seconds()
	}
	return served
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

// bestGoodput returns the highest number of good calls per second, by the instant at which they ended, over any second
// on a grid of quarter seconds up to the end of the first overload.
func bestGoodput(e Evidence) float64 {
	const grid = time.Second / 4
	if len(e.Windows) == 0 {
		return 0
	}
	from, to := e.Windows[0].Start, e.Windows[0].End
	for _, w := range e.Windows {
		if to = max(to, w.End); w.Role == "overload" {
			break
		}
	}
	if to-from > 24*time.Hour || to <= from {
		return 0
	}
	bins := make([]int, (to-from)/grid+1)
	for c := range e.until(to) {
		if c.Outcome.Good() && c.Done > from && c.Done <= to {
			bins[(c.Done-from)/grid]++
		}
	}
	best, sum := 0, 0
	for i, n := range bins {
		if sum += n; i >= 4 {
			sum -= bins[i-4]
		}
		best = max(best, sum)
	}
	return float64(best)
}

const (
	// From mostStolenInPauses on, gaps between answers that are shorter than longestSteal, in seconds, may be the
	// hypervisor's.
	mostStolenInPauses, longestSteal = 0.02, 0.1
)

func (f *features) rhythm(e Evidence) {
	t := f.done
	if len(t) < 3 {
		return
	}
	f.period, f.beat = Beat(t)
	long := 0.03
	if e.Stolen > mostStolenInPauses {
		long = longestSteal
	}
	if e.Capacity > 0 {
		long = max(long, 10/e.Capacity)
	}
	sum := 0.0
	for i := 1; i < len(t); i++ {
		g := t[i] - t[i-1]
		f.longest = max(f.longest, g)
		if g > long {
			sum += g
			f.gapCount++
		}
	}
	f.gaps = sum / max(t[len(t)-1]-t[0], 1e-9)
	f.slowSingly(e)
	f.regularity(e)
}

// slowSingly distinguishes slow calls from a target that stalls: others are answered meanwhile.
func (f *features) slowSingly(e Evidence) {
	slow, overtaken := 0, 0
	var waiting []time.Duration // when slow calls were answered that may still be overtaken, ascending
	for c := range e.all() {
		if c.Done == 0 || c.Sent == 0 || !c.Outcome.Good() || c.Intended >= f.window.Start && c.Intended < f.window.End {
			continue
		}
		for len(waiting) > 0 && waiting[len(waiting)-1] > c.Done {
			waiting = waiting[:len(waiting)-1]
			overtaken++
		}
		for len(waiting) > 0 && waiting[0] <= c.Intended {
			waiting = waiting[1:]
		}
		if c.Service().Seconds() > 0.5*f.longest {
			slow++
			waiting = append(waiting, c.Done)
		}
	}
	if slow >= 3 {
		f.singly = float64(overtaken) / float64(slow)
	}
}

// regularity measures how evenly calls are accepted over the last two thirds of the window, and over its last third: by
// then a limiter's saved allowance is used up, and a queue that the ramp has left is gone.
func (f *features) regularity(e Evidence) {
	from, to := f.window.Start.Seconds(), f.window.End.Seconds()
	behind := f.refusedBehindService()
	for _, share := range []float64{2. / 3, 1. / 3} {
		begin := to - share*(to-from)
		var t []float64
		for c := range e.until(f.window.End) {
			at := c.Intended
			if behind {
				at = c.Done // what refuses sees a call when its service ends
			}
			if x := at.Seconds(); x >= begin && x < to && c.Done != 0 && c.Outcome.Good() {
				t = append(t, x)
			}
		}
		slices.Sort(t)
		if len(t) < 30 {
			return
		}
		variation, dispersion := evenness(t, begin, to)
		if share > 0.5 || dispersion < f.dispersion {
			f.acceptVariation, f.dispersion = variation, dispersion
		}
	}
}

// evenness is how much the numbers of instants in equal parts of the time between two differ: their standard deviation
// ÷ mean, and their variance ÷ mean.
func evenness(t []float64, from, to float64) (variation, dispersion float64) {
	dispersion = math.Inf(1)
	// a sliding window accepts the same number in each of its periods, but not in parts of it
	for parts := 6; parts <= 16; parts++ {
		dispersion = min(dispersion, stat.Variance(counted(t, from, to, parts))*float64(parts)/float64(len(t)))
	}
	return math.Sqrt(stat.Variance(counted(t, from, to, 8))) / (float64(len(t)) / 8), dispersion
}

// crowded returns the largest number of calls that were accepted within the length of a window before the overload.
func (f *features) crowded(e Evidence) int {
	t := completions(e, 0, f.window.Start)
	most, from := 0, 0
	for i, x := range t {
		for x-t[from] > f.turn {
			from++
		}
		most = max(most, i-from+1)
	}
	return most
}

// counted returns how many of the instants fall into each of n parts of the time between two.
func counted(t []float64, from, to float64, n int) []float64 {
	counts := make([]float64, n)
	for _, x := range t {
		counts[min(n-1, int(float64(n)*(x-from)/(to-from)))]++
	}
	return counts
}

// countBursts counts the accepted calls of the last two bursts.
func (f *features) countBursts(e Evidence) {
	var windows []Window
	for _, w := range e.Windows {
		if w.Role == "burst" {
			windows = append(windows, w)
		}
	}
	if len(windows) < 2 {
		return
	}
	for i, w := range windows[len(windows)-2:] {
		f.burstSize = float64(w.Due)
		for c := range e.Calls.Due(w.Start, w.End) {
			if c.Done != 0 && c.Outcome.Good() {
				f.bursts[i]++
			}
		}
	}
}
