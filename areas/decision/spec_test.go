package decision

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"

	"tare/area"
	"tare/areas/decision/engine"
	"tare/areas/decision/model"
	"tare/areas/decision/protocol"
	"tare/internal/design"
	"tare/internal/kit"
	"tare/rigs/areatest"
)

// TestSchemaEnumsMatchTheCode: the schema allows the values that the code knows.
func TestSchemaEnumsMatchTheCode(t *testing.T) {
	f, _ := reflect.TypeFor[Planted]().FieldByName("Answer")
	want := slices.Sorted(slices.Values(plantedAnswers()))
	got := strings.Split(strings.TrimPrefix(f.Tag.Get("jsonschema"), "enum="), ",enum=")
	if slices.Sort(got); !slices.Equal(got, want) {
		t.Errorf("planted answers in the schema: %v, want %v", got, want)
	}
}

// TestEveryFieldIsDescribed: editors show the descriptions.
func TestEveryFieldIsDescribed(t *testing.T) {
	for _, of := range []reflect.Type{
		reflect.TypeFor[Spec](), reflect.TypeFor[Embedded](), reflect.TypeFor[Planted](), reflect.TypeFor[Process](),
		reflect.TypeFor[Metrics](), reflect.TypeFor[Request](), reflect.TypeFor[Entity](), reflect.TypeFor[protocol.OPA](),
		reflect.TypeFor[protocol.OpenFGA](), reflect.TypeFor[protocol.PDPX](),
	} {
		for f := range of.Fields() {
			y, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
			if j, _, _ := strings.Cut(f.Tag.Get("json"), ","); y == "" || y != j || f.Tag.Get("jsonschema_description") == "" {
				t.Errorf("%v.%s: %q and %q, described %q", of, f.Name, y, j, f.Tag.Get("jsonschema_description"))
			}
		}
	}
}

// TestAdapterGetsItsOwnOptions and no others.
func TestAdapterGetsItsOwnOptions(t *testing.T) {
	s := Spec{Path: "p"}
	of := map[string]any{"": nil} // by section
	for f := range reflect.TypeFor[Spec]().Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		if slices.ContainsFunc(protocol.Adapters(), func(a protocol.Adapter) bool { return a.Section == name }) {
			section := reflect.New(f.Type.Elem())
			reflect.ValueOf(&s).Elem().FieldByIndex(f.Index).Set(section)
			of[name] = section.Interface()
		}
	}
	if of["opa"] != s.OPA || s.OPA == nil || len(of) < 4 {
		t.Fatalf("sections %v", of)
	}
	for _, a := range protocol.Adapters() {
		section, ok := of[a.Section]
		if got := s.options(a); !ok || got.Section != section || got.Path != "p" {
			t.Errorf("%s gets %+v of its section %q", a.Name, got, a.Section)
		}
		if got := (&Spec{}).options(a); got != (protocol.Options{}) {
			t.Errorf("%s gets %+v of no section", a.Name, got)
		}
	}
}

// specOf reads a section from the fields that it has in a file.
func specOf(t testing.TB, fields string) *Spec {
	t.Helper()
	s := &Spec{}
	d := yaml.NewDecoder(strings.NewReader("{" + fields + "}"))
	d.KnownFields(true)
	if err := d.Decode(s); err != nil {
		t.Fatalf("%s: %v", fields, err)
	}
	return s
}

