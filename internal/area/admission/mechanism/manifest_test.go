package mechanism

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

func TestManifestsAreReadInOrder(t *testing.T) {
	dir := fstest.MapFS{
		"20-policies/b.yml": {Data: []byte("apiVersion: constraints.gatekeeper.sh/v1beta1\nkind: K8sPSPPrivileged\nmetadata: {name: p, labels: {team: a}}\nspec: {match: {namespaces: [$(TARE_NAMESPACE)]}}\n")},
		"10-engine.yaml":    {Data: []byte("# an engine\n---\n---\napiVersion: v1\nkind: Namespace\nmetadata: {name: engine}\n---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: engine, namespace: engine}\n")},
		"30-list.json":      {Data: []byte(`{"apiVersion":"v1","kind":"List","items":[{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}},{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"b"}}]}`)},
		"README.md":         {Data: []byte("not a manifest: {")},
	}
	r, err := ReadManifests(dir, testScope())
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
	if diff := cmp.Diff([]string{"Namespace engine", "Deployment engine", "K8sPSPPrivileged p", "ConfigMap a", "Namespace b"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := r.Objects[2].GetLabels()["team"]; got != "a" {
		t.Errorf("the label of its own is %q", got)
	}
	if text, err := r.Objects[2].MarshalJSON(); err != nil || !strings.Contains(string(text), `"namespaces":["tare-r7f3a-1"]`) {
		t.Errorf("the namespace is not put in: %s %v", text, err)
	}
	var resources []string
	for _, gvr := range r.Resources {
		resources = append(resources, gvr.Resource)
	}
	if diff := cmp.Diff([]string{"namespaces", "configmaps", "k8spspprivilegeds", "deployments"}, resources); diff != "" {
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
		_, err := ReadManifests(fstest.MapFS{"a.yaml": {Data: []byte(c.text)}}, testScope())
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %q", name, err, c.says)
		}
	}
	if _, err := ReadManifests(fstest.MapFS{"a.yaml": {Data: make([]byte, mostManifest+1)}}, testScope()); err == nil {
		t.Error("a file without end was read")
	}
}

func TestFileProof(t *testing.T) {
	s := testScope()
	pod := []byte("apiVersion: v1\nkind: Pod\nmetadata: {name: mine, namespace: other, labels: {app: bad}}\nspec: {containers: [{name: a, image: b}]}\n")
	proof, err := FileProof(nil, pod, s)
	if err != nil {
		t.Fatal(err)
	}
	if len(proof.Bad) != 1 || proof.Bad[0].Want != Denied || !strings.Contains(string(proof.Bad[0].Pod), `"namespace":"tare-r7f3a-1"`) || !strings.Contains(string(proof.Bad[0].Pod), `"app":"bad"`) {
		t.Errorf("bad: %+v", proof.Bad)
	}
	if err := proof.Bad[0].Judge(403, []byte(deniedByQuota)); err != nil {
		t.Errorf("a black box may deny in its own words: %v", err)
	}
	if proof, err = FileProof(pod, pod, s); err != nil || !strings.Contains(string(proof.Good.Pod), `"app":"bad"`) {
		t.Errorf("good: %s %v", proof.Good.Pod, err)
	}
	for name, text := range map[string]string{"nothing": "", "two": string(pod) + "---\n" + string(pod), "no pod": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}"} {
		if _, err := FileProof(nil, []byte(text), s); err == nil {
			t.Errorf("%s: taken for a pod", name)
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		"apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n---\n# none\n---\napiVersion: v1\nkind: List\nitems: []\n",
		`{"apiVersion":"v1","kind":"PodList","items":[{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","labels":null}}]}`,
		"apiVersion: v1\nkind: Pod\nmetadata: {name: $(TARE_NAMESPACE), labels: {a: b}}\nspec: {n: 1.5, m: 9223372036854775807}\n",
		"a: &a [x, x]\nb: *a\n", "---\n---", "metadata: 5\nkind: a\napiVersion: b", "\xff\xfe", "kind: List\napiVersion: v1\nitems: 5",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		objects, err := Decode("f", text, testScope())
		if err != nil && !strings.HasPrefix(err.Error(), "f: document ") {
			t.Fatalf("the error does not say where: %v", err)
		}
		for _, o := range objects {
			if o.GetName() == "" || o.GetKind() == "" || o.GetLabels()[RunLabel] != "r7f3a" {
				t.Fatalf("not whole, or not ours: %v", o.Object)
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
	for _, seed := range []string{deniedByVAP, deniedByWebhook, deniedByPSP, admittedMarked, admittedByPSP, `null`, `[]`, `{"metadata":[]}`} {
		f.Add(201, []byte(seed))
		f.Add(422, []byte(seed))
	}
	proof := Prove(VAP, Default(VAP, 2), testScope())
	f.Fuzz(func(t *testing.T, status int, body []byte) {
		good, bad := proof.Good.Judge(status, body), proof.Bad[0].Judge(status, body)
		if good == nil && bad == nil {
			t.Fatalf("status %d, %s: both admitted and denied", status, body)
		}
	})
}
