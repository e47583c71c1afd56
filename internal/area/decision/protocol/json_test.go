package protocol

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"tare/internal/area/decision/model"
	"tare/lab/memtest"
)

// oracle walks the members of an object with encoding/json: each key as it is meant, each value raw. ok is false when b is no object.
func oracle(b []byte) (keys []string, values []json.RawMessage, ok bool) {
	if !json.Valid(b) {
		return nil, nil, false
	}
	d := json.NewDecoder(bytes.NewReader(b))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, nil, false
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil, nil, false
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return nil, nil, false
		}
		keys, values = append(keys, key.(string)), append(values, value)
	}
	return keys, values, true
}

// depth is how deeply b is nested at most.
func depth(b []byte) int {
	most, now, quoted := 0, 0, false
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case !quoted && (c == '{' || c == '['):
			now++
			most = max(most, now)
		case !quoted && (c == '}' || c == ']'):
			now--
		}
	}
	return most
}

func seed(f *testing.F) {
	f.Helper()
	for _, all := range answers() {
		for _, a := range all {
			f.Add([]byte(a.body))
		}
	}
	for _, a := range common() {
		if len(a.body) < 1000 {
			f.Add([]byte(a.body))
		}
	}
	for _, text := range []string{
		`{"a":1,"a":2}`, `{"a":-0.5e+3,"b":[1,{"c":null}]}`, `{"\u0061":"x"}`, `{"a":01}`, `{"a":1.}`, `{"a":-}`, `{"a":1e}`, `{"a":"\x"}`, `{"a":"\u12g4"}`,
		"{\"a\":\"\x01\"}", `{"a":1,}`, `{,}`, `{"a"}`, `{"a":}`, `{a:1}`, `[]`, `[1,]`, `{"a":[}`, `{"a":{"b":[1,2,{}]}}  `, "\ufeff{}", `{"A":true}`, `{"\ud834\udd1e":1}`,
		`{"a\/":1}`, `{"/":true,"\/":false}`, `{"a":tru}`, `{"a":truex}`, `{"":1}`,
		strings.Repeat(`{"a":`, 70) + "1" + strings.Repeat("}", 70), strings.Repeat(`{"a":`, 64) + "1" + strings.Repeat("}", 64),
	} {
		f.Add([]byte(text))
	}
}

// FuzzPick holds the reader against encoding/json, which knows what is JSON, what keys mean and where values end.
func FuzzPick(f *testing.F) {
	seed(f)
	names := []string{"decision", "a", "Response", "status", "/"}
	f.Fuzz(func(t *testing.T, b []byte) {
		defer memtest.Bound(t, len(b))()
		out := make([][]byte, len(names))
		got := pick(b, out, names...)
		keys, values, ok := oracle(b)
		want := make([][]byte, len(names))
		twice := false
		for k, name := range names {
			for i, key := range keys {
				if key == name {
					twice = twice || want[k] != nil
					want[k] = values[i]
				}
			}
		}
		if depth(b) > maxDepth {
			if got {
				t.Errorf("%q is nested %d deep, and was read", b, depth(b))
			}
			return
		}
		if got != (ok && !twice) {
			t.Fatalf("%q: read %v, want an object %v with a name that is twice there %v", b, got, ok, twice)
		}
		for k := range names {
			if got && !bytes.Equal(out[k], want[k]) {
				t.Errorf("%q: %s is %q, want %q", b, names[k], out[k], want[k])
			}
		}
	})
}

// FuzzWalkArray does the same for arrays.
func FuzzWalkArray(f *testing.F) {
	for _, text := range []string{`[]`, `[1]`, ` [ 1 , "a" , {} ] `, `[1,]`, `[,1]`, `[1 2]`, `[`, `[]]`, `{}`, `[[[]]]`, `[1,2,3}`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		defer memtest.Bound(t, len(b))()
		w := walk(b, '[')
		var got []json.RawMessage
		for w.next() {
			got = append(got, w.value)
		}
		var want []json.RawMessage
		ok := json.Unmarshal(b, &want) == nil && want != nil
		if depth(b) > maxDepth {
			ok = false
		}
		if w.whole() != ok {
			t.Fatalf("%q: an array %v, want %v", b, w.whole(), ok)
		}
		for i := range want {
			if ok && (i >= len(got) || !bytes.Equal(got[i], bytes.TrimSpace(want[i]))) {
				t.Errorf("%q: element %d of %q, want %q", b, i, got, want[i])
			}
		}
		if ok && len(got) != len(want) {
			t.Errorf("%q: %d elements, want %d", b, len(got), len(want))
		}
	})
}

// permits says with encoding/json alone which answers are a Permit: the readers must not see one where it sees none.
func permits() map[string]func(b []byte) bool {
	member := func(b []byte, name string) []byte {
		keys, values, _ := oracle(b)
		var found []byte
		for i, key := range keys {
			if key == name {
				if found != nil {
					return nil
				}
				found = values[i]
			}
		}
		return found
	}
	return map[string]func(b []byte) bool{
		"authzen": func(b []byte) bool { return string(member(b, "decision")) == "true" },
		"openfga": func(b []byte) bool { return string(member(b, "allowed")) == "true" },
		"opa": func(b []byte) bool {
			result := member(b, "result")
			return string(result) == "true" || string(member(result, "allow")) == "true"
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

// FuzzNoFalsePermit feeds every reader: none may see a Permit that is not there, or panic.
func FuzzNoFalsePermit(f *testing.F) {
	seed(f)
	readers := map[string]reader{"authzen": readEvaluation, "openfga": readCheck, "opa": readResult, "k8s-sar": readReview, "xacml": readXACML}
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
