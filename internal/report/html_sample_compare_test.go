package report

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"

	"tare/internal/design"
	"tare/internal/metric"
)

// A bench simulates an experiment of interleaved blocks: what each call costs under the baseline, and by how much each
// arm changes it.
type bench struct {
	rng      *rand.Rand
	arms     []Treatment
	baseline string
	blocks   int
	host     []float64 // how much slower the host was in each block
}

func newBench(blocks int, arms ...string) *bench {
	b := &bench{rng: rand.New(rand.NewPCG(7, 4)), blocks: blocks, baseline: arms[0]}
	for i, id := range arms {
		b.arms = append(b.arms, Treatment{
			ID: id, Baseline: i == 0, Verified: true,
			Levels: map[string]string{"enforcer": id},
		})
	}
	b.arms = append(b.arms, Treatment{ID: design.AAArm, Control: design.AA, Levels: b.arms[0].Levels, Verified: true})
	for k := range blocks {
		slow := math.Exp(b.rng.NormFloat64() * .01)
		if k%13 == 8 {
			slow *= 1.22
		}
		b.host = append(b.host, slow)
	}
	return b
}

// values are one arm's block values of something that costs so much.
func (b *bench) values(cost, noise float64) []*float64 {
	out := make([]*float64, b.blocks)
	for k := range out {
		out[k] = new(cost * b.host[k] * math.Exp(b.rng.NormFloat64()*noise))
	}
	return out
}

// effect is what the values say, with a normal interval: the page only has to show it.
func (b *bench) effect(base, treated []*float64, noise, margin float64) Effect {
	var d []float64
	for k := range base {
		d = append(d, math.Log(*treated[k] / *base[k]))
	}
	slices.Sort(d)
	middle, half := d[len(d)/2], 2.42*noise*math.Sqrt2/math.Sqrt(float64(len(d)))*1.2
	e := Effect{
		Baseline: b.baseline, Kind: "ratio", Estimate: math.Expm1(middle), Lo: math.Expm1(middle - half),
		Hi: math.Expm1(middle + half), Level: 0.9842,
		Margin: &margin, MDE: new(half * 1.35), Blocks: len(d), P: new(0.5), Adjusted: new(0.61),
	}
	e.Measurable = e.Lo > 0 || e.Hi < 0
	if e.Measurable {
		e.P, e.Adjusted = new(1e-6), new(1e-5)
	}
	switch {
	case e.Lo > margin:
		e.Verdict = Regressed
	case e.Hi < -margin:
		e.Verdict = Improved
	case e.Lo > -margin && e.Hi < margin:
		e.Verdict = Equivalent
	case e.Lo > 0:
		e.Verdict = Slower
	case e.Hi < 0:
		e.Verdict = Faster
	default:
		e.Verdict, e.BlocksToDecide = EffectInconclusive, new(b.blocks*3)
	}
	return e
}

// spread is a distribution with a tail around a cost.
func (b *bench) spread(treatment, operation, name, of string, cost, tail float64, n int) Percentiles {
	p := Percentiles{Treatment: treatment, Operation: operation, Metric: name, Unit: metric.Seconds, Of: of, N: n}
	for _, q := range []float64{0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.995, 0.999, 0.9995, 0.9999} {
		if float64(n)*(1-q) < 10 {
			break
		}
		v := cost * (1 + tail*math.Pow(-math.Log10(1-q)/2, 2))
		x := Percentile{Q: q, Value: v}
		if float64(n)*(1-q) >= 100 {
			x.Lo, x.Hi = new(v*(1-.03/math.Sqrt(1-q)/10)), new(v*(1+.04/math.Sqrt(1-q)/10))
		}
		p.Points = append(p.Points, x)
	}
	return p
}

// workloadCosts are seven operations with their cost in CPU-seconds, and what each enforcer adds to it.
var workloadCosts = []struct {
	name  string
	cost  float64
	added map[string]float64
}{
	{"exec", 800e-6, map[string]float64{"seccomp RuntimeDefault": .004}},
	{"open", 2.1e-6, map[string]float64{
		"seccomp allow": .02, "seccomp 4 rules": .028, "seccomp RuntimeDefault": .043,
		"seccomp 200 rules": .19, "landlock rules=0": .23, "landlock rules=1": .26, "landlock rules=8": .29,
		"landlock rules=20": .38, "landlock rules=50": .61,
	}},
	{"connect", 9e-6, map[string]float64{
		"seccomp allow": .004, "seccomp RuntimeDefault": .012, "seccomp 200 rules": .05,
		"landlock rules=8": .006,
	}},
	{"fork", 90e-6, nil},
	{"pipe", 0.9e-6, map[string]float64{
		"seccomp allow": .05, "seccomp 4 rules": .07, "seccomp RuntimeDefault": .1,
		"seccomp 200 rules": .45,
	}},
	{"copy", 42e-6, map[string]float64{
		"seccomp RuntimeDefault": .015, "landlock rules=50": .03,
		"seccomp 200 rules": .09,
	}},
	{"getppid", 0.11e-6, map[string]float64{
		"seccomp allow": .25, "seccomp 4 rules": .34, "seccomp RuntimeDefault": .52,
		"seccomp 200 rules": 9.1,
	}},
}

