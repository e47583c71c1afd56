package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"time"

	"tare/internal/design"
	"tare/internal/limit"
	"tare/internal/metric"
	"tare/internal/signature"
)

// samples are reports as analyze makes them, one for every shape that an encoder must cope with. Those that are drawn
// are made here, the others are documents.
func samples() map[string]*Report {
	all := map[string]*Report{
		"compare-hostile": compareHostile(), "compare-interrupted": compareInterrupted(), "enforcers": enforcers(),
		"growth-steps": growthSteps(), "landlock-growth": landlockGrowth(), "psp": psp(), "pull-manager": pullManager(),
		"soak": xacmlSoak(), "soak-treatments": twoSoaks(), "unblocked": unblocked(), "unreliable": unreliable(),
	}
	for _, pattern := range []string{"testdata/*.json", "testdata/samples/*.json"} {
		files, _ := filepath.Glob(pattern)
		for _, file := range files {
			name := strings.TrimSuffix(filepath.Base(file), ".json")
			all[name] = stored(name)
		}
	}
	return all
}

// stored reads the document that is a sample. Some are their own goldens.
func stored(name string) *Report {
	b, err := os.ReadFile(filepath.Join("testdata", "samples", name+".json"))
	if errors.Is(err, fs.ErrNotExist) {
		b, err = os.ReadFile(filepath.Join("testdata", name+".json"))
	}
	if err != nil {
		panic(err)
	}
	r, d := &Report{}, json.NewDecoder(bytes.NewReader(b))
	if d.DisallowUnknownFields(); d.Decode(r) != nil {
		panic(fmt.Sprintf("%s is no report: %v", name, d.Decode(r)))
	}
	return r
}

func base(name string) *Report {
	return &Report{
		Schema: Schema, Tool: Tool{Version: "0.1.0", Commit: "947ae69"},
		Experiment: Experiment{Name: name, File: name + ".yaml", SHA256: "0f3a", Seed: 4211},
		Area:       "turnpike", Question: design.Capacity, Started: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC),
		Seconds: 47.25,
		Status:  Complete, Verdict: None, Reason: "no budget was given",
		Treatments:  []Treatment{{ID: "default", Verified: true}},
		Environment: Environment{Host: "host", Kernel: "Linux 6.1.0", CPUs: 2, Go: "go1.26.8", Tare: "0.1.0"},
		Generator: &Generator{
			Valid: true, Lateness: &Lateness{P50: 4e-6, P99: 40e-6, Max: 310e-6}, AchievedRatio: new(1.0), CPUSeconds: new(1.93),
			Verdict: signature.RuledOut, Evidence: []string{"its busiest thread ran 12 % of the time"},
		},
	}
}

// shownQuota is a limit that was predicted and then observed.
func shownQuota() *limit.Verdict {
	return &limit.Verdict{
		Kind: limit.CPUQuota, Certainty: signature.Shown, Value: "100m",
		Evidence: []string{"97 % of its periods were throttled", "the rate is 150.2/s with 32 in flight at most"},
		Excluded: []signature.Exclusion{
			{What: "a limit on connections", By: "the rate is 150.2/s with 32 in flight at most"},
		},
		Prediction: &limit.Prediction{
			Change: "200m", Rate: 300.4, Lo: 298, Hi: 302, Tried: &limit.Tried{Rate: 297, Lo: 290, Hi: 304, Came: true},
		},
	}
}

// fullQueue is how callers met that limit.
func fullQueue() *signature.Failure {
	return &signature.Failure{
		Class: signature.AcceptQueue, Certainty: signature.Shown,
		Scores: map[signature.Class]float64{signature.AcceptQueue: 0.97, signature.QuotaHang: 0.31, signature.Queue: 0.02},
		Evidence: []string{
			"1025 calls stuck until their timeout, at 600/s and at 1200/s alike = backlog 1024 + 1",
			"the listen queue held 1025 connections at the end of the last fill, as its limit of 1024 says",
		},
		Excluded: []signature.Exclusion{
			{What: "a limit that leaves calls unanswered", By: "stuck calls would grow with the rate"},
		},
	}
}

// likely are a limit and a failure without an account of the target.
func likely(k limit.Kind, value string, c signature.Class) (*limit.Verdict, *signature.Failure) {
	v := &limit.Verdict{Kind: k, Certainty: signature.Likely, Value: value}
	if k == limit.Unknown {
		v.Certainty = signature.NotKnown
	}
	return v, &signature.Failure{Class: c, Certainty: signature.Likely}
}

const longWord = "averyveryveryveryveryveryveryveryveryveryveryvery" +
	"veryveryveryveryveryveryveryveryveryveryveryveryverylongword"

