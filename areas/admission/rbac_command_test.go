package admission

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"tare/area"
	"tare/rigs/hosttest"
)

// TestDoctorRBACSaysWhatIsMissing, and who else can read the kubeconfig.
func TestDoctorRBACSaysWhatIsMissing(t *testing.T) {
	hosttest.SkipIfShortUnlessRaced(t)
	path := fakeCluster(t, []string{"delete namespaces", "get /metrics"}, map[string]apiAnswer{
		"GET /apis/authentication.k8s.io/v1": {Body: map[string]any{
			"kind": "APIResourceList", "groupVersion": "authentication.k8s.io/v1",
			"resources": []any{map[string]any{"name": "selfsubjectreviews", "kind": "SelfSubjectReview"}},
		}},
		"POST /apis/authentication.k8s.io/v1/selfsubjectreviews": {Body: map[string]any{
			"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview",
			"status": map[string]any{"userInfo": map[string]any{"username": "jane"}},
		}},
	})
	run := func(args ...string) (int, string, string) {
		c := rbacMode()
		f := flag.NewFlagSet(c.Flag, flag.ContinueOnError)
		c.Flags(f)
		if err := f.Parse(append([]string{"--kubeconfig", path}, args...)); err != nil {
			t.Fatal(err)
		}
		var out, errs strings.Builder
		err := c.Run(t.Context(), &area.Shell{
			Print: func(format string, args ...any) { fmt.Fprintf(&out, format, args...) },
			Tell:  func(format string, args ...any) { fmt.Fprintf(&errs, format, args...) },
		})
		if err == nil {
			return 0, out.String(), errs.String()
		}
		exit, ok := errors.AsType[area.ExitError](err)
		if !ok {
			t.Fatal(err)
		}
		return exit.Code, out.String(), errs.String() + err.Error()
	}
	code, out, errs := run("--mechanism", "vap")
	if code != 0 || errs != "" {
		t.Errorf("exit %d, %s", code, errs)
	}
	for _, want := range []string{
		"kind: ClusterRole\n", "  - validatingadmissionpolicybindings\n",
		"# jane lacks 2 of 15:\n#   delete namespaces\n#   get /metrics (optional)\n",
		"without it how many policies looked at a request is known from samples alone", "Kubernetes v1.36.3",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("the output lacks %q:\n%s", want, out)
		}
	}
	if strings.Contains(out, "mutating") || strings.Contains(out+errs, clusterToken) {
		t.Errorf("the output holds an unused right or the token:\n%s", out)
	}
	if code, out, errs := run("--metrics=false", "--mechanism", "vap"); code != 0 || errs != "" ||
		strings.Contains(out, "/metrics") || !strings.Contains(out, "lacks 1 of 14:") {
		t.Errorf("without metrics: exit %d, %s%s", code, out, errs)
	}
	if code, _, errs := run("--context", "y"); code != 2 || !strings.Contains(errs, `no context "y"; there are: x`) {
		t.Errorf("exit %d, %s", code, errs)
	}
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	if code, _, errs := run(); code != 0 ||
		!strings.Contains(errs, "warning: other users can read the file with secrets "+path) {
		t.Errorf("a kubeconfig that others can read: exit %d, %s", code, errs)
	}
}
