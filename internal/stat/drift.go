package stat

import (
	"fmt"
	"math"
	"slices"
)

// DriftOptions say how the trend of a series, or its mean, is estimated. The zero value is the usual.
type DriftOptions struct {
	// Level of the interval; 0: 0.95.
	Level float64
	// Stretch numbers the stretch that each value belongs to, in ascending order: stretches share the slope, and each has
	// an intercept of its own. nil: one stretch.
	Stretch []int
	// Weight of each value, above 0: how many parts its mean is of. nil: all alike.
	Weight []float64
	// Replicates of the bootstrap; 0: 999.
	Replicates int
	// Seed of the bootstrap. Equal input gives equal results.
	Seed uint64
}

// DriftFit is the trend of a series: the slope in units of y for each unit of t, with its interval. N counts values.
type DriftFit struct {
	Estimate
	// Intercepts are the line's values at t = 0, by stretch in the order in which they come.
	Intercepts []float64
	// Correlation is that of neighbouring residuals, corrected for the bias of its estimate.
	Correlation float64
	// Block is the length of the bootstrap's blocks, in parts of Joined values each: the interval is the wider one of
	// those at two scales.
	Block, Joined int
}

// The scales of a series: below fewest values there is no interval; from 2·coarse values on it is also looked at in
// coarse parts.
const (
	fewestValues = 8
	coarseParts  = 60
)

// Drift estimates the slope of a line through the values y at the instants t, which ascend within each stretch, by
// (weighted) least squares. Its interval allows for values that hang together: the residuals are whitened by their
// lag-1 autocorrelation (Prais & Winsten 1954 at the beginnings; across gaps by its powers), of which the bias is
// corrected (Kendall 1954, for a fitted trend Andrews 1993), the innovations are resampled in circular blocks of
// automatic length (Politis & White 2004, as corrected by Patton, Politis & White 2009) and coloured again: the
// post-blackened block bootstrap (Davison & Hinkley, Bootstrap Methods and their Application, section 8.2.3). Its
// quantiles are widened by those of Student's t, with the degrees of freedom that so many correlated values have. The
// same is done with means of neighbouring values, 60 parts in all, where there are twice as many; the wider interval
// counts, since noise of its own in each value hides slow movements behind it.
//
// It is an error if the lengths differ, if a value is not finite or a weight not above 0, if t does not vary within the
// stretches, or if there are fewer than 8 values more than parameters.
func Drift(t, y []float64, o DriftOptions) (DriftFit, error) {
	s, err := newSeries(t, y, &o)
	if err != nil {
		return DriftFit{}, err
	}
	l, ok := s.line()
	if !ok {
		return DriftFit{}, fmt.Errorf("the instants do not vary within the %d stretches", s.stretches)
	}
	fit := DriftFit{Intercepts: l.intercepts}
	fit.Estimate, fit.Correlation, fit.Block, fit.Joined = s.interval(&l, &o, (*series).line)
	return fit, nil
}

// SeriesMean estimates the (weighted) mean of the values y at the ascending instants t, with the interval that Drift
// has. o.Stretch only says where neighbours do not follow each other.
func SeriesMean(t, y []float64, o DriftOptions) (Estimate, error) {
	s, err := newSeries(t, y, &o)
	if err != nil {
		return Estimate{}, err
	}
	l, _ := s.level()
	e, _, _, _ := s.interval(&l, &o, (*series).level)
	return e, nil
}

// A series is values in the order of time, cut into stretches.
type series struct {
	t, y, w   []float64
	stretch   []int
	stretches int
}

// newSeries checks the input and fills in the options' defaults.
func newSeries(t, y []float64, o *DriftOptions) (*series, error) {
	n := len(y)
	if o.Level == 0 {
		o.Level = 0.95
	}
	if o.Replicates <= 0 {
		o.Replicates = 999
	}
	s := &series{t: t, y: y, w: o.Weight, stretch: o.Stretch}
	if s.w == nil {
		s.w = slices.Repeat([]float64{1}, n)
	}
	if s.stretch == nil {
		s.stretch = make([]int, n)
	}
	if err := checkLevel(o.Level); err != nil {
		return nil, err
	}
	if len(t) != n || len(s.w) != n || len(s.stretch) != n {
		return nil, fmt.Errorf("%d values at %d instants with %d weights in stretches of %d", n, len(t), len(s.w),
			len(s.stretch))
	}
	return s, s.check()
}