// landlockGrowth has sizes enough to name a law.
func landlockGrowth() *Report {
	sizes := []string{"1", "2", "5", "10", "20", "50", "100", "200", "500", "1000"}
	c := comparison{
		name: "landlock-growth", metric: "cpu", blocks: 10, margin: 0.02, noise: 0.004, operations: []string{"open", "fork"},
		base: map[string]float64{"open": 1.19e-6, "fork": 88e-6},
		arms: []trialled{{levels: map[string]string{"enforcer": "none"}}},
	}
	for _, s := range sizes {
		var n float64
		if _, err := fmt.Sscan(s, &n); err != nil {
			panic(err)
		}
		c.arms = append(c.arms, trialled{
			levels: map[string]string{"enforcer": "landlock", "rules": s},
			cost:   map[string]float64{"open": 0.2 + 0.026*n},
		})
	}
	r := c.report()
	r.Question = design.Scale
	r.Design.Factors = []string{"enforcer", "rules"}
	negativeControls(r, "fork")
	g := Growth{
		Factor: "rules", Treatment: "enforcer=landlock", Metric: "cpu", Operation: "open", Unit: metric.CPUSeconds,
		Law: "linear", Best: "linear", Range: Interval{1, 1000},
		Coefficients: Coefficients{C0: 1.43e-6, C1: 31e-9}, Lo: new(29.4e-9), Hi: new(32.8e-9), Level: new(0.95),
		Budget:         "open.cpu <= +50%",
		BreaksBudgetAt: &Crossing{Value: 12, Lo: new(10.2), Hi: new(14.9)},
	}
	for i := 1; i <= len(sizes); i++ {
		m := r.Treatments[i].Metrics[0]
		var n float64
		if _, err := fmt.Sscan(sizes[i-1], &n); err != nil {
			panic(err)
		}
		fitted := g.Coefficients.C0 + g.Coefficients.C1*n
		g.Points = append(g.Points, GrowthPoint{
			N: n, Value: m.Value, Lo: m.Lo, Hi: m.Hi, Fitted: new(round4(fitted)),
			FittedLo: new(round4(fitted * 0.98)), FittedHi: new(round4(fitted * 1.02)),
		})
	}
	r.Growth = []Growth{g}
	return r
}

// growthSteps has all kinds of growth that are not one law with noise: a step with a budget that breaks in it, bends of
// both kinds, exact counts, and zeros; and laws of every unit.
func growthSteps() *Report {
	r := base("image-records")
	r.Area, r.Question, r.Verdict, r.Reason, r.Seconds = "warehouse", design.Scale, None, "no budget was given", 300
	sizes := []float64{10, 50, 100, 200, 500, 1000, 1500, 1999, 2001, 2500, 3500, 5000, 10000}
	grow := func(g Growth, f func(n float64) float64) {
		g.Factor, g.Range, g.Level = "records", Interval{sizes[0], sizes[len(sizes)-1]}, new(0.95)
		for _, n := range sizes {
			p := GrowthPoint{N: n, Value: round4(f(n)), Lo: new(round4(f(n) * 0.98)), Hi: new(round4(f(n) * 1.02))}
			if g.Reason == "" || g.Step != nil || g.Bend != nil {
				p.Fitted, p.FittedLo, p.FittedHi = new(round4(f(n))), new(round4(f(n)*0.99)), new(round4(f(n)*1.01))
			}
			if g.Exact || g.Unit == metric.Ratio {
				p.Lo, p.Hi = new(p.Value), new(p.Value)
			}
			g.Points = append(g.Points, p)
		}
		r.Growth = append(r.Growth, g)
	}
	linear := func(c Coefficients) func(n float64) float64 { return func(n float64) float64 { return c.C0 + c.C1*n } }

	grow(Growth{
		Treatment: "pattern=scan", Metric: "cpu", Operation: "check", Unit: metric.CPUSeconds, Best: "constant",
		Tied:         []string{"log", "sqrt"},
		Coefficients: Coefficients{C0: 4.1e-6}, C0Lo: new(4.05e-6), C0Hi: new(4.16e-6),
		Reason: "a step fits better than any one law",
		Budget: "check.cpu <= 10us", BreaksBudgetAt: &Crossing{
			Value: math.Sqrt(1999 * 2001), Lo: new(1999.0),
			Hi: new(2001.0), InStep: true,
		},
		Step: &Step{
			From: 1999, To: 2001, Factor: 5.6, Lo: new(5.2), Hi: new(6.0), Across: new(5.4), AcrossLo: new(5.1),
			AcrossHi: new(5.7), Before: &GrowthSide{
				Range: Interval{10, 1999}, Best: "constant", Tied: []string{"log"}, Coefficients: Coefficients{C0: 4.11e-6},
				C0Lo: new(4.06e-6), C0Hi: new(4.17e-6),
				Reason: "8 sizes; naming a law takes 10", Constant: &Interval{-0.01, 0.02},
			},
		}, Constant: &Interval{4.4, 4.9},
	}, func(n float64) float64 {
		if n > 2000 {
			return 4.1e-6 * 5.6
		}
		return 4.1e-6
	})
	grow(Growth{
		Treatment: "pattern=uniform", Metric: "cpu", Operation: "check", Unit: metric.CPUSeconds,
		Reason: "a cost that is constant up to a bend fits better than any one law",
		Knee:   &Crossing{Value: 2004, Lo: new(1992.0), Hi: new(2018.0)},
		Bend: &Bend{Base: Coefficient{4e-6, new(3.95e-6), new(4.06e-6)}, Ceiling: &Coefficient{
			23e-6, new(22.5e-6),
			new(23.4e-6),
		}},
		Constant: &Interval{3.6, 3.9},
	}, func(n float64) float64 { return 4e-6 + 19e-6*max(0, 1-2000/n) })
	grow(Growth{
		Treatment: "pattern=uniform", Metric: "wall", Operation: "restart", Unit: metric.Seconds,
		Reason: "two segments fit better than any one law",
		Knee:   &Crossing{Value: 1400, Lo: new(1310.0), Hi: new(1500.0)},
		Bend: &Bend{
			Base: Coefficient{1e-3, new(0.9e-3), new(1.1e-3)}, Slope: &Coefficient{1e-6, new(0.8e-6), new(1.1e-6)},
			Steeper: &Coefficient{9e-6, new(8.8e-6), new(9.2e-6)},
		},
	}, func(n float64) float64 { return 1e-3 + 1e-6*n + 8e-6*max(0, n-1400) })
	for _, law := range []Growth{
		{
			Metric: "cpu", Unit: metric.CPUSeconds, Coefficients: Coefficients{110e-6, 0.88e-6}, C0Lo: new(106e-6),
			C0Hi: new(114e-6), Lo: new(0.87e-6), Hi: new(0.89e-6),
		},
		{
			Metric: "allocated", Unit: metric.Bytes, Coefficients: Coefficients{9216, 312.5}, C0Lo: new(9200.0),
			C0Hi: new(9230.0), Lo: new(312.4), Hi: new(312.6),
		},
		{
			Metric: "allocations", Unit: metric.Count, Coefficients: Coefficients{97, 2}, C0Lo: new(97.0), C0Hi: new(97.0),
			Lo: new(2.0), Hi: new(2.0),
		},
	} {
		law.Treatment, law.Operation, law.Law, law.Best = "pattern=uniform", "pull", "linear", "linear"
		grow(law, linear(law.Coefficients))
	}
	grow(Growth{
		Treatment: "pattern=uniform", Metric: "allocations", Operation: "check", Unit: metric.Count, Law: "constant",
		Best: "constant", Exact: true,
		Coefficients: Coefficients{C0: 8}, C0Lo: new(8.0), C0Hi: new(8.0), Lo: new(0.0), Hi: new(0.0), Constant: &Interval{},
	}, linear(Coefficients{C0: 8}))
	grow(Growth{
		Treatment: "pattern=scan", Metric: "hits", Operation: "check", Unit: metric.Ratio,
		Reason: "0 at 5 of 13 sizes (2001, 2500, 3500, 5000, 10k): a law is fitted to relative differences, and 0 has none",
	}, func(n float64) float64 {
		if n > 2000 {
			return 0
		}
		return 1
	})
	for i := range r.Growth[:2] {
		g := &r.Growth[i]
		for _, p := range g.Points {
			id := fmt.Sprintf("%s records=%v", g.Treatment, p.N)
			r.Treatments = append(r.Treatments, Treatment{
				ID: id, Levels: map[string]string{
					"pattern": strings.TrimPrefix(g.Treatment, "pattern="),
					"records": fmt.Sprint(p.N),
				}, Verified: true,
				Metrics: []Metric{{Name: "cpu", Operation: "check", Unit: "s", Value: p.Value, N: 10}},
			})
			r.Blocks = append(r.Blocks, BlockValues{
				Treatment: id, Operation: "check", Metric: "cpu", Unit: metric.CPUSeconds,
				Values: []*float64{new(p.Value), p.Lo, p.Hi},
			})
		}
	}
	r.Design = &Design{Blocks: 3, Planned: 20, Alpha: 0.0158, Margin: 0.02, Factors: []string{"pattern", "records"}}
	return r
}

