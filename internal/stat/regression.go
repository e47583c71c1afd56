package stat

import "math"

// Line is a least-squares fit y = Intercept + Slope·x. SE is the slope's standard error, NaN with fewer than three
// points.
type Line struct {
	Slope, Intercept, SE float64
	N                    int
}

// Regress fits a line by ordinary least squares. ok is false when x does not vary.
func Regress(x, y []float64) (l Line, ok bool) {
	n := min(len(x), len(y))
	mx, my := Mean(x[:n]), Mean(y[:n])
	sxx, sxy := 0.0, 0.0
	for i := range n {
		sxx += (x[i] - mx) * (x[i] - mx)
		sxy += (x[i] - mx) * (y[i] - my)
	}
	if !(sxx > 0) || math.IsInf(sxx, 0) {
		return Line{}, false
	}
	l = Line{Slope: sxy / sxx, N: n, SE: math.NaN()}
	l.Intercept = my - l.Slope*mx
	if n > 2 {
		rss := 0.0
		for i := range n {
			e := y[i] - l.Intercept - l.Slope*x[i]
			rss += e * e
		}
		l.SE = math.Sqrt(rss / float64(n-2) / sxx)
	}
	return l, true
}

// EventRate is the rate of the events at the ascending instants t: the slope of their cumulative count over time. ok is
// false when the instants do not vary.
func EventRate(t []float64) (float64, bool) {
	count := make([]float64, len(t))
	for i := range count {
		count[i] = float64(i)
	}
	l, ok := Regress(t, count)
	return l.Slope, ok
}

// Rayleigh is the mean resultant length of the instants t taken modulo period: 0 when their phases are spread evenly, 1
// when they all coincide (Mardia & Jupp, Directional Statistics, section 2.3). 0 for none.
func Rayleigh(t []float64, period float64) float64 {
	if len(t) == 0 || !(period > 0) {
		return 0
	}
	c, s := 0.0, 0.0
	for _, v := range t {
		turns := v / period
		sin, cos := math.Sincos(2 * math.Pi * (turns - math.Floor(turns)))
		c, s = c+cos, s+sin
	}
	return math.Hypot(c, s) / float64(len(t))
}
