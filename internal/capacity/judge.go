package capacity

import (
	"math"
	"slices"
	"time"

	"tare/internal/signature"
	"tare/internal/stat"
)

// judgement is what an overload says: how much, and how.
type judgement struct {
	stat.Estimate
	verdict signature.Verdict
	failing float64 // share of the calls that were taken that fails at any rate
	counted tally   // the calls that tell that share
}

// judge estimates and classifies the given overload steps of a trace.
func judge(t Trace, b base, over []Step) judgement {
	e := overloaded(t, over)
	v := signature.Classify(evidence(t, b, over, e))
	counted := failing(t, b, over, v.Class)
	j := judgement{Estimate: e, verdict: v, failing: counted.share(), counted: counted}
	switch traits := v.Method().Traits(); {
	case traits.Places:
		j.Estimate = littles(t, b, over, v.InFlight, e)
	case traits.Falls:
		j.Estimate = beforeTheFall(t, over, e)
	case traits.Waits:
		j.Estimate = drained(t, over, e)
	}
	if busy, ok := t.busyGoodput(over); ok {
		j.Estimate = busy
	}
	// The capacity counts calls that the target takes: of those it fails a share anyway.
	taken := 1 - j.failing
	j.Value, j.Lo, j.Hi = j.Value/taken, j.Lo/taken, j.Hi/taken
	return j
}

// failing counts, of the calls that were taken, neither refused nor left hanging, those that failed, where that is due
// to the target and not to the load: as many fail far below the capacity, or a few fail, or some failed in the ramp.
func failing(t Trace, b base, over []Step, c signature.Class) tally {
	if traits := c.Traits(); traits.Falls && traits.Served {
		return b.usual
	}
	from, to := span(over)
	all, failed := tally{}, map[uint16]int{} // by status
	for c := range t.due(from, to) {
		if !c.Outstanding(to) && all.takes(c) && !c.Outcome.Good() {
			failed[c.Status]++
		}
	}
	good, rare := all.ended-all.bad, map[uint16]bool{}
	for status, n := range failed {
		most := mostRare * float64(good+n)
		rare[status] = float64(n) < most+2*math.Sqrt(most) // too few to be what a limiter says
	}
	if good == 0 {
		return b.usual
	}
	far := t.farBelow()
	switch within := far.interval(); {
	case all.share() >= within.Lo && all.share() <= within.Hi && all.share() < 1.6*far.share()+0.01:
		return far.and(all)
	case far.share() >= mostRare:
		return b.usual
	case all.share() < mostRare, far.ended == 0 && b.floor > 0 && all.share() < 3*b.floor+0.05:
		return all
	}
	var whole tally // over the whole search, and of the failed only those with a rare status
	for c := range t.due(0, math.MaxInt64) {
		if c.Done != 0 && (c.Outcome.Good() || rare[c.Status]) {
			whole.takes(c)
		}
	}
	if whole.share() > b.floor {
		return whole
	}
	return b.usual
}

// overloaded is the rate of successes over the overload steps, without their first tenth.
func overloaded(t Trace, over []Step) stat.Estimate {
	from, to := span(over)
	from += (to - from) / 10
	return flow(t, from, to)
}

func flow(t Trace, from, to time.Duration) stat.Estimate {
	e, _ := throughput(t.ends(from, to), from.Seconds(), to.Seconds())
	return e
}

func span(steps []Step) (from, to time.Duration) {
	if len(steps) == 0 {
		return 0, 0
	}
	return steps[0].Segment.Start, steps[len(steps)-1].Segment.End
}

// drained adds what follows the overload without load to a noisy estimate: as long as a queue is well filled, it is
// served at capacity as well.
func drained(t Trace, over []Step, e stat.Estimate) stat.Estimate {
	from, to := span(over)
	from += (to - from) / 10
	if e.Half() < steady || e.N < 4 {
		return e
	}
	for _, s := range t.Steps {
		if s.Role != RoleDrain || s.Segment.Start < to || s.Segment.Start > to+10*time.Millisecond {
			continue
		}
		if end := queueFilledUntil(t, to, s.Segment.End); end > to {
			if f := flow(t, from, end); f.Value > 0 {
				return f
			}
		}
	}
	return e
}

