package own

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// answered is a pod as an API server answers it: fields are of its spec. From the third on it has another status, which
// follows from what it is.
func answered(n int, labels, spec string) []byte {
	return fmt.Appendf(nil, `{"kind":"Pod","metadata":{"name":"p","namespace":"run-1","uid":"%d","labels":{%s}},`+
		`"spec":{"restartPolicy":"Always","volumes":[{"name":"kube-api-access-abcd%d"}]%s},"status":{"qosClass":"%d"}}`, n,
		labels, n, spec, n/3)
}

// TestChangesAreThoseOfThePolicies: what the API server makes up anew for each request is no change, nor is the name of
// the run's namespace.
func TestChangesAreThoseOfThePolicies(t *testing.T) {
	plain, err := NewPlain("run-1", answered(1, "", `,"clusterIP":"10.0.0.1","dnsPolicy":"Default"`),
		answered(2, "", `,"clusterIP":"10.0.0.2","dnsPolicy":"Default"`))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		answer []byte
		want   []string
	}{
		"nothing":   {answered(3, "", `,"clusterIP":"10.0.0.3","dnsPolicy":"Default"`), nil},
		"a label":   {answered(3, `"a.b/c":"x"`, `,"dnsPolicy":"Default"`), []string{`metadata.labels."a.b/c" = "x"`}},
		"removed":   {answered(3, "", ""), []string{"spec.dnsPolicy removed"}},
		"another":   {answered(3, "", `,"dnsPolicy":"None"`), []string{`spec.dnsPolicy = "None"`}},
		"namespace": {answered(3, `"team":"run-1"`, `,"dnsPolicy":"Default"`), []string{`metadata.labels.team = "NAMESPACE"`}},
		"long": {
			answered(3, `"team":"`+strings.Repeat("x", 80)+`"`, `,"dnsPolicy":"Default"`),
			[]string{`metadata.labels.team = "` + strings.Repeat("x", 59) + "…"},
		},
		"lists": {
			answered(3, "", `,"dnsPolicy":"Default","containers":[{"name":"a","args":["x"]},{"name":"a"}],"tolerations":[{}]`),
			[]string{
				`spec.containers[a#2].name = "a"`, `spec.containers[a].args[0] = "x"`, `spec.containers[a].name = "a"`,
				"spec.tolerations[0] = {}",
			},
		},
	} {
		is, err := plain.Changes(c.answer)
		lines := is.Lines()
		for i, l := range lines { // an empty map of labels stands for none
			if strings.HasPrefix(l, "metadata.labels removed") {
				lines = append(lines[:i:i], lines[i+1:]...)
			}
		}
		if d := cmp.Diff(c.want, lines); d != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, d)
		}
	}
	for name, text := range map[string]string{
		"no JSON": "x", "a refusal": `{"kind":"Status"}`, "no object": "[]",
		"what is too large": `{"kind":"Pod","x":"` + strings.Repeat("x", mostCompared) + `"}`,
	} {
		if _, err := plain.Changes([]byte(text)); err == nil {
			t.Errorf("%s was taken for an object", name)
		}
	}
}

// TestChangesThatVary: a value that differs from request to request is no difference, and one that is gone is.
func TestChangesThatVary(t *testing.T) {
	first := Changes{"a": "= 1", "random": `= "x"`, "once": "= 1"}
	settled := first.Settled(Changes{"a": "= 1", "random": `= "y"`, "other": "= 1"})
	if d := cmp.Diff(Changes{"a": "= 1", "random": "varies"}, settled); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if left := settled.Missing(Changes{"a": "= 1", "random": `= "z"`}); len(left) != 0 {
		t.Errorf("missing: %v", left)
	}
	if d := cmp.Diff(Changes{"a": "= 1", "random": "varies"}, settled.Missing(Changes{"a": "= 2"})); d != "" {
		t.Errorf("missing (-want +got):\n%s", d)
	}
}

