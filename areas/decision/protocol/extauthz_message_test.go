package protocol

import (
	"bytes"
	hexadecimal "encoding/hex"
	"encoding/json"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"tare/areas/decision/model"
	"tare/rigs/memtest"
)

// The goldens were written by Envoy's own generated types (github.com/envoyproxy/go-control-plane/envoy v1.40.0,
// protobuf-go v1.36.12, deterministic marshalling) from the same contents.
const (
	goldenQuestion = "0ad7010a072205616c69636522b20112af0112034745541a100a08782d616374696f6e1204726561641a0c0a06782d64657074120264371a120a0a782d726573" +
		"6f757263651204646f63371a160a0f782d7265736f757263652d747970651203446f631a0f0a06782d726f6c651205726f6c65371a120a09782d7375626a6563741205616c6963" +
		"651a160a0e782d7375626a6563742d7479706512045573657222052f646f63372a087064703a393139313204687474705208485454502f312e31520b0a03617070120473686f70" +
		"520a0a047a6f6e6512026575"
	goldenBody = "0a7a0a1b12037765621a060a0176120131220c7370696666653a2f2f612f621214120473686f70220c7370696666653a2f2f612f63224512430a01371204504f53541a" +
		"0f0a0a3a617574686f7269747912016822062f703f713d312a0168320568747470733a03713d3142016648ac025206485454502f325a027b7d"
	goldenOK              = "0a001a1312110a0f0a06782d757365721205616c696365"
	goldenDenied          = "0a1708071213726f6c6520646f6573206e6f74206d6174636812090a030893031a026e6f"
	goldenUnauthenticated = "0a02081012050a03089103"
	goldenInternal        = "0a18080d1214706f6c69637920656e67696e65206661696c6564"
)

func unhex(t *testing.T, text string) []byte {
	t.Helper()
	b, err := hexadecimal.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestExtAuthzRequestIsEnvoys(t *testing.T) {
	q := model.Set{N: 8}.Ask(model.Last)
	q.Context = map[string]string{"zone": "eu", "app": "shop"}
	whole := model.Question{Body: json.RawMessage(`{"attributes":{"source":{"service":"web","labels":{"v":"1"},"principal":"spiffe://a/b"},
		"destination":{"service":"shop","principal":"spiffe://a/c"},"request":{"http":{"id":"7","method":"POST","headers":{":authority":"h"},
		"path":"/p?q=1","host":"h","scheme":"https","query":"q=1","fragment":"f","size":300,"protocol":"HTTP/2","body":"{}"}}}}`)}
	for _, c := range []struct {
		name, want string
		q          model.Question
	}{{"question", goldenQuestion, q}, {"body", goldenBody, whole}} {
		got, err := checkRequest(&Session{Host: "pdp:9191"}, c.q)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, unhex(t, c.want)) {
			t.Errorf("%s:\n%x, Envoy writes\n%s", c.name, got, c.want)
		}
	}
}

func TestExtAuthzReadsEnvoysResponses(t *testing.T) {
	for _, c := range []struct {
		name, hex, message string
		code, denied       int32
		decision           model.Decision
	}{
		{"empty", "", "", 0, 0, model.Permit},
		{"ok", goldenOK, "", 0, 0, model.Permit},
		{"denied", goldenDenied, "role does not match", 7, 403, model.Deny},
		{"unauthenticated", goldenUnauthenticated, "", 16, 401, model.Deny},
		{"internal", goldenInternal, "policy engine failed", 13, 0, model.Indeterminate},
	} {
		r, ok := readCheckResponse(unhex(t, c.hex))
		if !ok || r.code != c.code || string(r.message) != c.message || r.denied != c.denied || r.decision() != c.decision {
			t.Errorf("%s: got %+v, %v, decision %v", c.name, r, ok, r.decision())
		}
	}
	whole := unhex(t, goldenDenied)
	for cut := 1; cut < len(whole); cut++ {
		// Cut between two fields it is a message, too: all that may come is no panic and no other code.
		if r, ok := readCheckResponse(whole[:cut]); ok && r.code != 7 && r.code != 0 {
			t.Errorf("cut at %d: %+v", cut, r)
		}
	}
	// A known field of another type makes the answer unreadable: a code that is a text would else be 0, a Permit.
	for _, other := range []string{"0800", "0a020a00", "0a0408070a00", "0a021001", "1001", "12020801", "1205" + "0a030a0133"} {
		if r, ok := readCheckResponse(unhex(t, other)); ok {
			t.Errorf("%s is read as %+v", other, r)
		}
	}
	for code := int32(1); code < 20; code++ {
		m := protoMessage(nil, 1, protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), uint64(code)))
		r, ok := readCheckResponse(m)
		if d := r.decision(); !ok || r.code != code || d == model.Permit || d == model.None {
			t.Errorf("code %d: %+v is %v", code, r, d)
		}
	}
}

func FuzzReadCheckResponse(f *testing.F) {
	for _, text := range []string{
		"", goldenOK, goldenDenied, goldenUnauthenticated, goldenInternal, "0a", "0b",
		"0a0208ffffffffffffffffff01", "1500000000",
	} {
		b, err := hexadecimal.DecodeString(text)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		defer memtest.Bound(t, len(b))()
		r, ok := readCheckResponse(b)
		if !ok {
			return
		}
		// What was understood can be written again, and then means the same.
		st := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), uint64(r.code))
		again, ok := readCheckResponse(protoMessage(nil, 1, st))
		if !ok || again.decision() != r.decision() {
			t.Errorf("%x: %+v, written again %+v", b, r, again)
		}
		if d := r.decision(); (d == model.Permit) != (r.code == 0) {
			t.Errorf("%x: code %d is %v", b, r.code, d)
		}
	})
}

func TestExtAuthzValidate(t *testing.T) {
	for _, c := range []struct{ body, want string }{
		{`{"attributes":{}}`, ""},
		{`{}`, "no attributes"},
		{`{"attributes":{"request":{"http":{"verb":"GET"}}}}`, "unknown field"},
		{`[]`, "no JSON object"},
	} {
		err := extAuthz().Validate(Options{}, []model.Question{{
			Name: "q", Body: json.RawMessage(c.body),
			Want: model.Permit,
		}})
		if (err == nil) != (c.want == "") || (err != nil && !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", c.body, err, c.want)
		}
	}
}

func FuzzExtAuthzBody(f *testing.F) {
	f.Add(`{"attributes":{"source":{"service":"web","labels":{"v":"1"}},"request":{"http":{"method":"GET","headers":{"a":""},"size":-1}},"contextExtensions":{"":""}}}`)
	f.Add(`{"attributes":{}}`)
	f.Fuzz(func(t *testing.T, body string) {
		defer memtest.Bound(t, len(body))()
		a, err := readAttributes(json.RawMessage(body))
		if err != nil {
			return
		}
		// Read back, the path is where Envoy has it: attributes 1, request 4, http 2, path 4.
		path := ""
		into := func(num protowire.Number, inside func([]byte) bool) func(protoField) bool {
			return func(f protoField) bool { return f.num != num || inside(f.bytes) }
		}
		http := into(4, func(b []byte) bool { path = string(b); return true })
		request := into(2, func(b []byte) bool { return protoFields(b, http) })
		attributes := into(4, func(b []byte) bool { return protoFields(b, request) })
		message := into(1, func(b []byte) bool { return protoFields(b, attributes) })
		if !protoFields(protoMessage(nil, 1, a.proto()), message) || path != a.Request.HTTP.Path {
			t.Errorf("%q: path %q, want %q", body, path, a.Request.HTTP.Path)
		}
	})
}
