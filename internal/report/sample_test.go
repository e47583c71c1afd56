package report

import (
	"maps"
	"time"

	"tare/internal/design"
	"tare/internal/limit"
	"tare/internal/metric"
	"tare/internal/signature"
)

// The samples are reports as analyze makes them, one for every shape that an encoder must cope with.
func samples() map[string]*Report {
	all := map[string]*Report{
		"accept-queue":    acceptQueue(),
		"ladder":          ladderReport(),
		"at-least":        atLeast(),
		"at-most":         atMost(),
		"unknown":         unknownFailure(),
		"invalid":         invalid(),
		"wedged":          wedged(),
		"treatments":      severalTreatments(),
		"interrupted":     interrupted(),
		"hostile":         hostile(),
		"other-questions": otherQuestions(),
	}
	maps.Copy(all, comparisons())
	maps.Copy(all, soaks())
	maps.Copy(all, guards())
	maps.Copy(all, controlPlanes())
	maps.Copy(all, drivers())
	return all
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

func acceptQueue() *Report {
	r := base("gke-2020")
	r.Capacity = []Capacity{{
		Treatment: "default", Broke: true, Rate: new(150.0), Lo: new(149.1), Hi: new(150.9), VerifiedLow: new(147.0),
		VerifiedHigh: new(153.0),
		SLORate:      new(112.5), Burst: new(64.0), Limit: shownQuota(), Failure: fullQueue(), RecoverySeconds: new(31.0),
		Phases:  4,
		Seconds: 12.4, Valid: true,
		Stop: "found", Reason: "the capacity was found and confirmed",
	}}
	r.Operations = []Operation{{
		Treatment: "default", Operation: "token", Outcomes: Outcomes{OK: 5210, Timeout: 2050, Unsent: 3},
		Offered: new(586.2), Achieved: new(586.1), Goodput: new(151.8),
		Response: &Distribution{
			N: 7260, Min: 0.0009, Mean: 8.6, Stddev: new(13.2), P50: new(0.171), P90: new(30.0), P95: new(30.0),
			P99: new(30.001), P999: new(30.002), Max: 30.002,
		},
		Service:  &Distribution{N: 7257, Min: 0.0008, Mean: 8.5, P50: new(0.17), Max: 30.0},
		PoolWait: &Distribution{N: 7257, Min: 0, Mean: 0.0001, P50: new(0.0), P99: new(0.0021), Max: 0.004},
		BytesIn:  new(uint64(4_200_000)), BytesOut: new(uint64(1_100_000)),
	}}
	r.Target = []Target{{
		Treatment: "default", Name: "endpoint", CPUSeconds: new(1.24), CPUPerOp: new(0.000238),
		RSS: &RSS{Before: new(18.5e6), After: new(41.0e6), Peak: new(44.0e6)}, Throttled: &Throttled{
			Periods: new(118.0),
			Seconds: new(9.8),
		},
		GC: []GC{{Name: "go", Count: 12, Seconds: 0.0021}}, Other: map[string]float64{"listen_queue": 1025, "threads": 9},
	}}
	r.Budgets = []Budget{
		{
			Text: "capacity >= 100/s", Treatment: "default", Verdict: Pass, Unit: metric.PerSecond, Estimate: new(150.0),
			Lo: new(149.1), Hi: new(150.9),
			Limit: new(100.0),
		},
		{
			Text: "response.p99 <= 500ms at 50/s", Treatment: "default", Verdict: Inconclusive, Unit: metric.Seconds,
			Estimate: new(0.312), Lo: new(0.2),
			Limit: new(0.5), Reason: "measured at 80/s over 40 calls",
		},
	}
	r.Verdict, r.Reason = Inconclusive, "1 budget of 2 undecided or not measured"
	r.Notes = []string{"the CPU limit is a calibrated throttle in the process: this host allows no control group"}
	return r
}

func ladderReport() *Report {
	r := base("gke-2020-ladder")
	point := func(rate float64, ok, p50, p99, goodput float64, stuck uint64, drain, vegeta float64) Point {
		return Point{
			Rate: rate, Seconds: 5, Offered: uint64(rate * 5), Sent: uint64(rate * 5), Success: &ok, Goodput: &goodput,
			P50: &p50, P99: &p99, Max: new(p99 * 1.01),
			NoByte: stuck, Stuck: stuck, DrainSeconds: drain, VegetaThroughput: &vegeta,
			Generator: &Generator{Valid: true, Verdict: signature.RuledOut},
		}
	}
	bad := point(1000, 0.795, 8.9, 30.0, 163.4, 1025, 30.0, 122.6)
	bad.Generator = &Generator{Valid: false, Verdict: signature.Limiting, Reason: "lateness p99 2.1 ms > 1 ms"}
	r.Capacity = []Capacity{{
		Treatment: "default", Broke: true, Failure: &signature.Failure{
			Class: signature.AcceptQueue, Certainty: signature.Likely,
			Evidence: []string{"1025 calls stuck at 500/s and at 1000/s alike"},
		},
		Limit: &limit.Verdict{
			Kind: limit.Unknown, Certainty: signature.NotKnown, Evidence: []string{"no experiment was made that would tell"},
		},
		Phases: 4, Seconds: 141, Valid: true, Stop: "ladder",
		Points: []Point{
			point(10, 1, 0.005, 0.031, 10, 0, 0.004, 10.2), point(150, 1, 0.171, 0.682, 148.6, 0, 0.4, 146.5),
			point(500, 0.59, 0.94, 30, 163.1, 1025, 30, 43.4), bad,
		},
	}}
	return r
}

func atLeast() *Report {
	r := base("healthy")
	r.Capacity = []Capacity{{
		Treatment: "default", AtLeast: new(2000.0), VerifiedLow: new(2000.0), RecoverySeconds: new(0.0), Phases: 1,
		Seconds: 8.1, Valid: true, Stop: "max-rate",
		Reason: "nothing broke up to the highest rate allowed",
	}}
	r.Budgets = []Budget{{
		Text: "capacity >= 100/s", Treatment: "default", Verdict: Pass, Unit: metric.PerSecond,
		Estimate: new(2000.0), Lo: new(2000.0), Limit: new(100.0), Reason: "it did not break",
	}}
	r.Verdict, r.Reason = Pass, "1 budget kept"
	return r
}

func atMost() *Report {
	r := base("odd")
	r.Capacity = []Capacity{{
		Treatment: "default", Broke: true, AtMost: new(240.0), VerifiedHigh: new(240.0),
		Phases: 6, Seconds: 300, Valid: true, Stop: "time",
		Failure: &signature.Failure{
			Class: signature.Queue, Certainty: signature.Likely, Evidence: []string{"calls wait longer and longer"},
			Scores: map[signature.Class]float64{signature.Queue: 0.8},
		},
		Limit: &limit.Verdict{
			Kind: limit.Slots, Certainty: signature.Likely, Value: "4 at a time",
			Evidence: []string{
				"it serves 3.9 calls at a time: with 1 in flight each takes 17 ms, and 66 ms with 16",
				"it used 0.2 of 2 processors",
			},
			Excluded: []signature.Exclusion{{What: "garbage collection", By: "it stopped the target for 1.2 % of the time"}},
			Prediction: &limit.Prediction{
				Change: "twice as many at a time", Rate: 470, Lo: 452, Hi: 488,
				How: "double the workers or the pool, in it or behind it, and ask again",
			},
		},
	}}
	return r
}

func unknownFailure() *Report {
	r := base("odd")
	r.Capacity = []Capacity{{
		Treatment: "default", Broke: true, Rate: new(12.345), Phases: 3, Seconds: 20,
		Failure: &signature.Failure{
			Class: signature.Unknown, Certainty: signature.NotKnown,
			Evidence: []string{"every seventh call failed with status 418 from 12/s on"},
			Scores:   map[signature.Class]float64{signature.Collapse: 0.44},
		},
		Limit: &limit.Verdict{Kind: limit.Unknown, Certainty: signature.NotKnown, Evidence: []string{
			"it serves 2 calls at a time: processors, workers, a pool or a lock look alike from outside",
		}},
		Valid: true, Stop: "time",
		Recovery: "answered again at once, on new connections only",
	}}
	r.Warnings = []string{"the hypervisor took 7.3 % of this host's CPU time during the trial (steal): times are doubtful"}
	return r
}

func invalid() *Report {
	r := base("too-fast")
	reason := "lateness p99 3.2 ms is above 1 ms at 40000/s"
	r.Capacity = []Capacity{{Treatment: "default", Phases: 1, Seconds: 6, Valid: false, Stop: "client", Reason: reason}}
	r.Generator = &Generator{Valid: false, Verdict: signature.Limiting, Lateness: &Lateness{
		P50: 0.0004, P99: 0.0032,
		Max: 0.02,
	}, AchievedRatio: new(0.912), Reason: reason}
	r.Verdict, r.Reason = Invalid, "default: the generator is the limit, not the target: "+reason
	return r
}

func wedged() *Report {
	r := acceptQueue()
	r.Experiment.Name = "wedged"
	r.Operations, r.Target, r.Notes = nil, nil, nil
	c := &r.Capacity[0]
	c.Wedged, c.RecoverySeconds, c.SLORate, c.Burst = true, nil, nil, nil
	c.Recovery = "answered none of 60 probes within 60 s after the load had stopped"
	r.Budgets = []Budget{{
		Text: "capacity >= 200/s", Treatment: "default", Verdict: Fail, Unit: metric.PerSecond,
		Estimate: new(150.0), Lo: new(149.1), Hi: new(150.9), Limit: new(200.0),
	}}
	r.Verdict, r.Reason = Fail, "1 budget of 1 broken"
	return r
}

func severalTreatments() *Report {
	r := base("presets")
	r.Treatments = []Treatment{
		{ID: "cache=on", Baseline: true, Levels: map[string]string{"cache": "on"}, Verified: true},
		{ID: "cache=off", Levels: map[string]string{"cache": "off"}, Verified: true},
	}
	r.Capacity = []Capacity{
		{
			Treatment: "cache=on", Broke: true, Rate: new(163.2), Lo: new(162.0), Hi: new(164.4),
			Phases: 4, Seconds: 47, Valid: true, Stop: "found",
		},
		{
			Treatment: "cache=off", Broke: true, Rate: new(99.97), Lo: new(99.5), Hi: new(100.4),
			Burst: new(50.0), Phases: 4, Seconds: 13, Valid: true, Stop: "found",
		},
	}
	r.Capacity[0].Limit, r.Capacity[0].Failure = likely(limit.CPUQuota, "", signature.Queue)
	r.Capacity[1].Limit, r.Capacity[1].Failure = likely(limit.RateLimit, "99.97/s", signature.TokenBucket)
	r.Operations = []Operation{
		{Treatment: "cache=on", Operation: "token", Outcomes: Outcomes{OK: 9000}},
		{Treatment: "cache=off", Operation: "token", Outcomes: Outcomes{
			OK: 2000, Refused: 612, ConnFailed: 1, Wrong: 2,
			Denied: 5, Failed: 4,
		}},
	}
	r.Budgets = []Budget{{
		Text: "capacity >= -20%", Treatment: "cache=off", Verdict: Fail, Unit: metric.Ratio, Estimate: new(-0.387),
		Lo: new(-0.395), Hi: new(-0.38), Limit: new(-0.2),
	}}
	r.Verdict, r.Reason = Fail, "1 budget of 1 broken"
	return r
}

func interrupted() *Report {
	r := base("cut-short")
	r.Status, r.Generator, r.Seconds = Interrupted, nil, 3
	r.Capacity = nil
	r.Operations = []Operation{{Treatment: "default", Operation: "token", Outcomes: Outcomes{OK: 12, Outstanding: 4}}}
	r.Warnings = []string{"2 changes to the system were not undone; run: tare undo results/cut-short-20260301T120000Z"}
	r.Budgets = []Budget{{
		Text: "capacity >= 100/s", Treatment: "default", Verdict: NotMeasured, Limit: new(100.0),
		Unit: metric.PerSecond, Reason: "no capacity was measured",
	}}
	r.Verdict, r.Reason = Inconclusive, "the run did not come to its end"
	return r
}

// hostile holds texts from a target that want to be more than text.
func hostile() *Report {
	r := base("a|b <script>alert(1)</script>")
	r.Capacity = []Capacity{{
		Treatment: "default", Broke: true, Rate: new(1.0), Phases: 1, Seconds: 1, Valid: true,
		Failure: &signature.Failure{Class: "\x1b[32mgreen <b>", Certainty: signature.Likely, Evidence: []string{
			"\x1b[31mred\x1b]0;title\x07 | *bold* [x](y)\nsecond line \u202Eoverride " + longWord,
		}},
	}}
	r.Notes = []string{"tab\there"}
	return r
}

const longWord = "averyveryveryveryveryveryveryveryveryveryveryvery" +
	"veryveryveryveryveryveryveryveryveryveryveryveryverylongword"

// otherQuestions fills every other part of the model, for the schema's sake.
func otherQuestions() *Report {
	r := base("everything")
	r.Question = design.Compare
	r.Treatments[0].Control = design.AA
	r.Treatments[0].Metrics = []Metric{{
		Name: "cpu", Unit: "CPU-s", Value: 0.0019, Lo: new(0.0018), Hi: new(0.002),
		Level: new(0.95), N: 20,
	}}
	r.Effects = []Effect{{
		Treatment: "x", Metric: "response", Quantile: "p50", Kind: "difference", Estimate: 0.1, Lo: 0.08,
		Hi: 0.14, Level: 0.95, Verdict: Regressed, Margin: new(0.02), Measurable: true, MDE: new(0.05),
		BlocksToDecide: new(9),
	}}
	r.Growth = []Growth{{
		Factor: "policies", Treatment: "x", Metric: "cpu", Law: "linear", Tied: []string{"N log N"},
		Range: Interval{1, 5000}, Coefficients: Coefficients{0.08, 0.038},
		BreaksBudgetAt: &Crossing{Value: 260, Lo: new(250.0)},
	}}
	r.Soak = []Soak{{
		Treatment: "x", Operation: "healthcheck", Windows: "windows.csv",
		Drift: map[string]Drift{"rss": {PerHour: 1e6, Verdict: Equivalent}}, Restarts: []float64{12.5},
	}}
	r.SLO = []SLO{{Name: "mutating", Formula: "official", Verdict: Pass, Value: new(0.2), Limit: 1}}
	r.Attribution = []Attribution{{Operation: "create-pod", Client: new(0.001), Webhook: new(0.002)}}
	r.AA = &AA{Reliable: true, Effects: r.Effects, NegativeControls: r.Effects}
	return r
}
