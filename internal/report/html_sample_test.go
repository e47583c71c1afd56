package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"time"

	"tare/internal/design"
	"tare/internal/limit"
	"tare/internal/metric"
	"tare/internal/signature"
)

// samples are reports of every shape that the page must cope with.
func pageSamples() map[string]*Report {
	return map[string]*Report{
		"psp":             recorded("psp"),
		"psp-hostile":     recorded("psp-hostile"),
		"levels-at-rates": levelsAtRates(),
		"search":          search(),
		"ladder":          ladderRun(),
		"workloads":       workloadRun(),
		"treatments":      treatmentRun(),
		"healthy":         healthy(),
		"invalid":         invalidRun(),
		"interrupted":     pageInterrupted(),
		"hostile":         pageHostile(),
		"enforcers":       pageEnforcers(40),
		"caches":          caches(),
		"unreliable":      pageUnreliable(),
		"stopped":         stopped(),
		"rules":           scaled(),
		"hostile-compare": hostileCompare(),
		"soak":            recorded("soak"),
		"soak-engines":    recorded("soak-treatments"),
		"soak-partial":    recorded("soak-interrupted"),
		"soak-hostile":    hostileSoak(),
		"decisions":       recorded("tribunal-compare"),
		"bare":            {Schema: Schema, Experiment: Experiment{Name: "bare"}, Verdict: None, Treatments: []Treatment{}},
	}
}

// recorded is a sample of package report, as its JSON keeps it.
func recorded(name string) *Report {
	var b bytes.Buffer
	r := &Report{}
	if err := errors.Join(JSON(&b, samples()[name]), json.Unmarshal(b.Bytes(), r)); err != nil {
		panic(err)
	}
	return r
}

// hostileSoak has more operations than colours, and names that want to be more than names.
func hostileSoak() *Report {
	r := recorded("soak")
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

func pageBase(name string) *Report {
	return &Report{
		Schema: Schema, Tool: Tool{Version: "0.1.0", Commit: "947ae69"},
		Experiment: Experiment{Name: name, File: name + ".yaml", SHA256: "0f3a", Seed: 4211},
		Area:       "turnpike", Question: design.Capacity, Started: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC),
		Seconds: 47.25,
		Status:  Complete, Verdict: None, Reason: "no budget was given",
		Treatments: []Treatment{{ID: "default", Verified: true}},
		Environment: Environment{
			Host: "host", Kernel: "Linux 6.1.0", CPUs: 2, Go: "go1.26.8", Tare: "0.1.0",
			Target: map[string]string{"endpoint": "2.1"},
		},
		Generator: &Generator{
			Valid: true, Lateness: &Lateness{P50: 4e-6, P99: 40e-6, Max: 310e-6}, AchievedRatio: new(1.0), CPUSeconds: new(1.93),
			Verdict: signature.RuledOut, Evidence: []string{"its busiest thread ran 12 % of the time"},
		},
	}
}

