package protocol

import (
	"bytes"
	"fmt"

	"tare/areas/decision/model"
	"tare/internal/jsonscan"
)

// opa returns the adapter for the data API of Open Policy Agent
// (https://www.openpolicyagent.org/docs/rest-api#get-a-document-with-input).
//
//	request   POST /v1/data/<path> {"input":{…}}: the question as AuthZEN says it; the path names a rule; the default
//	          is authz/allow, the rule of the decision point that tare starts itself
//	answer    200 {"result":true|false}, or {"result":{"allow":true|false,…}} where the path names a document with such a
//	          member; with messages {"result":[…]} or {"result":{…}}, the reasons to refuse: none of them permits
//	refusals  400 the request · 401, 403 the caller (system.authz) · 500 the policies could not be evaluated, or
//	          contradict one another
//	no policy 200 without result: the document is not defined, which is not-applicable. With `default allow := false`:
//	          false.
//	counts    none: what OPA counts in /metrics is requests by status, whatever was decided
func opa() Adapter {
	return Adapter{
		Name: "opa", Help: "Open Policy Agent: POST /v1/data/PATH", Section: "opa",
		Schemes: webSchemes(), title: "OPA", decisions: []model.Decision{model.Permit, model.Deny, model.NotApplicable},
		options: func(o Options) error { return validPath("opa.path", o.rule()) },
		Plain:   func(permit bool) string { return fmt.Sprintf(`{"result":%t}`, permit) },
		call:    askOPA, Load: loadOPA, Unload: unloadOPA,
	}
}

// OPA are the options of opa.
type OPA struct {
	Path string `yaml:"path,omitempty" json:"path,omitempty" jsonschema_description:"The rule below /v1/data, such as authz/allow. It must give true, false, or nothing, unless messages is set. Default with load: the rule that is loaded."`
	// Messages is for rules such as Conftest's deny and Gatekeeper's violation.
	Messages bool `yaml:"messages,omitempty" json:"messages,omitempty" jsonschema_description:"true: the rule gives reasons to refuse, a set, list or object of them, as deny[msg] and violation[msg] do. None permits, one or more deny."`
}

// rule returns the path of the rule that the file names; empty: none.
func (o Options) rule() string {
	x, _ := sectionOf[OPA](o)
	return x.Path
}

// HasMessages reports whether the rule that is asked gives reasons to refuse.
func (o Options) HasMessages() bool {
	x, _ := sectionOf[OPA](o)
	return x.Messages
}

// OPAPath is where OPA is asked all questions.
func OPAPath(o Options) string {
	return "/v1/data" + below(o.rule(), "/"+model.RegoPackage+"/"+model.RegoRule)
}

// OPABody is what a question is to OPA.
func OPABody(q model.Question) ([]byte, error) {
	r, err := posted("", jsonMedia, q.Body, map[string]evaluation{"input": evaluationOf(q)})
	return r.body, err
}

func askOPA(s *Session, q model.Question) (call, error) {
	path := OPAPath(s.Options)
	body, err := OPABody(q)
	r := request{method: "POST", path: path, media: jsonMedia, body: body}
	read, messages := readResult, s.Options.HasMessages()
	expect := "200 with result " + fmt.Sprint(q.Want == model.Permit)
	if messages {
		read, expect = readMessages, "200 with reasons to refuse"
		if q.Want == model.Permit {
			expect = "200 without any reason to refuse"
		}
	}
	if q.Want == model.NotApplicable {
		expect = "200 without result: the document is not defined"
	}
	more := func(body []byte) string {
		result, d, _ := pickResult(body)
		switch {
		case d == model.NotApplicable:
			return path + " is not defined for this input"
		case !messages && len(result) > 0 && result[0] == '[':
			return path + " gives a set or a list: opa.messages: true takes it for the reasons to refuse"
		}
		return ""
	}
	return call{request: r, expect: expect, judge: wants(q.Want, read), more: more}, err
}

// pickResult finds the result. Without one it returns nil, and the decision and verdict that follow.
func pickResult(body []byte) ([]byte, model.Decision, Verdict) {
	var all [4][]byte
	if !jsonscan.Pick(body, all[:], "result", "code", "error", "errors") {
		return nil, model.None, malformed(body)
	}
	switch {
	case all[0] == nil && (all[1] != nil || all[2] != nil || all[3] != nil):
		return nil, model.None, NoDecision // an error with a good status
	case all[0] == nil:
		return nil, model.NotApplicable, Fine
	}
	return all[0], model.None, Fine
}

// readMessages reads the reasons to refuse.
func readMessages(body []byte) (model.Decision, Verdict) {
	result, d, v := pickResult(body)
	switch {
	case result == nil:
		return d, v
	case result[0] != '[' && result[0] != '{':
		return model.None, NoDecision
	}
	inside := bytes.TrimLeft(result[1:], " \t\r\n")
	if len(inside) > 0 && (inside[0] == ']' || inside[0] == '}') {
		return model.Permit, Fine
	}
	return model.Deny, Fine
}

// readResult reads the answer to one question.
func readResult(body []byte) (model.Decision, Verdict) {
	result, d, v := pickResult(body)
	if result == nil {
		return d, v
	}
	if result[0] == '{' {
		var f [1][]byte
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
