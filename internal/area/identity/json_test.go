package identity

import (
	"encoding/json"
	"strings"
	"testing"

	"tare/lab/memtest"
)

// read walks b and returns its members, the last of each name, and whether it is a well-formed object.
func read(b []byte) (map[string]string, bool) {
	out := map[string]string{}
	m := walk(b)
	for {
		key, value, more := m.next()
		if !more {
			return out, m.whole()
		}
		out[string(key)] = string(value)
	}
}

// FuzzWalk holds the walker to encoding/json: the same objects are well-formed, with the same members.
func FuzzWalk(f *testing.F) {
	for _, s := range []string{
		`{}`, ` { } `, `{"a":1}`, `{"a":"b","c":[1,2,{"d":null}],"e":{"f":true}}`, `{"a":-0.1e+5,"b":false}`, `{"a":"\u00e9\n"}`,
		`{"a":1,}`, `{"a"}`, `{"a":}`, `{,}`, `[]`, `{"a":01}`, `{"a":1.}`, `{"a":.5}`, `{"a":1e}`, `{"a":"\x"}`, `{"a":"` + "\n" + `"}`, `{"a":1}x`, `{"a":tru}`,
		`{"a":[1,]}`, `{"a":[}`, `{"a":{"b" 1}}`, `{"a":1,"a":2}`, ``, `{`, `{"`, `{"a":"\u12"}`, `{"a":- 1}`, `{"a":[[[[[]]]]]}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		defer memtest.Bound(t, len(b))()
		if deep(b) {
			return // refused on purpose
		}
		got, ok := read(b)
		var want map[string]json.RawMessage
		valid := json.Unmarshal(b, &want) == nil && want != nil
		if ok != valid {
			t.Fatalf("%q: well-formed is %v, encoding/json says %v", b, ok, valid)
		}
		if !ok || strings.ContainsAny(string(b), "\\") || !json.Valid(b) || !ascii(b) {
			return // keys with escapes or broken UTF-8 are not translated
		}
		if len(got) != len(want) {
			t.Fatalf("%q: %d members, want %d", b, len(got), len(want))
		}
		for k, v := range want {
			if got[k] != string(v) {
				t.Fatalf("%q: member %q is %q, want %q", b, k, got[k], v)
			}
		}
	})
}

func deep(b []byte) bool {
	return strings.Count(string(b), "[")+strings.Count(string(b), "{") > maxDepth/2
}

func ascii(b []byte) bool {
	for _, c := range b {
		if c >= 0x80 {
			return false
		}
	}
	return true
}

func TestNestingIsBounded(t *testing.T) {
	deepest := `{"a":` + strings.Repeat("[", maxDepth) + strings.Repeat("]", maxDepth) + `}`
	if _, ok := read([]byte(deepest)); !ok {
		t.Errorf("%d levels are refused", maxDepth)
	}
	if _, ok := read([]byte(`{"a":` + strings.Repeat("[", 1e6) + `}`)); ok {
		t.Error("a million levels are accepted")
	}
}

func TestWhole64(t *testing.T) {
	for s, want := range map[string]int64{"0": 0, "3599": 3599, "-7": -7, "999999999999999999": 999999999999999999} {
		if got, ok := whole64([]byte(s)); !ok || got != want {
			t.Errorf("%s is %d, %v", s, got, ok)
		}
	}
	for _, s := range []string{"", "-", "1.0", "1e3", `"1"`, "9999999999999999999", "null"} {
		if got, ok := whole64([]byte(s)); ok {
			t.Errorf("%s is %d", s, got)
		}
	}
}
