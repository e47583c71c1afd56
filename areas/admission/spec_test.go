package admission

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tare/area"
	"tare/areas/admission/mechanism"
	"tare/areas/admission/own"
	"tare/areas/plane"
	"tare/internal/design"
	"tare/internal/question"
	"tare/internal/unit"
)

func TestPlan(t *testing.T) {
	for _, c := range []struct {
		name   string
		spec   Spec
		levels []string
		want   func(plan) bool
		bad    string // part of the error
	}{
		{"nothing said", Spec{}, nil, func(p plan) bool {
			return p.kind == mechanism.None && p.version == plane.V136 && p.etcd == plane.Tmpfs && p.nodes == 0 && !p.shared &&
				p.size == 200 && !p.foreign
		}, ""},
		{"psp implies 1.24", Spec{Mechanism: "psp"}, nil, func(p plan) bool {
			return p.version == plane.V124 && p.psp() && p.population.Total == 1 && p.population.Useable == 1
		}, ""},
		{
			"psp on 1.36",
			Spec{Embedded: &Embedded{Version: "1.36"}},
			[]string{"mechanism", "psp"},
			nil,
			"version: PodSecurityPolicy was removed",
		},
		{"the baseline of psp", Spec{Embedded: &Embedded{Version: "1.24"}}, []string{"mechanism", "none"}, func(p plan) bool {
			return p.version == plane.V124 && !p.psp()
		}, ""},
		{"vap on 1.24", Spec{Embedded: &Embedded{Version: "1.24"}}, []string{"mechanism", "vap"}, nil, "no policies in CEL"},
		{
			"no policies mean mechanism none",
			Spec{},
			[]string{"mechanism", "vap", "policies", "0"},
			func(p plan) bool { return p.kind == mechanism.None }, "",
		},
		{"all bound, all useable", Spec{}, []string{"mechanism", "vap", "policies", "7"}, func(p plan) bool {
			return p.population.Total == 7 && p.population.Bound == 7 && p.population.Useable == 7
		}, ""},
		{
			"bound only",
			Spec{},
			[]string{"mechanism", "vap", "policies", "7", "bound", "3"},
			func(p plan) bool { return p.population.Useable == 3 }, "",
		},
		{"psp's published geometry", Spec{}, []string{
			"mechanism", "psp", "policies", "1005", "bound", "1005", "useable",
			"1",
		}, func(p plan) bool {
			return p.population == mechanism.Population{
				Total: 1005, Bound: 1005, Useable: 1, Position: mechanism.Last,
				Irrelevant: mechanism.Rejects, Bindings: mechanism.One,
			}
		}, ""},
		{"more bound than there are", Spec{}, []string{"mechanism", "vap", "policies", "2", "bound", "3"}, nil, "bound: "},
		{"psa in numbers", Spec{}, []string{"mechanism", "psa", "policies", "2"}, nil, "policies: psa is one level"},
		{
			"a section's level is for psa only",
			Spec{Level: "baseline"},
			[]string{"mechanism", "vap"},
			func(p plan) bool { return p.population.Level == "" }, "",
		},
		{"a treatment's level for vap", Spec{}, []string{"mechanism", "vap", "level", "baseline"}, nil, "level: "},
		{
			"factors beside none",
			Spec{},
			[]string{"mechanism", "none", "policies", "9", "position", "last"},
			func(p plan) bool { return p.kind == mechanism.None }, "",
		},
		{
			"webhook latency",
			Spec{},
			[]string{"mechanism", "webhook", "webhook_latency", "5ms"},
			func(p plan) bool { return p.latency.Median == 5*time.Millisecond }, "",
		},
		{
			"too slow a webhook",
			Spec{Webhook: &Webhook{Latency: unit.Duration(time.Minute)}},
			[]string{"mechanism", "webhook"},
			nil, "webhook.latency: ",
		},
		{"a stock", Spec{}, []string{"objects", "300"}, func(p plan) bool { return p.size == 300 }, ""},
		{"too large a stock", Spec{}, []string{"objects", "5001"}, nil, "objects: "},
		{"no such mechanism", Spec{Mechanism: "opa"}, nil, nil, `mechanism: "opa" is not one of none`},
		{"no such factor", Spec{}, []string{"flavour", "sweet"}, nil, `flavour: there is no such factor`},
		{"no such number", Spec{}, []string{"policies", "many"}, nil, "policies: "},
		{"manifests without files", Spec{Mechanism: "manifests"}, nil, nil, "manifests: say where"},
		{"a context without a kubeconfig", Spec{Context: "x"}, nil, nil, "context: "},
		{"nodes elsewhere", Spec{Kubeconfig: "k", Embedded: &Embedded{Nodes: 3}}, nil, nil, "nodes: "},
		{"etcd elsewhere", Spec{Kubeconfig: "k"}, []string{"etcd", "disk"}, nil, "etcd: "},
		{"version elsewhere", Spec{Kubeconfig: "k"}, []string{"version", "1.24"}, nil, "version: "},
		{"both", Spec{Kubeconfig: "k", Embedded: &Embedded{}}, nil, nil, "exclude each other"},
		{"psp elsewhere", Spec{Kubeconfig: "k", Mechanism: "psp"}, nil, nil, "mechanism: "},
		{"a webhook that the cluster cannot reach", Spec{Kubeconfig: "k", Mechanism: "webhook"}, nil, nil, "webhook.url: "},
		{"no flag", Spec{Embedded: &Embedded{Flags: []string{"v=3"}}}, nil, nil, "embedded.flags: "},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := c.spec.plan(treatment(c.levels...))
			switch {
			case c.bad == "" && err != nil:
				t.Error(err)
			case c.bad != "" && (err == nil || !strings.Contains(err.Error(), c.bad)):
				t.Errorf("error %v, want %q", err, c.bad)
			case c.bad == "" && !c.want(p):
				t.Errorf("plan %+v", p)
			}
		})
	}
}

