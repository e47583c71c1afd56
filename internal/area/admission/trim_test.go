package admission

import (
	"path/filepath"
	"strings"
	"testing"

	"tare/internal/area"
	"tare/internal/design"
	"tare/internal/plane"
)

// lacking is a host on which no control plane can be had: each variable names a file that is not there.
func lacking(t *testing.T) area.Env {
	t.Helper()
	env := testEnv(t)
	none := filepath.Join(t.TempDir(), "none")
	env.Getenv = func(name string) (string, bool) { return none, name == plane.Variable || name == plane.VariablePSP }
	return env
}

func TestTrimSaysWhatIsLeftOut(t *testing.T) {
	env := lacking(t)
	far := &Spec{}
	baseline := treatment("kubeconfig", "k", "mechanism", "none")
	baseline.Baseline = true
	other, gone := treatment("kubeconfig", "k", "mechanism", "vap"), treatment("mechanism", "psp")
	kept, findings := Area{}.Trim(t.Context(), far, []design.Treatment{baseline, other, gone}, env)
	if len(kept) != 2 || len(findings) != 1 || findings[0].Severity != area.Warning || !strings.Contains(findings[0].Message, "left out: mechanism=psp") || findings[0].Hint == "" {
		t.Errorf("kept %v, findings %+v", kept, findings)
	}
	base := treatment("mechanism", "none")
	base.Baseline = true
	kept, findings = Area{}.Trim(t.Context(), &Spec{}, []design.Treatment{base, treatment("mechanism", "vap")}, env)
	if len(kept) != 2 || len(findings) != 1 || findings[0].Severity != area.Error || !strings.Contains(findings[0].Message, "the baseline needs") {
		t.Errorf("without a baseline: kept %v, findings %+v", kept, findings)
	}
	kept, findings = Area{}.Trim(t.Context(), &Spec{}, []design.Treatment{treatment("mechanism", "psp"), treatment("mechanism", "vap")}, env)
	if len(kept) != 2 || len(findings) != 2 || findings[0].Severity != area.Error {
		t.Errorf("with nothing left: kept %v, findings %+v", kept, findings)
	}
}

func TestPreflightSaysWhatIsMissing(t *testing.T) {
	find := func(s *Spec, env area.Env, says string) {
		t.Helper()
		for _, f := range (Area{}).Preflight(t.Context(), s, env) {
			if f.Severity == area.Error && strings.Contains(f.Message, says) {
				return
			}
		}
		t.Errorf("no finding says %q: %+v", says, Area{}.Preflight(t.Context(), s, env))
	}
	env := lacking(t)
	find(&Spec{}, env, "is no program that may be executed")
	find(&Spec{Kubeconfig: "/no/such/kubeconfig"}, env, "read kubeconfig")
	dir := t.TempDir()
	find(&Spec{Mechanism: "manifests", Manifests: &Manifests{Before: filepath.Join(dir, "none"), Bad: filepath.Join(dir, "bad.yaml")}}, env, "manifests.before")
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
