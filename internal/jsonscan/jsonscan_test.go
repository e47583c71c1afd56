package jsonscan

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"tare/rigs/memtest"
)

// oracle walks the members of an object with encoding/json: each key as it is meant, each value raw. ok is false when b
// is no object.
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
	for _, text := range []string{
		`{"a":1,"a":2}`, `{"a":-0.5e+3,"b":[1,{"c":null}]}`, `{"\u0061":"x"}`, `{"a":01}`, `{"a":1.}`, `{"a":-}`, `{"a":1e}`, `{"a":"\x"}`, `{"a":"\u12g4"}`,
		"{\"a\":\"\x01\"}", `{"a":1,}`, `{,}`, `{"a"}`, `{"a":}`, `{a:1}`, `[]`, `[1,]`, `{"a":[}`, `{"a":{"b":[1,2,{}]}}  `, "\ufeff{}", `{"A":true}`, `{"\ud834\udd1e":1}`,
		`{"a\/":1}`, `{"/":true,"\/":false}`, `{"a":tru}`, `{"a":truex}`, `{"":1}`,
		strings.Repeat(`{"a":`, 70) + "1" + strings.Repeat("}", 70), strings.Repeat(`{"a":`, 64) + "1" + strings.Repeat("}", 64),
	} {
		f.Add([]byte(text))
	}
}

// FuzzValue: a value is what encoding/json takes, with nothing around it, and nested no deeper than the bound.
func FuzzValue(f *testing.F) {
	seed(f)
	for _, text := range []string{"1", " 1", "1 ", "-", "true", "nul", `"a" "b"`, "[1] ", "", "0.5e-3", "5.e1", "1E+"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		want := json.Valid(b) && len(bytes.TrimSpace(b)) == len(b) && depth(b) <= MaxDepth
		if got := IsValue(b); got != want {
			t.Errorf("%q is a value: %v, want %v", b, got, want)
		}
		isNumber := want && (b[0] == '-' || '0' <= b[0] && b[0] <= '9')
		if got := IsNumber(b); got != isNumber {
			t.Errorf("%q is a number: %v, want %v", b, got, isNumber)
		}
	})
}

// FuzzPick holds the reader against encoding/json, which knows what is JSON, what keys mean and where values end.
func FuzzPick(f *testing.F) {
	seed(f)
	names := []string{"decision", "a", "Response", "status", "/"}
	f.Fuzz(func(t *testing.T, b []byte) {
		defer memtest.Bound(t, len(b))()
		out := make([][]byte, len(names))
		got := Pick(b, out, names...)
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
		if depth(b) > MaxDepth {
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

// FuzzArray does the same for arrays.
func FuzzArray(f *testing.F) {
	for _, text := range []string{`[]`, `[1]`, ` [ 1 , "a" , {} ] `, `[1,]`, `[,1]`, `[1 2]`, `[`, `[]]`, `{}`, `[[[]]]`, `[1,2,3}`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		defer memtest.Bound(t, len(b))()
		w := Array(b)
		var got []json.RawMessage
		for {
			_, element, more := w.Next()
			if !more {
				break
			}
			got = append(got, element)
		}
		var want []json.RawMessage
		ok := json.Unmarshal(b, &want) == nil && want != nil
		if depth(b) > MaxDepth {
			ok = false
		}
		if w.Whole() != ok {
			t.Fatalf("%q: an array %v, want %v", b, w.Whole(), ok)
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

func TestNestingIsBounded(t *testing.T) {
	deepest := `{"a":` + strings.Repeat("[", MaxDepth-1) + strings.Repeat("]", MaxDepth-1) + `}`
	if _, ok := Member([]byte(deepest), "a"); !ok {
		t.Errorf("%d levels are refused", MaxDepth)
	}
	for _, deep := range []string{`{"a":[` + deepest[5:len(deepest)-1] + `]}`, `{"a":` + strings.Repeat("[", 1e6) + `}`} {
		if _, ok := Member([]byte(deep), "a"); ok {
			t.Errorf("more than %d levels are accepted", MaxDepth)
		}
	}
}

func TestInt(t *testing.T) {
	for s, want := range map[string]int64{"0": 0, "3599": 3599, "-7": -7, "999999999999999999": 999999999999999999} {
		if got, ok := Int([]byte(s)); !ok || got != want {
			t.Errorf("%s is %d, %v", s, got, ok)
		}
	}
	for _, s := range []string{"", "-", "1.0", "1e3", `"1"`, "9999999999999999999", "null"} {
		if got, ok := Int([]byte(s)); ok {
			t.Errorf("%s is %d", s, got)
		}
	}
}

func TestIs(t *testing.T) {
	for _, c := range []struct {
		value, want string
		same        bool
	}{
		{`"a"`, "a", true},
		{`"a"`, "b", false},
		{`"https:\/\/a\/"`, "https://a/", true},
		{`"a\u0026b"`, "a&b", true},
		{`"a\u0026b"`, "a&bc", false},
		{`"a\u0026bc"`, "a&b", false},
		{`"\u00e4"`, "ä", true},
		{`"ä\/"`, "ä/", true},
		{`"\ud83d\ude00"`, "😀", false},
		{`"\n"`, "\n", true},
		{`""`, "", true},
		{`null`, "", false},
		{`1`, "1", false},
	} {
		if got := Is([]byte(c.value), c.want); got != c.same {
			t.Errorf("%s is %q: %v", c.value, c.want, got)
		}
	}
}

// FuzzIs: what we take for the same text, encoding/json does, too.
func FuzzIs(f *testing.F) {
	f.Add(`"a\u0026b\/"`, "a&b/")
	f.Add(`"\ud83d"`, "�")
	f.Fuzz(func(t *testing.T, value, want string) {
		if !IsValue([]byte(value)) || value[0] != '"' || !utf8.ValidString(value) {
			return
		}
		var got string
		if err := json.Unmarshal([]byte(value), &got); err != nil {
			t.Fatalf("%q: %v", value, err)
		}
		if Is([]byte(value), want) && got != want {
			t.Errorf("%s is not %q", value, want)
		}
		rare := func(r rune) bool { return r > 0xffff || r == utf8.RuneError }
		if got != "" && !strings.ContainsFunc(got, rare) && !Is([]byte(value), []byte(got)) {
			t.Errorf("%s is %q", value, got)
		}
	})
}
