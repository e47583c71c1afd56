package report

import "tare/internal/design"

// guards are reports of what controls refuse.
func guards() map[string]*Report {
	return map[string]*Report{
		"guard": failsOpen(), "guard-sound": failsClosed(), "guard-nothing": decidesNothing(),
		"guard-unclear": answersNeither(), "guard-unearned": neverOverloaded(),
	}
}

// triedTrespasses are trespasses with their share.
func triedTrespasses(refused, permitted, undecided uint64, lo, hi float64) Trespasses {
	n := Trespasses{Refused: refused, Permitted: permitted, Undecided: undecided}
	if d := float64(n.Decided()); d > 0 {
		n.Share = &Share{Value: float64(permitted) / d, Lo: lo, Hi: hi}
	}
	return n
}

func guardSample(name string) *Report {
	r := base(name)
	r.Area, r.Question, r.Seconds = "tribunal", design.Guard, 141
	r.Treatments = []Treatment{{ID: "default", Verified: true}}
	return r
}

// failsOpen permits what waits for too long, and for a moment after a restart.
func failsOpen() *Report {
	r := guardSample("guard")
	r.Verdict, r.Reason = Fail, "1 budget of 1 broken"
	r.Guard = []Guard{{
		Treatment: "default", Capacity: new(500.0),
		Trespasses: triedTrespasses(2210, 131, 25, 0.0471, 0.0659),
		Operations: map[string]Trespasses{
			"read without right": triedTrespasses(1110, 131, 25, 0.089, 0.124), "write": triedTrespasses(1100, 0, 0, 0, 0.0028),
		},
		Onset:   &Onset{Above: new(489.2), Below: 502.4, Clear: true, Sharp: true},
		Reached: new(1000.0),
		Overload: &GuardOverload{
			Rate: 1000, ServedShare: &Share{0.5266, 0.511, 0.5422}, ServedBelow: &Share{0.9922, 0.9878, 0.9953},
			Median: new(0.9), MedianBelow: new(0.0082), FewerServed: true, Slower: true, Answered: 1007, Decided: 1007,
		},
		Points: []GuardPoint{
			{
				Rate: 125, Factor: new(0.25), Seconds: 8, Trespasses: triedTrespasses(201, 0, 0, 0, 0.0148),
				Offered: 799, Served: 799,
				ServedShare: &Share{1, 0.9963, 1}, P99: new(0.011),
			},
			{
				Rate: 502.4, Factor: new(1.005), Seconds: 5, Refined: true,
				Trespasses: triedTrespasses(480, 17, 3, 0.02, 0.0543),
				Offered:    2010, Served: 1988, Failed: 22, ServedShare: &Share{0.989, 0.9835, 0.9931}, P99: new(0.31),
				FirstBreach: new(1.9), LastBreach: new(5.1),
			},
			{
				Rate: 1000, Factor: new(2.0), Seconds: 5, Trespasses: triedTrespasses(899, 108, 21, 0.0887, 0.1282),
				Offered: 3990, Served: 2101, Failed: 1889, ServedShare: &Share{0.5266, 0.511, 0.5422}, P99: new(2.0),
				FirstBreach: new(0.2), LastBreach: new(6.4),
			},
			{
				Name: "restart", Rate: 250, Factor: new(0.5), Seconds: 11, Trespasses: triedTrespasses(210, 6, 1, 0.0103, 0.0595),
				Offered: 2533, Served: 2490, Failed: 43, ServedShare: &Share{0.983, 0.9772, 0.9877}, P99: new(0.4),
				FirstBreach: new(0.34), LastBreach: new(0.51),
				Causes: []GuardCause{
					{"write", Cause{"failed", "status 503 Service Unavailable", 43}},
					{"read without right", Cause{"conn_failed", "no <connection> could be made", 1}},
				},
				Condition: &GuardCondition{
					Name: "restart", Does: "the process is killed, and started again", Begun: 2, Ended: new(2.3),
					Recovery: new(0.05),
				},
			},
			{
				Name: "partition", Rate: 250, Factor: new(0.5), Seconds: 11, Trespasses: triedTrespasses(420, 0, 0, 0, 0.0071),
				Offered: 2533, Served: 1400, Failed: 1133, ServedShare: &Share{0.5527, 0.533, 0.572}, P99: new(2.0),
				Condition: &GuardCondition{Name: "partition", Begun: 2, Error: "the source cannot be stopped: <no permission>"},
			},
		},
		Breaches: []Breach{
			{
				Operation: "read without right", Point: "1 × capacity", Rate: 502.4, At: 1.9, Status: 200,
				Request: "read as caller 7", Answer: `{"allowed":true}`, AnswerBytes: 16, InFlight: 121, Waiting: 4, Again: "denied",
			},
			{
				Operation: "read | without", Point: "restart", Rate: 250, At: 2.4, Status: 200, AnswerBytes: 16, InFlight: 3,
				Again: "permitted",
			},
		},
	}}
	r.Budgets = []Budget{{
		Text: "permitted <= 0", Treatment: "default", Verdict: Fail, Estimate: new(0.056), Lo: new(0.0471), Hi: new(0.0659),
		Limit: new(0.0), Unit: "ratio", Reason: "131 of 2341 trespasses were permitted",
	}}
	r.Warnings = []string{"the condition partition: the source cannot be stopped: <no permission>"}
	return r
}

