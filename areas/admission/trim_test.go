package admission

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tare/area"
	"tare/areas/plane"
	"tare/internal/build"
	"tare/internal/design"
	"tare/internal/files"
	"tare/rigs/hosttest"
)

// hostWithoutPrograms is a host that cannot run a control plane: each variable names a missing file.
func hostWithoutPrograms(t *testing.T) area.Env {
	t.Helper()
	env := testEnv(t)
	none := filepath.Join(t.TempDir(), "none")
	env.Getenv = func(name string) (string, bool) { return none, name == plane.Variable || name == plane.VariablePSP }
	return env
}

func TestTrimReportsDroppedTreatments(t *testing.T) {
	env := hostWithoutPrograms(t)
	far := &Spec{}
	baseline := treatment("kubeconfig", "k", "mechanism", "none")
	baseline.Baseline = true
	other, gone := treatment("kubeconfig", "k", "mechanism", "vap"), treatment("mechanism", "psp")
	kept, findings := Area{}.Trim(t.Context(), far, []design.Treatment{baseline, other, gone}, env)
	if len(kept) != 2 || len(findings) != 1 || findings[0].Severity != area.Warning ||
		!strings.Contains(findings[0].Message, "left out: mechanism=psp") || findings[0].Hint == "" {
		t.Errorf("kept %v, findings %+v", kept, findings)
	}
	base := treatment("mechanism", "none")
	base.Baseline = true
	kept, findings = Area{}.Trim(t.Context(), &Spec{}, []design.Treatment{base, treatment("mechanism", "vap")}, env)
	if len(kept) != 2 || len(findings) != 1 || findings[0].Severity != area.Error ||
		!strings.Contains(findings[0].Message, "the baseline needs") {
		t.Errorf("without a baseline: kept %v, findings %+v", kept, findings)
	}
	kept, findings = Area{}.Trim(t.Context(), &Spec{}, []design.Treatment{
		treatment("mechanism", "psp"),
		treatment("mechanism", "vap"),
	}, env)
	if len(kept) != 2 || len(findings) != 2 || findings[0].Severity != area.Error {
		t.Errorf("with nothing left: kept %v, findings %+v", kept, findings)
	}
}

func TestPreflightReportsMissingPrograms(t *testing.T) {
	find := func(s *Spec, env area.Env, says string) {
		t.Helper()
		for _, f := range (Area{}).Preflight(t.Context(), s, env) {
			if f.Severity == area.Error && strings.Contains(f.Message, says) {
				return
			}
		}
		t.Errorf("no finding says %q: %+v", says, Area{}.Preflight(t.Context(), s, env))
	}
	env := hostWithoutPrograms(t)
	find(&Spec{}, env, "is no program that may be executed")
	find(&Spec{Kubeconfig: "/no/such/kubeconfig"}, env, "read kubeconfig")
	dir := t.TempDir()
	find(&Spec{Mechanism: "manifests", Manifests: &Manifests{
		Before: filepath.Join(dir, "none"),
		Bad:    filepath.Join(dir, "bad.yaml"),
	}}, env, "manifests.before")
	whole := Manifests{Before: "testdata/manifests/before", Bad: "testdata/manifests/bad.yaml"}
	env.Treatments = []design.Treatment{treatment("mechanism", "manifests", "policies", "10")}
	find(&Spec{Manifests: &whole}, env, "policies: no document of testdata/manifests/before holds $(TARE_POLICY)")
	env.Treatments = []design.Treatment{treatment("mechanism", "manifests")}
	ten := 10 // for other treatments
	for _, f := range (Area{}).Preflight(t.Context(), &Spec{Policies: &ten, Manifests: &whole}, env) {
		if strings.Contains(f.Message, "policies:") {
			t.Errorf("a number that is not the treatment's own: %+v", f)
		}
	}
	env.Treatments = nil
	env.Operations = []string{startupName}
	find(&Spec{}, env, "needs nodes")
	env.Operations = []string{"explode-pod"}
	find(&Spec{}, env, "there is no operation")
}

func TestRemoveFolderTouchesNothingElse(t *testing.T) {
	dir := t.TempDir()
	own := filepath.Join(dir, "tare-plane-X")
	for _, bad := range []string{"", "/", dir, "tare-plane-X", filepath.Join(dir, "tare-plane-X") + "/../other", "/etc"} {
		if err := removeFolder(area.Change{Data: map[string]string{"path": bad}}); err == nil {
			t.Errorf("%q would be removed", bad)
		}
	}
	for range 2 { // also when it is gone
		if err := removeFolder(area.Change{Data: map[string]string{"path": own}}); err != nil {
			t.Error(err)
		}
	}
	if err := (Area{}).Undo(t.Context(), []area.Change{{Kind: "cgroup", ID: "x"}}, area.Env{}); err == nil {
		t.Error("a change of another kind is undone")
	}
}

