package sandbox

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"tare/area"
	"tare/rigs/hosttest"
)

// TestLabDownEndsItsHolderOnly: a process that listens at the lab VM's socket is not ended for that, and a folder that
// another user could have made is neither believed nor removed.
func TestLabDownEndsItsHolderOnly(t *testing.T) {
	at := t.TempDir()
	var said strings.Builder
	tell := func(format string, args ...any) { fmt.Fprintf(&said, format, args...) }
	sh := labs{&area.Shell{Print: tell, Tell: tell, Getenv: func(name string) (string, bool) {
		return at, name == "XDG_RUNTIME_DIR"
	}}}
	dir := filepath.Join(at, "tare", "lab")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", filepath.Join(dir, labSocket))
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close() //nolint:errcheck // nothing to lose
	if err := sh.labDown(t.Context()); err != nil || !strings.Contains(said.String(), "no lab VM is up") {
		t.Errorf("without a holder: %v, %s", err, said.String())
	}
	sleep := exec.Command("sleep", "600")
	if err := sleep.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = sleep.Wait() }()
	defer func() { _ = sleep.Process.Kill() }()
	if err := nameHolder(dir, sleep.Process.Pid); err != nil {
		t.Fatal(err)
	}
	err = sh.labDown(t.Context())
	if err == nil || !strings.Contains(err.Error(), "and not its holder") {
		t.Errorf("another process listens: %v", err)
	}
	hosttest.NeedsRoot(t)
	canary := filepath.Join(dir, "canary")
	if err := errors.Join(os.WriteFile(canary, nil, 0o600), os.Chown(filepath.Dir(dir), 65534, 65534)); err != nil {
		t.Fatal(err)
	}
	for name, do := range map[string]func() error{
		"down": func() error { return sh.labDown(t.Context()) },
		"up":   func() error { return sh.labUp(t.Context(), labOptions{}) },
	} {
		if err := do(); err == nil || !strings.Contains(err.Error(), "belongs to another user") {
			t.Errorf("%s in a stranger's folder: %v", name, err)
		}
	}
	if _, err := os.Stat(canary); err != nil {
		t.Error(err)
	}
}