// failsClosed refuses everything when it is overloaded, under two treatments.
func failsClosed() *Report {
	r := guardSample("guard-sound")
	r.Verdict, r.Reason = Pass, "2 budgets kept"
	r.Treatments = []Treatment{{ID: "cache=off", Verified: true}, {ID: "cache=on", Verified: true}}
	for _, t := range r.Treatments {
		r.Guard = append(r.Guard, Guard{
			Treatment: t.ID, Trespasses: triedTrespasses(12408, 0, 0, 0, 0.00024), RatesGiven: true, Reached: new(4000.0),
			Overload: &GuardOverload{
				Rate: 4000, ServedShare: &Share{0.375, 0.364, 0.386}, ServedBelow: &Share{1, 0.998, 1}, FewerServed: true,
				Answered: 12008, Decided: 12008,
			},
			Points: []GuardPoint{
				{
					Rate: 100, Seconds: 20, Trespasses: triedTrespasses(400, 0, 0, 0, 0.0075), Offered: 1600, Served: 1600,
					ServedShare: &Share{1, 0.998, 1}, P99: new(0.009),
				},
				{
					Rate: 4000, Seconds: 5, Trespasses: triedTrespasses(12008, 0, 0, 0, 0.00025), Offered: 8000, Served: 3000,
					Wrong: 5000, ServedShare: &Share{0.375, 0.364, 0.386}, P99: new(0.1),
				},
			},
			Figures: []GuardFigure{{Condition: "revoke", Metric: "revoke", Values: &Distribution{
				N: 20, Min: 0.01, Mean: 0.2, P50: new(0.19), P90: new(0.4), Max: 0.51,
			}}},
		})
		r.Budgets = append(r.Budgets, Budget{
			Text: "permitted <= 0.1%", Treatment: t.ID, Verdict: Pass, Estimate: new(0.0), Lo: new(0.0), Hi: new(0.00024),
			Limit: new(0.001), Unit: "ratio", Reason: "0 of 12408 trespasses were permitted",
		})
	}
	return r
}

// neverOverloaded serves everything up to the highest rate that may be offered.
func neverOverloaded() *Report {
	r := guardSample("guard-unearned")
	r.Verdict, r.Reason = Inconclusive, "1 budget of 1 undecided or not measured"
	why := "the control was not overloaded: it served 100.0 % up to 640/s, the highest rate that was offered " +
		"(max_rate); raise max_rate, or say which rates are enough: --rates 640/s, or load.rates"
	r.Guard = []Guard{{
		Treatment: "default", Trespasses: triedTrespasses(2100, 0, 0, 0, 0.0015), Reached: new(640.0), Unearned: why,
		Points: []GuardPoint{
			{
				Rate: 160, Seconds: 17, Trespasses: triedTrespasses(700, 0, 0, 0, 0.0043), Offered: 2020, Served: 2020,
				ServedShare: &Share{1, 0.9985, 1}, Median: new(0.0081), P99: new(0.009),
			},
			{
				Rate: 640, Seconds: 9, Trespasses: triedTrespasses(1400, 0, 0, 0, 0.0022), Offered: 4360, Served: 4360,
				ServedShare: &Share{1, 0.9993, 1}, Median: new(0.0083), P99: new(0.011),
			},
		},
	}}
	r.Budgets = []Budget{{
		Text: "permitted <= 0", Treatment: "default", Verdict: Inconclusive, Estimate: new(0.0), Lo: new(0.0),
		Hi: new(0.0015), Limit: new(0.0), Unit: "ratio", Reason: "0 of 2100 trespasses were permitted; " + why,
	}}
	return r
}

