package protocol

import (
	"context"
	"encoding/json"
	"fmt"

	"tare/internal/area/decision/model"
	"tare/internal/jsonscan"
	"tare/internal/load"
)

// authZEN is the OpenID AuthZEN Authorization API 1.0 (https://openid.net/specs/authorization-api-1_0.html), sections 6 (access evaluation)
// and 7 (access evaluations).
//
//	request   POST /access/v1/evaluation {"subject":{"type","id","properties"},"action":{"name"},"resource":{"type","id"},"context"}
//	answer    200 {"decision":true|false}; a false whose context holds an error is Indeterminate: nothing was decided
//	batch     POST /access/v1/evaluations {"evaluations":[…]} → {"evaluations":[{"decision":…},…]}, in the order of the questions
//	refusals  400 the request · 401, 403 the caller · 500
//	no policy there is no such answer: false. A question cannot want not-applicable.
type authZEN struct{}

var _ Adapter = authZEN{}

func (authZEN) Name() string { return "authzen" }

func (authZEN) Schemes() []string { return webSchemes() }

func (authZEN) Batches() bool { return true }

// Validate implements Adapter.
func (authZEN) Validate(o Options, questions []model.Question) error {
	if err := validPath("path", o.Path); err != nil {
		return err
	}
	return validQuestions("AuthZEN", questions, model.Permit, model.Deny)
}

// Operation implements Adapter. A batch is one call and one answer: good when all its decisions are the wanted one.
func (a authZEN) Operation(s *Session, q model.Question, n int) (load.Operation, error) {
	if n > 1 {
		r, err := a.several(s, q, n)
		if err != nil {
			return load.Operation{}, err
		}
		return r.operation(s, q, fmt.Sprintf("200 with %d decisions %s", n, q.Want), wantsAll(q.Want, n)), nil
	}
	r, err := a.one(s, q)
	if err != nil {
		return load.Operation{}, err
	}
	return r.operation(s, q, "200 with decision "+fmt.Sprint(q.Want == model.Permit), wants(q.Want, readEvaluation)), nil
}

// Ask implements Adapter.
func (a authZEN) Ask(ctx context.Context, s *Session, q model.Question) (Answer, error) {
	r, err := a.one(s, q)
	if err != nil {
		return Answer{}, err
	}
	return s.ask(ctx, r, wants(q.Want, readEvaluation), contextOf)
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
		Subject: authZENEntity(q.Subject), Action: authZENAction{q.Action}, Resource: authZENEntity(q.Resource), Context: q.Context,
	}
}

// one asks a single question.
func (authZEN) one(s *Session, q model.Question) (request, error) {
	return posted(below(s.Options.Path, "/access/v1/evaluation"), jsonMedia, q.Body, evaluationOf(q))
}

// several asks the same question n times in one request: at the path of single questions with an s behind it.
func (authZEN) several(s *Session, q model.Question, n int) (request, error) {
	single, err := authZEN{}.one(s, q)
	if err != nil {
		return request{}, err
	}
	all := make([]json.RawMessage, n)
	for i := range all {
		all[i] = single.body
	}
	return posted(single.path+"s", jsonMedia, nil, map[string][]json.RawMessage{"evaluations": all})
}

// readEvaluation reads the answer to one question.
func readEvaluation(body []byte) (model.Decision, Verdict) {
	var f [2][]byte
	if !jsonscan.Pick(body, f[:], "decision", "context") {
		return model.None, notWhole(body)
	}
	yes, known := isTrue(f[0])
	switch {
	case f[0] == nil:
		return model.None, NoDecision
	case !known:
		return model.None, NotJSON
	case yes:
		return model.Permit, Fine
	case hasError(f[1]):
		return model.Indeterminate, Fine
	}
	return model.Deny, Fine
}

// hasError reports whether the context of an answer says that nothing was decided (section 7.2).
func hasError(raw []byte) bool {
	var f [1][]byte
	return raw != nil && jsonscan.Pick(raw, f[:], "error") && !isNull(f[0])
}

// wantsAll is the judge of a batch of the same question n times: every decision must be the wanted one.
func wantsAll(want model.Decision, n int) judge {
	return func(status int, body []byte) (load.Outcome, Verdict, model.Decision) {
		if status != 200 {
			o, v := refusal(status)
			return o, v, model.None
		}
		var f [1][]byte
		if !jsonscan.Pick(body, f[:], "evaluations") {
			return load.Wrong, notWhole(body), model.None
		}
		if f[0] == nil {
			return load.Wrong, NoDecision, model.None
		}
		return allOf(want, n, f[0])
	}
}

// allOf judges the array of decisions: its form, its length, then the first decision that is not the wanted one.
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
		if !bad && (v != Fine || d != want) {
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
	o, v := matched(want, odd)
	return o, v, odd
}

// contextOf is what an answer says besides its decision.
func contextOf(body []byte) string {
	var f [1][]byte
	if !jsonscan.Pick(body, f[:], "context") || isNull(f[0]) {
		return ""
	}
	return "context " + string(f[0])
}