// triedTrespasses are trespasses with their share.
func triedTrespasses(refused, permitted, undecided uint64, lo, hi float64) Trespasses {
	n := Trespasses{Refused: refused, Permitted: permitted, Undecided: undecided}
	if d := float64(n.Decided()); d > 0 {
		n.Share = &Share{Value: float64(permitted) / d, Lo: lo, Hi: hi}
	}
	return n
}

// soaked is one label of the sample: its share of the mix, and its times in seconds.
type soaked struct {
	name             string
	weight           float64
	mean, p50, p99   float64
	permit, deny     float64 // shares of the answers
	bytesIn, bytesBy uint64
}

var xacmlMix = []soaked{
	{"healthcheck", 25, 0.0061, 0.0052, 0.021, 0, 0, 168, 212},
	{"statistics", 23, 0.0075, 0.0066, 0.026, 0, 0, 411, 214},
	{"monitoring", 17, 0.0341, 0.0302, 0.0962, 0, 0, 2140, 468},
	{"guard-minmax", 17, 0.0252, 0.0224, 0.0712, 0.9, 0.1, 231, 590},
	{"guard-frequency", 17, 0.0263, 0.0231, 0.0749, 0.7, 0.3, 230, 588},
}

// The sample's load: 50 min after a warm-up of 5, with an outage and a restart at 21m10s.
const (
	soakSeconds, soakWarmUp = 3000.0, 300.0
	soakRate                = 549.6
	soakRestart             = 1570.0
	soakMoments             = 33
	mebi                    = 1 << 20
)