// hostWithGo is a host with an empty cache and a Go toolchain that prints its version and notes any other request.
func hostWithGo(t *testing.T) (env area.Env, built string) {
	t.Helper()
	bin, cache := t.TempDir(), t.TempDir()
	built = filepath.Join(bin, "built")
	says := "#!/bin/sh\n[ \"$1\" = env ] || { echo \"$*\" >> " + built +
		"; exit 1; }\necho '{\"GOVERSION\": \"go1.26.8\"}'\n"
	if err := files.WriteProgram(filepath.Join(bin, "go"), []byte(says)); err != nil {
		t.Fatal(err)
	}
	known := map[string]string{build.Variable: cache, "PATH": bin}
	env = testEnv(t)
	env.Getenv = func(name string) (string, bool) { v, ok := known[name]; return v, ok }
	return env, built
}

// TestPlanNamesDifferences: in what policies differ from the baseline's is said without a control plane.
func TestPlanNamesDifferences(t *testing.T) {
	env, _ := hostWithGo(t)
	env.Look = true
	deny, audit := policiesWith(t, "Deny"), policiesWith(t, "Audit")
	base := treatment("bundle", deny)
	base.Baseline = true
	for changed, want := range map[string]string{
		audit: audit + ", beside " + deny + ": what policies do about what they object to differs, and requests " +
			"cannot show all that this permits: ValidatingAdmissionPolicyBinding p0 (spec.validationActions)",
		policiesWith(t, "Deny"): "",
	} {
		env.Treatments = []design.Treatment{base, treatment("bundle", changed)}
		var said []string
		for _, f := range (Area{}).Preflight(t.Context(), &Spec{}, env) {
			if f.Path == "bundle" {
				said = append(said, f.Message)
			}
		}
		if all := strings.Join(said, "\n"); (want == "") != (all == "") || !strings.HasPrefix(all, want) {
			t.Errorf("%q, want %q", all, want)
		}
	}
}

// TestPlanBuildsNothing: a plan reports what a run would build, and what would be missing for the run.
func TestPlanBuildsNothing(t *testing.T) {
	env, built := hostWithGo(t)
	env.Look = true
	env.Treatments = []design.Treatment{
		treatment("mechanism", "none"), treatment("mechanism", "vap"),
		treatment("mechanism", "psp"),
	}
	var said []string
	for _, f := range (Area{}).Preflight(t.Context(), &Spec{}, env) {
		if f.Severity == area.Error {
			t.Errorf("a plan has an error: %+v", f)
		}
		if strings.Contains(f.Message, "a run builds it") {
			said = append(said, f.Message)
		}
	}
	if len(said) != 2 || !strings.Contains(said[0], "1.36") || !strings.Contains(said[1], "1.24") {
		t.Errorf("to be built: %q", said)
	}
	if kept, findings := (Area{}).Trim(t.Context(), &Spec{}, env.Treatments, env); len(kept) != 3 || len(findings) != 0 {
		t.Errorf("kept %v, findings %+v", kept, findings)
	}
	if _, err := os.Stat(built); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("something was built: %v", err)
	}
	wrong := hostWithoutPrograms(t)
	wrong.Look = true
	if found := (Area{}).Preflight(t.Context(), &Spec{}, wrong); len(found) == 0 || found[0].Severity != area.Error ||
		!strings.Contains(found[0].Message, "is no program") {
		t.Errorf("a file that is no control plane: got %+v", found)
	}
	env.Look = false // for comparison: the run itself does build
	if _, err := os.Stat(built); err == nil {
		t.Fatal("built too early")
	}
	(Area{}).Preflight(t.Context(), &Spec{}, env)
	if _, err := os.Stat(built); err != nil {
		t.Errorf("the run did not try to build: %v", err)
	}
}

func TestCheckOfKubeconfig(t *testing.T) {
	const none = "none in KUBECONFIG or ~/.kube/config"
	dir := t.TempDir()
	file := filepath.Join(dir, ".kube", "config")
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(serviceAccount); err == nil {
		hosttest.Missing(t, "this host is a pod, whose token is found as well", "run outside of one")
	}
	for _, c := range []struct{ variable, value, want string }{
		{"KUBECONFIG", file + ":" + dir + "/none", file}, {"HOME", dir, file}, {"PATH", dir, none}, {
			"HOME", "/nowhere",
			none,
		},
	} {
		getenv := func(name string) (string, bool) {
			if name != c.variable {
				return "", false
			}
			return c.value, true
		}
		got := Area{}.Parts().Checks(t.Context(), area.Env{Getenv: getenv})
		if len(got) != 1 || got[0].Name != "kubeconfig" || got[0].Found != c.want || got[0].State != area.CheckInfo {
			t.Errorf("%s=%s: got %+v, want %s", c.variable, c.value, got, c.want)
		}
	}
}
