package protocol

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"tare/areas/decision/model"
	"tare/internal/load"
	"tare/rigs/memtest"
)

// An answerCase is an answer, and its decision or verdict. Published examples name their source.
type answerCase struct {
	status int
	body   string
	want   model.Decision
	why    Verdict
}

func answerCases() map[string][]answerCase {
	return map[string][]answerCase{
		"authzen": authZENAnswers(), "opa": opaAnswers(), "xacml": xacmlAnswers(), "openfga": openFGAAnswers(),
		"k8s-sar": sarAnswers(), withMessages: messageAnswers(),
	}
}

func authZENAnswers() []answerCase {
	return []answerCase{
		{200, `{"decision": true}`, model.Permit, Fine}, // section 6.2
		// section 5.5.2
		{200, `{"decision": false, "context": {"id": "0", "reason_admin": {"en": "Request failed policy C076E82F"}}}`, model.Deny, Fine},
		// section 7.2
		{200, `{"decision": false, "context": {"error": {"status": 404, "message": "Resource not found"}}}`, model.Indeterminate, Fine},
		{200, `{"decision": false, "context": {"error": null}}`, model.Deny, Fine},
		{200, `{"decision": false, "context": null}`, model.Deny, Fine},
		{200, `{"decision": false, "context": {"error": {"status": 500}, "error": null}}`, model.None, NotJSON},
		{200, `{"decision": false, "context": {"error": null, "\u0065rror": {"status": 500}}}`, model.None, NotJSON},
		{200, `{"decision": true, "context": {"error": null, "error": null}}`, model.None, NotJSON},
		{200, `{"decision": false, "context": {}, "context": {"error": {"status": 500}}}`, model.None, NotJSON},
		{200, `{"\u0064ecision": true}`, model.Permit, Fine},
		{200, `{"decision": "true"}`, model.None, NotJSON},
		{200, `{"decision": null}`, model.None, NotJSON},
		{200, `{"decision": true, "decision": false}`, model.None, NotJSON},
		{200, `{"decision": true, "d\u0065cision": true}`, model.None, NotJSON},
		{200, `{"Decision": true}`, model.None, NoDecision},
		{200, `{"decision": true} x`, model.None, NotJSON},
		{200, `[true]`, model.None, NotJSON},
	}
}

func opaAnswers() []answerCase {
	return []answerCase{
		{200, `{"result": true}`, model.Permit, Fine}, // rest-api#get-a-document-with-input
		{200, `{"result":false,"decision_id":"b84cf736-1a47-4ebc-a8ea-1d1c21c29ec2","metrics":{"x":1}}`, model.Deny, Fine},
		{200, `{}`, model.NotApplicable, Fine}, // the document is not defined
		{200, `{"decision_id":"1"}`, model.NotApplicable, Fine},
		{200, `{"result":{"allow":true,"reasons":[]}}`, model.Permit, Fine},
		{200, `{"result":{"allow":false}}`, model.Deny, Fine},
		{200, `{"result":{}}`, model.None, NoDecision},
		{200, `{"result":{"allow":true,"allow":true}}`, model.None, NotJSON},
		{200, `{"result":null}`, model.None, NoDecision},
		{200, `{"result":"allow"}`, model.None, NoDecision},
		{200, `{"result":[true]}`, model.None, NoDecision},
		{400, `{"code": "invalid_parameter", "message": "body contains malformed input document"}`, model.None, SchemaError},
		{500, `{"code": "internal_error", "message": "eval_conflict_error"}`, model.None, Fine},
	}
}

// messageAnswers: an answer without reasons permits, one with any reason denies, and anything else is no decision.
func messageAnswers() []answerCase {
	return []answerCase{
		{200, `{"result":[]}`, model.Permit, Fine},
		{200, "{\"result\": [ \n ], \"decision_id\": \"1\"}", model.Permit, Fine},
		{200, `{"result":{}}`, model.Permit, Fine},
		{200, `{"result":["no"]}`, model.Deny, Fine},
		{200, `{"result":[{"msg":"no","details":{}}]}`, model.Deny, Fine},
		{200, `{"result":{"no":true}}`, model.Deny, Fine},
		{200, `{"result":[""]}`, model.Deny, Fine},
		{200, `{}`, model.NotApplicable, Fine},
		{200, `{"result":true}`, model.None, NoDecision},
		{200, `{"result":false}`, model.None, NoDecision},
		{200, `{"result":null}`, model.None, NoDecision},
		{200, `{"result":"no"}`, model.None, NoDecision},
		{200, `{"result":[],"result":[]}`, model.None, NotJSON},
		{200, `{"error":"x"}`, model.None, NoDecision},
	}
}