// xacmlSoak is a JVM that leaks 60 MiB an hour, dies once and comes back.
func xacmlSoak() *Report {
	r := base("xacml-soak")
	r.Generator = closedGenerator()
	r.Area, r.Question, r.Seconds = "tribunal", design.Soak, 3314
	s := soakOf("default")
	s.Restarts, s.Outages = []float64{soakRestart + 12}, []Outage{{Start: soakRestart, End: soakRestart + 12, Calls: 118}}
	r.Operations = soakOperations("default", xacmlMix)
	r.Operations[2].Outcomes.ConnFailed, r.Operations[2].Outcomes.Timeout = 115, 3
	r.Operations[2].Causes = []Cause{
		{Outcome: "conn_failed", Cause: "connection refused", Calls: 115},
		{Outcome: "timeout", Cause: "no answer within 30 s", Calls: 3},
	}
	r.Operations[4].Outcomes.Wrong, r.Operations[4].Answers["indeterminate"] = 7, 7
	r.Operations[4].Causes = []Cause{{Outcome: "wrong", Cause: "answered Indeterminate instead of Permit", Calls: 7}}
	s.Total = soakTotal(r.Operations)
	s.Moments = soakMomentsOf(xacmlMix, 60)
	r.Soak = []Soak{s}
	for _, x := range xacmlMix {
		r.Soak = append(r.Soak, Soak{Treatment: "default", Operation: x.name, Drift: map[string]Drift{
			"response.mean": flat(x.mean, metric.Seconds), "response.p99": {
				PerHour: x.p99 * 0.09, Lo: new(-x.p99 * 0.04),
				Hi: new(x.p99 * 0.21), Verdict: EffectInconclusive, Unit: metric.Seconds, Level: 0.95, Start: x.p99,
				Total: x.p99 * 0.075, Margin: 0.05, N: 298,
			},
		}})
	}
	r.Target = []Target{jvm("default", "xacml-pdp", 2), {
		Treatment: "default", Name: "database", CPUSeconds: new(112.4),
		CPUPerOp: new(68.2e-6), RSS: &RSS{Before: new(88.0 * mebi), After: new(91.0 * mebi), Peak: new(92.5 * mebi)},
	}}
	r.Answers = []AnswerCheck{
		{Treatment: "default", Answer: "deny", Client: 122210, Target: 122210, Agrees: true},
		{Treatment: "default", Answer: "not-applicable", Client: 0, Target: 412004, Agrees: false},
		{Treatment: "default", Answer: "permit", Client: 493201, Target: 81197, Unanswered: 118, Agrees: false},
	}
	r.Budgets = []Budget{
		{
			Text: "error <= 0.1%", Treatment: "default", Verdict: Pass, Unit: metric.Ratio, Estimate: new(7.58e-5),
			Lo: new(1.1e-5), Hi: new(2.4e-4), Limit: new(0.001),
		},
		{
			Text: "monitoring.response.p99 <= 50ms", Treatment: "default", Verdict: Fail, Unit: metric.Seconds,
			Estimate: new(0.0962), Lo: new(0.0938), Hi: new(0.0991), Limit: new(0.05),
		},
		{
			Text: "rss drift <= 1MiB/h", Treatment: "default", Verdict: Fail, Unit: metric.Bytes, Estimate: new(60.0 * mebi),
			Lo: new(57.9 * mebi), Hi: new(62.2 * mebi), Limit: new(1.0 * mebi),
		},
	}
	r.Verdict, r.Reason = Fail, "2 budgets of 3 broken"
	r.Warnings = []string{"permit: the target counted 81197 and its callers 493201: the two do not measure the same"}
	return r
}

// closedGenerator is that of a closed loop, of which lateness says nothing.
func closedGenerator() *Generator {
	return &Generator{Valid: true, CPUSeconds: new(1.93), Verdict: signature.RuledOut, Evidence: []string{
		"its busiest thread ran 12 % of the time", "waited for a processor 0.3 % of it",
		"answers waited 21 µs to be read (p99 96 µs)",
	}}
}

func soakOf(treatment string) Soak {
	return Soak{
		Treatment: treatment, Windows: "windows.csv", Seconds: soakSeconds, WarmUpSeconds: soakWarmUp, Planned: soakSeconds,
		WindowSeconds: 10, Workers: 10,
		Drift: map[string]Drift{
			"rss": {
				PerHour: 60 * mebi, Lo: new(57.9 * mebi), Hi: new(62.2 * mebi), Verdict: Regressed, Unit: metric.Bytes, Level: 0.95,
				Start: 388 * mebi, Total: 50 * mebi,
				Margin: 0.05, N: 298,
			},
			"cpu":           flat(1.42e-3, metric.CPUSeconds),
			"response.mean": flat(0.01814, metric.Seconds),
			"response.p99": {
				PerHour: 0.0031, Lo: new(0.0004), Hi: new(0.0058), Verdict: Slower, Unit: metric.Seconds,
				Level: 0.95, Start: 0.0741, Total: 0.00258, Margin: 0.05, N: 298,
			},
		},
	}
}

// flat is a drift that is none.
func flat(at float64, u metric.Unit) Drift {
	return Drift{
		PerHour: at * 0.004, Lo: new(-at * 0.01), Hi: new(at * 0.018), Verdict: Equivalent, Unit: u, Level: 0.95,
		Start: at, Total: round4(at * 0.0033), Margin: 0.05, N: 298,
	}
}

func soakOperations(treatment string, mix []soaked) []Operation {
	var out []Operation
	for _, x := range mix {
		n := uint64(math.Round(soakRate * soakSeconds * x.weight / 99))
		o := Operation{
			Treatment: treatment, Operation: x.name, Outcomes: Outcomes{OK: n}, Achieved: new(round4(soakRate * x.weight / 99)),
			Goodput: new(round4(soakRate * x.weight / 99)),
			Response: &Distribution{
				N: n, Min: round4(x.p50 / 8), Mean: x.mean, Stddev: new(round4(x.mean * 0.71)), P50: new(x.p50),
				P90: new(round4(x.p50 * 1.9)), P95: new(round4(x.p50 * 2.3)),
				P99: new(x.p99), P999: new(round4(x.p99 * 3.2)), Max: round4(x.p99 * 14),
			},
			PoolWait: &Distribution{N: n, P50: new(0.0), P99: new(0.000031), Max: 0.004},
			BytesIn:  new(n * x.bytesIn), BytesOut: new(n * x.bytesBy),
		}
		if x.permit > 0 {
			deny := uint64(float64(n) * x.deny)
			o.Answers = map[string]uint64{"permit": n - deny, "deny": deny}
			o.Outcomes = Outcomes{OK: n - deny, Denied: deny}
		}
		out = append(out, o)
	}
	return out
}