// TestLevelsStayInTheirTreatment: levels of one treatment change neither another treatment nor the section.
func TestLevelsStayInTheirTreatment(t *testing.T) {
	s := &Spec{Embedded: &Embedded{Nodes: 3}, Webhook: &Webhook{Listen: "127.0.0.1:9"}}
	u, err := s.Under(treatment("mechanism", "webhook", "nodes", "7", "etcd", "disk", "webhook_latency", "9ms",
		"policies", "4"))
	if err != nil {
		t.Fatal(err)
	}
	x, _ := u.(*Spec)
	if x.Embedded.Nodes != 7 || x.Embedded.Etcd != "disk" || x.Webhook.Latency.Std() != 9*time.Millisecond ||
		*x.Policies != 4 || x.Webhook.Listen != "127.0.0.1:9" {
		t.Errorf("under: %+v %+v %+v", x, x.Embedded, x.Webhook)
	}
	if s.Embedded.Nodes != 3 || s.Embedded.Etcd != "" || s.Webhook.Latency != 0 || s.Policies != nil || s.Mechanism != "" {
		t.Errorf("the section was changed: %+v %+v %+v", s, s.Embedded, s.Webhook)
	}
}

func TestValidate(t *testing.T) {
	const twoReleases = "two releases"
	three, vap := 3, []design.Treatment{treatment("mechanism", "vap")}
	for _, c := range []struct {
		name       string
		spec       Spec
		treatments []design.Treatment
		path, says string
	}{
		{
			"said twice",
			Spec{Mechanism: "vap"},
			[]design.Treatment{treatment("mechanism", "none")},
			"mechanism", "varied by the treatments already",
		},
		{
			"a number twice",
			Spec{Mechanism: "vap", Policies: &three},
			[]design.Treatment{treatment("policies", "4")},
			"policies", "varied",
		},
		{
			"a treatment's fault names it",
			Spec{},
			[]design.Treatment{treatment("mechanism", "vap", "bound", "9")},
			"", `treatment "bound=9 mechanism=vap"`,
		},
		{
			"the section's fault has its path",
			Spec{Embedded: &Embedded{Version: "1.36"}, Mechanism: "psp"},
			nil,
			"embedded.version", "was removed",
		},
		{"a webhook that nobody calls", Spec{Webhook: &Webhook{}}, vap, "webhook", "no treatment uses it"},
		{"a level without a treatment", Spec{Level: "baseline", Mechanism: "vap"}, nil, "level", "no treatment uses it"},
		{
			"parameters of a kind that has none",
			Spec{Params: &three},
			[]design.Treatment{treatment("mechanism", "webhook")},
			"params", "no treatment uses it",
		},
		{
			"parameters on a shared control plane",
			Spec{Params: &three, Embedded: &Embedded{Shared: true}},
			vap,
			"params", "does not find the parameters",
		},
		{
			"parameters beside the one of all",
			Spec{Params: &three, VAP: &VAP{Param: true}},
			vap,
			"params", "leave out one of them",
		},
		{
			twoReleases,
			Spec{},
			[]design.Treatment{treatment("mechanism", "none"), treatment("mechanism", "psp")},
			"", "what differs between them",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			severity := area.Error
			if c.name == twoReleases {
				severity = area.Warning
			}
			got := c.spec.Validate(question.Of(design.Compare).Asked(), c.treatments)
			if len(got) != 1 || got[0].Path != c.path || !strings.Contains(got[0].Message, c.says) ||
				got[0].Severity != severity {
				t.Errorf("findings %+v", got)
			}
		})
	}
	for _, fine := range [][]design.Treatment{
		nil,
		{treatment("mechanism", "none", "version", "1.24"), treatment("mechanism", "psp", "version", "1.24")},
		{treatment("mechanism", "none"), treatment("mechanism", "psa"), treatment("mechanism", "vap", "policies", "1000",
			"irrelevant", "match-conditions", "useable", "1")},
	} {
		if got := (&Spec{}).Validate(question.Of(design.Compare).Asked(), fine); len(got) > 0 {
			t.Errorf("levels %v: got findings %+v, want none", fine, got)
		}
	}
}