func xacmlAnswers() []answerCase {
	return []answerCase{
		{200, `{"Response":[{"Decision":"Permit"}]}`, model.Permit, Fine}, // JSON profile 1.1, section 7
		{200, `{"Response":{"Decision":"Deny"}}`, model.Deny, Fine},
		{200, `{"Response":[{"Decision":"NotApplicable","Status":{"StatusCode":{"Value":"urn:oasis:names:tc:xacml:1.0:status:ok"}}}]}`, model.NotApplicable, Fine},
		{
			200, `{"Response":[{"Status":{"StatusCode":{"Value":"urn:oasis:names:tc:xacml:1.0:status:processing-error"}},"Decision":"Indeterminate"}]}`,
			model.Indeterminate, Fine,
		},
		{200, `{"Response":[{"Decision":"Indeterminate{DP}"}]}`, model.Indeterminate, Fine},
		{200, `{"Response":[{"Decision":"Per\u006dit","Obligations":[{"Id":"x"}]}]}`, model.Permit, Fine},
		{200, `{"Response":[{"Decision":"permit"}]}`, model.None, NotJSON},
		{200, `{"Response":[{"Decision":true}]}`, model.None, NotJSON},
		{200, `{"Response":[{}]}`, model.None, NoDecision},
		{200, `{"Response":[]}`, model.None, NoDecision},
		{200, `{"Response":null}`, model.None, NotJSON},
		{200, `{"Response":["Permit"]}`, model.None, NotJSON},
		{200, `{"Response":[{"Decision":"Permit"},{"Decision":"Deny"}]}`, model.None, WrongBatch},
		{200, `{"Response":[{"Decision":"Permit","Decision":"Deny"}]}`, model.None, NotJSON},
		{200, `{"Decision":"Permit"}`, model.None, NoDecision},
	}
}

func openFGAAnswers() []answerCase {
	return []answerCase{
		{200, `{"allowed":true, "resolution":""}`, model.Permit, Fine},
		{200, `{"allowed":false, "resolution":""}`, model.Deny, Fine},
		{200, `{"allowed":0}`, model.None, NotJSON},
		{200, `{"resolution":""}`, model.None, NoDecision},
		{200, `{"allowed":true,"allowed":false}`, model.None, NotJSON},
		{400, `{"code":"validation_error","message":"invalid relation: relation 'Doc#write' not found"}`, model.None, SchemaError},
		{400, `{"code":"authorization_model_not_found","message":"Authorization Model not found"}`, model.None, NoSuchPolicy},
		{400, `{"code":"latest_authorization_model_not_found","message":"No authorization models found"}`, model.None, NoSuchPolicy},
		{400, `no JSON`, model.None, SchemaError},
		{401, `{"code":"bearer_token_missing","message":"missing bearer token"}`, model.None, WrongCredentials},
		{404, `{"code":"undefined_endpoint","message":"Not Found"}`, model.None, NoSuchPolicy},
	}
}