func soakTotal(ops []Operation) *Total {
	t := &Total{Operation: Operation{
		Treatment: ops[0].Treatment, Achieved: new(soakRate), Goodput: new(soakRate), BytesIn: new(uint64(0)),
		BytesOut: new(uint64(0)),
		Response: &Distribution{
			Min: 0.00065, Mean: 0.01814, Stddev: new(0.0174), P50: new(0.0141), P90: new(0.0402),
			P95: new(0.0531), P99: new(0.0755), P999: new(0.244), Max: 1.3468,
		},
		Little: &Little{Expected: 10, Observed: 9.97},
	}, CPUPerOp: new(1.43e-3)}
	for _, o := range ops {
		n := o.Outcomes
		t.Outcomes.OK += n.OK
		t.Outcomes.Denied += n.Denied
		t.Outcomes.Wrong += n.Wrong
		t.Outcomes.ConnFailed += n.ConnFailed
		t.Outcomes.Timeout += n.Timeout
		t.Response.N += n.Ended()
		*t.BytesIn += *o.BytesIn
		*t.BytesOut += *o.BytesOut
	}
	return t
}

// jvm is a target with two collectors.
func jvm(treatment, name string, restarts int) Target {
	return Target{
		Treatment: treatment, Name: name, PID: new(4711), CPUSeconds: new(2344.0), CPUPerOp: new(1.42e-3),
		RSS:          &RSS{Before: new(388.0 * mebi), After: new(438.0 * mebi), Peak: new(451.5 * mebi)},
		Heap:         &Heap{Before: new(96.0 * mebi), After: new(141.0 * mebi), Committed: new(256.0 * mebi)},
		GC:           []GC{{Name: "G1 young", Count: 518, Seconds: 5.988}, {Name: "G1 full", Count: 32, Seconds: 10.082}},
		StartSeconds: new(8.41), LoadSeconds: new(1.27),
		Restarts: restarts - 1, Other: map[string]float64{"safepoints": 812, "metaspace": 48.2 * mebi},
	}
}

// soakMomentsOf draws the run: a warm-up that gets faster, an outage, and memory that grows by so many MiB an hour and
// falls when the process is replaced.
func soakMomentsOf(mix []soaked, leak float64) []Moment {
	var out []Moment
	length := (soakWarmUp + soakSeconds) / soakMoments
	for k := range soakMoments {
		at := float64(k) * length
		m := Moment{Start: at, End: at + length, WarmUp: at < soakWarmUp}
		wobble := 1 + 0.03*math.Sin(float64(k)*1.7)
		if m.WarmUp {
			wobble = 1.9 - 0.25*float64(k)
		}
		since := at
		if at > soakRestart {
			since = at - soakRestart
		}
		m.Good = round4(soakRate / wobble)
		if m.Start <= soakRestart && soakRestart < m.End {
			m.Good, m.Bad, m.Restarted = round4(soakRate*0.88), 1.18, true
		}
		m.CPU, m.RSS = new(round4(1.42e-3*wobble)), new(math.Round((388+leak*since/3600+4*math.Sin(float64(k*k)))*mebi))
		m.Heap, m.GC = new(math.Round((96+float64(k%7)*9)*mebi)), new(round4(0.0054*wobble))
		if m.Restarted {
			m.CPU, m.RSS, m.Heap, m.GC = nil, nil, nil, nil
		}
		for _, x := range mix {
			o := MomentOperation{
				Operation: x.name, Calls: uint64(m.Good * length * x.weight / 99),
				Mean: round4(x.mean * wobble), P50: new(round4(x.p50 * wobble)), P99: new(round4(x.p99 * wobble)),
				Max: round4(x.p99 * 4 * wobble),
			}
			if m.Restarted && x.name == "monitoring" {
				o.Bad, o.Calls = 118, o.Calls+118
			}
			m.Operations = append(m.Operations, o)
		}
		out = append(out, m)
	}
	return out
}

// twoSoaks has one treatment after the other.
func twoSoaks() *Report {
	r := base("soak-engines")
	r.Generator = closedGenerator()
	r.Generator.Verdict, r.Generator.Doubts = signature.Possible, []string{
		"it shared 2 processors with the target, 98 % busy, of which it used 31 %: with processors of its own the target " +
			"may do more",
	}
	r.Area, r.Question, r.Seconds = "tribunal", design.Soak, 6700
	r.Treatments = []Treatment{{
		ID: "engine=cedar", Baseline: true, Levels: map[string]string{"engine": "cedar"},
		Verified: true,
	}, {ID: "engine=att", Levels: map[string]string{"engine": "att"}, Verified: true}}
	for i := range r.Treatments {
		id := r.Treatments[i].ID
		ops := soakOperations(id, xacmlMix[3:])
		s := soakOf(id)
		s.Windows = "windows-" + []string{"cedar", "att"}[i] + ".csv"
		s.Total = soakTotal(ops)
		s.Moments = soakMomentsOf(xacmlMix[3:], 0)[:8]
		s.Drift["rss"] = Drift{
			PerHour: -3 * mebi, Lo: new(-4.1 * mebi), Hi: new(-1.9 * mebi), Verdict: Improved,
			Unit: metric.Bytes, Level: 0.95, Start: 40 * mebi, Total: -2.5 * mebi, Margin: 0.05, N: 298,
		}
		r.Soak = append(r.Soak, s)
		r.Operations = append(r.Operations, ops...)
		r.Target = append(r.Target, jvm(id, "pdp", 1))
	}
	return r
}