// TestValidate checks the findings of Validate and their paths.
func TestValidate(t *testing.T) {
	const opa = "adapter: opa, url: http://127.0.0.1:8080, "
	const authzen, pdpx = "adapter: authzen, url: http://127.0.0.1:8080, ", "adapter: pdpx, url: http://127.0.0.1:8080, "
	const yes, no = "{name: yes, expect: permit}", "{name: no, expect: deny}"
	const asked = "requests: [" + yes + ", " + no + "], "
	const bearing = "requests: [{name: yes, expect: permit, context: {token: '{jwt}'}}, " + no + "], "
	const user, jwt = "username: u, password: {env: P}, ", "secrets: {jwt: {file: t}}, "
	for _, c := range []struct{ section, path, says string }{ // nothing said: valid
		{"", "", ""},
		{"embedded: {engine: pdpx}, policies: 7", "", ""},
		{"adapter: opa", "", ""},
		{"adapter: pdpx, url: https://pdp:6969, " + user, "", ""},
		{authzen + asked, "", ""},
		{opa + "load: true, policies: 5, position: first", "", ""},

		{"adapter: pdpx, url: http://pdp:6969, " + user, "url", "expose_secrets: true"},
		{"adapter: pdpx, url: http://pdp:6969, expose_secrets: true, " + user, "", ""},
		{"adapter: ext-authz, url: grpc://pdp:9191, token: {env: P}, " + asked, "url", "over grpc://"},
		{
			"adapter: opa, url: https://pdp, load: true, secret_headers: {X: {env: P}}, tls: {insecure: true}", "url",
			"is not verified",
		},
		{opa + bearing + jwt, "", ""},
		{opa + asked + jwt, "secrets", "does not stand in the body"},
		{"adapter: ext-authz, url: grpc://127.0.0.1:1, " + bearing + jwt, "secrets", "no JSON"},
		{jwt, "secrets", "leave it out"},

		{opa + "embedded: {}", "url", "exclude each other"},
		{"url: http://127.0.0.1:8080", "adapter", "which protocol"},
		{"adapter: ldap", "adapter", "ldap"},
		{"adapter: opa, embedded: {engine: cedar}", "adapter", "speaks authzen, not opa"},
		{"adapter: ext-authz", "url", "no embedded decision point that speaks ext-authz"},
		{"adapter: opa, load: true, url: 'http://me:pass@127.0.0.1'", "url", "must not hold credentials"},
		{"adapter: opa, load: true, url: 'http://127.0.0.1:8080?x=1'", "url", "query"},
		{"adapter: opa, load: true, url: 'ftp://127.0.0.1'", "url", "ftp"},
		{"adapter: opa, load: true, url: 'http://127.0.0.1:0'", "url", "from 1 to 65535"},
		{opa + "load: true, tls: {insecure: true}", "tls", "not https"},
		{"adapter: opa, load: true, url: https://127.0.0.1, tls: {cert: c}", "tls.key", "private key"},

		{authzen, "requests", "questions whose answers are known"},
		{opa, "requests", "load: true"},
		{authzen + "requests: [" + yes + "]", "requests", "would not be found out"},
		{authzen + "requests: [" + yes + ", " + no + ", " + yes + ", " + no + "]", "requests[2].name", "twice"},
		{
			authzen + "requests: [" + yes + ", " + no + ", {name: x, body: '{', expect: deny}]", "requests[2].body", "JSON",
		},
		{opa + "load: true, " + asked, "requests", "leave out one"},
		{authzen + "load: true, " + asked, "load", "no way to put policies"},
		{authzen + "policies: 4, " + asked, "policies", "not ours to say"},

		{"load: true", "load", "leave it out"},
		{"username: u", "username", "credentials of its own"},
		{"process: {pid: 1}", "process", "leave it out"},
		{opa + "load: true, process: {pid: 1, port: 2}", "process", "one way"},
		{opa + "load: true, metrics: {url: 127.0.0.1}", "metrics.url", "want a URL"},
		{pdpx + "password: {env: P}", "username", "needs its username"},
		{pdpx + "username: u, token: {env: P}", "token", "exclude each other"},
		{"adapter: opa, batch: 4", "batch", "one question in a request"},
		{"headers: {X-Api-Key: k}", "headers.X-Api-Key", "secret_headers"},
		{"secret_headers: {Host: {env: H}}", "secret_headers.Host", "belongs to the protocol"},

		{"embedded: {engine: att, planted: {leak_per_minute: 1B}}", "embedded.planted", "not into att"},
		{
			"embedded: {planted: {answer: always-permit, answer_after: 5s}}", "embedded.planted.answer_after", "from its start",
		},
		{"embedded: {engine: pdpx, planted: {answer_after: 5s}}", "embedded.planted.answer_after", "no planted answer"},
		{"opa: {path: x}", "opa", "options of opa, not of authzen"},
		{opa + "path: authz/allow, " + asked, "path", "write opa: {path: authz/allow}"},
		{"adapter: openfga, url: http://127.0.0.1:8080, load: true, path: x", "path", "leave it out"},
		{"adapter: pdpx, pdpx: {operations: [monitor]}", "pdpx.operations", "is not one of"},
	} {
		found := areatest.Validate(specOf(t, c.section), design.Soak, nil)
		areatest.WantFinding(t, c.section, found, area.Finding{Path: c.path, Severity: area.Error, Message: c.says})
	}
}

