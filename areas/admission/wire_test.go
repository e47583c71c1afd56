package admission

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"tare/areas/admission/mechanism"
	"tare/areas/admission/webhook"
	"tare/internal/load"
	"tare/rigs/memtest"
)

// renderingArm returns an arm that is prepared as far as rendering needs.
func renderingArm(t testing.TB, names ...string) *arm {
	t.Helper()
	ops, err := chosen(names)
	if err != nil {
		t.Fatal(err)
	}
	p := &arm{
		operations: ops, namespace: "tare-x-0", endpoint: &load.Endpoint{Host: "127.0.0.1:6443"},
		stock: map[string][]item{},
	}
	p.kind, p.size = mechanism.None, 3
	if err := json.Unmarshal(mechanism.Pod{Name: "x"}.JSON(), &p.maker.pod); err != nil {
		t.Fatal(err)
	}
	p.maker.namespace, p.maker.scheduler, p.maker.labels = p.namespace, "nobody", map[string]string{"tare.dev/run": "r"}
	for _, r := range resources() {
		for _, name := range []string{"a", "b", "c"} {
			body, err := stored([]byte(`{"kind":"` + r.kind + `","metadata":{"name":"` + name +
				`","resourceVersion":"7","managedFields":[],"labels":{"tare.dev/run":"r"},"annotations":{"k":"v"}},"status":{}}`))
			if err != nil {
				t.Fatal(err)
			}
			p.stock[r.noun] = append(p.stock[r.noun], item{name, body})
		}
	}
	p.identity.set([]byte("Authorization: Bearer hunter2\r\n"))
	return p
}

func wires(t testing.TB, p *arm) []load.Operation {
	t.Helper()
	ops, err := p.calls()
	if err != nil {
		t.Fatal(err)
	}
	return ops
}

// TestRequests reads back what every operation renders: a whole request of the caller, with JSON if there is a body,
// and no two calls write the same object.
func TestRequests(t *testing.T) {
	var names []string
	for _, name := range operationNames() {
		if name != startupName {
			names = append(names, name)
		}
	}
	p := renderingArm(t, names...)
	for k, op := range wires(t, p) {
		o := p.operations[k]
		bodies, paths := map[string]bool{}, map[string]bool{}
		for range 6 {
			raw := op.Wire.Render(nil, 0) // the engine's number may come twice
			r, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(raw)))
			if err != nil {
				t.Fatalf("read back the request of %s: %v\n%s", o.name, err, raw)
			}
			body, err := io.ReadAll(r.Body)
			if err != nil || (len(body) > 0 && !json.Valid(body)) {
				t.Errorf("%s: body %q, %v", o.name, body, err)
			}
			if r.Header.Get("Authorization") != "Bearer hunter2" || r.Host != "127.0.0.1:6443" ||
				!strings.HasPrefix(r.URL.Path, strings.TrimSuffix(o.resource.path("tare-x-0"), "/")) {
				t.Errorf("%s: want the caller's credentials, host and path in %s", o.name, raw)
			}
			if dry := r.URL.Query().Get("dryRun") == "All"; dry != o.dryRun {
				t.Errorf("%s: dry run is %t", o.name, dry)
			}
			if bytes.Contains(raw, []byte(load.CallMark)) {
				t.Errorf("%s: a mark is left: %s", o.name, raw)
			}
			bodies[string(body)], paths[r.URL.Path] = true, true
		}
		want := map[string]int{verbCreate: 1, verbUpdate: 3, verbPatch: 3, verbGet: 3, verbList: 1, verbDelete: 3}[o.verb]
		if o.verb == verbDelete && !o.dryRun {
			want = 6 // each deletes another
		}
		if len(paths) != want {
			t.Errorf("%s: %d paths, want %d: %v", o.name, len(paths), want, paths)
		}
		if writes(o.verb) && o.verb != verbDelete && len(bodies) != 6 {
			t.Errorf("%s: %d different bodies of 6", o.name, len(bodies))
		}
	}
}

// TestDeleteUsesStockNames: delete requests the names under which its stock was made.
func TestDeleteUsesStockNames(t *testing.T) {
	p := renderingArm(t, "delete-pod")
	op := wires(t, p)[0]
	for i := range uint64(3) {
		if raw := string(op.Wire.Render(nil, 9)); !strings.Contains(raw, "/pods/"+p.doomed(resources()[0])+serial(i)+" ") {
			t.Errorf("call %d: %s", i, raw)
		}
	}
}

