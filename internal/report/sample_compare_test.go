package report

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"tare/internal/design"
	"tare/internal/metric"
)

// comparisons are the samples of reports that compare.
func comparisons() map[string]*Report {
	return map[string]*Report{
		"enforcers":           enforcers(),
		"unreliable":          unreliable(),
		"unblocked":           unblocked(),
		"turnpike-cache":      turnpikeCache(),
		"compare-interrupted": compareInterrupted(),
		"landlock-growth":     landlockGrowth(),
		"growth-ties":         growthTies(),
		"growth-steps":        growthSteps(),
		"compare-hostile":     compareHostile(),
	}
}

// A trialled arm with its true cost by operation, relative to the baseline.
type trialled struct {
	levels map[string]string
	cost   map[string]float64
}

// A comparison is drawn from known costs: block values with noise of a seed, and effects computed from them plainly.
type comparison struct {
	name, metric string
	blocks       int
	margin       float64
	noise        float64
	operations   []string
	base         map[string]float64 // of the baseline, in the metric's unit
	arms         []trialled         // the first is the baseline
	random       *rand.Rand
}

// round4 keeps goldens readable.
func round4(v float64) float64 {
	if v == 0 {
		return 0
	}
	scale := math.Pow(10, 3-math.Floor(math.Log10(math.Abs(v))))
	return math.Round(v*scale) / scale
}

func sampleMedian(v []float64) float64 {
	s := slices.Sorted(slices.Values(v))
	n := len(s)
	if n%2 == 1 {
		return s[n/2]
	}
	return s[n/2-1]/2 + s[n/2]/2
}

func (c *comparison) draw(mean float64) []float64 {
	out := make([]float64, c.blocks)
	for i := range out {
		out[i] = round4(mean * math.Exp(c.noise*c.random.NormFloat64()))
	}
	return out
}

func (c *comparison) report() *Report {
	c.random = rand.New(rand.NewPCG(4211, uint64(len(c.arms))))
	r := base(c.name)
	r.Area, r.Question, r.Seconds, r.Generator = "padlock", design.Compare, 550, nil
	r.Treatments = nil
	r.Design = &Design{
		Blocks: c.blocks, Planned: 40, Looks: []int{10, 20, 40}, Alpha: 0.0158, Margin: c.margin,
		Factors: factorsOf(c.arms), Stopped: "every gating verdict is decided",
	}
	values := map[string][]float64{}
	arms := append(slices.Clone(c.arms), trialled{levels: c.arms[0].levels})
	for i, a := range arms {
		t := Treatment{ID: design.ID(a.levels), Baseline: i == 0, Levels: a.levels, Verified: true}
		if i == len(arms)-1 {
			t.ID, t.Control = design.AAArm, design.AA
		}
		for _, op := range c.operations {
			v := c.draw(c.base[op] * (1 + a.cost[op]))
			values[t.ID+"\n"+op] = v
			s := slices.Sorted(slices.Values(v))
			t.Metrics = append(t.Metrics, Metric{
				Name: c.metric, Operation: op, Unit: string(c.unit()), Value: sampleMedian(v), Lo: new(s[1]), Hi: new(s[len(s)-2]),
				Level: new(0.95), N: len(v),
			})
			r.Blocks = append(r.Blocks, BlockValues{
				Treatment: t.ID, Operation: op, Metric: c.metric, Unit: c.unit(),
				Values: known(v),
			})
		}
		r.Treatments = append(r.Treatments, t)
	}
	first := r.Treatments[0].ID
	r.AA = &AA{Reliable: true}
	for i := 1; i < len(r.Treatments); i++ {
		t := &r.Treatments[i]
		for _, op := range c.operations {
			x := c.effect(values[first+"\n"+op], values[t.ID+"\n"+op])
			x.Treatment, x.Baseline, x.Operation, x.Metric = t.ID, first, op, c.metric
			x.Difference = new(round4(x.Estimate * sampleMedian(values[first+"\n"+op])))
			x.MarginGiven = c.name == "enforcers"
			if t.Control == design.AA {
				if x.Control, x.Measurable = design.AA, false; x.Verdict != Equivalent {
					x.Verdict = EffectInconclusive
				}
				r.AA.Effects = append(r.AA.Effects, x)
				continue
			}
			r.Effects = append(r.Effects, x)
		}
	}
	return r
}

func (c *comparison) unit() metric.Unit {
	m, _ := metric.Find(c.metric)
	return m.Unit
}

func factorsOf(arms []trialled) []string {
	var out []string
	for _, a := range arms {
		for f := range a.levels {
			if !slices.Contains(out, f) {
				out = append(out, f)
			}
		}
	}
	slices.Sort(out)
	return out
}

func known(v []float64) []*float64 {
	out := make([]*float64, len(v))
	for i := range v {
		out[i] = &v[i]
	}
	return out
}