// TestLists: an answer is right if it holds all that belongs into the list and nothing else, in any order.
func TestLists(t *testing.T) {
	const users = `{"users":[{"object":{"type":"user","id":"ann"}},{"userset":{"type":"group","id":"g","relation":"m"}},` +
		`{"wildcard":{"type":"user"}}]}`
	for _, c := range []struct {
		of, body string
		want     []string
		verdict  Verdict
	}{
		{listObjects, `{"objects":["doc:b", "doc:a"]}`, []string{"doc:a", "doc:b"}, Fine},
		{listObjects, `{"objects":["doc:a", "doc:a"]}`, []string{"doc:a", "doc:b"}, ListLacks},
		{listObjects, `{"objects":["doc:a"]}`, []string{"doc:a", "doc:b"}, ListLacks},
		{listObjects, `{"objects":["doc:a", "doc:c"]}`, []string{"doc:a", "doc:b"}, ListHasMore},
		{listObjects, `{"objects":["doc:a"]}`, nil, ListHasMore},
		{listObjects, `{"objects":[]}`, nil, Fine},
		{listObjects, `{"objects":["doc:\"a\u0041"]}`, []string{`doc:"aA`}, Fine},
		{listObjects, `{"objects":null}`, nil, NotJSON},
		{listObjects, `{"objects":["doc:a"]`, []string{"doc:a"}, NotJSON},
		{listObjects, `{"objects":["doc:a"],"objects":[]}`, []string{"doc:a"}, NotJSON},
		{listObjects, `{"objects":[""]}`, nil, NotJSON},
		{listObjects, `{"objects":[1]}`, nil, NotJSON},
		{listObjects, `{"users":[]}`, nil, NoDecision},
		{listObjects, ``, nil, NoDecision},
		{listUsers, users, []string{"user:ann", "group:g#m", "user:*"}, Fine},
		{listUsers, users, []string{"user:ann", "group:g#m"}, ListHasMore},
		{listUsers, users, []string{"user:ann", "group:g#m", "user:*", "user:bob"}, ListLacks},
		{listUsers, `{"users":[{"object":{"type":"user"}}]}`, nil, NotJSON},
		{listUsers, `{"users":[{"userset":{"type":"group","id":"g"}}]}`, nil, NotJSON},
		{listUsers, `{"users":[{"object":{"type":"user","id":"a"},"wildcard":{"type":"user"}}]}`, []string{"user:a"}, NotJSON},
		{listUsers, `{"users":[{"other":{"type":"user","id":"a"}}]}`, []string{"user:a"}, NotJSON},
		{listUsers, `{"users":[{}]}`, nil, NotJSON},
	} {
		outcome, v, d := wantsList(c.of, slices.Sorted(slices.Values(c.want)))(200, []byte(c.body))
		if good := c.verdict == Fine; v != c.verdict || (outcome == load.OK) != good || (d == model.Permit) != good {
			t.Errorf("%s, want %q: %v, %v, %v", c.body, c.want, outcome, v, d)
		}
	}
	answer := []byte(users)
	judge := wantsList(listUsers, []string{"group:g#m", "user:*", "user:ann"})
	if n := testing.AllocsPerRun(100, func() { judge(200, answer) }); n > 0 {
		t.Errorf("an answer is judged with %v allocations", n)
	}
}

func sarAnswers() []answerCase {
	const head = `{"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", `
	return []answerCase{
		{200, head + `"status": {"allowed": true}}`, model.Permit, Fine}, // the webhook's page, "permit the request"
		{201, head + `"status": {"allowed": true}}`, model.Permit, Fine},
		{200, head + `"status": {"allowed": false, "reason": "user does not have read access to the namespace"}}`, model.NotApplicable, Fine},
		{200, head + `"status": {"allowed": false, "denied": true, "reason": "no"}}`, model.Deny, Fine},
		{200, head + `"status": {"allowed": false, "denied": false}}`, model.NotApplicable, Fine},
		{200, head + `"status": {"allowed": false, "evaluationError": "no such role"}}`, model.Indeterminate, Fine},
		{200, head + `"status": {"allowed": false, "evaluationError": ""}}`, model.NotApplicable, Fine},
		{200, head + `"status": {"allowed": true, "evaluationError": "a role binding is gone"}}`, model.Permit, Fine},
		{200, head + `"status": {"allowed": true, "denied": true}}`, model.None, NotJSON},
		{200, head + `"status": {"denied": true}}`, model.None, NoDecision},
		{200, head + `"status": {}}`, model.None, NoDecision},
		{200, head + `"status": null}`, model.None, NoDecision},
		{200, head + `"spec": {}}`, model.None, NoDecision},
		{200, head + `"status": {"allowed": "yes"}}`, model.None, NotJSON},
		{200, head + `"status": {"allowed": false, "denied": 1}}`, model.None, NotJSON},
		{200, head + `"status": {"allowed": false, "denied": true, "denied": false}}`, model.None, NotJSON},
		{200, head + `"status": {"allowed": false, "evaluationError": "", "evaluationError": "no such role"}}`, model.None, NotJSON},
		{200, `{"apiVersion": "authorization.k8s.io/v1beta1", "kind": "SubjectAccessReview", "status": {"allowed": true}}`, model.None, NotJSON},
		{200, `{"kind": "Status", "status": "Failure"}`, model.None, NotJSON},
		{422, `{}`, model.None, SchemaError},
	}
}