// TestNamesNeverRepeat: no name is used twice, however often the mix is made.
func TestNamesNeverRepeat(t *testing.T) {
	p := renderingArm(t, "create-pod")
	seen := map[string]bool{}
	for range 3 {
		op := wires(t, p)[0]
		for range 3 {
			seen[string(op.Wire.Render(nil, 0))] = true
		}
	}
	if len(seen) != 9 {
		t.Errorf("%d different requests of 9", len(seen))
	}
}

func TestStored(t *testing.T) {
	for _, bad := range []string{"", "[]", `{"metadata":7}`, `{"kind":"Pod"}`} {
		if _, err := stored([]byte(bad)); err == nil {
			t.Errorf("%q is taken for an object", bad)
		}
	}
	b, err := stored([]byte(`{"kind":"Pod","metadata":{"name":"a","resourceVersion":"7","managedFields":[1]},"spec":{"x":1},"status":{"y":2}}`))
	if err != nil || strings.Contains(string(b), "resourceVersion") || strings.Contains(string(b), "status") ||
		!strings.Contains(string(b), load.CallMark) || !strings.Contains(string(b), `"spec":{"x":1}`) {
		t.Errorf("stored object %s, %v; want its spec and the call's mark, and neither a version nor a status", b, err)
	}
}

const (
	podBody = `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"x","annotations":{"kubernetes.io/psp":"b"}}}`
)

