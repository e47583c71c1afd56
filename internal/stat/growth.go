package stat

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// Law is a law of growth f in cost = c0 + c1·f(N).
type Law string

// The laws. Log, Linearithmic: the logarithm is log2(1+N), so that c1 is the cost of a doubling and N may be 0.
const (
	Constant     Law = "constant"
	Log          Law = "log"
	Sqrt         Law = "sqrt"
	Linear       Law = "linear"
	Linearithmic Law = "linearithmic"
	Quadratic    Law = "quadratic"
)

// Laws lists all of them, the slowest first.
func Laws() []Law { return []Law{Constant, Log, Sqrt, Linear, Linearithmic, Quadratic} }

// F is f(n); 0 for the constant law.
func (l Law) F(n float64) float64 {
	switch l {
	case Constant:
	case Log:
		return math.Log2(1 + n)
	case Sqrt:
		return math.Sqrt(n)
	case Linear:
		return n
	case Linearithmic:
		return n * math.Log2(1+n)
	case Quadratic:
		return n * n
	}
	return 0
}

const (
	tiedBIC       = 4    // laws whose BIC is within this of the best are tied with it (Raftery 1995: 2–6 is "positive")
	kneeBIC       = 6    // what a second segment must gain
	fewestSizes   = 6    // below this no law can be told from another
	namingSizes   = 10   // a law is named from this many sizes
	namingDecades = 3    // over this many decades
	extrapolated  = 3    // times the largest size: further away is extrapolation
	farthest      = 1e15 // no N beyond this is reported
)

// Fit is cost = C0 + C1·f(N) for one law. RSS is the sum of squared differences of the logarithms; BIC = n·log(RSS/n) + k·log(n).
type Fit struct {
	Law              Law
	C0, C1, BIC, RSS float64
}

// At is the fitted cost at size n.
func (f Fit) At(n float64) float64 { return f.C0 + f.C1*f.Law.F(n) }

// reach is the size at which the fitted cost reaches budget; +Inf if it never does.
func (f Fit) reach(budget float64) float64 {
	if f.C0 >= budget {
		return 0
	}
	lo, hi := 0.0, 1.0
	for f.At(hi) < budget {
		if hi *= 2; hi > farthest*1e3 {
			return math.Inf(1)
		}
	}
	for range 100 {
		if mid := (lo + hi) / 2; f.At(mid) < budget {
			lo = mid
		} else {
			hi = mid
		}
	}
	return hi
}

// GrowthOptions says how a growth law is fitted: intervals at Level; Budget is the cost that must not be exceeded, NaN for none;
// growth over the measured range of at most Margin (0.02: 2 %) counts as none, 0 for no such statement.
type GrowthOptions struct {
	Level, Budget, Margin float64
}

// GrowthFit is how cost grows with N.
type GrowthFit struct {
	Best  Fit   // of the lowest BIC
	Named bool  // Best may be called the law; else Best and Tied are forms that fit "over the measured range"
	Tied  []Law // the laws within ΔBIC 4 of Best, the closest first, without Best
	Fits  []Fit // of every law, in the order of Laws
	// C0 and C1 are Best's coefficients; their intervals hold on the condition that its law is the true one.
	C0, C1 Estimate
	// Knee is the size from which the cost grows faster; nil where one segment explains the costs as well.
	Knee *Estimate
	// Breaks is the size at which the cost reaches the budget; Hi is +Inf where it might never. Nil without a budget or where
	// Best never reaches it or has it exceeded at any size (Reason says which).
	Breaks       *Estimate
	Extrapolated bool   // Breaks lies beyond 3 times the largest measured size
	Reason       string // why no law is named, or no break given; empty if both are
	// Constant is the relative growth from the smallest to the largest size (0.5: half as much again), free of any law; nil for
	// one block. Flat says that it is equivalent to none within the margin.
	Constant *Estimate
	Flat     bool
	// Band is the fitted cost at size n with its pointwise interval.
	Band func(n float64) Estimate
}

// FitGrowth fits the six laws to blocks[size][block], the cost of size n[size] in each block; every size must have the same
// blocks, and one block is enough for a fit but not for intervals. The cost of a size is the Hodges–Lehmann estimate of
// its blocks' logarithms; the coefficients, none negative, minimise the squared differences of logarithms: noise of timings is
// relative. Intervals are those of the jackknife that deletes one block – all sizes of it, since they share its luck – with
// Student's t. It is an error to give 5 sizes or fewer, the same size twice, sizes that are negative or costs that are not
// positive and finite.
func FitGrowth(n []float64, blocks [][]float64, o GrowthOptions) (GrowthFit, error) {
	if err := checkLevel(o.Level); err != nil {
		return GrowthFit{}, err
	}
	d, err := newCosts(n, blocks)
	if err != nil {
		return GrowthFit{}, err
	}
	g := GrowthFit{Fits: fitLaws(d.n, d.centre(-1))}
	g.rank()
	g.name(d)
	var deleted []Fit
	var without [][]float64
	if d.blocks() > 1 {
		for b := range d.blocks() {
			y := d.centre(b)
			without = append(without, y)
			deleted = append(deleted, fitLaw(g.Best.Law, d.n, y))
		}
	}
	g.intervals(deleted, o)
	g.breaks(d, deleted, o)
	if g.Knee = findKnee(d.n, d.centre(-1), without, o.Level, g.Best.BIC); g.Knee != nil && g.Named {
		g.Named, g.Reason = false, "two segments fit better than any one law"
	}
	return g, g.growth(d, o)
}