// commonAnswers returns answers that mean the same in every protocol.
func commonAnswers() []answerCase {
	return []answerCase{
		{200, ``, model.None, NoDecision},
		{200, " \n", model.None, NoDecision},
		{200, `{`, model.None, NotJSON},
		{200, `true`, model.None, NotJSON},
		{200, `null`, model.None, NotJSON},
		{200, `<html>`, model.None, NotJSON},
		{200, `{"x":` + strings.Repeat("[", 100000), model.None, NotJSON},
		{401, `{"decision":true}`, model.None, WrongCredentials},
		{403, ``, model.None, NotAllowed},
		{404, ``, model.None, NoSuchPolicy},
		{409, ``, model.None, NotReady},
		{400, ``, model.None, SchemaError},
		{415, ``, model.None, SchemaError},
		{302, ``, model.None, Fine},
		{204, ``, model.None, Fine},
		{429, ``, model.None, Fine},
		{503, ``, model.None, Fine},
		{500, `{"decision":true}`, model.None, Fine},
		{502, ``, model.None, Fine},
	}
}

// wantOutcome returns the outcome of an answer to a question that expects want: written a second time here, from the
// contract.
func (a answerCase) wantOutcome(want model.Decision) (load.Outcome, Verdict) {
	switch {
	case a.why != Fine:
		if a.why == NotReady {
			return load.Refused, a.why
		}
		return load.Wrong, a.why
	case a.status == 429 || a.status == 503:
		return load.Refused, Fine
	case a.status >= 500:
		return load.Failed, Fine
	case a.want == model.None:
		return load.Wrong, Fine
	case a.want != want:
		return load.Wrong, map[model.Decision]Verdict{
			model.Permit: SaysPermit, model.Deny: SaysDeny, model.NotApplicable: SaysNotApplicable,
			model.Indeterminate: SaysIndeterminate,
		}[a.want]
	case want == model.Permit:
		return load.OK, Fine
	}
	return load.Denied, Fine
}

func TestAnswersAreJudged(t *testing.T) {
	for name, own := range answerCases() {
		for want, q := range questions {
			op := newOperation(t, name, sessionOf(name), q, 1)
			if op.Wire.ConnKey(0) != 0 || op.Wire.ConnKey(1<<40) != 0 {
				t.Errorf("%s: connections have more than one identity", name)
			}
			for _, a := range append(own, commonAnswers()...) {
				o, why := a.wantOutcome(want)
				if gotO, got := judgeAnswer(op, a.status, a.body); gotO != o || got != why {
					t.Errorf("%s wants %v, %d %.120s: %v %d, want %v %d", name, want, a.status, a.body, gotO, got, o, why)
				}
			}
		}
	}
}

// TestTruncatedAnswersAreNoDecision truncates every good answer at every byte.
func TestTruncatedAnswersAreNoDecision(t *testing.T) {
	for name, own := range answerCases() {
		op := newOperation(t, name, sessionOf(name), questions[model.Permit], 1)
		for _, a := range own {
			if a.status != 200 || a.want == model.None {
				continue
			}
			for i := range len(a.body) {
				if o, why := judgeAnswer(op, 200, a.body[:i]); o != load.Wrong || (why != NotJSON && why != NoDecision) {
					t.Errorf("%s: %s is %v, verdict %d", name, a.body[:i], o, why)
				}
			}
		}
	}
}