func TestOperationNames(t *testing.T) {
	if n := len(operationNames()); n != 3*10+1 {
		t.Errorf("%d operations: %v", n, operationNames())
	}
	got, err := chosen(nil)
	if err != nil || len(got) != 1 || got[0].name != "create-pod-dry-run" || !got[0].dryRun {
		t.Errorf("by default %+v, %v", got, err)
	}
	if _, err := chosen([]string{"list-pod-dry-run"}); err == nil || !strings.Contains(err.Error(), "list-pod-dry-run") {
		t.Errorf("a dry run of a list: %v", err)
	}
	start, err := chosen([]string{startupName})
	if err != nil {
		t.Fatal(err)
	}
	p, err := (&Spec{}).plan(design.Treatment{})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.checkOperations(start, false); err == nil || !strings.Contains(err.Error(), "nodes") {
		t.Errorf("pod-startup without nodes: %v", err)
	}
}

// TestArmsShareAControlPlane: arms share a control plane exactly if they differ in their policies only.
func TestArmsShareAControlPlane(t *testing.T) {
	key := func(pairs ...string) string {
		p, err := (&Spec{}).plan(treatment(pairs...))
		if err != nil {
			t.Fatal(err)
		}
		return p.key()
	}
	same := key("mechanism", "none")
	for _, other := range [][]string{
		{"mechanism", "vap", "policies", "9"},
		{"mechanism", "psa"},
		{"mechanism", "webhook"},
	} {
		if key(other...) != same {
			t.Errorf("%v does not share", other)
		}
	}
	for _, other := range [][]string{{"mechanism", "psp"}, {"nodes", "3"}, {"etcd", "disk"}, {"version", "1.24"}} {
		if key(other...) == same {
			t.Errorf("%v shares", other)
		}
	}
	if key("mechanism", "psp") == key("version", "1.24") {
		t.Error("a control plane without the plugin stands for one with it")
	}
}

func TestLockAndLoopback(t *testing.T) {
	if s := (&Spec{}); s.LockKey() != "" || !s.Says().Loopback {
		t.Error("embedded control planes need no lock, and are on this machine")
	}
	file := func(server string) string {
		path := filepath.Join(t.TempDir(), "kubeconfig")
		text := "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{name: c, context: {cluster: x, user: " +
			"u}}]\nclusters: [{name: x, cluster: {server: '" + server + "'}}]\nusers: [{name: u, user: {token: hunter2}}]\n"
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	near, far := &Spec{Kubeconfig: file("https://127.0.0.1:6443")}, &Spec{Kubeconfig: file("https://cluster.example:6443")}
	if near.LockKey() != "127.0.0.1:6443" || !near.Says().Loopback || far.LockKey() != "cluster.example:6443" ||
		far.Says().Loopback {
		t.Errorf("near %q %t, far %q %t", near.LockKey(), near.Says().Loopback, far.LockKey(), far.Says().Loopback)
	}
	if s := (&Spec{Kubeconfig: "/none"}); s.Says().Loopback {
		t.Error("a cluster that nobody can find counts as this machine")
	}
}

func TestMemory(t *testing.T) {
	plans := func(shared bool) (out []plan) {
		for _, levels := range [][]string{
			{"mechanism", "none"},
			{"mechanism", "vap", "policies", "1000"},
			{"mechanism", "psp"},
		} {
			p, err := (&Spec{Embedded: &Embedded{Shared: shared, Nodes: 10}}).plan(treatment(levels...))
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, p)
		}
		return out
	}
	alone, three := memoryOf(plans(false))
	together, two := memoryOf(plans(true))
	if three != 3 || two != 2 || alone-together != planeBytes+workersBytes+10*nodeBytes {
		t.Errorf("%d planes with %d MiB, %d with %d MiB", three, alone>>20, two, together>>20)
	}
	if free, err := available("/proc/meminfo"); err != nil || free < 1<<20 {
		t.Errorf("%d bytes are available, %v", free, err)
	}
}