// realStatus returns what a real API server answered, as recorded by the tests of package mechanism.
func realStatus(t testing.TB, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("mechanism", "testdata", "status", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestJudge(t *testing.T) {
	created := judge{status: 201, starts: [][]byte{[]byte(`{"kind":"Pod","apiVersion":"v1",`)}}
	marked := created
	marked.holds = [][]byte{[]byte(`"kubernetes.io/psp":"b"`)}
	other := created
	other.holds = [][]byte{[]byte(`"kubernetes.io/psp":"c"`)}
	for _, c := range []struct {
		name   string
		j      judge
		status int
		body   string
		want   load.Outcome
		why    cause
	}{
		{"admitted", created, 201, podBody, load.OK, fine},
		{"admitted by the deciding policy", marked, 201, podBody, load.OK, fine},
		{"admitted by another policy", other, 201, podBody, load.Wrong, causeUntouched},
		{"200 is no creation", created, 200, podBody, load.Wrong, fine},
		{"another kind", created, 201, `{"kind":"Status","apiVersion":"v1"}`, load.Wrong, causeOther},
		{"no body", created, 201, "", load.Wrong, causeOther},
		{"denied by a policy in CEL", created, 422, realStatus(t, "cel-denies"), load.Wrong, causeDenied},
		{"denied by a webhook", created, 400, realStatus(t, "webhook-sets-no-code"), load.Wrong, causeDenied},
		{"denied by a level", created, 403, realStatus(t, "pod-security"), load.Wrong, causeDenied},
		{"a policy that fails", created, 422, realStatus(t, "cel-fails"), load.Failed, causePolicyFailed},
		{"a webhook that fails", created, 500, realStatus(t, "webhook-says-500"), load.Failed, causePolicyFailed},
		{"a webhook that is away", created, 500, realStatus(t, "webhook-is-away"), load.Failed, causePolicyFailed},
		{"no right", created, 403, realStatus(t, "no-right"), load.Wrong, causeNoRight},
		{"forbidden otherwise", created, 403, realStatus(t, "no-service-account"), load.Wrong, causeForbidden},
		{"a page of a proxy", created, 403, "<html>", load.Wrong, causeForbidden},
		{"malformed", created, 400, realStatus(t, "malformed"), load.Wrong, causeInvalid},
		{"invalid", created, 422, realStatus(t, "invalid-quotes-a-denial"), load.Wrong, causeInvalid},
		{"unknown caller", created, 401, `{}`, load.Wrong, causeUnknownCaller},
		{"there already", created, 409, `{}`, load.Wrong, causeExists},
		{"used up", judge{status: 200}, 404, `{}`, load.Wrong, causeGone},
		{"too many", created, 429, `{}`, load.Refused, fine},
		{"unavailable", created, 503, `{}`, load.Refused, fine},
		{"broken", created, 500, `{}`, load.Failed, fine},
	} {
		got, why := c.j.answer(c.status, []byte(c.body))
		if got != c.want || why != c.why {
			t.Errorf("%s: %v, cause %d; want %v, %d", c.name, got, why, c.want, c.why)
		}
		if why != fine && causes("no right")[why] == "" {
			t.Errorf("%s: a cause without words", c.name)
		}
	}
}

// TestHotPathDoesNotAllocate: neither rendering nor judging allocates.
func TestHotPathDoesNotAllocate(t *testing.T) {
	w, err := renderingArm(t).wire(operations()[1], "t")
	if err != nil {
		t.Fatal(err)
	}
	w.judge.holds = [][]byte{[]byte(`"kubernetes.io/psp":"b"`)}
	buf := make([]byte, 0, 16<<10)
	body, denied := []byte(podBody), []byte(realStatus(t, "cel-denies"))
	if n := testing.AllocsPerRun(100, func() {
		buf = w.Render(buf[:0], 1)
		w.Check(1, 201, body)
		w.Explain(1, 422, denied)
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
	empty := wire{next: &atomic.Uint64{}, caller: &caller{}}
	if len(empty.Render(nil, 0)) != 0 {
		t.Error("without requests something is rendered")
	}
}

func TestNumbers(t *testing.T) {
	n := numbers{seen: map[uint64]uint64{}}
	seen := map[uint64]bool{}
	for _, i := range []uint64{0, 1, 2, 0, 1, 0, 1 << 30} {
		got := n.fresh(i)
		if seen[got] {
			t.Errorf("call %d has a number that another had: %d", i, got)
		}
		if n.last(i) != got {
			t.Errorf("call %d: last %d, want %d", i, n.last(i), got)
		}
		seen[got] = true
	}
	if n := (&numbers{seen: map[uint64]uint64{}}); n.fresh(7) != 7 {
		t.Error("the first call of a number does not keep it")
	}
}

func TestCompareCounts(t *testing.T) {
	got := difference(map[string]uint64{"n.a": 4, "n.b": 1}, map[string]uint64{
		"n.a": 5, "n.b": 1, "n.c": 1,
		"other": 9,
	}, "n.")
	if err := compareCounts("counts", got, []string{"n.a", "n.c"}, 1); err != nil {
		t.Error(err)
	}
	for _, c := range []struct {
		got  map[string]uint64
		want []string
		n    int
		says string
	}{
		{map[string]uint64{"a": 1}, []string{"a", "b"}, 1, "1 of 2 policies were not evaluated: b"},
		{map[string]uint64{"a": 2}, []string{"a"}, 1, "more than once: a"},
		{map[string]uint64{"a": 2, "b": 3}, []string{"a", "b"}, 3, "fewer times than their 3 bindings: a"},
		{map[string]uint64{"a": 4}, []string{"a"}, 3, "more often than their 3 bindings: a"},
		{map[string]uint64{"a": 1, "z": 1}, []string{"a"}, 1, "should not be: z"},
	} {
		if err := compareCounts("counts", c.got, c.want, c.n); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("compare with %v: error %v, want one with %q", c.want, err, c.says)
		}
	}
}

func FuzzStored(f *testing.F) {
	f.Add([]byte(podBody))
	f.Add([]byte(`{"metadata":{"annotations":{"a":"b"}}}`))
	f.Add([]byte(`{"metadata":{"annotations":7}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		defer memtest.Bound(t, len(b))()
		out, err := stored(b)
		if err == nil && (!json.Valid(out) || !bytes.Contains(out, []byte(load.CallMark))) {
			t.Errorf("%q became %q", b, out)
		}
	})
}

func FuzzJudge(f *testing.F) {
	f.Add(201, []byte(podBody))
	f.Add(403, []byte(realStatus(f, "no-right")))
	f.Add(422, []byte(realStatus(f, "cel-denies")))
	j := judge{status: 201, starts: [][]byte{[]byte(`{"kind":"Pod","apiVersion":"v1",`)}, holds: [][]byte{[]byte("psp")}}
	f.Fuzz(func(t *testing.T, status int, body []byte) {
		defer memtest.Bound(t, len(body))()
		o, why := j.answer(status, body)
		if o.Good() && (status != 201 || !bytes.HasPrefix(body, j.starts[0]) || !bytes.Contains(body, j.holds[0])) {
			t.Errorf("status %d, %q is good", status, body)
		}
		if why < fine || int(why) >= len(causes("no right")) {
			t.Errorf("cause %d", why)
		}
	})
}

func FuzzLevels(f *testing.F) {
	for _, name := range factors() {
		f.Add(name, "3")
	}
	f.Add("policies", "-1")
	f.Add("webhook_latency", "5ms")
	f.Fuzz(func(t *testing.T, name, level string) {
		defer memtest.Bound(t, len(name)+len(level))()
		s := &Spec{}
		p, err := s.plan(treatment(name, level))
		if err == nil && (p.population.Total < 0 || p.population.Total > maxPolicies || p.nodes > maxNodes ||
			p.latency.Median > webhook.MostLatency) {
			t.Errorf("%s=%q is taken: %+v", name, level, p)
		}
		if s.Embedded != nil || s.Webhook != nil || s.Policies != nil {
			t.Error("the section was changed")
		}
	})
}