func TestBatches(t *testing.T) {
	const yes, no, broken = `{"decision":true}`, `{"decision":false}`, `{"decision":false,"context":{"error":{"status":500}}}`
	list := func(items ...string) string { return `{"evaluations":[` + strings.Join(items, ",") + `]}` }
	for _, c := range []struct {
		want   model.Decision
		status int
		body   string
		o      load.Outcome
		why    Verdict
	}{
		{model.Permit, 200, list(yes, yes, yes), load.OK, Fine},
		{model.Deny, 200, list(no, no, no), load.Denied, Fine},
		{model.Permit, 200, list(yes, no, yes), load.Wrong, SaysDeny},
		{model.Deny, 200, list(no, no, yes), load.Wrong, SaysPermit},
		{model.Deny, 200, list(no, broken, no), load.Wrong, SaysIndeterminate},
		{model.Deny, 200, list(no, broken, yes), load.Wrong, SaysPermit},
		{model.Deny, 200, list(no, `{"decision":false,"context":{"error":null,"error":{"status":500}}}`, no), load.Wrong, NotJSON},
		{model.Permit, 200, list(yes, `{}`, no), load.Wrong, NoDecision},
		{model.Permit, 200, list(yes, `7`, yes), load.Wrong, NotJSON},
		{model.Permit, 200, list(yes, yes), load.Wrong, WrongBatch},
		{model.Permit, 200, list(yes, yes, yes, yes), load.Wrong, WrongBatch},
		{model.Permit, 200, list(), load.Wrong, WrongBatch},
		{model.Permit, 200, yes, load.Wrong, NoDecision},
		{model.Permit, 200, `{"evaluations":{}}`, load.Wrong, NotJSON},
		{model.Permit, 200, `{"evaluations":[` + yes + `,]}`, load.Wrong, NotJSON},
		{model.Permit, 200, list(yes, yes, yes) + `]`, load.Wrong, NotJSON},
		{model.Permit, 200, `{"evaluations":[],"evaluations":[]}`, load.Wrong, NotJSON},
		{model.Permit, 200, ``, load.Wrong, NoDecision},
		{model.Permit, 503, list(yes, yes, yes), load.Refused, Fine},
		{model.Permit, 401, ``, load.Wrong, WrongCredentials},
	} {
		op := newOperation(t, "authzen", &Session{Host: "h"}, questions[c.want], 3)
		if o, why := judgeAnswer(op, c.status, c.body); o != c.o || why != c.why {
			t.Errorf("wants %v, %d %s: %v %d, want %v %d", c.want, c.status, c.body, o, why, c.o, c.why)
		}
	}
}

func TestJudgingDoesNotAllocate(t *testing.T) {
	for name, own := range answerCases() {
		for _, n := range []int{1, 3} {
			op := newOperation(t, name, sessionOf(name), questions[model.Deny], n)
			own := append(own, commonAnswers()...)
			own = append(own, answerCase{200, `{"evaluations":[{"decision":false},{"decision":false},{"decision":false,"context":{"error":{}}}]}`, 0, 0})
			bodies := make([][]byte, len(own))
			for i, a := range own {
				bodies[i] = []byte(a.body)
			}
			dst := make([]byte, 0, 1<<14)
			got := testing.AllocsPerRun(20, func() {
				for i, a := range own {
					_ = op.Wire.Render(dst, 1)
					_ = op.Wire.Check(1, a.status, bodies[i])
					_ = op.Wire.Explain(1, a.status, bodies[i])
				}
			})
			if got != 0 {
				t.Errorf("%s, %d at once: %v allocations", name, n, got)
			}
		}
	}
}

// BenchmarkJudge is what judging costs of every answer under load.
func BenchmarkJudge(b *testing.B) {
	for name, own := range answerCases() {
		op := newOperation(b, name, sessionOf(name), questions[model.Permit], 1)
		body := []byte(own[0].body)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				op.Wire.Check(0, 200, body)
			}
		})
	}
}

func readers() map[string]reader {
	return map[string]reader{
		"authzen": readEvaluation, "openfga": readCheck, "opa": readResult, withMessages: readMessages, "k8s-sar": readReview,
		"xacml": readXACML,
	}
}

func seed(f *testing.F) {
	f.Helper()
	for _, all := range answerCases() {
		for _, a := range all {
			f.Add([]byte(a.body))
		}
	}
	for _, a := range commonAnswers() {
		if len(a.body) < 1000 {
			f.Add([]byte(a.body))
		}
	}
}

// member returns the value of that name in an object by encoding/json, or nil if there is none or more than one.
func member(b []byte, name string) (found json.RawMessage) {
	d := json.NewDecoder(bytes.NewReader(b))
	if t, err := d.Token(); err != nil || t != json.Delim('{') || !json.Valid(b) {
		return nil
	}
	for d.More() {
		key, err := d.Token()
		var value json.RawMessage
		if err != nil || d.Decode(&value) != nil || key == name && found != nil {
			return nil
		}
		if key == name {
			found = value
		}
	}
	return found
}

