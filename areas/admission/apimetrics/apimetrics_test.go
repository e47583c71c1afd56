package apimetrics

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tare/area"
	"tare/rigs/hosttest"
	"tare/rigs/memtest"
)

// excerpt returns metrics of real servers that had served the same 20 dry runs and 11 creations of a pod, among others:
// 1.24 with PodSecurityPolicy, 1.36 with three validating policies and one mutating one, both with two webhooks that
// cannot be reached.
func excerpt(t testing.TB, version string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", version+".txt"))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func parse(t testing.TB, text []byte) *area.Served {
	t.Helper()
	s, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func request(s *area.Served, verb, resource, scope string) *area.ServedRequests {
	for i := range s.Requests {
		if r := &s.Requests[i]; r.Verb == verb && r.Resource == resource && r.Scope == scope {
			return r
		}
	}
	return nil
}

func part(s *area.Served, part, name, action string) area.ServedPart {
	for _, p := range s.Parts {
		if p.Part == part && p.Name == name && p.Action == action {
			return p
		}
	}
	return area.ServedPart{}
}

func TestVersions(t *testing.T) {
	for version, want := range map[string]struct {
		sli, webhook, deny uint64
		plugin             string
	}{
		// What counts for the service level indicator is what tells the versions apart.
		"1.24": {sli: 31, webhook: 31, plugin: "PodSecurityPolicy"},
		"1.36": {sli: 11, webhook: 30, plugin: "ValidatingAdmissionPolicy"},
	} {
		t.Run(version, func(t *testing.T) {
			s := parse(t, excerpt(t, version))
			r := request(s, "POST", "pods", "resource")
			if r == nil {
				t.Fatal("no POST of pods")
			}
			if r.Count != 31 || r.DryRuns != 20 || r.SLICount != want.sli {
				t.Errorf("%d POST of pods, %d of them dry runs, %d of the indicator; want 31, 20, %d", r.Count, r.DryRuns,
					r.SLICount, want.sli)
			}
			if !(r.Seconds > 0 && r.SLISeconds > 0) || (want.sli == r.Count && r.SLISeconds >= r.Seconds) {
				t.Errorf("%v s, %v s without webhooks", r.Seconds, r.SLISeconds)
			}
			if b := request(s, "POST", "pods/binding", "resource"); b == nil || b.Count != 10 {
				t.Errorf("bindings: %+v, want 10", b)
			}
			for _, r := range s.Requests {
				if r.Verb == "WATCH" || r.Resource == "" || strings.HasPrefix(r.Resource, "/") {
					t.Errorf("%s %s is no call of the API with an end", r.Verb, r.Resource)
				}
			}
			if p := part(s, "admission", want.plugin, "validate CREATE"); p.Count < 31 || !(p.Seconds > 0) {
				t.Errorf("got %+v, want at least 31 validations and their time", p)
			}
			if p := part(s, "webhook", "wv.tare.dev", "validating CREATE"); p.Count != want.webhook || !(p.Seconds > 0) {
				t.Errorf("%+v, want %d calls", p, want.webhook)
			}
			if p := part(s, "storage", "pods", "create"); p.Count < 10 || p.Count > 11 || !(p.Seconds > 0) {
				t.Errorf("%+v: ten or eleven pods were stored", p)
			}
			if s.Started < 1.7e9 {
				t.Errorf("started at %v", s.Started)
			}
		})
	}
}

var sample = regexp.MustCompile(`^([a-z_]+)\{(.*)\} (\S+)$`)

// TestSums compares the sum of all rows with sums that are computed in another way.
func TestSums(t *testing.T) {
	for _, version := range []string{"1.24", "1.36"} {
		s, text := parse(t, excerpt(t, version)), string(excerpt(t, version))
		sum := func(name string, labels ...string) (v float64) {
			for l := range strings.SplitSeq(text, "\n") {
				m := sample.FindStringSubmatch(l)
				if m == nil || m[1] != name {
					continue
				}
				all := true
				for _, want := range labels {
					all = all && strings.Contains(","+m[2]+",", ","+want+",")
				}
				if f, err := strconv.ParseFloat(m[3], 64); err == nil && all {
					v += f
				}
			}
			return v
		}
		check := func(what string, got, want float64) {
			if math.Abs(got-want) > 1e-9*math.Abs(want) || want == 0 {
				t.Errorf("%s: %s is %v, want %v", version, what, got, want)
			}
		}
		for _, r := range s.Requests {
			resource, sub, _ := strings.Cut(r.Resource, "/")
			labels := []string{"verb=" + strconv.Quote(r.Verb), "resource=" + strconv.Quote(resource), "subresource=" +
				strconv.Quote(sub), "scope=" + strconv.Quote(r.Scope)}
			what := r.Verb + " " + r.Resource
			check(what, float64(r.Count), sum("apiserver_request_duration_seconds_count", labels...))
			check(what+" seconds", r.Seconds, sum("apiserver_request_duration_seconds_sum", labels...))
			check(what+" indicator", r.SLISeconds, sum("apiserver_request_slo_duration_seconds_sum", labels...))
			for i, b := range r.Buckets {
				le := `le="` + strconv.FormatFloat(b.LE, 'g', -1, 64) + `"`
				check(fmt.Sprintf("%s %s", what, le), float64(b.Count), sum("apiserver_request_duration_seconds_bucket",
					append(labels, le)...))
				if i > 0 && b.LE <= r.Buckets[i-1].LE {
					t.Errorf("%s: buckets are out of order", what)
				}
			}
			if len(r.Buckets) < 21 || len(r.SLIBuckets) < 21 {
				t.Errorf("%s: %d and %d buckets", what, len(r.Buckets), len(r.SLIBuckets))
			}
		}
		for _, p := range s.Parts {
			if p.Part == "storage" {
				continue
			}
			kind, operation, _ := strings.Cut(p.Action, " ")
			family := map[string]string{"admission": controller, "webhook": webhook}[p.Part]
			check(p.Part+p.Name, p.Seconds, sum(family+"_sum", "name="+strconv.Quote(p.Name), "type="+strconv.Quote(kind),
				"operation="+strconv.Quote(operation)))
		}
		// The plugins make up the steps of admission.
		var plugins float64
		for _, p := range s.Parts {
			if p.Part == "admission" && p.Action == "validate CREATE" {
				plugins += p.Seconds
			}
		}
		step := sum("apiserver_admission_step_admission_duration_seconds_sum", `operation="CREATE"`, `type="validate"`)
		if plugins > step || plugins < step/3 {
			t.Errorf("%s: plugins took %v s of a step of %v s", version, plugins, step)
		}
	}
}

func TestPolicyChecks(t *testing.T) {
	got, err := PolicyChecks(excerpt(t, "1.36"))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(map[string]uint64{"p-00000": 1, "p-00001": 1, "p-00002": 1}, got); d != "" {
		t.Error(d)
	}
	if got, err = MutatingPolicyChecks(excerpt(t, "1.36")); err != nil || !cmp.Equal(got, map[string]uint64{"m": 31}) {
		t.Error(got, err)
	}
	failed := mutating + `{error_type="invalid_error",policy="m"} 2` + "\n" + mutating + `{error_type="no_error",policy="n"} 1` + "\n"
	if got, err = MutatingPolicyChecks([]byte(failed)); err != nil || !cmp.Equal(got, map[string]uint64{"n": 1}) {
		t.Error(got, err)
	}
	if got, err = PolicyChecks(excerpt(t, "1.24")); err != nil || len(got) > 0 {
		t.Error(got, err)
	}
	text := validating + `{enforcement_action="deny",policy="p",policy_binding="a"} 2` + "\n" +
		validating + `{enforcement_action="audit",policy="p",policy_binding="b"} 3` + "\n" +
		validating + `{enforcement_action="allow",error_type="compile_error",policy="q"} 9` + "\n"
	if got, err = PolicyChecks([]byte(text)); err != nil || !cmp.Equal(got, map[string]uint64{"p": 5}) {
		t.Error(got, err)
	}
	if got, err = BindingChecks([]byte(text)); err != nil || !cmp.Equal(got, map[string]uint64{"a": 2, "b": 3}) {
		t.Error(got, err)
	}
}

func TestNewerIndicatorIsPreferred(t *testing.T) {
	text := strings.NewReplacer("F_", requests+"_", "I_", indicator+"_", "O_", objective+"_", "L",
		`{verb="POST",resource="pods",scope="resource"}`).Replace(
		"F_sumL 10\nF_countL 5\nI_sumL 3\nI_countL 4\nO_sumL 7\nO_countL 5\n")
	r := parse(t, []byte(text)).Requests[0]
	want := area.ServedRequests{
		Verb: "POST", Resource: "pods", Scope: "resource", Count: 5, Seconds: 10,
		SLICount: 4, SLISeconds: 3,
	}
	if d := cmp.Diff(want, r); d != "" {
		t.Error(d)
	}
}

func TestStorage(t *testing.T) {
	for label, want := range map[string]string{
		`resource="pods",group=""`: "pods", `type="*core.Pod"`: "pods", `type="*[]core.Pod"`: "pods",
		`type="/registry/pods/"`:           "pods",
		`type="*policy.PodSecurityPolicy"`: "podsecuritypolicies", `type="*core.Endpoints"`: "endpoints",
		`type="*networking.IngressClass"`:  "ingressclasses",
		`type="/registry/services/specs/"`: "services", `type="/registry/minions/"`: "nodes",
		`type="/registry/ingress/"`:                            "ingresses",
		`type="/registry/apiregistration.k8s.io/apiservices/"`: "apiservices", `type=""`: "", `type="/"`: "",
	} {
		text := storage + "_sum{" + label + `,operation="get"} 0.5` + "\n" + storage + "_count{" + label +
			`,operation="get"} 2` + "\n"
		want := []area.ServedPart{{Part: "storage", Name: want, Action: "get", Count: 2, Seconds: 0.5}}
		if d := cmp.Diff(want, parse(t, []byte(text)).Parts); d != "" {
			t.Errorf("%s: parts (-want +got):\n%s", label, d)
		}
	}
}

func TestText(t *testing.T) {
	plugin := func(labels, value string) string { return controller + "_count{" + labels + "}" + value + "\n" }
	for name, c := range map[string]struct {
		text string
		want []area.ServedPart
		err  error
	}{
		"empty":  {text: ""},
		"others": {text: "# HELP x\n# TYPE x counter\nx 1\n\ny{a=\"b} 1\"} NaN\nz\n"},
		"escapes": {
			text: plugin(`name="a\"\\\n}",operation="O",type="t"`, " 1"),
			want: []area.ServedPart{{Part: "admission", Name: "a\"\\\n}", Action: "t O", Count: 1}},
		},
		"blanks": {
			text: plugin(` name="a" , type="t",operation="O", `, "\t1 1600000000\r"),
			want: []area.ServedPart{{Part: "admission", Name: "a", Action: "t O", Count: 1}},
		},
		"large": {
			text: plugin(`name="a"`, " 1.2e+06"),
			want: []area.ServedPart{{Part: "admission", Name: "a", Action: " ", Count: 1_200_000}},
		},
		"fail open": {
			text: failedOpen + `{name="gate.example.com",type="validating"} 7` + "\n",
			want: []area.ServedPart{{Part: area.Undecided, Name: "gate.example.com", Action: "validating", Count: 7}},
		},
		"quantiles":    {text: controller + `{name="a",quantile="0.5"} NaN` + "\n"},
		"end mark":     {text: "x 1\n# EOF"},
		"cut off":      {text: plugin(`name="a"`, " 1") + controller + `_count{name="a"} 1`, err: errCut},
		"half a label": {text: plugin(`name="a`, " 1"), err: errLabels},
		"no value":     {text: plugin(`name="a"`, ""), err: errValue},
		"half a count": {text: plugin(`name="a"`, " 1.5"), err: errValue},
		"not finite":   {text: controller + `_sum{name="a"} NaN` + "\n", err: errValue},
		"infinite":     {text: controller + `_sum{name="a"} +Inf` + "\n", err: errValue},
		"less than 0":  {text: plugin(`name="a"`, " -1"), err: errValue},
		"many labels":  {text: plugin(strings.Repeat(`a="b",`, mostLabels+1), " 1"), err: errLabels},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := Parse([]byte(c.text))
			if !errors.Is(err, c.err) {
				t.Fatalf("error %v, want %v", err, c.err)
			}
			if err == nil && !cmp.Equal(s.Parts, c.want) {
				t.Error(cmp.Diff(c.want, s.Parts))
			}
		})
	}
}