// queueFilledUntil is the last instant up to to at which at least a tenth, and forty, of the calls outstanding at from
// were.
func queueFilledUntil(t Trace, from, to time.Duration) time.Duration {
	n, left := 0, []float64(nil)
	for c := range t.due(from-t.reach(), from) {
		if c.Done == 0 || c.Done > from {
			n++
			if c.Done != 0 && c.Done <= to && c.Outcome.Good() {
				left = append(left, c.Done.Seconds())
			}
		}
	}
	keep := max(40, n/10)
	if gone := n - keep; gone > 0 && len(left) > 0 {
		return min(to, time.Duration(stat.Quantile(left, min(1, float64(gone)/float64(len(left))))*1e9))
	}
	return from
}

// littles is the capacity of a limit on calls in flight by Little's law, limit ÷ service time: under overload a slot
// stays empty until the next call arrives, so that the goodput is a little less. It holds where answers take as long as
// ever; else calls wait in a queue.
func littles(t Trace, b base, over []Step, limit int, e stat.Estimate) stat.Estimate {
	from, to := span(over)
	sum, n := 0.0, 0
	for c := range t.due(from, to) {
		if c.Sent != 0 && !endedBadly(c) {
			sum += c.Service().Seconds()
			n++
		}
	}
	if n == 0 || sum <= 0 || limit < 1 {
		return e
	}
	mean := sum / float64(n)
	v := float64(limit) / mean
	if mean > 1.3*b.p50.Seconds() || v < e.Value || v > 1.3*e.Value {
		return e
	}
	half := e.Half() * v
	return stat.Estimate{Value: v, Lo: min(e.Lo, v-half), Hi: v + half, Level: e.Level, N: e.N}
}

// beforeTheFall is the highest goodput of a target that collapses: over any half second up to the end of the
// overload.
func beforeTheFall(t Trace, over []Step, e stat.Estimate) stat.Estimate {
	const width = 0.5
	_, to := span(over)
	best, in, j := e.Value, t.ends(t.Steps[0].Segment.Start, to), 0
	for i, x := range in {
		for in[j] < x-width {
			j++
		}
		best = max(best, float64(i-j)/width)
	}
	return stat.Estimate{Value: best, Lo: min(e.Lo, best), Hi: best * 1.3, Level: e.Level, N: e.N}
}

// evidence is what the classifier sees of a trace.
func evidence(t Trace, b base, over []Step, estimate stat.Estimate) signature.Evidence {
	capacity, use := estimate.Value, useOf(over)
	e := signature.Evidence{
		Now: t.Read, Capacity: capacity, BaseP50: b.p50, BaseP99: b.p99, BaseMean: b.mean, ErrorFloor: b.floor,
		Allowance: t.Allowance, MaxConns: t.MaxConns, Timeout: t.Timeout, Local: t.Local, Calls: t.log(),
		Repeats: estimate.N <= -4 && estimate.Half() < 0.03, Stolen: use.StolenShare(),
	}
	from, to := span(over)
	for _, s := range t.Steps {
		w := signature.Window{
			Role: string(s.Role), Rate: s.Rate, Start: s.Segment.Start, End: s.Segment.End, Due: s.Segment.Offered,
		}
		switch {
		case s.Role == RoleRamp && s.Segment.End <= from, s.Role == RoleBurst && s.Segment.Start >= to:
		case s.Role == RoleFill && s.Segment.Start >= to:
			to = max(to, s.Segment.Start)
		case s.Role == RoleOverload && s.Segment.Start == from:
			w.End = to
		default:
			continue
		}
		e.Windows = append(e.Windows, w)
	}
	if begin, end, ok := t.busy(to); ok {
		e.Windows = append(e.Windows, signature.Window{Role: string(RoleBusy), Start: begin + (end-begin)/3, End: end})
	}
	e.Sharp = t.sharp(from, b.floor)
	return e
}

