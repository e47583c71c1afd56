package capacity

import (
	"iter"
	"math"
	"slices"
	"time"

	"tare/internal/load"
	"tare/internal/signature"
	"tare/internal/stat"
)

const (
	level   = 0.95
	batches = 16
	// steady is the relative half width of an interval from which on the slope is better than the mean: below, ends of
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

// ends are the instants, in seconds and ascending, at which good calls ended in (from, to].
func ends(calls iter.Seq[*load.Call], from, to time.Duration) []float64 {
	var t []float64
	for c := range calls {
		if c.Done > from && c.Done <= to && c.Outcome.Good() {
			t = append(t, c.Done.Seconds())
		}
	}
	slices.Sort(t)
	return t
}

// dueFrom returns the calls that were due at or after since.
func dueFrom(calls []load.Call, since time.Duration) []load.Call {
	i, _ := slices.BinarySearchFunc(calls, since, func(c load.Call, t time.Duration) int {
		if c.Intended < t {
			return -1
		}
		return 1
	})
	return calls[i:]
}

// due returns the calls that were due in [from, to).
func due(calls []load.Call, from, to time.Duration) []load.Call {
	calls = dueFrom(calls, from)
	i, _ := slices.BinarySearchFunc(calls, to, func(c load.Call, t time.Duration) int {
		if c.Intended < t {
			return -1
		}
		return 1
	})
	return calls[:i]
}