// search broke at 163.7/s with its accept queue full.
func search() *Report {
	r := pageBase("gke-2020")
	r.Capacity = []Capacity{{
		Treatment: "default", Broke: true, Rate: new(163.7), Lo: new(161.2), Hi: new(166.2), VerifiedLow: new(155.0),
		VerifiedHigh: new(172.0),
		SLORate:      new(112.5), Burst: new(64.0), Limit: shownQuota(), Failure: fullQueue(),
		RecoverySeconds: new(31.0), Phases: 4,
		Seconds: 12.4, Valid: true,
		Stop: "found", Reason: "the capacity was found and confirmed",
	}}
	r.Timeline = []Timeline{course163("default")}
	r.Operations = []Operation{{
		Treatment: "default", Operation: "token", Outcomes: Outcomes{OK: 5210, Timeout: 2050, Unsent: 3},
		Response: &Distribution{N: 5210, Min: 0.0009, Mean: 0.6, P50: new(0.171), P99: new(4.2), Max: 5.1},
		Causes: []Cause{
			{Outcome: "timeout", Cause: "connected, and never a byte", Calls: 2047},
			{Outcome: "timeout", Cause: "never sent", Calls: 3},
		},
	}}
	r.Target = []Target{
		{
			Treatment: "default", Name: "endpoint", CPUSeconds: new(1.24), CPUPerOp: new(0.000238),
			RSS: &RSS{Before: new(18.5e6), After: new(41.0e6), Peak: new(44.0e6)}, Throttled: &Throttled{
				Periods: new(118.0),
				Seconds: new(9.8),
			},
			GC: []GC{{Name: "go", Count: 12, Seconds: 0.0021}}, Other: map[string]float64{"listen_queue": 1025, "threads": 9},
		},
		{Treatment: "default", Name: "sts", RSS: &RSS{After: new(12e6)}},
	}
	r.Budgets = []Budget{
		{
			Text: "capacity >= 100/s", Treatment: "default", Verdict: Pass, Unit: metric.PerSecond, Estimate: new(163.7),
			Lo: new(161.2), Hi: new(166.2), Limit: new(100.0),
		},
		{
			Text: "response.p99 <= 500ms at 50/s", Treatment: "default", Verdict: Inconclusive, Unit: metric.Seconds,
			Estimate: new(0.312), Lo: new(0.2), Limit: new(0.5), Reason: "measured at 80/s over 40 calls",
		},
	}
	r.Verdict, r.Reason = Inconclusive, "1 budget of 2 undecided or not measured"
	r.Notes = []string{"the CPU limit is a calibrated throttle in the process: this host allows no control group"}
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
	r := pageBase("ladder")
	point := func(rate, ok, p50, p99, goodput float64, stuck uint64, drain float64) Point {
		return Point{
			Rate: rate, Seconds: 5, Offered: uint64(rate * 5), Sent: uint64(rate * 5), Success: &ok, Goodput: &goodput,
			P50: &p50, P99: &p99,
			NoByte: stuck, Stuck: stuck, DrainSeconds: drain, VegetaThroughput: new(goodput * .7),
			Generator: &Generator{
				Valid: true, Lateness: &Lateness{P50: 3e-6, P99: 1e-7 * rate, Max: 1e-6 * rate},
				AchievedRatio: new(1.0), Verdict: signature.RuledOut,
			},
			Used: map[string]float64{"endpoint cpu": rate * 0.004, "endpoint rss": 2e7, "sts upstream_calls": rate},
		}
	}
	late := point(1000, 0.795, 8.9, 30.0, 163.4, 1025, 30.0)
	late.Generator = &Generator{Valid: false, Reason: "lateness p99 2.1 ms > 1 ms"}
	r.Capacity = []Capacity{{
		Treatment: "default", Broke: true, VerifiedLow: new(150.0), VerifiedHigh: new(500.0),
		Failure: fullQueue(),
		Phases:  4, Seconds: 141, Valid: true, Stop: "ladder",
		Points: []Point{
			point(10, 1, 0.005, 0.031, 10, 0, 0.004), point(150, 1, 0.171, 0.682, 148.6, 0, 0.4),
			point(500, 0.59, 0.94, 30, 163.1, 1025, 30), late,
		},
	}}
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

func treatmentRun() *Report {
	r := pageBase("presets")
	r.Treatments = []Treatment{
		{ID: "cache=on", Baseline: true, Levels: map[string]string{"cache": "on"}, Verified: true},
		{ID: "cache=off", Levels: map[string]string{"cache": "off"}, Verified: false},
	}
	r.Capacity = []Capacity{
		{
			Treatment: "cache=on", Broke: true, Rate: new(163.2), Lo: new(162.0), Hi: new(164.4),
			Phases: 4, Seconds: 47, Valid: true, Stop: "found",
		},
		{
			Treatment: "cache=off", Broke: true, Rate: new(99.97), Lo: new(99.5), Hi: new(100.4),
			Burst: new(50.0), Phases: 4, Seconds: 13, Valid: true, Wedged: true,
		},
	}
	r.Capacity[0].Limit, r.Capacity[0].Failure = likely(limit.CPUQuota, "", signature.Queue)
	r.Capacity[1].Limit, r.Capacity[1].Failure = likely(limit.RateLimit, "99.97/s", signature.TokenBucket)
	r.Timeline = []Timeline{course163("cache=on"), course163("cache=off")}
	r.Budgets = []Budget{{
		Text: "capacity >= -20%", Treatment: "cache=off", Verdict: Fail, Unit: metric.Ratio,
		Estimate: new(-0.387), Lo: new(-0.395), Hi: new(-0.38), Limit: new(-0.2),
	}}
	r.Verdict, r.Reason = Fail, "1 budget of 1 broken"
	return r
}

func healthy() *Report {
	r := pageBase("healthy")
	r.Capacity = []Capacity{{
		Treatment: "default", AtLeast: new(2000.0), VerifiedLow: new(2000.0),
		RecoverySeconds: new(0.0), Phases: 1, Seconds: 8.1, Valid: true, Stop: "max-rate",
		Reason: "nothing broke up to the highest rate allowed",
	}}
	r.Verdict, r.Reason = Pass, "1 budget kept"
	return r
}

func invalidRun() *Report {
	r := pageBase("too-fast")
	reason := "lateness p99 3.2 ms is above 1 ms at 40000/s"
	r.Capacity = []Capacity{{Treatment: "default", Phases: 1, Seconds: 6, Stop: "client", Reason: reason}}
	r.Generator = &Generator{
		Lateness: &Lateness{P50: 0.0004, P99: 0.0032, Max: 0.02}, AchievedRatio: new(0.912),
		Reason: reason,
	}
	r.Verdict, r.Reason = Invalid, "default: the generator is the limit, not the target: "+reason
	return r
}

func pageInterrupted() *Report {
	r := pageBase("cut-short")
	r.Status, r.Generator, r.Seconds = Interrupted, nil, 3
	r.Operations = []Operation{{Treatment: "default", Operation: "token", Outcomes: Outcomes{OK: 12, Outstanding: 4}}}
	r.Budgets = []Budget{{
		Text: "capacity >= 100/s", Treatment: "default", Verdict: NotMeasured, Limit: new(100.0),
		Unit: metric.PerSecond, Reason: "no capacity was measured",
	}}
	r.Verdict, r.Reason = Inconclusive, "the run did not come to its end"
	return r
}

// attack is a text that runs if it is taken for anything but text.
const attack = `</script><script>window.pwned=1</script><img src=x onerror=window.pwned=1>"'><svg onload=window.pwned=1> {{.}} <!--<script> javascript:window.pwned=1`

// hostile has an attack wherever a record holds a text.
func pageHostile() *Report {
	r := search()
	disguise := "\x1b[31mred \u202Eoverride\u2028line " + attack
	r.Experiment = Experiment{Name: "n " + attack, File: "f " + attack, SHA256: attack, Seed: 1}
	r.Tool, r.Area, r.Question, r.Reason = Tool{Version: attack, Commit: attack}, attack, design.Question(attack), disguise
	r.Treatments = []Treatment{{ID: "t " + attack, Levels: map[string]string{attack: attack}}, {ID: "other"}}
	r.Environment = Environment{
		Host: attack, Kernel: attack, Go: attack, Tare: attack,
		Target: map[string]string{attack: attack},
	}
	r.Generator.Reason, r.Generator.Valid = attack, false
	c := &r.Capacity[0]
	c.Treatment, c.Operation, c.Reason, c.Recovery, c.Stop = "t "+attack, attack, attack, attack, attack
	not := []signature.Exclusion{{What: attack, By: attack}}
	c.Failure = &signature.Failure{
		Class: signature.Class(attack), Certainty: signature.Likely, Evidence: []string{disguise, attack}, Excluded: not,
		Scores: map[signature.Class]float64{signature.Class(attack): 1},
	}
	c.Limit = &limit.Verdict{
		Kind: limit.Slots, Certainty: signature.Shown, Value: attack, Evidence: []string{disguise, attack}, Excluded: not,
		Prediction: &limit.Prediction{Change: attack, How: attack},
	}
	c.Points = []Point{{
		Name: attack, Rate: 10, Goodput: new(10.0), P99: new(0.1), Used: map[string]float64{attack: 1},
		Generator: &Generator{Reason: attack},
	}}
	r.Timeline[0].Treatment = "t " + attack
	for i := range r.Timeline[0].Steps {
		r.Timeline[0].Steps[i].Name = attack
	}
	r.Timeline[0].Marks = []Mark{{At: 3, Text: disguise}}
	r.Operations[0] = Operation{
		Treatment: attack, Operation: attack, Outcomes: Outcomes{OK: 1},
		Causes: []Cause{{Outcome: attack, Cause: disguise, Calls: 1}},
	}
	r.Target = []Target{{
		Treatment: attack, Name: attack, CPUSeconds: new(1.0), RSS: &RSS{After: new(1e6)},
		GC: []GC{{Name: attack}}, Other: map[string]float64{attack: 1},
	}}
	r.Budgets = []Budget{{
		Text: attack, Treatment: attack, Verdict: Verdict(attack), Unit: metric.Unit(attack),
		Estimate: new(1.0), Reason: disguise,
	}}
	r.Notes, r.Warnings = []string{disguise}, []string{disguise}
	return r
}

// levelsAtRates is a search on a control plane that has rates to draw: its service levels stand below them.
func levelsAtRates() *Report {
	r := recorded("gatehouse-capacity")
	r.Capacity[0].Points = ladderRun().Capacity[0].Points
	return r
}