// psp is the published experiment on a control plane with simulated nodes: one treatment whose admission is slow, and
// one with webhooks.
func psp() *Report {
	c := comparison{
		name: "psp-2017", metric: "cpu", blocks: 20, margin: 0.02, noise: 0.01, operations: []string{"pod-startup"},
		base: map[string]float64{"pod-startup": 9.4e-3},
		arms: []trialled{
			{levels: map[string]string{"mechanism": "none"}, cost: map[string]float64{"pod-startup": 0}},
			{
				levels: map[string]string{"mechanism": "psp", "policies": "105", "bound": "10"},
				cost:   map[string]float64{"pod-startup": 0.09},
			},
			{
				levels: map[string]string{"mechanism": "psp", "policies": "5005", "bound": "1"},
				cost:   map[string]float64{"pod-startup": 41},
			},
			{levels: map[string]string{"mechanism": "webhook", "policies": "10"}, cost: map[string]float64{"pod-startup": 0.4}},
		},
	}
	r := c.report()
	r.Area = "gatehouse"
	r.Notes = []string{"control plane only: the nodes are simulated, no container is started"}
	for i := range r.Treatments {
		t := &r.Treatments[i]
		slow := t.Levels["policies"] == "5005"
		post, server, store := 7.2e-3, 6.1e-3, 1.4e-3
		a := Attribution{Treatment: t.ID, Operation: "pod-startup", N: 12_000, Admission: new(1.1e-3)}
		switch {
		case slow:
			post, server, a.Admission = 8.2, 8.19, nil
			a.Note = "admission is not known and is in other: the server counts it by action, and only 71.2% of all CREATE " +
				"requests were these"
		case t.Levels["mechanism"] == "webhook":
			a.Webhook, post, server = new(21e-3), 28.3e-3, 27.1e-3
			a.Note = "webhooks run side by side: their own times add up to 88 ms a request, which waits for the slowest"
		}
		rest := server - store
		for _, v := range []*float64{a.Webhook, a.Admission} {
			if v != nil {
				rest -= *v
			}
		}
		a.Total, a.Server, a.Client, a.Storage, a.Other = &post, &server, new(post-server), &store, &rest
		r.Attribution = append(r.Attribution, a)
		pspPhases(r, t.ID, post)
		pspServed(r, t.ID, server, slow)
		pspLevels(r, t.ID, post, slow)
	}
	r.Warnings = []string{"mechanism=psp policies=5005 bound=1: the service level verdicts on pod-startup DISAGREE: " +
		"official and clusterloader2 and kube-burner pass it, client fail it"}
	for _, x := range []struct {
		name string
		cpu  float64
	}{{"kube-apiserver", 81.2}, {"etcd", 31.4}, {"simulated-nodes", 6.6}} {
		t := Target{Treatment: r.Treatments[0].ID, Name: x.name, CPUSeconds: &x.cpu, RSS: &RSS{After: new(x.cpu * 8e6)}}
		if x.name != "simulated-nodes" {
			t.CPUPerOp = new(x.cpu / 12_000)
		}
		r.Target = append(r.Target, t)
	}
	return r
}

func pspPhases(r *Report, id string, post float64) {
	for _, p := range []struct {
		name string
		mean float64
	}{
		{"post", post},
		{"scheduled", 4.1e-3},
		{"running", 9.2e-3},
		{"startup", post + 13.3e-3},
		{"created-to-watch", 0.52},
		{"watch-to-watch", 12.9e-3},
		{"conditions", 0.4},
	} {
		r.Phases = append(r.Phases, Phase{
			Treatment: id, Operation: "pod-startup", Phase: p.name, N: 12_000, Mean: p.mean, P50: round4(p.mean * .93),
			P90: round4(p.mean * 1.3), P99: round4(p.mean * 1.871234), Max: round4(p.mean * 2.6),
		})
	}
}

func pspServed(r *Report, id string, server float64, slow bool) {
	add := func(verb, resource, scope string, n uint64, mean float64, measured bool) {
		s := Served{
			Treatment: id, Verb: verb, Resource: resource, Scope: scope, N: n, Mean: mean, Last: new(60.0),
			Measured: measured,
		}
		at := func(v float64) *float64 {
			if v > 60 {
				return nil
			}
			return new(round4(v))
		}
		s.P50, s.P90, s.P99 = at(mean*.9), at(mean*1.5), at(mean*2)
		r.Served = append(r.Served, s)
	}
	add("POST", "pods", "resource", 12_000, server, true)
	add("POST", "pods/binding", "resource", 12_000, 5.2e-3, false)
	add("PATCH", "pods/status", "resource", 24_000, 6.1e-3, false)
	add("DELETE", "pods", "resource", 12_000, 4.4e-3, false)
	add("PUT", "leases", "resource", 800, 790e-6, false)
	add("GET", "namespaces", "resource", 300, 410e-6, false)
	if slow {
		add("LIST", "podsecuritypolicies", "cluster", 40, 33, false)
	}
	add("LIST", "nodes", "cluster", 12, 2.2e-3, false)
}