// enforcers is a comparison of ten treatments on seven operations.
func pageEnforcers(blocks int) *Report {
	b := newBench(blocks, "none", "seccomp allow", "seccomp 4 rules", "seccomp RuntimeDefault", "seccomp 200 rules",
		"landlock rules=0", "landlock rules=1", "landlock rules=8", "landlock rules=20", "landlock rules=50")
	r := pageBase("enforcers")
	r.Area, r.Question, r.Generator, r.Seconds = "padlock", design.Compare, nil, 1312
	r.AA = &AA{Reliable: true}
	r.Design = &Design{
		Blocks: blocks, Planned: 160, Looks: []int{10, 20, 40, 80, 160}, Alpha: 0.0158, Margin: 0.02,
		Factors: []string{"enforcer"}, Stopped: "every deciding effect was decided",
	}
	for _, w := range workloadCosts {
		for _, kind := range []struct {
			name   string
			unit   metric.Unit
			factor float64
			noise  float64
		}{{"cpu", metric.CPUSeconds, 1, .007}, {"wall", metric.Seconds, 1.4, .04}} {
			b.measure(r, w.name, kind.name, kind.unit, w.cost*kind.factor, kind.noise, w.added)
		}
	}
	r.Treatments = b.arms
	for i := range r.Treatments {
		id := r.Treatments[i].ID
		for _, v := range r.Blocks {
			if v.Treatment == id {
				r.Treatments[i].Metrics = append(r.Treatments[i].Metrics, Metric{
					Name: v.Metric, Operation: v.Operation,
					Unit: string(v.Unit), Value: *v.Values[0], N: blocks,
				})
			}
		}
	}
	for i := range r.Effects {
		e := &r.Effects[i]
		if e.Operation == "open" && e.Metric == "cpu" {
			v := Pass
			if e.Lo > .05 {
				v = Fail
			} else if e.Hi > .05 {
				v = Inconclusive
			}
			r.Budgets = append(r.Budgets, Budget{
				Text: "open.cpu <= +5%", Treatment: e.Treatment, Verdict: v, Unit: metric.Ratio,
				Estimate: &e.Estimate, Lo: &e.Lo, Hi: &e.Hi, Limit: new(.05),
			})
		}
	}
	r.Verdict, r.Reason = Fail, "6 budgets of 9 broken"
	r.Warnings = []string{"block 9 slow in every arm (+22 %): host noise"}
	return r
}

// measure adds one metric of one operation under every arm.
func (b *bench) measure(r *Report, operation, name string, u metric.Unit, cost, noise float64,
	added map[string]float64,
) {
	var first []*float64
	for i := range b.arms {
		arm := &b.arms[i]
		v := b.values(cost*(1+added[arm.ID]), noise)
		r.Blocks = append(r.Blocks, BlockValues{Treatment: arm.ID, Operation: operation, Metric: name, Unit: u, Values: v})
		p := b.spread(arm.ID, operation, name, "batches", cost*(1+added[arm.ID]), .3, b.blocks*16)
		p.Unit = u
		r.Percentiles = append(r.Percentiles, p)
		if i == 0 {
			first = v
			continue
		}
		e := b.effect(first, v, noise, 0.02)
		e.Treatment, e.Operation, e.Metric, e.Gating = arm.ID, operation, name, name == "cpu"
		negative := operation == "fork" && added[arm.ID] == 0 && arm.ID[0] == 'l'
		switch {
		case arm.Control == design.AA && e.Gating:
			e.Control = design.AA
			r.AA.Effects = append(r.AA.Effects, e)
		case negative && e.Gating:
			e.Control = design.Negative
			r.AA.NegativeControls = append(r.AA.NegativeControls, e)
		case arm.Control == design.None:
			r.Effects = append(r.Effects, e)
		}
	}
}

