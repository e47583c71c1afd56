package plane

import (
	"os"
	"os/exec"
	"testing"
	"time"

	"tare/rigs/hosttest"
)

// TestBinariesAreBuilt really builds, where that is wanted: it takes minutes, and the network where Go's own cache
// lacks something.
func TestBinariesAreBuilt(t *testing.T) {
	if os.Getenv("TARE_TEST_PLANE_BUILD") != "1" {
		hosttest.Missing(t, "it compiles Kubernetes", hosttest.Plane)
	}
	for _, v := range Versions() {
		t.Run(string(v), func(t *testing.T) {
			began := time.Now()
			b, err := Find(t.Context(), v, Host{Getenv: withoutNames, Tell: func(line string) { t.Log(line) }})
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%+v after %v", b, time.Since(began).Round(time.Second/10))
			if b.Version != v || b.Etcd == "" || b.Go == "" {
				t.Errorf("%+v", b)
			}
			for _, component := range []string{APIServer, Scheduler, ControllerManager} {
				if out := says(t, b, component); out != "{\"ready\":{}}\nKubernetes "+b.Kubernetes+"\n" {
					t.Errorf("%s says %q, and is of %s", component, out, b.Kubernetes)
				}
			}
		})
	}
}

// says is what a component answers to its flag --version.
func says(t *testing.T, b Binary, component string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), b.Path, component)
	in, err := cmd.StdinPipe() // stays open, so that the component need not end
	if err == nil {
		_, err = in.Write([]byte(`{"args": ["--version"]}` + "\n"))
	}
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.Output()
	if err != nil {
		t.Errorf("%s --version: %v", component, err)
	}
	return string(out)
}

// withoutNames is the environment, but for binaries that are named in it.
func withoutNames(name string) (string, bool) {
	if name == Variable || name == VariablePSP {
		return "", false
	}
	return os.LookupEnv(name)
}
