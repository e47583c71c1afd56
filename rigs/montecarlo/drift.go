package montecarlo

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"

	"tare/internal/stat"
)

// A Course is how the values of a soak's windows vary when there is no trend, about an arbitrary level.
type Course struct {
	Name string
	draw func(r *rand.Rand, n int) []float64
}

// Courses are all kinds.
func Courses() []Course {
	return []Course{
		{"white noise", autoregressive(0, (*rand.Rand).NormFloat64)},
		{"autocorrelation 0.3", autoregressive(0.3, (*rand.Rand).NormFloat64)},
		{"autocorrelation 0.7", autoregressive(0.7, (*rand.Rand).NormFloat64)},
		{"autocorrelation 0.9", autoregressive(0.9, (*rand.Rand).NormFloat64)},
		{"heavy tails: Student t, 3 degrees of freedom", autoregressive(0, heavyTailed)},
		{"heavy tails, autocorrelation 0.7", autoregressive(0.7, heavyTailed)},
		{"memory under a collector: sawtooth of 5–20 windows", sawtooth},
		{"heap that grows and shrinks in steps, every 20 windows", steps},
		{"autocorrelation 0.9 behind white noise", behindNoise},
		{"wave of a quarter of the run", wave(0.25)},
		{"wave as long as the run", wave(1)},
	}
}

// heavyTailed is Student's t with 3 degrees of freedom.
func heavyTailed(r *rand.Rand) float64 { return student(r) }

// autoregressive is a process of the first order, after it has forgotten its beginning.
func autoregressive(phi float64, innovation func(*rand.Rand) float64) func(*rand.Rand, int) []float64 {
	const forget = 200
	return func(r *rand.Rand, n int) []float64 {
		out, x := make([]float64, n), 0.0
		for i := range forget + n {
			x = phi*x + innovation(r)
			if i >= forget {
				out[i-forget] = x
			}
		}
		return out
	}
}

// sawtooth rises by 6 over a period that is never quite the same, and falls back.
func sawtooth(r *rand.Rand, n int) []float64 {
	out := make([]float64, n)
	period, phase := 5+15*r.Float64(), r.Float64()
	for i := range out {
		out[i] = 6*phase + 0.3*r.NormFloat64()
		_, phase = math.Modf(phase + (0.8+0.4*r.Float64())/period)
	}
	return out
}

// steps are levels of 0 to 3 that hold for 20 windows on average.
func steps(r *rand.Rand, n int) []float64 {
	out, level := make([]float64, n), float64(r.IntN(4))
	for i := range out {
		if r.Float64() < 0.05 {
			level = float64(r.IntN(4))
		}
		out[i] = level + 0.2*r.NormFloat64()
	}
	return out
}

func behindNoise(r *rand.Rand, n int) []float64 {
	out := autoregressive(0.9, (*rand.Rand).NormFloat64)(r, n)
	for i := range out {
		out[i] += 2 * r.NormFloat64()
	}
	return out
}

// wave is a sine with a period of so many runs, as load and neighbours have over a day.
func wave(period float64) func(*rand.Rand, int) []float64 {
	return func(r *rand.Rand, n int) []float64 {
		out, phase := autoregressive(0.3, (*rand.Rand).NormFloat64)(r, n), r.Float64()
		for i := range out {
			out[i] = 0.5*out[i] + math.Sin(2*math.Pi*(phase+float64(i)/(period*float64(n))))
		}
		return out
	}
}

// windowCounts are the lengths of soaks, in windows.
func windowCounts() []int { return []int{30, 60, 120, 300, 900} }

// Trend is how often the interval of a trend that is planted holds it. Slope and interval move with what is planted, so
// that the rest to 100 % is the share of runs without a trend in which one is found.
type Trend struct {
	Course  string
	Windows int
	Share   float64
	Half    float64 // mean half width of the change over the run, in standard deviations of a window
	Line    float64 // coverage of the textbook's interval of a least-squares line, for comparison
}

type trendRun struct {
	held, line bool
	half       float64
}

// TrendCoverage plants a change of one over the run.
func TrendCoverage(ctx context.Context, s Study, c Course, windows int) (Trend, error) {
	truth := 1 / float64(windows)
	t := make([]float64, windows)
	for i := range t {
		t[i] = float64(i)
	}
	runs, err := repeat(ctx, s, fmt.Sprintf("trend %s %d", c.Name, windows), func(r *rand.Rand) trendRun {
		y := c.draw(r, windows)
		sd := math.Sqrt(stat.Variance(y))
		for i := range y {
			y[i] += truth * t[i]
		}
		fit, err := stat.Drift(t, y, stat.DriftOptions{})
		l, ok := stat.Regress(t, y)
		if err != nil || !ok {
			return trendRun{}
		}
		return trendRun{
			held: holds(&fit.Estimate, truth), half: (fit.Hi - fit.Lo) / 2 * float64(windows) / sd,
			line: math.Abs(l.Slope-truth) <= l.SE*stat.StudentQuantile(0.975, float64(windows-2)),
		}
	})
	out := Trend{
		Course: c.Name, Windows: windows, Share: share(runs, func(x trendRun) bool { return x.held }),
		Line: share(runs, func(x trendRun) bool { return x.line }),
	}
	for _, x := range runs {
		out.Half += x.half / float64(len(runs))
	}
	return out, err
}