// caches is a comparison of calls, with tails.
func caches() *Report {
	b := newBench(20, "cache=off", "cache=on", "cache=on, singleflight")
	r := pageBase("caches")
	r.Question, r.AA = design.Compare, &AA{Reliable: true}
	r.Design = &Design{
		Blocks: 20, Planned: 40, Looks: []int{10, 20, 40}, Alpha: 0.0158, Margin: 0.02,
		Factors: []string{"cache"}, Stopped: "the time given was spent",
	}
	cpu, wait := map[string]float64{"cache=on": -.38, "cache=on, singleflight": -.36},
		map[string]float64{"cache=on": -.3, "cache=on, singleflight": .015}
	b.measure(r, "token", "cpu", metric.CPUSeconds, 310e-6, .02, cpu)
	b.measure(r, "token", "response", metric.Seconds, 1.4e-3, .05, wait)
	a := &r.AA.Effects[0]
	a.Estimate, a.Lo, a.Hi, a.Measurable, a.Adjusted = -.004, -.022, .015, false, new(.55)
	a.Verdict = EffectInconclusive
	r.Percentiles = nil
	for i := range b.arms {
		id := b.arms[i].ID
		r.Percentiles = append(r.Percentiles, b.spread(id, "token", "response", "calls", 1.4e-3*(1+wait[id]),
			2+4*max(0, -wait[id]), 120000))
	}
	for i := range r.Effects {
		if e := &r.Effects[i]; e.Metric == "response" {
			e.Quantile, e.Gating = "p50", true
		}
	}
	tail := Effect{
		Treatment: "cache=on", Baseline: "cache=off", Operation: "token", Metric: "response", Quantile: "p99", Kind: "ratio",
		Estimate: .41, Lo: .22, Hi: .63, Level: .984,
		Verdict: Regressed, Margin: new(.02), Measurable: true, Gating: true, Blocks: 20, P: new(1e-5), Adjusted: new(3e-5),
	}
	none := tail
	none.Treatment, none.Estimate, none.Lo, none.Hi, none.Level, none.Verdict, none.Measurable, none.P,
		none.Adjusted = "cache=on, singleflight", 0, 0, 0, 0, EffectInconclusive, false, nil, nil
	none.Reason = "p99 needs 20 blocks, and 18 hold enough calls"
	failed := Effect{
		Treatment: "cache=on", Baseline: "cache=off", Operation: "token", Metric: "error", Kind: "difference", Estimate: .004,
		Lo: .001, Hi: .0071, Level: .984,
		Verdict: Regressed, Measurable: true, Gating: true, Blocks: 20, Adjusted: new(.002),
	}
	r.Effects = append(r.Effects, tail, none, failed)
	r.Treatments = b.arms
	r.Budgets = []Budget{
		{
			Text: "token.response.p99 <= +20%", Treatment: "cache=on", Verdict: Fail, Unit: metric.Ratio, Estimate: new(.41),
			Lo: new(.22), Hi: new(.63), Limit: new(.2),
		},
		{
			Text: "token.response.p99 <= +20%", Treatment: "cache=on, singleflight", Verdict: NotMeasured, Unit: metric.Ratio,
			Limit: new(.2), Reason: none.Reason,
		},
	}
	r.Verdict, r.Reason = Fail, "1 budget of 2 broken"
	return r
}

// unreliable is a run whose A/A arm differs.
func pageUnreliable() *Report {
	r := pageEnforcers(10)
	r.Experiment.Name = "unreliable"
	a := &r.AA.Effects[1]
	a.Estimate, a.Lo, a.Hi, a.Adjusted, a.Measurable = .031, .019, .043, new(.0004), true
	r.AA.Reliable = false
	r.Effects, r.Additions = nil, nil
	for i := range r.Budgets {
		r.Budgets[i].Verdict, r.Budgets[i].Estimate, r.Budgets[i].Lo, r.Budgets[i].Hi = Inconclusive, nil, nil, nil
	}
	r.Verdict, r.Reason = Invalid, "unreliable on this host: the A/A arm differs in cpu of open"
	r.Warnings = append(r.Warnings, "the A/A arm differs in cpu of open by +3.1 % [+1.9, +4.3]")
	r.Design.Stopped = "the A/A arm differs"
	return r
}

// stopped is a comparison that somebody interrupted.
func stopped() *Report {
	r := pageEnforcers(10)
	r.Experiment.Name = "stopped"
	r.Status, r.Verdict, r.Reason = Interrupted, Inconclusive, "the run did not come to its end"
	r.Blocks[3].Values[4] = nil
	r.Design.Stopped = "interrupted"
	return r
}

