package admission

import (
	"os"
	"path/filepath"
	"testing"

	"tare/area"
	"tare/rigs/hosttest"
)

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
