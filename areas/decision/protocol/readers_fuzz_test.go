package protocol

import (
	"bytes"
	"encoding/json"
	"slices"
	"testing"
	"unicode/utf8"

	"tare/areas/decision/model"
	"tare/rigs/memtest"
)

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
		"opa with messages": func(b []byte) bool {
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
		read, ok := map[string]reader{
			"authzen": readEvaluation, "openfga": readCheck, "opa": readResult,
			"opa with messages": readMessages, "k8s-sar": readReview, "xacml": readXACML,
		}[adapter]
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
	readers := map[string]reader{
		"authzen": readEvaluation, "openfga": readCheck, "opa": readResult,
		"opa with messages": readMessages, "k8s-sar": readReview,
		"xacml": readXACML,
	}
	truth := permits()
	f.Fuzz(func(t *testing.T, b []byte) {
		defer memtest.Bound(t, len(b))()
		for name, read := range readers {
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
