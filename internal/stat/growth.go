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
	fewestSizes   = 6    // with fewer sizes the laws cannot be distinguished
	namingSizes   = 10   // a law is named from this many sizes
	namingDecades = 3    // over this many decades
	extrapolated  = 3    // times the largest size: further away is extrapolation
	farthest      = 1e15 // no N beyond this is reported
)

// Fit is cost = C0 + C1·f(N) for one law. RSS is the sum of squared differences of the logarithms; BIC = n·log(RSS/n) +
// k·log(n).
type Fit struct {
	Law              Law
	C0, C1, BIC, RSS float64
}

// At is the fitted cost at size n.
func (f Fit) At(n float64) float64 { return f.C0 + f.C1*f.Law.F(n) }

// GrowthOptions says how a growth law is fitted: intervals at Level; Budget is the cost that must not be exceeded, NaN
// for none; growth over the measured range of at most Margin (0.02: 2 %) counts as none, 0 for no such statement.
type GrowthOptions struct {
	Level, Budget, Margin float64
}

// GrowthFit is how cost grows with N.
type GrowthFit struct {
	Best  Fit   // of the lowest BIC among the laws
	Named bool  // Best may be called the law; else Best and Tied are forms that fit "over the measured range"
	Tied  []Law // the laws within ΔBIC 4 of Best, the closest first, without Best
	Fits  []Fit // of every law, in the order of Laws
	// Exact: every size cost the same in every block, to the last digit. Then Best is the constant law, Named, and its
	// interval a point.
	Exact bool
	// C0 and C1 are Best's coefficients; their intervals hold on the condition that its law is the true one.
	C0, C1 Estimate
	// Knee is the size from which the cost grows faster, Step the neighbouring sizes between which it jumps; nil where one
	// law explains the costs as well. Never both: where the two explain them equally well neither is given, and Reason
	// says so. With any of this no law is Named.
	Knee *Knee
	Step *Step
	// Breaks is the size at which the cost – by the step or the knee if there is one, else by Best – reaches the budget;
	// Hi is +Inf where it might never. Nil without a budget or where the cost never reaches it or exceeds it at the
	// smallest size: then Reason says at which measured sizes it is exceeded. Where a measured size contradicts the form,
	// Breaks lies between measured sizes.
	Breaks       *Estimate
	BreaksInStep bool   // the budget breaks in the step: Breaks lies between its sizes, and no nearer is known
	Extrapolated bool   // Breaks lies beyond 3 times the largest measured size
	Reason       string // why no law is named, or no break given; empty if both are
	// Unfit is the size that even the best description is known to miss by more than the margin; nil if there is none.
	// Then no form may be stated: no law is Named, there is no Knee, of a Step only its place and Across may be used, and
	// Breaks lies between measured sizes.
	Unfit *Miss
	// Constant is the relative growth from the smallest to the largest size (0.5: half as much again), free of any law;
	// nil for one block. Flat says that it is equivalent to none within the margin.
	Constant *Estimate
	Flat     bool
	// Band is the fitted cost at size n with its pointwise interval, by the same description as Breaks. Between the two
	// sizes of a step, where nothing is known, it is that of the sizes before.
	Band func(n float64) Estimate
}

// Miss is a size whose cost a description misses, and by what share of it: 0.1 where it says 10 % more or less.
type Miss struct{ N, By float64 }

// FitGrowth fits the six laws to blocks[size][block], the cost of size n[size] in each block; every size must have the
// same blocks, and one block is enough for a fit but not for intervals. The cost of a size is the Hodges–Lehmann
// estimate of its blocks' logarithms; the coefficients, none negative, minimise the squared differences of logarithms:
// noise of timings is relative. Intervals are those of the jackknife that deletes one block – all sizes of it, since
// they share its luck – with Student's t. Costs that are all the same, 0 among them, are constant exactly, however few
// sizes there are. Otherwise it is an error to give 5 sizes or fewer; and always, the same size twice, sizes that are
// negative or costs that are not positive and finite.
func FitGrowth(n []float64, blocks [][]float64, o GrowthOptions) (GrowthFit, error) {
	if err := checkLevel(o.Level); err != nil {
		return GrowthFit{}, err
	}
	if v, same := sameCost(n, blocks); same {
		return exactly(v, len(blocks[0]), o), nil
	}
	d, err := newCosts(n, blocks)
	if err != nil {
		return GrowthFit{}, err
	}
	var without [][]float64
	if d.blocks() > 1 {
		for b := range d.blocks() {
			without = append(without, d.centre(b))
		}
	}
	y := d.centre(-1)
	g := fitCosts(d, y, without, o)
	t := g.turns(d, y, without, o)
	if t.reason != "" {
		g.Named, g.Reason = false, t.reason
	}
	g.describe(d, y, without, t, o)
	return g, g.growth(d, o)
}

// fitCosts fits the laws alone.
func fitCosts(d costs, y []float64, without [][]float64, o GrowthOptions) GrowthFit {
	g := GrowthFit{Fits: fitLaws(d.n, y)}
	g.rank()
	g.name(d)
	g.C0, g.C1 = coefficients(g.Best, without, o.Level, func(part []float64) Fit { return fitLaw(g.Best.Law, d.n, part) })
	return g
}

// coefficients are c0 and c1 of a fit with their intervals, given how to fit it without a block.
func coefficients(full Fit, without [][]float64, level float64, refit func(y []float64) Fit) (c0, c1 Estimate) {
	a, b := make([]float64, len(without)), make([]float64, len(without))
	for i, part := range without {
		f := refit(part)
		a[i], b[i] = f.C0, f.C1
	}
	return spread(full.C0, a, level), spread(full.C1, b, level)
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
		g.Reason = fmt.Sprintf("%d sizes, and naming a law takes %d", len(d.n), namingSizes)
	case first == 0 && last < math.Pow(10, namingDecades) || last < first*math.Pow(10, namingDecades)*(1-1e-9):
		g.Reason = fmt.Sprintf("the sizes span less than %d decades", namingDecades)
	case g.Best.Law == Constant || slices.Contains(g.Tied, Constant):
		g.Reason = "no law of growth fits clearly better than a constant"
	case len(g.Tied) > 0:
		g.Reason = "several laws fit equally well"
	default:
		g.Named = true
	}
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
	g.Flat = o.Margin > 0 && g.Unfit == nil && Equivalent(e, 1/(1+o.Margin)-1, o.Margin)
	if g.Flat && g.Named { // an exact count that varies in its last digits can have a law, of no consequence
		g.Named, g.Reason = false, joined("its growth over the range is within the margin", g.Reason)
	}
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