func pspLevels(r *Report, id string, post float64, slow bool) {
	add := func(name, subject, operation string, f Formula, v, limit float64, note string) {
		s := SLO{
			Treatment: id, Name: name, Subject: subject, Operation: operation, Formula: f, Verdict: Pass,
			Quantile: new(0.99), Value: &v, Limit: limit, N: 12_000, Basis: note,
		}
		s.Basis, s.Note, _ = strings.Cut(note, "; ")
		if v > limit {
			s.Verdict = Fail
		}
		if math.IsInf(v, 1) {
			s.Value, s.Lo = nil, new(60.0)
		}
		if f == ClientClock {
			s.Lo, s.Hi, s.Level = new(v*.95), new(v*1.06), new(.95)
		}
		r.SLO = append(r.SLO, s)
	}
	add("mutating", "POST pods", "", Official, round4(post*2), 1, "all of the run is one window")
	add("mutating", "POST pods", "", ClusterLoader2, round4(post*2.1), 1,
		"over 20 trials as windows, p50 and p90 hold wherever p99 does")
	add("mutating", "POST pods", "", KubeBurner, round4(post*2.05), 1, "the mean of p99 over 20 trials, webhooks included")
	add("mutating", "POST pods", "pod-startup", ClientClock, round4(post*1.871234), 1,
		"from when the request was sent until it was answered")
	if slow {
		for _, f := range []Formula{Official, ClusterLoader2, KubeBurner} {
			add("read", "LIST podsecuritypolicies (cluster)", "", f, math.Inf(1), 30,
				"all of the run is one window; beyond the last bucket, of 60 s; of 40, p99 is the maximum")
		}
	}
	for _, f := range []Formula{Official, ClusterLoader2, KubeBurner} {
		add("mutating", "4 other kinds", "", f, 12.2e-3, 1, "the slowest is PATCH pods/status: all of the run is one window")
		add("read", "2 other kinds", "", f, 4.4e-3, 30, "the slowest is LIST nodes (cluster): of 12, p99 is the maximum")
	}
	add("pod-startup", "", "pod-startup", Official, 1, 5, "from creationTimestamp, in whole seconds, until seen running")
	add("pod-startup", "", "pod-startup", ClusterLoader2, 24.1e-3, 5,
		"from its first watch event until seen running, p50 and p90 hold wherever p99 does")
	add("pod-startup", "", "pod-startup", KubeBurner, 1, 5,
		"from creationTimestamp until condition Ready, both in whole seconds, it sets no limit of its own")
	add("pod-startup", "", "pod-startup", ClientClock, round4(post*1.871234+13.3e-3), 5,
		"from when the request was sent until the pod was seen running")
}

// spoil puts a text into every field of a report that another could have chosen.
func spoil(r *Report, s string) {
	// A few of each are as good as many, and a fuzzer has ten seconds for all of it.
	r.Effects, r.Blocks, r.Treatments, r.Budgets = first(r.Effects), first(r.Blocks), first(r.Treatments), first(r.Budgets)
	if r.AA != nil {
		r.AA.Effects, r.AA.NegativeControls = first(r.AA.Effects), first(r.AA.NegativeControls)
	}
	schema := r.Schema
	eachField(reflect.ValueOf(r).Elem(), func(v reflect.Value) {
		switch v.Interface().(type) {
		case string, metric.Unit:
			v.SetString(s)
		case map[string]string:
			v.Set(reflect.ValueOf(map[string]string{s: s}))
		case map[string]uint64:
			v.Set(reflect.ValueOf(map[string]uint64{s: 1, s + "2": 2}))
		case map[string]float64:
			if v.Len() > 0 {
				v.Set(reflect.ValueOf(map[string]float64{s: 1, s + "2": math.Inf(1), "": math.NaN()}))
			}
		case map[string]Drift:
			v.Set(reflect.ValueOf(map[string]Drift{
				s: {Verdict: EffectVerdict(s), Unit: metric.Unit(s), Reason: s}, "rss": {Verdict: Regressed, PerHour: 1},
			}))
		}
	})
	r.Schema, r.Notes, r.Warnings = schema, []string{s}, []string{s, s}
}

// spoilNumbers puts a number into every field that holds one, and a count into every count.
func spoilNumbers(r *Report, x float64, n uint64) {
	eachField(reflect.ValueOf(r).Elem(), func(v reflect.Value) {
		switch v.Interface().(type) {
		case float64:
			v.SetFloat(x)
		case uint64:
			v.SetUint(n)
		case int:
			v.SetInt(int64(n % 1000))
		case *float64:
			v.Set(reflect.ValueOf(&x))
		}
	})
}

// eachField calls set for everything that a value holds and that can be set, the outermost first.
func eachField(v reflect.Value, set func(reflect.Value)) {
	if !v.CanSet() {
		return
	}
	set(v)
	if v.Kind() == reflect.Struct {
		for _, f := range v.Fields() {
			eachField(f, set)
		}
	}
	if v.Kind() == reflect.Slice {
		for i := range v.Len() {
			eachField(v.Index(i), set)
		}
	}
	if v.Kind() == reflect.Pointer && !v.IsNil() {
		eachField(v.Elem(), set)
	}
}

// samples are reports of every shape that the page must cope with.
func pageSamples() map[string]*Report {
	return map[string]*Report{
		"psp":             psp(),
		"psp-hostile":     stored("psp-hostile"),
		"levels-at-rates": levelsAtRates(),
		"search":          search(),
		"ladder":          ladderRun(),
		"workloads":       workloadRun(),
		"treatments":      treatmentRun(),
		"healthy":         stored("at-least"),
		"invalid":         stored("invalid"),
		"interrupted":     stored("interrupted"),
		"hostile":         pageHostile(),
		"enforcers":       pageEnforcers(40),
		"caches":          caches(),
		"unreliable":      pageUnreliable(),
		"stopped":         stopped(),
		"rules":           scaled(),
		"hostile-compare": hostileCompare(),
		"soak":            xacmlSoak(),
		"soak-engines":    twoSoaks(),
		"soak-partial":    stored("soak-interrupted"),
		"soak-hostile":    hostileSoak(),
		"decisions":       stored("tribunal-compare"),
		"bare":            {Schema: Schema, Experiment: Experiment{Name: "bare"}, Verdict: None, Treatments: []Treatment{}},
	}
}

