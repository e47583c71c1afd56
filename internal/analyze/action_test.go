package analyze

import "testing"

func TestActions(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		operation, request, admission, storage string
		dryRun, startup                        bool
	}{
		{"create-pod", "POST pods", "CREATE", "create", false, false},
		{"create-pod-dry-run", "POST pods", "CREATE", "get", true, false},
		{"pod-startup", "POST pods", "CREATE", "create", false, true},
		{"update-deployment", "PUT deployments", "UPDATE", "update", false, false},
		{"patch-configmap-dry-run", "PATCH configmaps", "UPDATE", "get", true, false},
		{"delete-pod", "DELETE pods", "DELETE", "delete", false, false},
		{"get-configmap", "GET configmaps", "", "get", false, false},
		{"list-pod", "LIST pods (namespace)", "", "list", false, false},
	} {
		a, ok := actionOf(c.operation)
		if !ok || a.String() != c.request || a.admission != c.admission || a.storage != c.storage || a.dryRun != c.dryRun ||
			a.startup != c.startup {
			t.Errorf("%s: %+v %v", c.operation, a, ok)
		}
		if a.mutating() != (c.admission != "") || admits(a.verb) != c.admission || !a.judged() {
			t.Errorf("%s: mutating %v, admits %q", c.operation, a.mutating(), admits(a.verb))
		}
	}
	for _, name := range []string{"", "token", "create", "create-node", "watch-pod", "-dry-run", "pod-startup-dry-run"} {
		if a, ok := actionOf(name); ok {
			t.Errorf("%q: %+v", name, a)
		}
	}
	for _, k := range []kind{
		{"WATCH", "pods", "namespace"},
		{"GET", "pods/log", "resource"},
		{"POST", "subjectaccessreviews", "resource"},
		{"CONNECT", "pods/exec", "resource"},
	} {
		if k.judged() {
			t.Errorf("%s is judged", k)
		}
	}
}