// sharp compares the highest rate that was confirmed to hold with the lowest that was confirmed to break, by what
// passed at the end of that.
func (t Trace) sharp(since time.Duration, floor float64) signature.Sharp {
	lo, hi := t.bracket(since, floor, 0)
	switch {
	case lo == 0:
		return signature.Sharp{}
	case hi == 0:
		return signature.Sharp{Held: lo, HeldP50: t.servedAt(lo, since)}
	}
	for _, s := range t.Steps {
		if confirms(s.Role) && s.Rate == hi && s.Passed != nil && !*s.Passed && s.Segment.Start >= since {
			mid := s.Segment.Start + s.Length()/2
			n := t.ended(mid, s.Segment.End)
			return signature.Sharp{
				Held: lo, Failed: hi, Goodput: float64(n) / max(1e-9, (s.Segment.End-mid).Seconds()),
				HeldP50: t.servedAt(lo, since),
			}
		}
	}
	return signature.Sharp{}
}

// servedAt is the median service time of the last confirmation at that rate.
func (t Trace) servedAt(rate float64, since time.Duration) time.Duration {
	for _, s := range slices.Backward(t.Steps) {
		if !confirms(s.Role) || s.Rate != rate || s.Segment.Start < since {
			continue
		}
		var served []float64
		for c := range t.due(s.Segment.Start, s.Segment.End) {
			if c.Sent != 0 && !endedBadly(c) {
				served = append(served, float64(c.Service()))
			}
		}
		if len(served) > 20 {
			return time.Duration(stat.Quantile(served, 0.5))
		}
	}
	return 0
}

// burst is how many calls above the capacity were taken before it broke: successes − capacity × time, from the first
// offer above the capacity on. It has a meaning for limiters with an allowance only.
func burst(t Trace, j judgement) *float64 {
	if t.Allowance > 0 {
		return &t.Allowance
	}
	if c := j.verdict.Method().Traits(); !c.Saves || c.Windowed || c.Falls {
		return nil
	}
	over := lastOverload(t)
	_, to := span(over)
	for _, s := range t.Steps {
		if s.Rate <= j.Value || s.Segment.Start >= to {
			continue
		}
		bad, n := countBad(t.due(s.Segment.Start, to))
		b := max(0, float64(n-bad)-j.Value*(to-s.Segment.Start).Seconds())
		return &b
	}
	return nil
}

const (
	level   = 0.95
	batches = 16
	// steady is the relative half width of an interval below which the slope is better than the mean: there, ends of
	// bursts cause what error there is; above, noise does, of which the slope has 1.2 times the variance.
	steady = 0.01
)

// throughput estimates the rate of the ascending instants t, in seconds, within (from, to]: of those, the first part is
// left out as long as it does not fit the rest. Whole periods are taken where events cluster in periods.
func throughput(t []float64, from, to float64) (stat.Estimate, bool) {
	for {
		e, leave, ok := stretch(within(t, from, to), from, to)
		if !ok || leave == 0 || to-from < 4 {
			return e, ok
		}
		from += leave * (to - from)
	}
}

func within(t []float64, from, to float64) []float64 {
	i, _ := slices.BinarySearch(t, math.Nextafter(from, math.Inf(1)))
	j, _ := slices.BinarySearch(t, math.Nextafter(to, math.Inf(1)))
	return t[i:max(i, j)]
}

// stretch estimates over one stretch. leave is the share of it, at its beginning, that has another rate than the rest.
func stretch(t []float64, from, to float64) (e stat.Estimate, leave float64, ok bool) {
	if len(t) < 4 || !(to > from) {
		return e, 0, false
	}
	if e, ok = windows(t); ok {
		return e, 0, true
	}
	parts := batches
	if p, _ := signature.Beat(t); p > 0 {
		periods := int((to - from) / p)
		parts = min(batches, max(4, periods))
		if periods >= parts {
			from = to - float64(periods/parts*parts)*p
			t = within(t, from, to)
		}
	}
	counts, length := make([]float64, parts), (to-from)/float64(parts)
	for _, x := range t {
		counts[min(parts-1, max(0, int((x-from)/length)))] += 1 / length
	}
	e, ok = stat.MeanInterval(counts, level)
	if !ok || !(e.Value > 0) {
		return e, 0, false
	}
	if e.Half() > sharp {
		if again, ok := repeats(t, from, to); ok {
			return again, 0, true
		}
	}
	half := max((e.Hi-e.Lo)/2, 1/(to-from))
	if r, good := stat.EventRate(t); good && half < steady*e.Value {
		e.Value = r
	}
	e.Lo, e.Hi = max(0, e.Value-half), e.Value+half
	return e, shifted(counts), true
}