// FuzzChanges: whatever a server answers, nothing panics, an answer does not differ from itself, and what is told is
// bounded.
func FuzzChanges(f *testing.F) {
	f.Add([]byte(`{"kind":"Pod"}`), answered(1, `"a.b":"x"`, `,"x":[1,{"name":"a"},[]]`))
	f.Add(answered(1, "", ""), []byte(`{"kind":"Secret","data":{"":""},"metadata":[]}`))
	f.Fuzz(func(t *testing.T, without, with []byte) {
		plain, err := NewPlain("run-1", without, without)
		if err != nil {
			return
		}
		if same, err := plain.Changes(without); err != nil || len(same) > 0 {
			t.Errorf("it differs from itself: %v, %v", same, err)
		}
		changes, err := plain.Changes(with)
		if err != nil {
			return
		}
		if lines := changes.Lines(); len(lines) > mostLines+1 || len(changes.Marks()) > len(changes) {
			t.Errorf("%d lines of %d changes", len(lines), len(changes))
		}
		if missing := changes.Settled(changes).Missing(changes); len(missing) > 0 {
			t.Errorf("%v is missing in itself", missing)
		}
	})
}

// TestMarksOfChanges: marks are written as the API server writes them. A change that its text cannot show has none.
func TestMarksOfChanges(t *testing.T) {
	c := Changes{
		"spec.hostNetwork": "= true", `metadata.labels."a.b/c"`: `= "\u003cx\u003e"`, "spec.args[0]": `= "x"`,
		"spec.long": `= "xxxx…`, "spec.gone": "removed", "spec.random": varies, "spec.secret": "changed",
		"metadata.labels.team": `= "NAMESPACE"`, `metadata.annotations."a b"`: "= 1",
	}
	want := []string{`"a b":1`, `"a.b/c":"\u003cx\u003e"`, `"hostNetwork":true`}
	if d := cmp.Diff(want, c.Marks()); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// TestHiddenTextsAreNumbers: what may be a secret that a policy has fetched is not shown, and still compared.
func TestHiddenTextsAreNumbers(t *testing.T) {
	plain, err := NewPlain("run-1", answered(1, "", ""), answered(2, "", ""))
	if err != nil {
		t.Fatal(err)
	}
	known := func(text string) bool { return text == "known" }
	of := func(salt, password string) Changes {
		is, err := plain.Hiding(known, []byte(salt)).Changes(answered(3, "", `,"a":"`+password+`","b":"known","c":7,"d":[]`))
		if err != nil {
			t.Fatal(err)
		}
		return is
	}
	a := of("x", "hunter2")
	if !strings.HasPrefix(a["spec.a"], "changed (#") || a["spec.b"] != `= "known"` || a["spec.c"] != "= 7" || a["spec.d"] != "= []" {
		t.Errorf("%v", a)
	}
	if b := of("x", "hunter2"); len(a.Missing(b)) > 0 {
		t.Errorf("one text has two numbers: %v, %v", a, b)
	}
	if b := of("x", "hunter3"); len(a.Missing(b)) != 1 {
		t.Errorf("two texts have one number: %v, %v", a, b)
	}
	if b := of("y", "hunter2"); len(a.Missing(b)) != 1 {
		t.Errorf("the number does not depend on the salt: %v, %v", a, b)
	}
	if marks := a.Marks(); len(marks) != 3 {
		t.Errorf("marks %q", marks)
	}
}

// TestManyChanges: however much an answer holds, what is told of it is bounded.
func TestManyChanges(t *testing.T) {
	many := Changes{}
	for i := range 1000 {
		many[fmt.Sprint("spec.x", i)] = "= 1"
	}
	if lines := many.Lines(); len(lines) != mostLines+1 || lines[mostLines] != "and 800 more" {
		t.Errorf("%d lines, the last %q", len(lines), lines[len(lines)-1])
	}
}

// TestValuesOfSecretsAreNotShown, wherever they stand in one.
func TestValuesOfSecretsAreNotShown(t *testing.T) {
	secret := func(data string) []byte {
		return []byte(`{"kind":"Secret","metadata":{"name":"s"},"data":{"password":"` + data + `"}}`)
	}
	plain, err := NewPlain("run-1", secret("b2xk"), secret("b2xk"))
	if err != nil {
		t.Fatal(err)
	}
	is, err := plain.Changes(secret("c2VjcmV0"))
	if d := cmp.Diff([]string{"data.password changed"}, is.Lines()); d != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, d)
	}
}