// scaled is a run over sizes: one law named, one tied, one refused.
func scaled() *Report {
	r := pageBase("rules")
	r.Area, r.Question, r.Generator = "padlock", design.Scale, nil
	r.Design = &Design{
		Blocks: 20, Planned: 20, Looks: []int{10, 20}, Alpha: 0.0158, Margin: 0.02,
		Factors: []string{"rules"}, Stopped: "all blocks were measured",
	}
	r.AA = &AA{Reliable: true}
	r.Treatments = nil
	sizes := []float64{0, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000}
	for _, n := range sizes {
		r.Treatments = append(r.Treatments, Treatment{ID: "rules=" + strconv.Itoa(int(n)), Baseline: n == 0, Verified: true})
	}
	rng := rand.New(rand.NewPCG(3, 3))
	grow := func(g Growth, f func(float64) float64, sizes []float64) Growth {
		for _, n := range sizes {
			v := f(n) * math.Exp(rng.NormFloat64()*.02)
			p := GrowthPoint{N: n, Value: v, Lo: new(v * .97), Hi: new(v * 1.03)}
			if g.Best != "" {
				p.Fitted, p.FittedLo, p.FittedHi = new(f(n)), new(f(n)*.98), new(f(n)*1.02)
			}
			g.Points = append(g.Points, p)
		}
		g.Range = Interval{Lo: sizes[0], Hi: sizes[len(sizes)-1]}
		g.Factor, g.Metric, g.Unit, g.Level = "rules", "cpu", metric.CPUSeconds, new(.95)
		return g
	}
	r.Growth = []Growth{
		grow(Growth{
			Operation: "open", Law: "linear", Best: "linear", Coefficients: Coefficients{C0: 2.1e-6, C1: 38e-9},
			Lo: new(37.2e-9), Hi: new(38.9e-9), Budget: "open.cpu <= 20us",
			BreaksBudgetAt: &Crossing{Value: 471, Lo: new(455.0), Hi: new(489.0)}, Knee: &Crossing{
				Value: 30, Lo: new(20.0),
				Hi: new(50.0),
			},
		}, func(n float64) float64 { return 2.1e-6 + 38e-9*n }, sizes),
		grow(Growth{
			Operation: "connect", Best: "log", Tied: []string{"log", "sqrt"}, Coefficients: Coefficients{C0: 9e-6, C1: 1.2e-6},
			Lo: new(.9e-6), Hi: new(1.4e-6), Budget: "connect.cpu <= 25us",
			Reason:         "log and sqrt fit as well as one another (ΔBIC 1.3)",
			BreaksBudgetAt: &Crossing{Value: 6.2e5, Lo: new(1e5), Hi: new(4e6), Extrapolated: true},
		}, func(n float64) float64 { return 9e-6 + 1.2e-6*math.Log(1+n) }, sizes),
		grow(Growth{
			Operation: "fork", Reason: "5 sizes are too few to fit anything",
			Constant: &Interval{Lo: -.012, Hi: .018},
		}, func(float64) float64 { return 90e-6 }, []float64{1, 5, 10, 20, 50}),
	}
	r.Budgets = []Budget{
		{
			Text: "open.cpu <= 20us", Treatment: "rules=2000", Verdict: Fail, Unit: metric.CPUSeconds, Estimate: new(78e-6),
			Lo: new(77e-6), Hi: new(79e-6), Limit: new(20e-6),
		},
		{
			Text: "connect.cpu <= 25us", Treatment: "rules=2000", Verdict: Pass, Unit: metric.CPUSeconds, Estimate: new(18e-6),
			Lo: new(17e-6), Hi: new(19e-6), Limit: new(25e-6),
		},
	}
	r.Verdict, r.Reason = Fail, "1 budget of 2 broken"
	return r
}

// hostileCompare has an attack wherever a comparison holds a text.
func hostileCompare() *Report {
	r := caches()
	for i := range r.Treatments {
		r.Treatments[i].ID += attack
	}
	for i := range r.Effects {
		e := &r.Effects[i]
		e.Treatment, e.Operation, e.Reason, e.Baseline = e.Treatment+attack, attack, attack, fmt.Sprint(attack, i)
	}
	for i := range r.AA.Effects {
		r.AA.Effects[i].Operation, r.AA.Effects[i].Treatment = attack, attack
	}
	for i := range r.Percentiles {
		r.Percentiles[i].Treatment, r.Percentiles[i].Operation, r.Percentiles[i].Of = attack, attack, attack
	}
	for i := range r.Blocks {
		r.Blocks[i].Treatment, r.Blocks[i].Operation = r.Blocks[i].Treatment+attack, attack
	}
	r.Growth = scaled().Growth
	for i := range r.Growth {
		g := &r.Growth[i]
		g.Factor, g.Treatment, g.Operation, g.Reason, g.Budget, g.Best, g.Law = attack, attack, attack, attack, attack,
			attack, ""
		g.Tied = []string{attack}
	}
	r.Growth[0].Law = attack
	r.Design.Stopped, r.Design.Factors = attack, []string{attack}
	r.AA.Effects[0].Metric = attack
	return r
}