// permits says by encoding/json alone which answers are a Permit. The readers must not find one where it does not.
func permits() map[string]func(b []byte) bool {
	return map[string]func(b []byte) bool{
		"authzen": func(b []byte) bool { return string(member(b, "decision")) == "true" },
		"openfga": func(b []byte) bool { return string(member(b, "allowed")) == "true" },
		"opa": func(b []byte) bool {
			result := member(b, "result")
			return string(result) == "true" || string(member(result, "allow")) == "true"
		},
		withMessages: func(b []byte) bool {
			var list []json.RawMessage
			var object map[string]json.RawMessage
			result := member(b, "result")
			return json.Unmarshal(result, &list) == nil && list != nil && len(list) == 0 ||
				json.Unmarshal(result, &object) == nil && object != nil && len(object) == 0
		},
		"k8s-sar": func(b []byte) bool {
			status := member(b, "status")
			denied := string(member(status, "denied"))
			return string(member(status, "allowed")) == "true" && (denied == "" || denied == "false")
		},
		"xacml": func(b []byte) bool {
			response := member(b, "Response")
			var list []json.RawMessage
			if json.Unmarshal(response, &list) == nil {
				if len(list) != 1 {
					return false
				}
				response = list[0]
			}
			var decision string
			return json.Unmarshal(member(response, "Decision"), &decision) == nil && decision == "Permit"
		},
	}
}

// repeats reports whether an object anywhere in b has one name twice, by encoding/json.
func repeats(b []byte) bool {
	d := json.NewDecoder(bytes.NewReader(b))
	t, err := d.Token()
	if err != nil || t != json.Delim('{') && t != json.Delim('[') {
		return false
	}
	names := map[any]bool{}
	for d.More() {
		if t == json.Delim('{') {
			name, err := d.Token()
			if err != nil || names[name] {
				return err == nil
			}
			names[name] = true
		}
		var value json.RawMessage
		if d.Decode(&value) != nil {
			return false
		}
		if repeats(value) {
			return true
		}
	}
	return false
}

// FuzzRepeatedMembers adds a member a second time to the object around it: whatever the decision was, the answer stays
// the same or is no decision any more.
func FuzzRepeatedMembers(f *testing.F) {
	for name, all := range answerCases() {
		for _, a := range all {
			f.Add(name, []byte(a.body), "error", `{"status":500}`)
		}
	}
	f.Fuzz(func(t *testing.T, adapter string, b []byte, name, value string) {
		read, ok := readers()[adapter]
		before, v := model.None, NotJSON
		if ok {
			before, v = read(b)
		}
		if v != Fine || repeats(b) {
			return
		}
		member, err := json.Marshal(map[string]json.RawMessage{name: json.RawMessage(value)})
		if err != nil {
			return
		}
		for i, c := range b {
			if c != '}' || !utf8.Valid(b) {
				continue
			}
			twice := slices.Concat(b[:i], []byte(","), member[1:len(member)-1], b[i:])
			if d, v := read(twice); repeats(twice) && v == Fine && d != before {
				t.Errorf("%s: %s is %v, and %s is %v", adapter, b, before, twice, d)
			}
		}
	})
}

// FuzzNoFalsePermit feeds every reader: none may panic or find a Permit that is not in the answer.
func FuzzNoFalsePermit(f *testing.F) {
	seed(f)
	truth := permits()
	f.Fuzz(func(t *testing.T, b []byte) {
		defer memtest.Bound(t, len(b))()
		for name, read := range readers() {
			d, v := read(b)
			if (d == model.None) == (v == Fine) {
				t.Errorf("%s %q: decision %v with verdict %d", name, b, d, v)
			}
			if d == model.Permit && !truth[name](b) {
				t.Errorf("%s %q: a Permit that is not there", name, b)
			}
		}
		wantsAll(model.Permit, 2)(200, b)
		for _, more := range []func([]byte) string{contextOf, statusOf, reasonOf} {
			_ = quote(more(b))
		}
	})
}