// TestLevels: each factor changes the section, within its limits, and leaves the original unchanged.
func TestLevels(t *testing.T) {
	s := &Spec{Embedded: &Embedded{Planted: &Planted{}}}
	out, err := s.under(map[string]string{
		"engine": "pdpx", "adapter": "pdpx", "policies": "7", "position": "first", "batch": "2",
		"planted.answer": "always-permit", "planted.leak_per_minute": "2MiB",
	})
	if err != nil {
		t.Fatal(err)
	}
	if out.Embedded.Engine != engine.PDPX || out.Adapter != "pdpx" || out.Policies != 7 || out.Position != model.First ||
		out.Batch != 2 ||
		out.Embedded.Planted.Answer != "always-permit" || out.Embedded.Planted.Leak != 2<<20 {
		t.Errorf("levels give %+v, %+v", out, out.Embedded)
	}
	if !reflect.DeepEqual(s, &Spec{Embedded: &Embedded{Planted: &Planted{}}}) {
		t.Errorf("the levels changed the section itself: %+v", s)
	}
	for _, pair := range [][2]string{
		{"engine", "opal"},
		{"policies", "0"},
		{"policies", "many"},
		{"batch", "100000"},
		{"planted.leak_per_minute", "1"},
		{"colour", "red"},
	} {
		if _, err := s.under(map[string]string{pair[0]: pair[1]}); err == nil {
			t.Errorf("%v is taken", pair)
		}
	}
	for _, levels := range [][]string{
		{"position", "middle"}, {"planted.answer", "maybe"}, {"engine", "opa", "batch", "3"},
	} {
		found := areatest.Validate(&Spec{}, design.Compare, [][]string{levels})
		areatest.WantFinding(t, levels[0], found, area.Finding{Severity: area.Error, Message: "treatment"})
	}
	twice := areatest.Validate(&Spec{Policies: 3}, design.Scale, [][]string{{"policies", "1"}, {"policies", "2"}})
	if len(twice) != 1 || twice[0].Path != "policies" {
		t.Errorf("said twice: %+v", twice)
	}
}

// TestLevelsChooseTheEndpoint: one URL against another, or against an embedded engine.
func TestLevelsChooseTheEndpoint(t *testing.T) {
	here, there := areatest.Treatment("engine", "opa"), areatest.Treatment("adapter", "opa", "url", "https://opa:8181")
	if !kit.Loopback(&Spec{}, []design.Treatment{here}) || kit.Loopback(&Spec{}, []design.Treatment{here, there}) {
		t.Error("a treatment elsewhere is not seen")
	}
	for url, want := range map[string]bool{
		"": true, "http://localhost:1": true, "http://[::1]:1": true, "http://127.9.9.9": true, "http://pdp:1": false,
		"http://10.0.0.1": false, ":": false,
	} {
		if got := (&Spec{URL: url}).Says().Loopback; got != want {
			t.Errorf("%q on loopback: %v, want %v", url, got, want)
		}
	}
}

// TestDenyQuestionsAreAlwaysAsked, even if operations leave them out.
func TestDenyQuestionsAreAlwaysAsked(t *testing.T) {
	names := func(list []model.Question) string {
		var out []string
		for _, q := range list {
			out = append(out, q.Name)
		}
		return strings.Join(out, " ")
	}
	s := Spec{Adapter: "pdpx", PDPX: &protocol.PDPX{Operations: []string{"healthcheck", "guard-minmax"}}}
	p, err := s.plan(design.Treatment{})
	if err != nil {
		t.Fatal(err)
	}
	if names(p.questions) != "healthcheck guard-minmax" || names(p.refusals) != "guard-minmax-deny" {
		t.Errorf("asked %q, refused %q", names(p.questions), names(p.refusals))
	}
	two := []Request{
		{Name: "a", Expect: "permit", Policy: "x"},
		{Name: "b", Expect: "deny", Policy: "x"},
		{Name: "c", Expect: "permit", Policy: "y"},
	}
	s = Spec{Adapter: "authzen", URL: "http://127.0.0.1", Requests: two}
	if _, err := s.plan(design.Treatment{}); err == nil ||
		!strings.Contains(err.Error(), "of policy y none is expected to be denied") {
		t.Errorf("a kind without a known deny: %v", err)
	}
}

// TestSectionSurvivesTheJournal: undo reads the section back from JSON.
func TestSectionSurvivesTheJournal(t *testing.T) {
	s := Spec{
		Adapter: "opa", URL: "https://opa:8181", Load: true, Policies: 9, Position: model.First,
		Token:         area.Secret{File: "/t"},
		SecretHeaders: map[string]area.Secret{"X-A": {Env: "A"}}, TLS: &kit.TLS{CA: "ca.pem"}, OPA: &protocol.OPA{Path: "x"},
		Embedded: &Embedded{Planted: &Planted{Leak: 1 << 20, NotReady: 5e9}},
	}
	b, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	var got Spec
	if err := json.Unmarshal(b, &got); err != nil || !reflect.DeepEqual(got, s) {
		t.Errorf("%s\nbecame %+v, %v", b, got, err)
	}
}

// TestPlanListsChanges and locks.
func TestPlanListsChanges(t *testing.T) {
	cedar := areatest.Treatment("engine", "cedar")
	got := strings.Join((&Spec{}).Creates([]design.Treatment{cedar, cedar, areatest.Treatment("engine", "opa")}), "; ")
	if got != "2 processes on loopback: cedar; 1 process on loopback: opa" {
		t.Error(got)
	}
	url := &Spec{Adapter: "opa", URL: "https://opa", Load: true}
	if got := url.Creates([]design.Treatment{{}})[0]; !strings.Contains(got, "policies in the decision point at opa") {
		t.Error(got)
	}
	if url.LockKey() != "opa:https" || (&Spec{}).LockKey() != "" {
		t.Errorf("locks %q, %q", url.LockKey(), (&Spec{}).LockKey())
	}
}

