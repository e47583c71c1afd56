package protocol

import (
	"context"
	"fmt"

	"tare/internal/area/decision/model"
	"tare/internal/jsonscan"
	"tare/internal/load"
)

// opa is the data API of Open Policy Agent (https://www.openpolicyagent.org/docs/rest-api#get-a-document-with-input).
//
//	request   POST /v1/data/<path> {"input":{…}}: the question as AuthZEN says it; the path names a rule; the default
//	          is authz/allow, the rule of the decision point that tare starts itself
//	answer    200 {"result":true|false}, or {"result":{"allow":true|false,…}} where the path names a document with such a member
//	refusals  400 the request · 401, 403 the caller (system.authz) · 500 the policies could not be evaluated, or contradict one another
//	no policy 200 without result: the document is not defined, which is not-applicable. With `default allow := false`: false.
//	counts    none: what OPA counts in /metrics is requests by status, whatever was decided
type opa struct{}

var (
	_ Adapter = opa{}
	_ Loader  = opa{}
)

func (opa) Name() string { return "opa" }

func (opa) Schemes() []string { return webSchemes() }

func (opa) Batches() bool { return false }

// Validate implements Adapter.
func (opa) Validate(o Options, questions []model.Question) error {
	if err := validPath("opa.path", o.Path); err != nil {
		return err
	}
	return validQuestions("OPA", questions, model.Permit, model.Deny, model.NotApplicable)
}

// Operation implements Adapter.
func (a opa) Operation(s *Session, q model.Question, _ int) (load.Operation, error) {
	r, err := a.request(s, q)
	if err != nil {
		return load.Operation{}, err
	}
	expect := "200 with result " + fmt.Sprint(q.Want == model.Permit)
	if q.Want == model.NotApplicable {
		expect = "200 without result: the document is not defined"
	}
	return r.operation(s, q, expect, wants(q.Want, readResult)), nil
}

// Ask implements Adapter.
func (a opa) Ask(ctx context.Context, s *Session, q model.Question) (Answer, error) {
	r, err := a.request(s, q)
	if err != nil {
		return Answer{}, err
	}
	return s.ask(ctx, r, wants(q.Want, readResult), func(body []byte) string {
		if d, _ := readResult(body); d != model.NotApplicable {
			return ""
		}
		return "/v1/data" + opaPath(s) + " is not defined for this input"
	})
}

// opaPath is the path of what is asked for, below /v1/data.
func opaPath(s *Session) string {
	return below(s.Options.Path, "/"+model.RegoPackage+"/"+model.RegoRule)
}

func (opa) request(s *Session, q model.Question) (request, error) {
	return posted("/v1/data"+opaPath(s), jsonMedia, q.Body, map[string]evaluation{"input": evaluationOf(q)})
}

// readResult reads the answer to one question.
func readResult(body []byte) (model.Decision, Verdict) {
	var f [1][]byte
	if !jsonscan.Pick(body, f[:], "result") {
		return model.None, notWhole(body)
	}
	if f[0] == nil {
		return model.NotApplicable, Fine
	}
	result := f[0]
	if result[0] == '{' {
		if !jsonscan.Pick(result, f[:], "allow") {
			return model.None, NotJSON
		}
		result = f[0]
	}
	yes, known := isTrue(result)
	switch {
	case !known:
		return model.None, NoDecision
	case yes:
		return model.Permit, Fine
	}
	return model.Deny, Fine
}
