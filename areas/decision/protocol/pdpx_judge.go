package protocol

import (
	"tare/areas/decision/model"
	"tare/internal/jsonscan"
	"tare/internal/load"
)

// readGuard reads {"status":"Permit"}. A request that could not be converted is 200 with status "error" and a message.
func readGuard(body []byte) (model.Decision, Verdict) {
	var f [1][]byte
	if !jsonscan.Pick(body, f[:], "status") {
		return model.None, malformed(body)
	}
	return guardStatus(f[0])
}

func guardStatus(raw []byte) (model.Decision, Verdict) {
	switch {
	case isNull(raw):
		return model.None, NoDecision
	case raw[0] != '"':
		return model.None, NotJSON
	case jsonscan.Is(raw, "error"):
		return model.None, SchemaError
	}
	if d, v := xacmlDecision(raw); v == Fine {
		return d, v
	}
	return model.None, NoDecision
}

// judge returns the judge of answers to a monitoring request. The requested policy is Permit; any other policy is a
// wrong Permit.
func (r pdpxRequest) judge(want model.Decision) judge {
	id := r.policyID()
	return func(status int, body []byte) (load.Outcome, Verdict, model.Decision) {
		if status != 200 {
			o, v := refusal(status)
			return o, v, model.None
		}
		d, v, there := readPolicies(body, id)
		if v != Fine {
			return load.Wrong, v, model.None
		}
		if d == model.Permit && want == model.Permit && !there {
			return load.Wrong, OtherPolicies, d
		}
		o, v := judgeDecision(want, d)
		return o, v, d
	}
}

// readPolicies reads the answer to a monitoring request: the decision, and whether the policy id is among those that
// came; any, with an id of "".
func readPolicies(body []byte, id string) (d model.Decision, v Verdict, there bool) {
	var f [3][]byte
	if !jsonscan.Pick(body, f[:], "policies", "status", "message") {
		return model.None, malformed(body), false
	}
	if isNull(f[0]) {
		d, v = guardStatus(f[1])
		return d, v, false
	}
	n := 0
	w := jsonscan.Object(f[0])
	for {
		key, policy, more := w.Next()
		if !more {
			break
		}
		var kind [1][]byte
		if !jsonscan.Pick(policy, kind[:], "type") || len(kind[0]) <= 2 || kind[0][0] != '"' {
			return model.None, NotJSON, false
		}
		n++
		named := jsonscan.Is(key, id)
		if named && there {
			return model.None, NotJSON, false
		}
		there = there || named
	}
	switch {
	case !w.Whole():
		return model.None, NotJSON, false
	case n > 0:
		return model.Permit, Fine, there || id == ""
	case isNull(f[2]) && (isNull(f[1]) || jsonscan.Is(f[1], "error")):
		return model.NotApplicable, Fine, false
	case jsonscan.Is(f[1], "error"):
		return model.Indeterminate, Fine, false // XACML gives a status message with no other decision
	}
	d, v = guardStatus(f[1])
	return d, v, false
}

// judgeHealth wants {"healthy":true}, which is no decision.
func judgeHealth(status int, body []byte) (load.Outcome, Verdict, model.Decision) {
	var f [1][]byte
	whole := jsonscan.Pick(body, f[:], "healthy")
	healthy, known := isTrue(f[0])
	switch {
	case whole && known && !healthy:
		return load.Wrong, NotHealthy, model.None
	case status != 200:
		o, v := refusal(status)
		return o, v, model.None
	case !whole:
		return load.Wrong, malformed(body), model.None
	case !known:
		return load.Wrong, NotHealthy, model.None
	}
	return load.OK, Fine, model.None
}

// pdpxCounters returns the counts of decisions in statistics, in the order of counted.
func pdpxCounters() []string {
	return []string{
		"permitDecisionsCount", "denyDecisionsCount", "notApplicableDecisionsCount",
		"indeterminantDecisionsCount",
	}
}

// judgeStatistics wants the counts of decisions, which are no decision themselves.
func judgeStatistics(status int, body []byte) (load.Outcome, Verdict, model.Decision) {
	if status != 200 {
		o, v := refusal(status)
		return o, v, model.None
	}
	var f [4][]byte
	if !jsonscan.Pick(body, f[:], "permitDecisionsCount", "denyDecisionsCount", "notApplicableDecisionsCount",
		"indeterminantDecisionsCount") {
		return load.Wrong, malformed(body), model.None
	}
	for _, raw := range f {
		if len(raw) == 0 || jsonscan.Digits(raw) != len(raw) {
			return load.Wrong, NoStatistics, model.None
		}
	}
	return load.OK, Fine, model.None
}