// TrendTable is TrendCoverage for all courses and lengths.
func TrendTable(ctx context.Context, s Study) (Table, error) {
	t := Table{
		Title: "Coverage of a soak's trends",
		Note: "The share of 95 % intervals that hold the true slope; what is missing to 100 % is the share of soaks " +
			"without a trend in which one is found. In brackets the mean half width of " +
			"the change over the whole run, in standard deviations of a window. Last column: the textbook's interval of a " +
			"least-squares line, which takes windows for independent.",
		Columns: []string{"windows' values", "30 windows", "60", "120", "300", "900", "least squares alone, 300"},
	}
	for _, c := range Courses() {
		row, line := []string{c.Name}, ""
		for _, n := range windowCounts() {
			x, err := TrendCoverage(ctx, s, c, n)
			if err != nil {
				return t, err
			}
			row = append(row, fmt.Sprintf("%s (±%.2g)", percent(x.Share), x.Half))
			if n == 300 {
				line = percent(x.Line)
			}
		}
		t.Rows = append(t.Rows, append(row, line))
	}
	return t, nil
}

// MeanCoverage is how often the interval of the mean of a soak's windows holds the true one.
func MeanCoverage(ctx context.Context, s Study, c Course, windows int, truth float64) (float64, error) {
	t := make([]float64, windows)
	for i := range t {
		t[i] = float64(i)
	}
	runs, err := repeat(ctx, s, fmt.Sprintf("level %s %d", c.Name, windows), func(r *rand.Rand) bool {
		e, err := stat.SeriesMean(t, c.draw(r, windows), stat.DriftOptions{})
		return err == nil && holds(&e, truth)
	})
	return share(runs, func(held bool) bool { return held }), err
}

// means are the true ones of those courses that have one, by name: waves do not, as they are one draw of a phase.
func means() map[string]float64 {
	out := map[string]float64{}
	for _, c := range Courses()[:9] {
		out[c.Name] = 0
	}
	out[Courses()[6].Name] = 3
	out[Courses()[7].Name] = 1.5
	return out
}

// LevelTable is MeanCoverage for all courses that have a mean.
func LevelTable(ctx context.Context, s Study) (Table, error) {
	t := Table{
		Title:   "Coverage of a soak's means",
		Note:    "The share of 95 % intervals for the mean of the windows' values that hold the true mean.",
		Columns: []string{"windows' values", "30 windows", "60", "120", "300", "900"},
	}
	truths := means()
	for _, c := range Courses() {
		truth, ok := truths[c.Name]
		if !ok {
			continue
		}
		row := []string{c.Name}
		for _, n := range windowCounts() {
			v, err := MeanCoverage(ctx, s, c, n, truth)
			if err != nil {
				return t, err
			}
			row = append(row, percent(v))
		}
		t.Rows = append(t.Rows, row)
	}
	return t, nil
}

// Leak is how often a leak is told from none, under a collector's sawtooth.
func Leak(ctx context.Context, s Study, perWindow float64, windows int) (found, held float64, err error) {
	t := make([]float64, windows)
	for i := range t {
		t[i] = float64(i)
	}
	type run struct{ found, held bool }
	runs, err := repeat(ctx, s, fmt.Sprintf("leak %v %d", perWindow, windows), func(r *rand.Rand) run {
		y := sawtooth(r, windows)
		for i := range y {
			y[i] += perWindow * t[i]
		}
		fit, err := stat.Drift(t, y, stat.DriftOptions{})
		if err != nil {
			return run{}
		}
		return run{fit.Lo > 0, holds(&fit.Estimate, perWindow)}
	})
	return share(runs, func(x run) bool { return x.found }), share(runs, func(x run) bool { return x.held }), err
}

// LeakTable is Leak for windows of 2 s.
func LeakTable(ctx context.Context, s Study) (Table, error) {
	t := Table{
		Title: "Leaks found under a collector",
		Note: "Memory in windows of 2 s with a sawtooth of 6 MiB every 5–20 windows, and a leak: the share of soaks in " +
			"which its interval excludes 0, and in which it holds the truth.",
		Columns: []string{"leak", "2 min: found", "holds", "10 min: found", "holds", "30 min: found", "holds"},
	}
	for _, perMinute := range []float64{0.05, 0.1, 0.2, 0.5, 1} {
		row := []string{fmt.Sprintf("%g MiB/min", perMinute)}
		for _, n := range []int{60, 300, 900} {
			found, held, err := Leak(ctx, s, perMinute/30, n)
			if err != nil {
				return t, err
			}
			row = append(row, percent(found), percent(held))
		}
		t.Rows = append(t.Rows, row)
	}
	return t, nil
}
