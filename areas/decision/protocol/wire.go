package protocol

import (
	"tare/areas/decision/model"
	"tare/internal/jsonscan"
	"tare/internal/load"
)

// A judge says what an answer is worth, why it is not good (Fine: outcome and status say it all), and the decision that
// it holds (None: it holds none). It is called on the hot path: it must not allocate or keep the body.
type judge func(status int, body []byte) (load.Outcome, Verdict, model.Decision)

// A reader finds the decision in the body of a good status, or says why the body has no decision. It must not allocate
// or keep the body.
type reader func(body []byte) (model.Decision, Verdict)

// isTrue reports whether a value is true; known is false when it is neither true nor false.
func isTrue(raw []byte) (yes, known bool) {
	yes = string(raw) == "true"
	return yes, yes || string(raw) == "false"
}

// readBool reads a decision that is true for Permit and false for Deny; nil: it is not there.
func readBool(raw []byte) (model.Decision, Verdict) {
	yes, known := isTrue(raw)
	switch {
	case raw == nil:
		return model.None, NoDecision
	case !known:
		return model.None, NotJSON
	case yes:
		return model.Permit, Fine
	}
	return model.Deny, Fine
}

// isNull reports whether a value is null or not there.
func isNull(raw []byte) bool { return raw == nil || string(raw) == "null" }

// malformed returns the verdict on a body that has not the promised form: nothing at all, or no JSON.
func malformed(body []byte) Verdict {
	if jsonscan.IsBlank(body) {
		return NoDecision
	}
	return NotJSON
}

// A wire is one request, rendered ahead, and the judge of its answers.
type wire struct {
	bytes []byte
	judge judge
}

var (
	_ load.Wire = (*wire)(nil)
	_ load.Wire = (*wire)(nil)
)

// ConnKey implements load.Wire: all connections are the same caller's.
func (w *wire) ConnKey(uint64) int { return 0 }

// Render implements load.Wire.
func (w *wire) Render(dst []byte, _ uint64) []byte { return append(dst, w.bytes...) }

// Check implements load.Wire.
func (w *wire) Check(_ uint64, status int, body []byte) load.Outcome {
	o, _, _ := w.judge(status, body)
	return o
}

// Explain implements load.Wire, with the indexes of Causes.
func (w *wire) Explain(_ uint64, status int, body []byte) int {
	_, v, _ := w.judge(status, body)
	return int(v)
}

// A call is a request, and what judges the answers to it.
type call struct {
	request
	expect string // which answer is good, in words
	judge  judge
	more   func(body []byte) string   // what an answer says besides the decision; nil: nothing
	listed func(body []byte) []string // what the list of an answer holds; nil: it is about no list
	weight int                        // in the mix; 0: 1
	// numbered reports that load.CallMark in the body stands for the call's own number.
	numbered bool
}

// operation returns the timed call.
func (c call) operation(s *Session, q model.Question) load.Operation {
	o := operationOf(q, c.expect)
	o.Weight = max(1, c.weight)
	if c.numbered {
		o.Wire = newNumbered(c.render(s), c.judge)
	} else {
		o.Wire = &wire{bytes: c.render(s), judge: c.judge}
	}
	return o
}

// operationOf returns the timed call of a question without what makes it. expect says in words which answer is good.
func operationOf(q model.Question, expect string) load.Operation {
	o := load.Operation{Name: q.Name, Weight: 1, Expect: expect, Causes: Causes(), CauseAnswers: CauseAnswers()}
	if q.Want != model.None {
		o.Answer = q.Want.String()
	}
	return o
}

// wants returns the judge of answers to a question: a good status (200) with a body in which read finds the wanted
// decision.
func wants(want model.Decision, read reader) judge {
	return func(status int, body []byte) (load.Outcome, Verdict, model.Decision) {
		if status != 200 {
			o, v := refusal(status)
			return o, v, model.None
		}
		return judgeBody(want, read, body)
	}
}

// judgeBody judges the body of a good status.
func judgeBody(want model.Decision, read reader, body []byte) (load.Outcome, Verdict, model.Decision) {
	d, v := read(body)
	if v != Fine {
		return load.Wrong, v, model.None
	}
	o, v := judgeDecision(want, d)
	return o, v, d
}

// judgeDecision returns what a decision is worth where want was wanted: OK is a wanted permit, Denied a wanted no.
func judgeDecision(want, got model.Decision) (load.Outcome, Verdict) {
	switch {
	case got != want || got == model.None || got == model.Indeterminate:
		return load.Wrong, Says(got)
	case got == model.Permit:
		return load.OK, Fine
	}
	return load.Denied, Fine
}

// refusal returns what a status other than success means, where the protocol says nothing else.
func refusal(status int) (load.Outcome, Verdict) {
	switch status {
	case 400, 411, 413, 415, 422:
		return load.Wrong, SchemaError
	case 401:
		return load.Wrong, WrongCredentials
	case 403:
		return load.Wrong, NotAllowed
	case 404, 405, 410:
		return load.Wrong, NoSuchPolicy
	case 409:
		return load.Refused, NotReady
	case 429, 503:
		return load.Refused, Fine
	}
	if status >= 500 || status < 200 {
		return load.Failed, Fine
	}
	return load.Wrong, Fine
}
