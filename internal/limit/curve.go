package limit

import (
	"cmp"
	"math"
	"slices"

	"tare/internal/stat"
)

const (
	// same is how far apart two rates may be, as a share, that count as the same beside their noise.
	same = 0.08
	// noise is by how many standard errors two rates may differ.
	noise = 2.5
)

// A measured is one rate with its standard error, in 1/s.
type measured struct{ rate, err float64 }

// measured returns the rate at which calls ended well in x.
func (x *Experiment) measured() measured {
	n := len(x.Counts)
	if n == 0 || !(x.Seconds > 0) {
		return measured{}
	}
	part := x.Seconds / float64(n)
	rates := make([]float64, n)
	for i, c := range x.Counts {
		rates[i] = float64(c) / part
	}
	m := measured{rate: stat.Mean(rates), err: math.Sqrt(stat.Variance(rates) / float64(n))}
	m.err = max(m.err, 0.5/x.Seconds) // counts are whole
	return m
}

// Rate is how many calls ended well per second.
func (x *Experiment) Rate() float64 { return x.measured().rate }

// interval is the rate of x with its interval at 95 %.
func (x *Experiment) interval() (rate, lo, hi float64) {
	m := x.measured()
	t := 1.96
	if n := len(x.Counts); n > 1 {
		t = stat.StudentQuantile(0.975, float64(n-1))
	}
	return m.rate, max(0, m.rate-t*m.err), m.rate + t*m.err
}

// isAbout reports whether two rates are the same within noise.
func (m measured) isAbout(o measured) bool {
	return math.Abs(m.rate-o.rate) <= same*max(m.rate, o.rate)+noise*math.Hypot(m.err, o.err)
}

// TookAll reports whether the target did all that was offered, so that it may be able to do more.
func (x *Experiment) TookAll() bool {
	return x.Offered > 0 && x.measured().rate > 0.95*x.Offered && 20*x.Bad < total(x.Counts)
}

// hangs reports whether calls that were in flight were left without an answer: none ended in the last half of the time,
// nor in far longer than one takes. What ended before says nothing of the rate.
func (x *Experiment) hangs() bool {
	n := len(x.Counts)
	silent := 0
	for silent < n && x.Counts[n-1-silent] == 0 {
		silent++
	}
	return n > 0 && 2*silent >= n && float64(silent)*x.Seconds/float64(n) > 10*x.Service && 10*x.Bad <= total(x.Counts)
}

// total is the sum of counts.
func total(counts []int) (n int) {
	for _, c := range counts {
		n += c
	}
	return n
}

// A curve is how the rate grows with the number of calls in flight.
type curve struct {
	all  []*Experiment // by calls in flight, ascending
	most measured      // the rate of the plateau
	// least is the fewest calls in flight that reach it; flat is whether more were tried and reached no more.
	least *Experiment
	flat  bool
}

// curveOf returns the curve of the experiments in which nothing was changed and the generator kept up. Of several with
// as many calls in flight, it takes that to which most was offered.
func curveOf(all []Experiment) curve {
	var c curve
	for i := range all {
		if x := &all[i]; x.isPlain() && x.Late == "" && x.InFlight > 0 && x.measured().rate > 0 {
			c.all = append(c.all, x)
		}
	}
	slices.SortStableFunc(c.all, func(a, b *Experiment) int {
		return cmp.Or(a.InFlight-b.InFlight, cmp.Compare(b.Offered, a.Offered))
	})
	c.all = slices.CompactFunc(c.all, func(a, b *Experiment) bool { return a.InFlight == b.InFlight })
	if len(c.all) == 0 {
		return c
	}
	for _, x := range c.all {
		if m := x.measured(); m.rate > c.most.rate {
			c.most = m
		}
	}
	var plateau, errs, n float64
	for _, x := range c.all {
		if m := x.measured(); m.isAbout(c.most) {
			if c.least == nil {
				c.least = x
			}
			plateau, errs, n = plateau+m.rate, errs+m.err*m.err, n+1
		}
	}
	c.most = measured{plateau / n, math.Sqrt(errs) / n} // the highest of several is too high by chance
	last := c.all[len(c.all)-1]
	c.flat = last.InFlight >= 2*c.least.InFlight && last.measured().isAbout(c.most) && !last.TookAll()
	return c
}

// levelsOff reports whether the rate with the most calls in flight is clearly below what it would be if it had grown in
// proportion to them, or calls wait for each other as long as that explains. Where few calls ended, two rates may be
// the same and one twice the other as well.
func (c *curve) levelsOff() bool {
	var rate, squares, inFlight float64
	for _, x := range c.all {
		if m := x.measured(); x.InFlight <= c.least.InFlight {
			rate, squares, inFlight = rate+m.rate, squares+m.err*m.err, inFlight+float64(x.InFlight)
		}
	}
	first, last := c.least, c.full()
	more, m := float64(last.InFlight)/inFlight, last.measured()
	times := float64(last.InFlight) / float64(first.InFlight)
	return more*rate-m.rate > noise*math.Hypot(more*math.Sqrt(squares), m.err) ||
		times >= 4 && first.Spread != nil && last.Spread != nil && last.Service > first.Service*(1+times)/2
}

// single is the experiment with one call in flight; nil: there is none.
func (c *curve) single() *Experiment {
	if len(c.all) > 0 && c.all[0].InFlight == 1 {
		return c.all[0]
	}
	return nil
}

// each is the rate that one call in flight gets where calls do not wait for each other: the highest of those with as
// many in flight as reach the plateau, or fewer, since a host that stalls only lowers it. 0: not known.
func (c *curve) each() (best measured) {
	if c.single() == nil {
		return best
	}
	rough := measured{}
	for _, x := range c.all {
		m, k := x.measured(), float64(x.InFlight)
		per := measured{m.rate / k, m.err / k}
		switch {
		case x.InFlight > c.least.InFlight:
		case m.err > 0.12*m.rate: // so few calls that the highest is so by chance
			rough = per
		case per.rate > best.rate:
			best = per
		}
	}
	if best.rate == 0 {
		return rough
	}
	return best
}

// atOnce is how many calls in flight fill the target: the rate of the plateau ÷ that of one call; 0: not known.
func (c *curve) atOnce() float64 {
	each := c.each()
	if each.rate == 0 || !c.flat {
		return 0
	}
	return c.most.rate / each.rate
}

// grows reports whether the rate was in proportion to the calls in flight below the plateau.
func (c *curve) grows() bool {
	n, each := c.atOnce(), c.each()
	if n == 0 {
		return false
	}
	for _, x := range c.all {
		busy := min(float64(x.InFlight), n)
		want, m := measured{each.rate * busy, each.err * busy}, x.measured()
		off, err := m.rate/want.rate-1, noise*math.Hypot(m.err, want.err)/want.rate
		if off > 0.2+err || off < -0.35-err { // less than that: a stall
			return false
		}
	}
	return true
}

// full is the experiment with the most calls in flight: the target has all that it can do.
func (c *curve) full() *Experiment {
	if len(c.all) == 0 {
		return nil
	}
	return c.all[len(c.all)-1]
}