// windows estimates from whole windows of a limiter that lets bursts through; N is their number, negated to tell it
// from batches.
func windows(t []float64) (stat.Estimate, bool) {
	period, from, to, n := signature.Cycle(t)
	if n < 1 || period <= 0 {
		return stat.Estimate{}, false
	}
	// The burst that begins at to belongs to the next window.
	i, _ := slices.BinarySearch(t, from)
	j, _ := slices.BinarySearch(t, to)
	e := stat.Estimate{Value: float64(j-i) / (to - from), Level: level, N: -n}
	half := max(2/(to-from), 0.002*e.Value)
	if m, ok := stat.MeanInterval(perBurst(t, period), level); ok && n > 2 {
		half = max(half, (m.Hi-m.Lo)/2)
	}
	e.Lo, e.Hi = max(0, e.Value-half), e.Value+half
	return e, e.Value > 0
}

// repeats estimates from whole repetitions of a pattern: a limiter with a sliding window accepts calls at the instants
// at which it accepted others a window before. The period is where the autocorrelation of the counts peaks; four have
// to be seen.
func repeats(t []float64, from, to float64) (stat.Estimate, bool) {
	period := recurrence(t, from, to)
	n := int((to - from) / max(period, 1e-9))
	if period < 0.1 || n < 4 {
		return stat.Estimate{}, false
	}
	n = min(n, 50)
	rates := make([]float64, n)
	for k := range rates {
		end := to - float64(k)*period
		rates[k] = float64(len(within(t, end-period, end))) / period
	}
	e, ok := stat.MeanInterval(rates, level)
	half := max((e.Hi-e.Lo)/2, 1/(to-from), 0.002*e.Value)
	e.Lo, e.Hi, e.N = max(0, e.Value-half), e.Value+half, -n
	return e, ok && e.Value > 0
}

// recurrence is the shortest period after which the counts of events repeat themselves, 0 when they do not.
func recurrence(t []float64, from, to float64) float64 {
	const bins = 2000
	width := max(0.002, (to-from)/bins)
	n := int((to - from) / width)
	if n < 16 {
		return 0 // too short to repeat anything
	}
	counts := make([]float64, n)
	for _, x := range t {
		counts[min(n-1, max(0, int((x-from)/width)))]++
	}
	mean := stat.Mean(counts)
	for i := range counts {
		counts[i] -= mean
	}
	best, at, fell := 0.6, 0, false
	for lag := 3; lag < n/4; lag++ {
		r := autocorrelation(counts, lag)
		if fell = fell || r < 0.3; fell && r > best { // a long burst resembles itself a little later: that is no repetition
			best, at = r+0.02, lag // a multiple of the period must not win by chance
		}
	}
	return float64(at) * width
}

func autocorrelation(x []float64, lag int) float64 {
	xy, xx, yy := 0.0, 0.0, 0.0
	for i := lag; i < len(x); i++ {
		xy += x[i] * x[i-lag]
		xx += x[i] * x[i]
		yy += x[i-lag] * x[i-lag]
	}
	if xx == 0 || yy == 0 {
		return 0
	}
	return xy / math.Sqrt(xx*yy)
}

// perBurst is the rate of each burst that is followed by another: its events per period.
func perBurst(t []float64, period float64) []float64 {
	turns := signature.Turns(t, signature.BurstGap)
	rates := make([]float64, 0, len(turns))
	for k := 1; k < len(turns); k++ {
		i, _ := slices.BinarySearch(t, turns[k-1])
		j, _ := slices.BinarySearch(t, turns[k])
		rates = append(rates, float64(j-i)/period)
	}
	return rates
}

// shifted is the share of x to leave out at its beginning, because it has another mean than the rest, by more than 3 %
// and six standard errors: of few values each, these are themselves uncertain. 0: none.
func shifted(x []float64) float64 {
	for k := max(4, len(x)/4); k <= len(x)/2; k++ {
		a, b := x[:k], x[k:]
		d := math.Abs(stat.Mean(a) - stat.Mean(b))
		se := math.Sqrt(stat.Variance(a)/float64(len(a)) + stat.Variance(b)/float64(len(b)))
		if d > 0.03*stat.Mean(x) && d > 6*se {
			return float64(k) / float64(len(x))
		}
	}
	return 0
}
