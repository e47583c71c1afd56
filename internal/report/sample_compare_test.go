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
	x.Verdict = judged(x.Lo, x.Hi, c.margin)
	if x.Verdict == Slower || x.Verdict == Faster || x.Verdict == EffectInconclusive {
		need := 3.25 * se / c.margin
		x.BlocksToDecide = new(int(math.Ceil(n*need*need)) + c.blocks)
	}
	return x
}

// judged is the verdict on an interval.
func judged(lo, hi, margin float64) EffectVerdict {
	switch {
	case lo > margin:
		return Regressed
	case hi < -margin:
		return Improved
	case lo > -margin && hi < margin:
		return Equivalent
	case lo > 0:
		return Slower
	case hi < 0:
		return Faster
	}
	return EffectInconclusive
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

// enforcers is what the example of that name comes to: many treatments, budgets kept, broken and open.
func enforcers() *Report {
	arm := func(open, connect, exec, fork float64, levels ...string) trialled {
		a := trialled{levels: map[string]string{}, cost: map[string]float64{
			"open": open, "connect": connect, "exec": exec,
			"fork": fork,
		}}
		for i := 0; i+1 < len(levels); i += 2 {
			a.levels[levels[i]] = levels[i+1]
		}
		return a
	}
	c := comparison{
		name: "enforcers", metric: "cpu", blocks: 10, margin: 0.02, noise: 0.006,
		operations: []string{"open", "connect", "exec", "fork", "compute"},
		base: map[string]float64{
			"open": 1.19e-6, "connect": 21.4e-6, "exec": 612e-6, "fork": 88.2e-6,
			"compute": 941e-6,
		},
		arms: []trialled{
			arm(0, 0, 0, 0, "enforcer", "none"),
			arm(0.031, 0.006, 0.001, 0.000, "enforcer", "seccomp", "mode", "AlwaysAllow"),
			arm(0.042, 0.008, 0.004, 0.001, "enforcer", "seccomp", "mode", "custom", "rules", "4"),
			arm(0.096, 0.019, 0.007, 0.002, "enforcer", "seccomp", "mode", "RuntimeDefault"),
			arm(0.226, 0.011, 0.013, 0, "enforcer", "landlock", "rules", "0"),
			arm(0.262, 0.014, 0.021, 0, "enforcer", "landlock", "rules", "8"),
			arm(0.514, 0.021, 0.049, 0, "enforcer", "landlock", "rules", "50"),
			arm(0.334, 0.031, 0.027, 0, "enforcer", "both", "mode", "RuntimeDefault", "rules", "8"),
			arm(11.4, -0.024, 0.003, 0, "enforcer", "ptrace"),
		},
	}
	r := c.report()
	r.Design.Factors = []string{"enforcer", "mode", "rules"}
	negativeControls(r, "compute", "fork")
	for i := range r.Treatments[:4] {
		v := round4(1.31e-6 * (1 + 0.03*float64(i)))
		r.Treatments[i].Metrics = append(r.Treatments[i].Metrics, Metric{
			Name: "wall", Operation: "open", Unit: "s", Value: v,
			Lo: new(round4(v * 0.97)), Hi: new(round4(v * 1.04)), Level: new(0.95), N: 10,
		})
		values := known([]float64{
			v, round4(v * 0.97), round4(v * 1.04), round4(v * 0.96), round4(v * 1.05), round4(v * 0.98),
			round4(v * 1.07), v, v,
		})
		r.Blocks = append(r.Blocks, BlockValues{
			Treatment: r.Treatments[i].ID, Operation: "open", Metric: "wall",
			Unit: metric.Seconds, Values: append(values, nil),
		})
		if i > 0 {
			x := r.Effects[0]
			x.Treatment, x.Metric, x.Gating, x.Estimate, x.Lo, x.Hi, x.Verdict = r.Treatments[i].ID, "wall", false,
				0.03*float64(i), 0.03*float64(i)-0.025, 0.03*float64(i)+0.03, Slower
			r.Effects = append(r.Effects, x)
		}
	}
	r.Percentiles = []Percentiles{{
		Treatment: r.Treatments[0].ID, Operation: "open", Metric: "cpu", Unit: metric.CPUSeconds, Of: "batches", N: 160,
		Points: []Percentile{{Q: 0.5, Value: 1.19e-6, Lo: new(1.18e-6), Hi: new(1.2e-6)}, {Q: 0.99, Value: 1.42e-6}},
	}}
	enforcerBudgets(r)
	r.Warnings = []string{"block 8 was slow in every arm (+22 %): host noise"}
	return r
}

// negativeControls takes the effects on operations that a control cannot touch out of those that decide.
func negativeControls(r *Report, operations ...string) {
	r.Effects = slices.DeleteFunc(r.Effects, func(x Effect) bool {
		if !slices.Contains(operations, x.Operation) {
			return false
		}
		x.Control = design.Negative
		if x.Measurable = false; x.Verdict != Equivalent {
			x.Verdict = EffectInconclusive
		}
		r.AA.NegativeControls = append(r.AA.NegativeControls, x)
		return true
	})
}

func enforcerBudgets(r *Report) {
	limit := func(text string, limit float64) {
		for i := range r.Effects {
			x := &r.Effects[i]
			if x.Operation+"."+x.Metric+" <= +"+share(limit) != text || !x.Gating {
				continue
			}
			b := Budget{
				Text: text, Treatment: x.Treatment, Verdict: Inconclusive, Unit: metric.Ratio, Estimate: &x.Estimate,
				Lo: &x.Lo, Hi: &x.Hi, Limit: &limit,
			}
			if x.Hi <= limit {
				b.Verdict = Pass
			} else if x.Lo > limit {
				b.Verdict = Fail
			}
			r.Budgets = append(r.Budgets, b)
		}
	}
	limit("exec.cpu <= +2 %", 0.02)
	limit("open.cpu <= +30 %", 0.3)
	fails := 0
	for i := range r.Budgets {
		if r.Budgets[i].Verdict == Fail {
			fails++
		}
	}
	r.Verdict, r.Reason = Fail, fmt.Sprintf("%d budgets of %d broken", fails, len(r.Budgets))
}

// A drawnCost is one metric of one treatment: what it costs, and by how much blocks vary.
type drawnCost struct {
	metric metric.Metric
	value  float64
	noise  float64
}

// checkCosts are a check's costs by accessor, records and share of hits, near what the kubelet's own code takes.
func checkCosts(accessor string, records, hits int) []drawnCost {
	wall, objects, size, cached := 684e-6, 108.0, 61.5*1024, 0.0
	switch accessor {
	case "cached":
		wall, objects, size, cached = 415e-6, 58, 58*1024, float64(hits)/100
	case "disabled":
		wall, objects, size = 40e-9, 1, 1200
	}
	miss := 1 + (1-float64(hits)/100)*.4
	wall, objects = wall*miss*(1+.00005*float64(records)), math.Round(objects*miss)
	return []drawnCost{
		{metric.Wall, wall, .004},
		{metric.CPU, wall * .98, .003},
		{metric.Allocations, objects, 0},
		{metric.Allocated, size, .0005},
		{metric.Hits, float64(hits) / 100, 0},
		{metric.CacheHits, cached, 0},
	}
}

// pullManager is the published grid's shape: accessors within each number of records and share of hits.
func pullManager() *Report {
	r := base("pull-manager")
	r.Area, r.Question, r.Seconds, r.Generator, r.Treatments = "warehouse", design.Compare, 320, nil, nil
	const blocks = 10
	r.Design = &Design{Blocks: blocks, Planned: 10, Alpha: .0158, Margin: .02, Factors: []string{
		"accessor", "records",
		"hits",
	}}
	r.AA = &AA{Reliable: true}
	random := rand.New(rand.NewPCG(131882, 1))
	for _, accessor := range []string{"directfs", "cached", "disabled"} {
		for _, records := range []int{10, 100} {
			for _, hits := range []int{50, 100} {
				t := Treatment{Baseline: accessor == "directfs", Verified: true, Levels: map[string]string{
					"accessor": accessor,
					"records":  fmt.Sprint(records), "hits": fmt.Sprint(hits),
				}}
				t.ID = fmt.Sprintf("accessor=%s records=%d hits=%d", accessor, records, hits)
				r.measure(&t, "check", checkCosts(accessor, records, hits), blocks, random)
				r.addHarness(&t)
				r.Treatments = append(r.Treatments, t)
			}
		}
	}
	again := r.Treatments[0]
	again.ID, again.Control, again.Baseline, again.Metrics = design.AAArm, design.AA, false, nil
	r.measure(&again, "check", checkCosts("directfs", 10, 50), blocks, random)
	r.Treatments = append(r.Treatments, again)
	c := comparison{blocks: blocks, margin: .02}
	for i := 4; i < len(r.Treatments)-1; i++ {
		r.compareDriver(&c, &r.Treatments[i%4], &r.Treatments[i])
	}
	r.Notes = []string{"the harness's own cost is 5.26% of check.wall (39.9 ns) under accessor=disabled records=10 " +
		"hits=100; it is not subtracted"}
	return r
}

// measure draws the values of blocks, of which the treatment's metrics are medians.
func (r *Report) measure(t *Treatment, operation string, costs []drawnCost, blocks int, random *rand.Rand) {
	for _, c := range costs {
		v := make([]float64, blocks)
		for i := range v {
			v[i] = c.value * math.Exp(c.noise*random.NormFloat64())
			if c.noise > 0 {
				v[i] = round4(v[i])
			}
		}
		r.Blocks = append(r.Blocks, BlockValues{
			Treatment: t.ID, Operation: operation, Metric: c.metric.Name,
			Unit: c.metric.Unit, Values: known(v),
		})
		m := Metric{Name: c.metric.Name, Operation: operation, Unit: string(c.metric.Unit), Value: sampleMedian(v), N: blocks}
		switch c.metric.Name {
		case "wall", "cpu":
			m.Harness = new(2.1e-9 / m.Value)
		case "allocations", "allocated":
			m.Harness = new(0.0)
		}
		t.Metrics = append(t.Metrics, m)
	}
}

// addHarness is what an empty call costs: a little more under each treatment.
func (r *Report) addHarness(t *Treatment) {
	for _, c := range []drawnCost{
		{metric: metric.Wall, value: 2.1e-9},
		{metric: metric.CPU, value: 2.1e-9},
		{metric: metric.Allocations},
		{metric: metric.Allocated},
	} {
		v := c.value * (1 + .02*float64(len(r.Treatments)))
		r.Harness = append(r.Harness, Harness{
			Treatment: t.ID, Operation: "empty", Metric: c.metric.Name, Unit: c.metric.Unit, Value: round4(v),
			Lo: new(round4(v * .98)), Hi: new(round4(v * 1.02)), Level: new(.95), N: 10,
		})
	}
}

// compareDriver adds the effects of one treatment on all that was measured.
func (r *Report) compareDriver(c *comparison, base, t *Treatment) {
	values := func(id, name string) []float64 {
		for i := range r.Blocks {
			if b := &r.Blocks[i]; b.Treatment == id && b.Metric == name {
				return b.measuredValues()
			}
		}
		return nil
	}
	for _, m := range base.Metrics {
		if m.Unit == string(metric.Ratio) {
			d := sampleMedian(values(t.ID, m.Name)) - sampleMedian(values(base.ID, m.Name))
			x := Effect{
				Treatment: t.ID, Baseline: base.ID, Operation: "check", Metric: m.Name, Kind: "difference", Estimate: d,
				Lo: d, Hi: d, Level: .9842, Verdict: Equivalent, Blocks: c.blocks,
			}
			if d > 0 {
				x.Verdict, x.Measurable = Improved, true
			}
			r.Effects = append(r.Effects, x)
			continue
		}
		x := c.effect(values(base.ID, m.Name), values(t.ID, m.Name))
		x.Treatment, x.Baseline, x.Operation, x.Metric, x.Gating = t.ID, base.ID, "check", m.Name, m.Name == "cpu"
		r.Effects = append(r.Effects, x)
	}
}

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
	if e.Verdict = judged(e.Lo, e.Hi, margin); e.Verdict == EffectInconclusive {
		e.BlocksToDecide = new(b.blocks * 3)
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
	r := base("enforcers")
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
	r := base("caches")
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
	r := base("rules")
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
	r.Growth = scaled().Growth
	spoil(r, attack)
	for i := range r.Effects {
		r.Effects[i].Baseline = fmt.Sprint(attack, i)
	}
	return r
}