// TestAdaptersComeFromTheirValue: the file, the schema and the list of adapters take everything that they say about an
// adapter from its value.
func TestAdaptersComeFromTheirValue(t *testing.T) {
	help := (Area{}).Adapters()
	for _, a := range protocol.Adapters() {
		if a.Section != "" && !kit.Section(&Spec{}, a.Section).IsValid() {
			t.Errorf("%s: the file has no section %q", a.Name, a.Section)
		}
		if a.Help == "" || help[a.Name] != a.Help {
			t.Errorf("%s is listed as %q, want %q", a.Name, help[a.Name], a.Help)
		}
		if (a.Load == nil) != (a.Unload == nil) {
			t.Errorf("%s loads policies and cannot take them away, or the other way round", a.Name)
		}
	}
	if words := AdapterName("").Words(); !slices.Equal(words, protocol.Names()) || len(help) != len(words) {
		t.Errorf("the file takes %v, and listed are %v", words, help)
	}
	presets := (Area{}).Presets()
	for _, k := range engine.Kinds() {
		if _, err := protocol.Find(k.Adapter()); err != nil || presets[string(k)] == "" {
			t.Errorf("%s speaks %q (%v) and is listed as %q", k, k.Adapter(), err, presets[string(k)])
		}
	}
	for _, c := range []struct {
		field, text string
		which       func(a protocol.Adapter) bool
		last        string // what comes before the last name
	}{
		{"Path", "for %s.", func(a protocol.Adapter) bool { return a.Path }, " and "},
		{"Load", "(%s)", func(a protocol.Adapter) bool { return a.Load != nil }, ", "},
		{"Secrets", "Not for %s.", func(a protocol.Adapter) bool { return a.Binary }, " and "},
	} {
		f, ok := reflect.TypeFor[Spec]().FieldByName(c.field)
		want := fmt.Sprintf(c.text, listAdapters(c.which, c.last))
		if description := f.Tag.Get("jsonschema_description"); !ok || !strings.Contains(description, want) {
			t.Errorf("%s is described as %q, without %q", c.field, description, want)
		}
	}
}

// listAdapters lists the names of the adapters for which which is true, separated by commas and, before the last one,
// by last.
func listAdapters(which func(a protocol.Adapter) bool, last string) string {
	var names []string
	for _, a := range protocol.Adapters() {
		if which(a) {
			names = append(names, a.Name)
		}
	}
	n := len(names) - 1
	return strings.Join(append(names[:max(0, n-1):max(0, n-1)], strings.Join(names[max(0, n-1):], last)), ", ")
}

// TestAdaptersAreDocumented compares the documentation with the list: a row for each adapter, with its abilities.
func TestAdaptersAreDocumented(t *testing.T) {
	page, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "| adapter | protocol | questions | batches |")
	table, _, _ = strings.Cut(table, "\n\n")
	yes := map[bool]string{true: "yes", false: "no"}
	rows := map[string][]string{}
	for line := range strings.Lines(table) {
		if cells := strings.Split(line, "|"); len(cells) == 8 {
			rows[strings.Trim(cells[1], " `")] = cells
		}
	}
	for _, a := range protocol.Adapters() {
		row := rows[a.Name]
		if row == nil {
			t.Errorf("README.md has no row for %s", a.Name)
			continue
		}
		batches, counts, loads := strings.TrimSpace(row[4]), strings.TrimSpace(row[6]), strings.Contains(row[3], "`load: true`")
		if batches != yes[a.Batches()] || counts != yes[a.Counted != nil] || loads != (a.Load != nil) {
			t.Errorf("%s: batches %s, its own counts %s, load: true %v: not as the adapter is", a.Name, batches, counts, loads)
		}
	}
}

func TestCheckOfJava(t *testing.T) {
	dir := t.TempDir()
	java := filepath.Join(dir, "bin", "java")
	if err := os.MkdirAll(filepath.Dir(java), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(java, nil, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ variable, value, want string }{
		{"JAVA_HOME", dir, java}, {"PATH", "/nowhere:" + dir + "/bin", java}, {"HOME", dir, "not found in JAVA_HOME or PATH"},
	} {
		getenv := func(name string) (string, bool) {
			if name != c.variable {
				return "", false
			}
			return c.value, true
		}
		got := Area{}.Parts().Checks(t.Context(), area.Env{Getenv: getenv})
		if len(got) != 1 || got[0].Name != "Java" || got[0].Found != c.want || got[0].State != area.CheckInfo {
			t.Errorf("%s=%s: got %+v, want %s", c.variable, c.value, got, c.want)
		}
	}
}