// effect is the median of log ratios with a normal interval: near enough for a sample.
func (c *comparison) effect(base, treated []float64) Effect {
	d := make([]float64, len(base))
	mean := 0.0
	for i := range d {
		d[i] = math.Log(treated[i] / base[i])
		mean += d[i] / float64(len(d))
	}
	ss := 0.0
	for _, v := range d {
		ss += (v - mean) * (v - mean)
	}
	n := float64(len(d))
	se := 1.25 * math.Sqrt(ss/(n-1)/n)
	m := sampleMedian(d)
	x := Effect{
		Kind: "ratio", Estimate: round4(math.Expm1(m)), Lo: round4(math.Expm1(m - 2.4*se)),
		Hi: round4(math.Expm1(m + 2.4*se)), Level: 0.9842,
		Margin: &c.margin, MDE: new(round4(3.25 * se)), Gating: true, P: new(0.002), Adjusted: new(0.01), Blocks: c.blocks,
	}
	x.Measurable = x.excludesZero()
	switch {
	case x.Lo > c.margin:
		x.Verdict = Regressed
	case x.Hi < -c.margin:
		x.Verdict = Improved
	case x.Lo > -c.margin && x.Hi < c.margin:
		x.Verdict = Equivalent
	case x.Lo > 0:
		x.Verdict = Slower
	case x.Hi < 0:
		x.Verdict = Faster
	default:
		x.Verdict = EffectInconclusive
	}
	if x.Verdict == Slower || x.Verdict == Faster || x.Verdict == EffectInconclusive {
		need := 3.25 * se / c.margin
		x.BlocksToDecide = new(int(math.Ceil(n*need*need)) + c.blocks)
	}
	return x
}

// small is a comparison of three arms.
func small(name string, noise float64) *comparison {
	return &comparison{
		name: name, metric: "cpu", blocks: 10, margin: 0.02, noise: noise, operations: []string{"open", "exec"},
		base: map[string]float64{"open": 1.19e-6, "exec": 612e-6},
		arms: []trialled{
			{levels: map[string]string{"enforcer": "none"}},
			{levels: map[string]string{"enforcer": "seccomp"}, cost: map[string]float64{"open": 0.05}},
			{levels: map[string]string{"enforcer": "landlock"}, cost: map[string]float64{"open": 0.26, "exec": 0.01}},
		},
	}
}

func unreliable() *Report {
	r := small("unreliable", 0.02).report()
	x := &r.AA.Effects[0]
	x.Estimate, x.Lo, x.Hi, x.Verdict, x.Measurable = 0.031, 0.024, 0.039, Regressed, true
	r.AA.Reliable = false
	r.Effects, r.Additions = nil, nil
	r.Budgets = []Budget{{
		Text: "exec.cpu <= +5%", Treatment: "enforcer=landlock", Verdict: Inconclusive,
		Unit: metric.Ratio, Limit: new(0.05), Reason: "the run is invalid",
	}}
	r.Verdict, r.Reason = Invalid, "unreliable on this host: aa differs from enforcer=none in open.cpu by "+x.Change()
	return r
}

func unblocked() *Report {
	c := small("two-runs", 0.004)
	r := c.report()
	r.Treatments = slices.DeleteFunc(r.Treatments, func(t Treatment) bool { return t.Control == design.AA })
	r.Blocks = slices.DeleteFunc(r.Blocks, func(b BlockValues) bool { return b.Treatment == design.AAArm })
	r.AA = nil
	r.Design.Unblocked, r.Design.Stopped, r.Design.Looks, r.Design.Planned = true, "", nil, 10
	for i := range r.Effects {
		x := &r.Effects[i]
		x.Reason = "unblocked: the values were not taken in interleaved blocks, so that nothing may be called equivalent"
		x.BlocksToDecide = nil
		if x.Verdict == Equivalent {
			x.Verdict = EffectInconclusive
		}
	}
	return r
}

