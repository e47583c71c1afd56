package mechanism

import (
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"tare/rigs/memtest"
)

func TestManifestsAreReadInOrder(t *testing.T) {
	dir := fstest.MapFS{
		"20-policies/b.yml": {Data: []byte("apiVersion: constraints.gatekeeper.sh/v1beta1\nkind: " +
			"K8sPSPPrivileged\nmetadata: {name: p, labels: {team: a}}\nspec: {match: {namespaces: [$(TARE_NAMESPACE)]}}\n")},
		"10-engine.yaml": {Data: []byte("# an engine\n---\n---\napiVersion: v1\nkind: Namespace\nmetadata: {name: " +
			"engine}\n---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: engine, namespace: engine}\n")},
		"30-list.json": {Data: []byte(
			`{"apiVersion":"v1","kind":"List","items":[{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}},{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"b"}}]}`)},
		"README.md": {Data: []byte("not a manifest: {")},
	}
	r, err := ReadManifests(dir, testScope(), 3)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, o := range r.Objects {
		got = append(got, o.GetKind()+" "+o.GetName())
		if o.GetLabels()[RunLabel] != "r7f3a" || o.GetLabels()[OwnerLabel] != Owner {
			t.Errorf("%s has labels %v", o.GetName(), o.GetLabels())
		}
	}
	if diff := cmp.Diff([]string{
		"Namespace engine", "Deployment engine", "K8sPSPPrivileged p", "ConfigMap a",
		"Namespace b",
	}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := r.Objects[2].GetLabels()["team"]; got != "a" {
		t.Errorf("the label of its own is %q", got)
	}
	if text, err := r.Objects[2].MarshalJSON(); err != nil ||
		!strings.Contains(string(text), `"namespaces":["tare-r7f3a-1"]`) {
		t.Errorf("the namespace is not put in: %s %v", text, err)
	}
	var kinds []string
	for _, k := range r.Kinds {
		kinds = append(kinds, k.Kind)
	}
	if diff := cmp.Diff([]string{"Namespace", "ConfigMap", "K8sPSPPrivileged", "Deployment"}, kinds); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if r.Counted {
		t.Error("no document is for each policy")
	}
}

// TestDocumentsForEachPolicy: what holds the placeholder comes once for each policy, in its place, and everything else
// once.
func TestDocumentsForEachPolicy(t *testing.T) {
	dir := fstest.MapFS{"a.yaml": {Data: []byte("apiVersion: v1\nkind: Namespace\nmetadata: {name: " +
		"engine}\n---\napiVersion: x.example/v1\nkind: Rule\nmetadata: {name: r-$(TARE_POLICY)}\nspec: {says: " +
		"$(TARE_NAMESPACE) $(TARE_POLICY)}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: last}\n")}}
	for n, want := range map[int][]string{
		0: {"engine", "last"},
		1: {"engine", "r-00001", "last"},
		3: {"engine", "r-00001", "r-00002", "r-00003", "last"},
	} {
		r, err := ReadManifests(dir, testScope(), n)
		if err != nil || !r.Counted {
			t.Fatalf("%d: counted %v, %v", n, r.Counted, err)
		}
		var got []string
		for _, o := range r.Objects {
			got = append(got, o.GetName())
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%d (-want +got):\n%s", n, diff)
		}
	}
	if _, err := ReadManifests(dir, testScope(), mostObjects); err == nil ||
		!strings.Contains(err.Error(), "a.yaml: document 2: more than") {
		t.Errorf("%d policies and two more objects: %v", mostObjects, err)
	}
}

// TestDefined: the resource of a kind is what its definition calls it, in each version.
func TestDefined(t *testing.T) {
	objects, err := Decode("f", []byte(`apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: sheep.x.example}
spec: {group: x.example, names: {kind: Sheep, plural: sheep}, versions: [{name: v1}, {name: v1beta1}]}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: odd}
spec: {group: 5, names: [], versions: {}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: a}
`), testScope(), 1)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for kind, resource := range Defined(objects) {
		got[kind.String()] = resource.String()
	}
	want := map[string]string{
		"x.example/v1, Kind=Sheep":      "x.example/v1, Resource=sheep",
		"x.example/v1beta1, Kind=Sheep": "x.example/v1beta1, Resource=sheep",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestManifestsAreRefused(t *testing.T) {
	for name, c := range map[string]struct{ text, says string }{
		"no kind":          {"metadata: {name: a}", "document 1"},
		"no name":          {"apiVersion: v1\nkind: Pod\nmetadata: {generateName: a-}", "metadata.name"},
		"twice the key":    {"apiVersion: v1\nkind: Pod\nkind: Pod\nmetadata: {name: a}", "document 1"},
		"no YAML":          {"apiVersion: v1\nkind: [", "document 1"},
		"second document":  {"apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n---\njust words\n", "document 2"},
		"labels that lie":  {"apiVersion: v1\nkind: Pod\nmetadata: {name: a, labels: {b: 1}}", "labels"},
		"version of paths": {"apiVersion: a/b/c\nkind: Pod\nmetadata: {name: a}", "a/b/c"},
		"item of a list":   {"apiVersion: v1\nkind: List\nitems: [{apiVersion: v1, kind: Pod}]", "item 1"},
		"nothing at all":   {"# only words\n", "no object"},
	} {
		_, err := ReadManifests(fstest.MapFS{"a.yaml": {Data: []byte(c.text)}}, testScope(), 1)
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %q", name, err, c.says)
		}
	}
	pipe := fstest.MapFS{"a.yaml": {Mode: fs.ModeNamedPipe}}
	if _, err := ReadManifests(pipe, testScope(), 1); err == nil || !strings.Contains(err.Error(), "no regular file") {
		t.Errorf("a named pipe: %v", err)
	}
	if _, err := ReadManifests(fstest.MapFS{"a.yaml": {Data: make([]byte, mostManifest+1)}}, testScope(), 1); err == nil {
		t.Error("a file without end was read")
	}
}

func TestFileProof(t *testing.T) {
	s := testScope()
	pod := []byte("apiVersion: v1\nkind: Pod\nmetadata: {name: mine, namespace: other, labels: {app: bad}}\nspec: " +
		"{containers: [{name: a, image: b}]}\n")
	proof, err := FileProof(nil, pod, nil, 1, s)
	if err != nil {
		t.Fatal(err)
	}
	if len(proof.Bad) != 1 || proof.Bad[0].Want != Denied ||
		!strings.Contains(string(proof.Bad[0].Pod), `"namespace":"tare-r7f3a-1"`) ||
		!strings.Contains(string(proof.Bad[0].Pod), `"app":"bad"`) {
		t.Errorf("bad: %+v", proof.Bad)
	}
	if err := proof.Bad[0].Judge(403, []byte(deniedByQuota)); err != nil {
		t.Errorf("a black box may deny in its own words: %v", err)
	}
	if proof, err = FileProof(pod, pod, nil, 1, s); err != nil ||
		!strings.Contains(string(proof.Good.Pod), `"app":"bad"`) {
		t.Errorf("good: %s %v", proof.Good.Pod, err)
	}
	if proof, err = FileProof(nil, pod, []string{"engine: ", "[$(TARE_NAMESPACE).$(TARE_POLICY)]"}, 2, s); err != nil {
		t.Fatal(err)
	}
	denial := func(message string) []byte {
		return []byte(`{"kind":"Status","status":"Failure","message":"admission webhook \"engine.example\" denied the request: ` + message + `","code":403}`)
	}
	if err := proof.Bad[0].Judge(403, denial("engine: [tare-r7f3a-1.00001] no [tare-r7f3a-1.00002] no")); err != nil {
		t.Errorf("both policies deny it: %v", err)
	}
	for _, message := range []string{
		"engine: [tare-r7f3a-1.00001] no", "engine: [tare-r7f3a-1.00002] no",
		"[tare-r7f3a-1.00001] [tare-r7f3a-1.00002]",
	} {
		if err := proof.Bad[0].Judge(403, denial(message)); err == nil {
			t.Errorf("not all that must deny it do: %s", message)
		}
	}
	for name, text := range map[string]string{
		"nothing": "", "two": string(pod) + "---\n" + string(pod),
		"no pod": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}",
	} {
		if _, err := FileProof(nil, []byte(text), nil, 1, s); err == nil {
			t.Errorf("%s: taken for a pod", name)
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		"apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n---\n# none\n---\napiVersion: v1\nkind: List\nitems: []\n",
		`{"apiVersion":"v1","kind":"PodList","items":[{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","labels":null}}]}`,
		"apiVersion: v1\nkind: Pod\nmetadata: {name: $(TARE_NAMESPACE), labels: {a: b}}\nspec: {n: 1.5, m: " +
			"9223372036854775807}\n",
		"apiVersion: v1\nkind: Pod\nmetadata: {name: a$(TARE_POLICY)}\n",
		"a: &a [x, x]\nb: *a\n", "---\n---", "metadata: 5\nkind: a\napiVersion: b", "\xff\xfe",
		"kind: List\napiVersion: v1\nitems: 5",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		defer memtest.Bound(t, len(text))()
		objects, err := Decode("f", text, testScope(), 2)
		if err != nil && !strings.HasPrefix(err.Error(), "f: document ") {
			t.Fatalf("the error does not say where: %v", err)
		}
		for _, o := range objects {
			if o.GetName() == "" || o.GetKind() == "" || o.GetLabels()[RunLabel] != "r7f3a" {
				t.Fatalf("object lacks a field, or the run's labels: %v", o.Object)
			}
			again, err := o.DeepCopy().MarshalJSON()
			if err != nil {
				t.Fatalf("cannot be sent: %v", err)
			}
			if strings.Contains(string(again), NamespacePlaceholder) && !strings.Contains(string(text), "\\") {
				t.Fatalf("the placeholder is left in %s", again)
			}
		}
	})
}

func FuzzJudge(f *testing.F) {
	for _, seed := range []string{
		deniedByVAP, deniedByWebhook, deniedByPSP, admittedMarked, admittedByPSP, `null`, `[]`,
		`{"metadata":[]}`,
	} {
		f.Add(201, []byte(seed))
		f.Add(422, []byte(seed))
	}
	proof := Prove(VAP, Default(VAP, 2), testScope())
	f.Fuzz(func(t *testing.T, status int, body []byte) {
		defer memtest.Bound(t, len(body))()
		good, bad := proof.Good.Judge(status, body), proof.Bad[0].Judge(status, body)
		if good == nil && bad == nil {
			t.Fatalf("status %d, %s: both admitted and denied", status, body)
		}
	})
}