// TestRowsAreBounded: a hostile text makes Parse keep a bounded number of rows.
func TestRowsAreBounded(t *testing.T) {
	var b bytes.Buffer
	for i := range mostRows + 1 {
		fmt.Fprintf(&b, "%s_count{name=\"%d\"} 1\n", controller, i)
	}
	if _, err := Parse(b.Bytes()); !errors.Is(err, errRows) {
		t.Error(err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(excerpt(f, "1.24")[:6000])
	f.Add([]byte(strings.Join([]string{
		requests + `_bucket{dry_run="All",resource="pods",subresource="",verb="POST",le="0.5"} 1`, requests +
			`_bucket{resource="pods",verb="POST",le="+Inf"} 1`,
		requests + `_sum{resource="pods",verb="POST"} 1e3`, indicator + `_count{resource="pods",verb="POST"} 1`, storage +
			`_sum{type="*[]core.Pod"} 1`,
		validating + `{policy="\"\\\n"} 1e2`, started + " 1.79e+09", "# EOF",
	}, "\n")))
	f.Fuzz(func(t *testing.T, text []byte) {
		defer memtest.Bound(t, len(text))()
		s, err := Parse(text)
		_, err2 := PolicyChecks(text)
		if err != nil {
			return
		}
		if errors.Is(err2, errLabels) && !bytes.Contains(text, []byte(validating)) {
			t.Error(err2)
		}
		if _, err := json.Marshal(s); err != nil {
			t.Error(err)
		}
		if d, restarted := s.Since(s); restarted || len(d.Requests)+len(d.Parts) > 0 {
			t.Errorf("nothing came in between, restarted %v: %+v", restarted, d)
		}
		if d, restarted := s.Since(&area.Served{Started: s.Started}); restarted || len(d.Requests) > len(s.Requests) {
			t.Errorf("all is new, restarted %v", restarted)
		}
	})
}

// BenchmarkParse parses a text as long as that of a server that has evaluated 1,000 policies, most of which is skipped.
func BenchmarkParse(b *testing.B) {
	var text bytes.Buffer
	text.Write(excerpt(b, "1.36"))
	for i := 0; text.Len() < 4<<20; i++ {
		fmt.Fprintf(&text, "apiserver_validating_admission_policy_check_duration_seconds_bucket{"+
			"enforcement_action=\"deny\",error_type=\"invalid_error\",policy=\"p-%d\",policy_binding=\"p-%d\",le=\"0.1\"} 1\n",
			i/8, i/8)
	}
	b.SetBytes(int64(text.Len()))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Parse(text.Bytes()); err != nil {
			b.Fatal(err)
		}
	}
}

func TestMain(m *testing.M) { hosttest.Main(m) }

// TestKyverno: only what was evaluated to its end and not met is an objection, and only a change that was made is one;
// all of it was evaluated. What happens in other namespaces, and to events, is not counted.
func TestKyverno(t *testing.T) {
	const text = `# TYPE kyverno_policy_results_total counter
kyverno_policy_results_total{resource_namespace="n",dry_run="true",policy_name="a",rule_name="one",rule_result="fail"} 3
kyverno_policy_results_total{resource_namespace="n",dry_run="true",policy_name="a",rule_name="two",rule_result="fail"} 2
kyverno_policy_results_total{resource_namespace="n",policy_name="a",rule_name="two",rule_result="pass"} 40
kyverno_policy_results_total{resource_namespace="n",policy_name="b",rule_name="one",rule_result="error"} 7
kyverno_policy_execution_duration_seconds_count{policy_name="b",rule_result="fail"} 9
kyverno_validating_policy_results_total{resource_namespace="n",policy_name="c",result="fail"} 1
kyverno_validating_policy_results_total{resource_namespace="n",policy_name="d",result="pass"} 1
kyverno_validating_policy_results_total{resource_namespace="n",resource_kind="Event",policy_name="d",result="fail"} 1
kyverno_validating_policy_results_total{resource_namespace="",policy_name="d",result="fail"} 1
kyverno_policy_results_total{resource_namespace="other",policy_name="d",rule_result="fail"} 1
kyverno_policy_results_total{resource_namespace="n",policy_name="e",rule_type="mutate",rule_result="pass"} 6
kyverno_policy_results_total{resource_namespace="n",policy_name="f",rule_type="mutate",rule_result="fail"} 1
kyverno_policy_results_total{resource_namespace="n",policy_name="f",rule_type="mutate",rule_result="skip"} 1
kyverno_mutating_policy_results_total{resource_namespace="n",policy_name="g",result="pass"} 2
kyverno_mutating_policy_results_total{resource_namespace="n",policy_name="h",result="skip"} 2
kyverno_mutating_policy_results_total{resource_namespace="other",policy_name="h",result="pass"} 2
`
	want := KyvernoCounts{
		Objected: map[string]uint64{"a": 5, "c": 1}, Changed: map[string]uint64{"e": 6, "g": 2}, Evaluated: 66,
	}
	got, err := Kyverno([]byte(text), "n")
	if d := cmp.Diff(want, got); d != "" || err != nil {
		t.Errorf("%v; (-want +got):\n%s", err, d)
	}
	if _, err := Kyverno([]byte("kyverno_policy_results_total{rule_result=\"fail\"} x\n"), ""); err == nil {
		t.Error("a count that is no number was read")
	}
}
