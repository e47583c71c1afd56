package protocol

import (
	"encoding/json"
	"fmt"

	"tare/areas/decision/model"
	"tare/internal/jsonscan"
	"tare/internal/load"
)

// authZEN returns the adapter for the OpenID AuthZEN Authorization API 1.0
// (https://openid.net/specs/authorization-api-1_0.html), sections 6 (access evaluation) and 7 (access evaluations).
//
//	request   POST /access/v1/evaluation
//	          {"subject":{"type","id","properties"},"action":{"name"},"resource":{"type","id"},"context"}
//	answer    200 {"decision":true|false}; a false whose context holds an error is Indeterminate: nothing was decided
//	batch     POST /access/v1/evaluations {"evaluations":[…]} → {"evaluations":[{"decision":…},…]}, in the order of the
//	          questions
//	refusals  400 the request · 401, 403 the caller · 500
//	no policy there is no such answer: false. A question cannot want not-applicable.
func authZEN() Adapter {
	return Adapter{
		Name: "authzen", Help: "OpenID AuthZEN 1.0: POST /access/v1/evaluation, and evaluations for batches",
		Schemes: webSchemes(), Path: true, title: "AuthZEN", decisions: []model.Decision{model.Permit, model.Deny},
		Plain: func(permit bool) string { return fmt.Sprintf(`{"decision":%t}`, permit) },
		call:  oneEvaluation, batch: severalEvaluations,
	}
}

// oneEvaluation asks a single question.
func oneEvaluation(s *Session, q model.Question) (call, error) {
	r, err := posted(below(s.Options.Path, "/access/v1/evaluation"), jsonMedia, q.Body, evaluationOf(q))
	return call{
		request: r, expect: "200 with decision " + fmt.Sprint(q.Want == model.Permit),
		judge: wants(q.Want, readEvaluation), more: contextOf,
	}, err
}

// severalEvaluations asks the same question n times in one request: at the path of single questions with an s behind
// it. A batch is one call and one answer: good when all its decisions are the wanted one.
func severalEvaluations(s *Session, q model.Question, n int) (call, error) {
	single, err := oneEvaluation(s, q)
	if err != nil {
		return call{}, err
	}
	all := make([]json.RawMessage, n)
	for i := range all {
		all[i] = single.body
	}
	r, err := posted(single.path+"s", jsonMedia, nil, map[string][]json.RawMessage{"evaluations": all})
	return call{
		request: r, expect: fmt.Sprintf("200 with %d decisions %s", n, q.Want), judge: wantsAll(q.Want, n),
	}, err
}

// evaluation is one question in AuthZEN's words; it is also the input that OPA gets.
type evaluation struct {
	Subject  authZENEntity     `json:"subject"`
	Action   authZENAction     `json:"action"`
	Resource authZENEntity     `json:"resource"`
	Context  map[string]string `json:"context,omitempty"`
}

type authZENEntity struct {
	Type       string            `json:"type"`
	ID         string            `json:"id"`
	Properties map[string]string `json:"properties,omitempty"`
}

type authZENAction struct {
	Name string `json:"name"`
}

func evaluationOf(q model.Question) evaluation {
	return evaluation{
		Subject: authZENEntity(q.Subject), Action: authZENAction{q.Action}, Resource: authZENEntity(q.Resource),
		Context: q.Context,
	}
}

// Evaluation is the body of a question in AuthZEN.
func Evaluation(q model.Question) ([]byte, error) {
	if q.Body != nil {
		return q.Body, nil
	}
	return json.Marshal(evaluationOf(q))
}

// readEvaluation reads the answer to one question.
func readEvaluation(body []byte) (model.Decision, Verdict) {
	var f [2][]byte
	if !jsonscan.Pick(body, f[:], "decision", "context") {
		return model.None, malformed(body)
	}
	d, v := readBool(f[0])
	if f[1] == nil || f[1][0] != '{' {
		return d, v
	}
	var e [1][]byte
	switch {
	case !jsonscan.Pick(f[1], e[:], "error"):
		return model.None, NotJSON
	case d == model.Deny && !isNull(e[0]): // section 7.2: nothing was decided
		return model.Indeterminate, Fine
	}
	return d, v
}

// wantsAll returns the judge of a batch of the same question n times: every decision must be the wanted one.
func wantsAll(want model.Decision, n int) judge {
	return func(status int, body []byte) (load.Outcome, Verdict, model.Decision) {
		if status != 200 {
			o, v := refusal(status)
			return o, v, model.None
		}
		var f [1][]byte
		if !jsonscan.Pick(body, f[:], "evaluations") {
			return load.Wrong, malformed(body), model.None
		}
		if f[0] == nil {
			return load.Wrong, NoDecision, model.None
		}
		return allOf(want, n, f[0])
	}
}

// allOf judges the array of decisions: its form, its length, then a Permit that should be none, then the first other
// decision that is not the wanted one.
func allOf(want model.Decision, n int, array []byte) (load.Outcome, Verdict, model.Decision) {
	count, odd, why, bad := 0, want, Fine, false
	w := jsonscan.Array(array)
	for {
		_, element, more := w.Next()
		if !more {
			break
		}
		count++
		d, v := readEvaluation(element)
		if (v != Fine || d != want) && (!bad || d == model.Permit) {
			odd, why, bad = d, v, true
		}
	}
	switch {
	case !w.Whole():
		return load.Wrong, NotJSON, model.None
	case count != n:
		return load.Wrong, WrongBatch, model.None
	case why != Fine:
		return load.Wrong, why, model.None
	}
	o, v := judgeDecision(want, odd)
	return o, v, odd
}

// contextOf returns what an answer says besides its decision.
func contextOf(body []byte) string {
	var f [1][]byte
	if !jsonscan.Pick(body, f[:], "context") || isNull(f[0]) {
		return ""
	}
	return "context " + string(f[0])
}