// turnpikeCache compares calls: one treatment, with quantiles.
func turnpikeCache() *Report {
	r := base("turnpike-cache")
	r.Question, r.Seconds = design.Compare, 1230
	on, off := "cache=on", "cache=off"
	r.Treatments = []Treatment{
		{ID: on, Baseline: true, Levels: map[string]string{"cache": "on"}, Verified: true},
		{ID: off, Levels: map[string]string{"cache": "off"}, Verified: true},
		{ID: design.AAArm, Control: design.AA, Levels: map[string]string{"cache": "on"}, Verified: true},
	}
	r.Design = &Design{
		Blocks: 20, Planned: 20, Looks: []int{10, 20}, Alpha: 0.0158, Margin: 0.05,
		Factors: []string{"cache"}, Stopped: "the last look",
	}
	for _, m := range []struct {
		name, quantile string
		unit           metric.Unit
		on, off        float64
		gating         bool
		verdict        EffectVerdict
	}{
		{"cpu", "", metric.CPUSeconds, 61.3e-6, 412e-6, true, Regressed},
		{"response", "p50", metric.Seconds, 0.82e-3, 4.31e-3, true, Regressed},
		{"response", "p99", metric.Seconds, 3.9e-3, 4.02e-3, false, EffectInconclusive},
		{"error", "", metric.Ratio, 0, 0.0021, false, Slower},
	} {
		for i, v := range []float64{m.on, m.off, m.on * 1.001} {
			r.Treatments[i].Metrics = append(r.Treatments[i].Metrics, Metric{
				Name: m.name, Quantile: m.quantile, Operation: "token", Unit: string(m.unit), Value: v, Lo: new(v * 0.98),
				Hi: new(v * 1.02), Level: new(0.95), N: 20,
			})
			if m.gating {
				// The median of three is the middle one.
				r.Blocks = append(r.Blocks, BlockValues{
					Treatment: r.Treatments[i].ID, Operation: "token", Metric: m.name,
					Quantile: m.quantile, Unit: m.unit, Values: []*float64{new(v * 1.04), new(v), new(v * 0.97)},
				})
			}
		}
		x := Effect{
			Treatment: off, Baseline: on, Operation: "token", Metric: m.name, Quantile: m.quantile, Kind: "ratio",
			Level: 0.9842, Verdict: m.verdict, Margin: new(0.05), MDE: new(0.044), Gating: m.gating, Blocks: 20,
		}
		if m.on > 0 {
			x.Estimate = m.off/m.on - 1
			x.Lo, x.Hi = x.Estimate-0.08, x.Estimate+0.09
		} else {
			x.Kind, x.Estimate, x.Lo, x.Hi = "difference", m.off, m.off*0.4, m.off*1.9
			x.MDE = new(0.001)
		}
		if m.verdict == EffectInconclusive {
			x.BlocksToDecide = new(71)
		}
		r.Effects = append(r.Effects, x)
	}
	r.AA = &AA{Reliable: true, Effects: []Effect{{
		Treatment: design.AAArm, Baseline: on, Operation: "token", Metric: "cpu", Kind: "ratio", Estimate: 0.001, Lo: -0.012,
		Hi: 0.014, Level: 0.9842,
		Verdict: Equivalent, Margin: new(0.05), Gating: true, Blocks: 20, Control: design.AA,
	}}}
	r.Operations = []Operation{
		{Treatment: on, Operation: "token", Outcomes: Outcomes{OK: 60000}, Response: &Distribution{
			N: 60000, Min: 0.0004,
			Mean: 0.001, P50: new(0.00082), P99: new(0.0039), Max: 0.02,
		}},
		{
			Treatment: off, Operation: "token", Outcomes: Outcomes{OK: 59874, Refused: 126},
			Response: &Distribution{N: 60000, Min: 0.0021, Mean: 0.0043, P50: new(0.00431), P99: new(0.00402), Max: 0.03},
		},
	}
	r.Budgets = []Budget{{
		Text: "token.response.p50 <= +10ms", Treatment: off, Verdict: Pass, Unit: metric.Seconds,
		Estimate: new(0.00349), Lo: new(0.0034), Hi: new(0.0036), Limit: new(0.01),
	}}
	r.Verdict, r.Reason = Pass, "1 budget kept"
	return r
}

func compareInterrupted() *Report {
	c := small("cut-short-compare", 0.02)
	c.blocks = 4
	r := c.report()
	r.Status, r.Seconds = Interrupted, 88
	r.Design.Stopped = "interrupted"
	for i := range r.Effects {
		r.Effects[i].Verdict, r.Effects[i].Level = EffectInconclusive, 0.8
		r.Effects[i].Reason = "4 blocks are too few for an interval at 98.42 %: this one is at 80 %"
		r.Effects[i].BlocksToDecide = new(6 + 40*i)
	}
	r.Effects[3].BlocksToDecide = new(900)
	r.Verdict, r.Reason = None, "no budget was given"
	return r
}

// compareHostile has names that want to be more than names.
func compareHostile() *Report {
	r := small("a::b,%0A", 0.005).report()
	const attack = "::error title=x::\x1b[31m %0A</td>|`x`\n*bold* \u202eBenchmark 1 2 ns/op"
	for i := range r.Treatments {
		t := &r.Treatments[i]
		if t.Control == design.None && !t.Baseline {
			old := t.ID
			t.ID = fmt.Sprintf("%s=%d", attack, i)
			t.Levels = map[string]string{attack: fmt.Sprint(i)}
			for k := range r.Effects {
				if r.Effects[k].Treatment == old {
					r.Effects[k].Treatment, r.Effects[k].Reason = t.ID, attack
				}
			}
			for k := range r.Blocks {
				if r.Blocks[k].Treatment == old {
					r.Blocks[k].Treatment, r.Blocks[k].Operation = t.ID, attack+r.Blocks[k].Operation
				}
			}
		}
	}
	r.Design.Stopped = attack
	r.Growth = []Growth{{
		Factor: attack, Treatment: attack, Metric: attack, Law: attack, Tied: []string{attack},
		Reason: attack, Budget: attack, BreaksBudgetAt: &Crossing{Value: 1},
	}}
	r.Budgets = []Budget{{Text: attack[:17] + "\x1b,%0A", Treatment: "x", Verdict: Fail, Reason: attack}}
	r.Verdict, r.Reason = Fail, attack
	return r
}