func (s *series) check() error {
	for i, y := range s.y {
		if v := s.t[i] + y + s.w[i]; math.IsNaN(v) || math.IsInf(v, 0) {
			return ErrNotFinite
		}
		if s.w[i] <= 0 {
			return fmt.Errorf("the weight %v is not above 0", s.w[i])
		}
		switch {
		case i == 0 || s.stretch[i] > s.stretch[i-1]:
			s.stretches++
		case s.stretch[i] < s.stretch[i-1] || s.t[i] <= s.t[i-1]:
			return fmt.Errorf("value %d does not come after the one before it", i)
		}
	}
	if least := fewestValues + s.stretches + 1; len(s.y) < least {
		return fmt.Errorf("%d values where at least %d are needed", len(s.y), least)
	}
	return nil
}

// A linear is an estimate that is linear in the values: value = Σ cᵢ·yᵢ/√wᵢ + …, so that noise eᵢ in √wᵢ·yᵢ moves it by
// Σ cᵢ·eᵢ.
type linear struct {
	value      float64
	intercepts []float64
	c          []float64
	residual   []float64 // of √w·y
	parameters int
}

// each calls f for every stretch, which is values from to to−1.
func (s *series) each(f func(from, to int)) {
	from := 0
	for i := 1; i <= len(s.y); i++ {
		if i == len(s.y) || s.stretch[i] != s.stretch[from] {
			f(from, i)
			from = i
		}
	}
}

// line fits a slope and an intercept for each stretch. ok is false if t does not vary within any.
func (s *series) line() (l linear, ok bool) {
	n := len(s.y)
	l = linear{c: make([]float64, n), residual: make([]float64, n), parameters: s.stretches + 1}
	var stt, sty float64
	var mt, my []float64
	s.each(func(from, to int) {
		mt, my = append(mt, weightedMean(s.t[from:to], s.w[from:to])), append(my, weightedMean(s.y[from:to], s.w[from:to]))
		k := len(mt) - 1
		for i := from; i < to; i++ {
			d := s.t[i] - mt[k]
			stt += s.w[i] * d * d
			sty += s.w[i] * d * (s.y[i] - my[k])
			l.c[i] = math.Sqrt(s.w[i]) * d
		}
	})
	if !(stt > 0) || math.IsInf(stt, 0) {
		return l, false
	}
	l.value = sty / stt
	k := 0
	s.each(func(from, to int) {
		l.intercepts = append(l.intercepts, my[k]-l.value*mt[k])
		for i := from; i < to; i++ {
			l.c[i] /= stt
			l.residual[i] = math.Sqrt(s.w[i]) * (s.y[i] - my[k] - l.value*(s.t[i]-mt[k]))
		}
		k++
	})
	return l, true
}

// level fits the mean of all values.
func (s *series) level() (linear, bool) {
	n := len(s.y)
	l := linear{value: weightedMean(s.y, s.w), c: make([]float64, n), residual: make([]float64, n), parameters: 1}
	total := 0.0
	for _, w := range s.w {
		total += w
	}
	for i, w := range s.w {
		l.c[i] = math.Sqrt(w) / total
		l.residual[i] = math.Sqrt(w) * (s.y[i] - l.value)
	}
	return l, true
}

func weightedMean(x, w []float64) float64 {
	sum, total := 0.0, 0.0
	for i := range x {
		sum += w[i] * x[i]
		total += w[i]
	}
	return sum / total
}

// interval is the wider of the intervals at both scales, around the value at the finer one.
func (s *series) interval(l *linear, o *DriftOptions, fit func(*series) (linear, bool)) (e Estimate,
	correlation float64, block, joined int,
) {
	half, correlation, block := s.half(l, o)
	joined = 1
	if k := len(s.y) / coarseParts; k >= 2 {
		parts := s.join(k)
		if coarse, ok := fit(parts); ok && len(parts.y) > fewestValues+coarse.parameters {
			if h, _, b := parts.half(&coarse, o); h > half {
				half, block, joined = h, b, k
			}
		}
	}
	return Estimate{Value: l.value, Lo: l.value - half, Hi: l.value + half, Level: o.Level, N: len(s.y)},
		correlation, block, joined
}

// join makes means of k neighbours each. What is left at the end of a stretch is a part of its own if it is at least
// half of one.
func (s *series) join(k int) *series {
	out := &series{stretches: s.stretches}
	s.each(func(from, to int) {
		for i := from; i < to; i += k {
			end := min(i+k, to)
			if 2*(end-i) < k {
				continue
			}
			total := 0.0
			for _, w := range s.w[i:end] {
				total += w
			}
			out.t, out.y = append(out.t, weightedMean(s.t[i:end], s.w[i:end])),
				append(out.y, weightedMean(s.y[i:end], s.w[i:end]))
			out.w, out.stretch = append(out.w, total), append(out.stretch, s.stretch[i])
		}
	})
	return out
}
