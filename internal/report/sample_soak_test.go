package report

import (
	"math"

	"tare/internal/design"
	"tare/internal/metric"
	"tare/internal/signature"
)

// soaks are reports of long runs, and others of decision points.
func soaks() map[string]*Report {
	return map[string]*Report{
		"soak":             xacmlSoak(),
		"soak-interrupted": brokenSoak(),
		"soak-treatments":  twoSoaks(),
		"tribunal-compare": tribunalCompare(),
	}
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

// brokenSoak was stopped after a tenth of its time, with too few windows to tell a trend.
func brokenSoak() *Report {
	r := base("soak-cut-short")
	r.Area, r.Question, r.Status, r.Seconds = "tribunal", design.Soak, Interrupted, 75
	s := soakOf("default")
	s.Seconds, s.WarmUpSeconds, s.Planned, s.WindowSeconds, s.Workers, s.Rate = 15, 60, 600, 2, 0, 120
	for name, d := range s.Drift {
		s.Drift[name] = Drift{
			PerHour: d.PerHour * 40, Verdict: EffectInconclusive, Unit: d.Unit, N: 7,
			Reason: "7 windows; a trend needs 20",
		}
	}
	r.Operations = []Operation{{Treatment: "default", Operation: "permit", Outcomes: Outcomes{
		OK: 1788, Timeout: 12,
		Unsent: 2,
	}, Answers: map[string]uint64{"permit": 1788}, Response: &Distribution{
		N: 1800, Min: 0.0004, Mean: 0.21,
		P50: new(0.0011), P90: new(0.0031), Max: 30.001,
	}}}
	s.Total = &Total{Operation: r.Operations[0]}
	s.Total.Operation.Operation = ""
	s.Outages = []Outage{{Start: 59, End: 61.5, Calls: 12}}
	r.Soak = []Soak{s}
	r.Answers = []AnswerCheck{{
		Treatment: "default", Answer: "permit", Client: 8988, Target: 1201, Unanswered: 12,
		Reason: "the target was started anew and counts from 0",
	}}
	r.Budgets = []Budget{{
		Text: "rss drift <= 1MiB/h", Treatment: "default", Verdict: Inconclusive, Unit: metric.Bytes,
		Limit: new(1.0 * mebi), Reason: "7 windows; a trend needs 20",
	}}
	r.Verdict, r.Reason = Inconclusive, "the run did not come to its end"
	return r
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

// tribunalCompare is a comparison of decision points, one of which counts its decisions otherwise than its callers.
func tribunalCompare() *Report {
	c := comparison{
		name: "pdp-compare", metric: "cpu", blocks: 8, margin: 0.05, noise: 0.01, operations: []string{"permit", "deny"},
		base: map[string]float64{"permit": 31e-6, "deny": 28e-6},
		arms: []trialled{
			{levels: map[string]string{"engine": "cedar"}},
			{levels: map[string]string{"engine": "authzforce"}, cost: map[string]float64{"permit": 1.6, "deny": 1.7}},
		},
	}
	r := c.report()
	r.Area = "tribunal"
	r.Operations = nil
	for i := range r.Treatments {
		id := r.Treatments[i].ID
		r.Operations = append(
			r.Operations,
			Operation{
				Treatment: id, Operation: "permit", Outcomes: Outcomes{OK: 8000},
				Answers: map[string]uint64{"permit": 8000},
			},
			Operation{
				Treatment: id, Operation: "deny", Outcomes: Outcomes{OK: 0, Denied: 7990, Wrong: 10},
				Answers: map[string]uint64{"deny": 7990, "not-applicable": 10},
			},
		)
		r.Target = append(r.Target, jvm(id, "pdp", 1))
		r.Answers = append(
			r.Answers,
			AnswerCheck{Treatment: id, Answer: "deny", Client: 7990, Target: 7990, Agrees: true},
			AnswerCheck{Treatment: id, Answer: "permit", Client: 8000, Target: 8012, Agrees: i == 0},
		)
	}
	return r
}