// TestMissingManifestsAreRefused: validation names what is not there, and the folder in which it was looked for.
func TestMissingManifestsAreRefused(t *testing.T) {
	t.Chdir(t.TempDir())
	m := &Manifests{Before: "policies", Bad: "bad.yaml"}
	got := m.check()
	if len(got) != 2 || got[0].Path != "manifests.before" || got[1].Path != "manifests.bad" ||
		!strings.Contains(got[0].Message, "policies: no such file or directory (looked for in /") {
		t.Errorf("%+v", got)
	}
	if err := os.Mkdir("policies", 0o700); err != nil {
		t.Fatal(err)
	}
	m.Bad = "policies"
	if got = m.check(); len(got) != 1 || got[0].Message != "policies is not a file" {
		t.Errorf("%+v", got)
	}
}

// TestRunsOfOnePathHaveOwnNames: two runs whose records have the same path use different names and labels on a cluster.
func TestRunsOfOnePathHaveOwnNames(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(file, []byte(`{"apiVersion":"v1","kind":"Config","current-context":"x",
"clusters":[{"name":"x","cluster":{"server":"http://127.0.0.1:1"}}],"users":[{"name":"x","user":{}}],
"contexts":[{"name":"x","context":{"cluster":"x","user":"x"}}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	seen := map[string]bool{}
	for range 2 {
		env := testEnv(t)
		env.Dir = dir
		p := &arm{plan: plan{spec: &Spec{Kubeconfig: file}, foreign: true}, env: env}
		if err := p.connect(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{p.namespace, p.admin.Selector(), p.policies.keeper.Selector()} {
			if seen[name] {
				t.Errorf("both runs have %s", name)
			}
			seen[name] = true
		}
		if err := p.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// TestNobodyElsesRequestsAreJudged: manifests that would judge requests in all namespaces of somebody's cluster are
// refused, unless the file agrees.
func TestNobodyElsesRequestsAreJudged(t *testing.T) {
	const (
		binding = "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicyBinding\n" +
			"metadata: {name: no-latest}\nspec:\n  policyName: no-latest\n  validationActions: [Deny]\n"
		webhook = "apiVersion: admissionregistration.k8s.io/v1\nkind: MutatingWebhookConfiguration\n" +
			"metadata: {name: sidecar}\nwebhooks:\n- name: a.example.com\n  clientConfig: {url: https://127.0.0.1:1}\n"
		own = "{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: $(TARE_NAMESPACE)}}}"
	)
	for name, c := range map[string]struct {
		manifest       string
		foreign, agree bool
		want           string // in the error
	}{
		"a binding for all": {binding, true, false, "PolicyBinding no-latest would judge requests in other"},
		"a binding for a label": {
			binding + "  matchResources: {namespaceSelector: {matchLabels: {environment: test}}}\n", true, false, "no-latest",
		},
		"a binding for the run":    {binding + "  matchResources: " + own + "\n", true, false, ""},
		"a binding on a plane":     {binding, false, false, ""},
		"a binding that is agreed": {binding, true, true, ""},
		"a webhook for all":        {webhook, true, false, "MutatingWebhookConfiguration sidecar would judge"},
		"one webhook of two": {
			webhook + "- name: b.example.com\n  " + strings.Trim(own, "{}") + "}}\n", true, false, "sidecar",
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "policy.yaml"), []byte(c.manifest), 0o600); err != nil {
				t.Fatal(err)
			}
			p := &plan{
				kind: mechanism.Manifests, foreign: c.foreign, copies: 1,
				spec: &Spec{Manifests: &Manifests{Before: dir, Bad: "testdata/manifests/bad.yaml", ClusterWide: c.agree}},
			}
			_, err := p.manifests(anyScope)
			if (err != nil) != (c.want != "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
			if found := checkManifests([]plan{*p}); (len(found) > 0) != (c.want != "") {
				t.Errorf("preflight: %v", found)
			}
		})
	}
}

// TestAllThatIsLeftAsideIsNamed: what a bundle holds and the run does not have in force is for nobody to guess.
func TestAllThatIsLeftAsideIsNamed(t *testing.T) {
	names := []string{"CleanupPolicy a", "CleanupPolicy b", "ImageValidatingPolicy c", "ImageValidatingPolicy d"}
	said := leftAside("mine", &own.InForce{Untaken: names})
	for _, name := range names {
		if !strings.Contains(said, name) {
			t.Errorf("%s is not named: %s", name, said)
		}
	}
}
