package admission

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"tare/area"
	"tare/areas/plane"
	"tare/internal/proc"
	"tare/rigs/hosttest"
)

// downWith runs 'tare plane down --all' where the state of a plane is as write leaves it, and returns what was said.
func downWith(t *testing.T, k plane.Kept, write func(states plane.KeptFolder) error) string {
	t.Helper()
	at := t.TempDir()
	states := plane.KeptFolder{Dir: filepath.Join(at, "tare", "planes")}
	if err := errors.Join(states.Put(k), write(states)); err != nil {
		t.Fatal(err)
	}
	var said strings.Builder
	tell := func(format string, args ...any) { fmt.Fprintf(&said, format, args...) }
	err := planes{&area.Shell{Print: tell, Tell: tell, Getenv: func(name string) (string, bool) {
		value, ok := map[string]string{"XDG_RUNTIME_DIR": at, "TARE_CACHE": filepath.Join(at, "cache")}[name]
		return value, ok
	}}}.planeDown(t.Context(), "default", true)
	return fmt.Sprint(said.String(), err)
}

// TestPlaneDownActsOnOwnStatesOnly: whatever a state says, what is removed follows from the plane's name, and of a
// state that another user may have written nothing is carried out.
func TestPlaneDownActsOnOwnStatesOnly(t *testing.T) {
	sleep := exec.Command("sleep", "600")
	if err := sleep.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = sleep.Wait() }()
	defer func() { _ = sleep.Process.Kill() }()
	other, err := proc.Identify(sleep.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	kept := func(logs string) plane.Kept {
		return plane.Kept{
			Name: "default", Version: plane.V136, Logs: logs, Holder: other,
			Processes: []plane.Process{{Name: "etcd", ID: other}},
		}
	}
	canary := filepath.Join(t.TempDir(), "canary")
	if err := os.Mkdir(canary, 0o700); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() == 0 {
		for name, write := range map[string]func(plane.KeptFolder) error{
			"file":   func(s plane.KeptFolder) error { return os.Chown(filepath.Join(s.Dir, "default.json"), 65534, 65534) },
			"folder": func(s plane.KeptFolder) error { return os.Chown(s.Dir, 65534, 65534) },
		} {
			if said := downWith(t, kept(canary), write); !strings.Contains(said, "belongs to another user") {
				t.Errorf("a stranger's %s: %s", name, said)
			}
			if !other.Alive() {
				t.Fatalf("a stranger's %s has ended a process", name)
			}
		}
	} else {
		hosttest.Untried(t, "no other user can be had", hosttest.Root)
	}
	gone := kept(canary) // of an earlier boot: its pid is another process by now
	gone.Holder.Boot = "another"
	gone.Processes[0].Boot = "another"
	said := downWith(t, gone, func(plane.KeptFolder) error { return nil })
	if !strings.Contains(said, "plane default is down") || !other.Alive() {
		t.Errorf("the process runs: %t; %s", other.Alive(), said)
	}
	if _, err := os.Stat(canary); err != nil {
		t.Errorf("a folder that only the state names was removed: %v", err)
	}
}
