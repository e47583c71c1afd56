package files_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"tare/internal/files"
)

// TestHostWaitsForNobody: what another process may have put there is a regular file, a folder, or refused at once.
func TestHostWaitsForNobody(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "file"), []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mkfifo(filepath.Join(dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	for link, to := range map[string]string{"toFile": "file", "toPipe": "pipe", "toDevice": "/dev/null"} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	throughRoot := "proc/" + strconv.Itoa(os.Getpid()) + "/root" + dir
	for _, at := range []string{strings.TrimPrefix(dir, "/"), throughRoot} {
		for name, want := range map[string]string{
			"file": "text", "toFile": "text", "pipe": "", "toPipe": "", "toDevice": "",
		} {
			got, err := fs.ReadFile(files.Host(), at+"/"+name)
			if string(got) != want || (err == nil) != (want != "") {
				t.Errorf("%s/%s: %q, %v; want %q", at, name, got, err, want)
			}
		}
	}
	if found, err := fs.Glob(files.Host(), throughRoot+"/fi*"); err != nil || len(found) != 1 {
		t.Errorf("found %q, %v", found, err)
	}
	if got, err := fs.ReadFile(files.Host(), "proc/self/comm"); err != nil || len(got) == 0 {
		t.Errorf("/proc/self/comm: %q, %v", got, err)
	}
	if _, err := files.Host().Open("../etc/passwd"); err == nil {
		t.Error("a path outside of the root was opened")
	}
}

// TestHostReadsSettingsWhole: the kernel gives a setting in the first read only, and states no size for it.
func TestHostReadsSettingsWhole(t *testing.T) {
	for _, name := range []string{
		"proc/sys/net/core/somaxconn", "proc/sys/net/ipv4/ip_local_port_range", "proc/sys/kernel/osrelease",
	} {
		want, err := os.ReadFile("/" + name)
		if err != nil {
			t.Logf("%s cannot be read here: %v", name, err)
			continue
		}
		if got, err := fs.ReadFile(files.Host(), name); err != nil || string(got) != string(want) {
			t.Errorf("%s reads %q, %v; want %q", name, got, err, want)
		}
	}
	if got, err := fs.ReadFile(files.Host(), "proc/self/environ"); err != nil ||
		!strings.Contains(string(got), "\x00") && len(os.Environ()) > 1 {
		t.Errorf("the environment of this process reads %q, %v", got, err)
	}
}