// hostileSoak has more operations than colours, and names that want to be more than names.
func hostileSoak() *Report {
	r := xacmlSoak()
	r.Experiment.Name = "soak-hostile"
	s := &r.Soak[0]
	for i := range s.Moments {
		for k := range 8 {
			s.Moments[i].Operations = append(s.Moments[i].Operations,
				MomentOperation{Operation: "</script><img src=x onerror=alert(1)>" + string(rune('a'+k)), Calls: 1})
		}
	}
	r.Operations[0].Operation = "\u202e<b>bold</b>\x1b[31m"
	r.Operations[0].Answers = map[string]uint64{"<i>": 3, "": 1}
	r.Answers[0].Answer, r.Answers[0].Reason = "<script>alert(2)</script>", "\"><script>"
	r.Target[0].GC[0].Name = "<svg onload=alert(3)>"
	s.Drift["<u>"] = Drift{PerHour: 1e300, Lo: new(-1e300), Hi: new(1e305), Verdict: "odd"}
	return r
}

// search broke with its accept queue full.
func search() *Report {
	r := stored("accept-queue")
	r.Environment.Target = map[string]string{"endpoint": "2.1"}
	r.Timeline = []Timeline{course163("default")}
	r.Operations[0].Causes = []Cause{
		{Outcome: "timeout", Cause: "connected, and never a byte", Calls: 2047},
		{Outcome: "timeout", Cause: "never sent", Calls: 3},
	}
	r.Target = append(r.Target, Target{Treatment: "default", Name: "sts", RSS: &RSS{After: new(12e6)}})
	r.Warnings = []string{"not confirmed from both sides"}
	return r
}

// course163 is a trial of a target that takes 163.7/s: a ramp, an overload, two fills.
func course163(treatment string) Timeline {
	l := Timeline{
		Treatment: treatment, Bin: 0.1,
		Steps: []Stretch{
			{From: 0, To: 2, Name: "ramp", Rate: 40},
			{From: 2, To: 3, Name: "ramp", Rate: 80},
			{From: 3, To: 4, Name: "ramp", Rate: 160},
			{From: 4, To: 8, Name: "overload", Rate: 416},
			{From: 8, To: 10, Name: "drain"},
			{From: 10, To: 11, Name: "fill", Rate: 651},
			{From: 11, To: 12, Name: "fill", Rate: 1301},
			{From: 12, To: 20, Name: "confirm-low", Rate: 155},
		},
		Marks: []Mark{{At: 10.6, Text: "the first call got stuck here"}},
	}
	waiting := 0.0
	for k := range 200 {
		at, offered := float64(k)*l.Bin, 0.0
		for _, s := range l.Steps {
			if at >= s.From-1e-9 && at < s.To-1e-9 {
				offered = s.Rate
			}
		}
		served := min(offered+waiting/l.Bin, 163.7*(1+.05*math.Sin(float64(k))))
		waiting = max(0, waiting+(offered-served)*l.Bin)
		failed := 0.0
		if k > 150 && k < 160 {
			failed = 200
		}
		l.Offered, l.Sent, l.Good, l.Bad = append(l.Offered, offered), append(l.Sent, offered), append(l.Good, served),
			append(l.Bad, failed)
		l.Outstanding = append(l.Outstanding, waiting)
		if served < 1 {
			l.P50, l.P99 = append(l.P50, nil), append(l.P99, nil)
			continue
		}
		l.P50, l.P99 = append(l.P50, new(0.005+waiting/163.7)), append(l.P99, new(0.02+waiting/100))
	}
	return l
}

func ladderRun() *Report {
	r := stored("ladder")
	c := &r.Capacity[0]
	c.VerifiedLow, c.VerifiedHigh, c.Failure, c.Limit = new(150.0), new(500.0), fullQueue(), nil
	for i := range c.Points {
		p := &c.Points[i]
		p.Used = map[string]float64{"endpoint cpu": p.Rate * 0.004, "endpoint rss": 2e7, "sts upstream_calls": p.Rate}
		if p.Generator.Valid {
			p.Generator.Lateness = &Lateness{P50: 3e-6, P99: 1e-7 * p.Rate, Max: 1e-6 * p.Rate}
		}
	}
	return r
}

func treatmentRun() *Report {
	r := stored("treatments")
	r.Treatments[1].Verified, r.Capacity[1].Wedged = false, true
	r.Timeline = []Timeline{course163("cache=on"), course163("cache=off")}
	return r
}

func workloadRun() *Report {
	r := ladderRun()
	r.Experiment.Name = "workloads"
	c := &r.Capacity[0]
	c.Broke, c.VerifiedLow, c.VerifiedHigh, c.Failure = false, nil, nil, nil // workloads are not judged
	names := []string{"cold start", "warm", "pod start, 200 calls", "expiry without jitter"}
	for i := range c.Points {
		c.Points[i].Name = names[i]
	}
	c.Points[2].P99 = nil
	return r
}

// attack is a text that runs if it is taken for anything but text.
const attack = `</script><script>window.pwned=1</script><img src=x onerror=window.pwned=1>"'><svg onload=window.pwned=1> {{.}} <!--<script> javascript:window.pwned=1`

// pageHostile has an attack wherever a record holds a text.
func pageHostile() *Report {
	r := search()
	r.Capacity[0].Points = []Point{{
		Rate: 10, Goodput: new(10.0), P99: new(0.1), Generator: &Generator{},
	}}
	spoil(r, "\x1b[31mred \u202Eoverride\u2028line "+attack)
	r.Question, r.Generator.Valid = design.Question(attack), false
	r.Capacity[0].Failure.Class, r.Budgets[0].Verdict = signature.Class(attack), Verdict(attack)
	r.Target[0].Other = map[string]float64{attack: 1}
	r.Capacity[0].Points[0].Used = map[string]float64{attack: 1}
	return r
}

// levelsAtRates is a search on a control plane that has rates to draw: its service levels stand below them.
func levelsAtRates() *Report {
	r := stored("gatehouse-capacity")
	r.Capacity[0].Points = ladderRun().Capacity[0].Points
	return r
}