// rank finds the best law and those tied with it.
func (g *GrowthFit) rank() {
	order := slices.Clone(g.Fits)
	slices.SortStableFunc(order, func(a, b Fit) int { return cmp.Compare(a.BIC, b.BIC) })
	g.Best = order[0]
	for _, f := range order[1:] {
		if f.BIC-g.Best.BIC <= tiedBIC {
			g.Tied = append(g.Tied, f.Law)
		}
	}
}

// name decides whether Best may be called the law.
func (g *GrowthFit) name(d costs) {
	first, last := d.n[0], d.n[len(d.n)-1]
	switch {
	case len(d.n) < namingSizes:
		g.Reason = fmt.Sprintf("%d sizes; naming a law takes %d", len(d.n), namingSizes)
	case first == 0 && last < math.Pow(10, namingDecades) || last < first*math.Pow(10, namingDecades)*(1-1e-9):
		g.Reason = fmt.Sprintf("the sizes span less than %d decades", namingDecades)
	case g.Best.Law == Constant || slices.Contains(g.Tied, Constant):
		g.Reason = "no growth stands out from the noise"
	case len(g.Tied) > 0:
		g.Reason = "several laws fit equally well"
	default:
		g.Named = true
	}
}

func (g *GrowthFit) intervals(deleted []Fit, o GrowthOptions) {
	along := func(of func(Fit) float64) Estimate {
		part := make([]float64, len(deleted))
		for i, f := range deleted {
			part[i] = of(f)
		}
		return spread(of(g.Best), part, o.Level)
	}
	g.C0 = along(func(f Fit) float64 { return f.C0 })
	g.C1 = along(func(f Fit) float64 { return f.C1 })
	g.Band = func(n float64) Estimate {
		return exponential(along(func(f Fit) float64 { return math.Log(f.At(n)) }))
	}
}

// breaks finds where the budget breaks, with an interval on the scale of log N.
func (g *GrowthFit) breaks(d costs, deleted []Fit, o GrowthOptions) {
	if math.IsNaN(o.Budget) {
		return
	}
	at := g.Best.reach(o.Budget)
	if at == 0 || at > farthest {
		reason := "the budget is not reached at any size"
		if at == 0 {
			reason = "the budget is exceeded at every size"
		}
		if g.Reason != "" {
			reason = g.Reason + "; " + reason
		}
		g.Reason = reason
		return
	}
	part, never := make([]float64, len(deleted)), false
	for i, f := range deleted {
		n := f.reach(o.Budget)
		never = never || n > farthest
		part[i] = math.Log(max(n, math.SmallestNonzeroFloat64))
	}
	e := Estimate{Value: at, Lo: 0, Hi: math.Inf(1), Level: o.Level, N: len(deleted)}
	if !never {
		e = exponential(spread(math.Log(at), part, o.Level))
	}
	g.Breaks, g.Extrapolated = &e, at > extrapolated*d.n[len(d.n)-1]
}

// growth bounds the relative growth from the smallest to the largest size.
func (g *GrowthFit) growth(d costs, o GrowthOptions) error {
	if d.blocks() < 2 {
		return nil
	}
	ratio := make([]float64, d.blocks())
	for b := range ratio {
		ratio[b] = d.log[len(d.n)-1][b] - d.log[0][b]
	}
	t, err := HodgesLehmann(ratio, o.Level)
	if err != nil {
		return fmt.Errorf("growth over the range: %w", err)
	}
	e := t.Estimate
	e.Value, e.Lo, e.Hi = math.Expm1(e.Value), math.Expm1(e.Lo), math.Expm1(e.Hi)
	g.Constant = &e
	g.Flat = o.Margin > 0 && Equivalent(e, 1/(1+o.Margin)-1, o.Margin)
	return nil
}

// spread is the jackknife interval; without deletions there is none, and the interval is the whole line.
func spread(full float64, deleted []float64, level float64) Estimate {
	if len(deleted) < 2 {
		return Estimate{Value: full, Lo: math.Inf(-1), Hi: math.Inf(1), Level: level, N: 1}
	}
	e, _ := jackknife(full, deleted, level)
	return e
}

func exponential(e Estimate) Estimate {
	e.Value, e.Lo, e.Hi = math.Exp(e.Value), math.Exp(e.Lo), math.Exp(e.Hi)
	return e
}