// decidesNothing answers no trespass.
func decidesNothing() *Report {
	r := guardSample("guard-nothing")
	r.Verdict, r.Reason = Inconclusive, "1 budget of 1 undecided or not measured"
	r.Guard = []Guard{{
		Treatment: "default", Trespasses: triedTrespasses(0, 0, 211, 0, 0), Points: []GuardPoint{
			{
				Rate: 10, Seconds: 30, Trespasses: triedTrespasses(0, 0, 211, 0, 0), Offered: 90, Failed: 90,
				ServedShare: &Share{0, 0, 0.033},
			},
		},
	}}
	r.Budgets = []Budget{{
		Text: "permitted <= 0", Treatment: "default", Verdict: NotMeasured, Limit: new(0.0), Unit: "ratio",
		Reason: "the control decided none of the trespasses",
	}}
	return r
}

// answersNeither answers trespasses with neither a permit nor a refusal when it is overloaded, gives answers of others,
// and permits in bursts under a condition.
func answersNeither() *Report {
	r := guardSample("guard-unclear")
	r.Verdict, r.Reason = Fail, "1 budget of 1 broken"
	high := triedTrespasses(5, 0, 472, 0, 0.4507)
	high.Unclear = 208
	all := triedTrespasses(586, 10, 567, 0.0081, 0.0306)
	all.Unclear = 208
	r.Guard = []Guard{{
		Treatment: "default", Trespasses: all, Foreign: 13, InBursts: true, Onset: &Onset{Below: 150},
		Points: []GuardPoint{
			{
				Rate: 150, Seconds: 6, Trespasses: triedTrespasses(254, 10, 0, 0.0183, 0.0687), Offered: 640, Served: 627,
				Wrong: 13, Foreign: 13, ServedShare: &Share{0.9797, 0.9655, 0.9891}, FirstBreach: new(3.5), LastBreach: new(3.6),
			},
			{
				Rate: 800, Seconds: 2, Trespasses: high, Offered: 1120, Served: 13, Wrong: 470, Failed: 637,
				ServedShare: &Share{0.0116, 0.0062, 0.0198},
			},
			{
				Name: "slow", Rate: 150, Seconds: 11, Trespasses: triedTrespasses(211, 0, 0, 0, 0.0141), Offered: 1390,
				Served: 1390, ServedShare: &Share{1, 0.9978, 1},
				Condition: &GuardCondition{
					Name: "slow", Begun: 2, Ended: new(7.0), Recovery: new(0.0), During: new(triedTrespasses(95, 0, 3, 0, 0.0309)),
					Afterwards: new(triedTrespasses(80, 0, 0, 0, 0.0368)),
				},
			},
			{
				Name: "partition", Rate: 150, Seconds: 11, Trespasses: triedTrespasses(116, 0, 95, 0, 0.0255), Offered: 1390,
				Served: 760, Failed: 630, ServedShare: &Share{0.5468, 0.5202, 0.5731},
				Condition: &GuardCondition{
					Name: "partition", Begun: 2, Ended: new(7.0), Recovery: new(0.0), During: new(triedTrespasses(0, 0, 95, 0, 0)),
					Afterwards: new(triedTrespasses(78, 0, 0, 0, 0.0377)),
				},
			},
		},
	}}
	r.Budgets = []Budget{{
		Text: "permitted <= 0", Treatment: "default", Verdict: Fail, Estimate: new(0.0168), Lo: new(0.0081), Hi: new(0.0306),
		Limit: new(0.0), Unit: "ratio", Reason: "10 of 596 trespasses were permitted; 13 calls that it must allow got what " +
			"is somebody else's",
	}}
	return r
}
