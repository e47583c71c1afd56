package plane

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tare/internal/proc"
	"tare/rigs/hosttest"
	"tare/rigs/memtest"
)

func example(name string) Kept {
	return Kept{
		Name: name, Version: V136, Kubernetes: "v1.36.3", Etcd: Tmpfs, Nodes: 3, Holder: proc.ID{PID: 4000000, StartTicks: 7},
		Since: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Logs: "/logs", Server: "https://127.0.0.1:1",
		Kubeconfig:   "/dev/shm/tare-plane-X/kubeconfig",
		ReadySeconds: 3.5, Processes: []Process{{Name: Etcd, ID: proc.ID{PID: 4000001, StartTicks: 8}}},
		Folders: []string{"/dev/shm/tare-plane-X"},
	}
}

func TestShelf(t *testing.T) {
	s := KeptFolder{Dir: filepath.Join(t.TempDir(), "planes [*]")}
	if list, err := s.List(); len(list) != 0 || err != nil {
		t.Errorf("an empty folder: %v, %v", list, err)
	}
	if _, ok, err := s.Get("a"); ok || err != nil {
		t.Errorf("found one in an empty folder: %v", err)
	}
	if err := s.Drop("a"); err != nil {
		t.Error(err)
	}
	a, b := example("a"), example("b")
	for _, k := range []Kept{b, a} {
		if err := s.Put(k); err != nil {
			t.Fatal(err)
		}
	}
	a.Failed = "etcd died"
	if err := s.Put(a); err != nil {
		t.Fatal(err)
	}
	list, err := s.List()
	if d := cmp.Diff([]Kept{a, b}, list); d != "" || err != nil {
		t.Error(err, d)
	}
	if info, err := os.Stat(filepath.Join(s.Dir, "a.json")); err != nil || info.Mode() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if err := os.Rename(filepath.Join(s.Dir, "b.json"), filepath.Join(s.Dir, "c.json")); err != nil {
		t.Fatal(err)
	}
	list, err = s.List()
	if len(list) != 1 || err == nil || !strings.Contains(err.Error(), "c.json") ||
		!strings.Contains(err.Error(), `plane "b"`) {
		t.Errorf("a file under another name: %v, %v", list, err)
	}
	if err := s.Drop("a"); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(s.Dir, "a.json")); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	files, err := os.ReadDir(s.Dir)
	if err != nil || len(files) != 1 {
		t.Errorf("left: %v, %v", files, err)
	}
}

// TestRefusedStates reads files that would have something killed or removed that is no plane's.
func TestRefusedStates(t *testing.T) {
	for name, change := range map[string]func(*Kept){
		"a path as name":         func(k *Kept) { k.Name = "../x" },
		"no name":                func(k *Kept) { k.Name = "" },
		"no holder":              func(k *Kept) { k.Holder = proc.ID{} },
		"init":                   func(k *Kept) { k.Processes[0].PID = 1 },
		"everybody":              func(k *Kept) { k.Processes[0].PID = -1 },
		"no start time":          func(k *Kept) { k.Processes[0].StartTicks = 0 },
		"a process with escapes": func(k *Kept) { k.Processes[0].Name = "etcd\x1b[2J" },
		"home":                   func(k *Kept) { k.Folders = []string{"/root"} },
		"a relative folder":      func(k *Kept) { k.Folders = []string{"tare-plane-X"} },
		"a kubeconfig elsewhere": func(k *Kept) { k.Kubeconfig = "/tmp/kubeconfig" },
		"a way out":              func(k *Kept) { k.Folders = []string{"/dev/shm/tare-plane-X/../../root"} },
	} {
		k := example("a")
		change(&k)
		text, err := json.Marshal(k)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := ParseKept(text); err == nil {
			t.Errorf("%s: taken", name)
		}
		if err := (KeptFolder{Dir: t.TempDir()}).Put(k); err == nil {
			t.Errorf("%s: written", name)
		}
	}
	if err := RemoveFolder(t.TempDir()); err == nil {
		t.Error("a folder was removed that is not a plane's")
	}
}

// TestStrangersStates: nothing is read from a state that another user could have written, whose processes would be
// ended.
func TestStrangersStates(t *testing.T) {
	hosttest.NeedsRoot(t)
	const nobody = 65534
	for name, change := range map[string]func(dir string) error{
		"the folder":    func(dir string) error { return os.Chown(dir, nobody, nobody) },
		"the file":      func(dir string) error { return os.Chown(filepath.Join(dir, "a.json"), nobody, nobody) },
		"one above":     func(dir string) error { return os.Chown(filepath.Dir(dir), nobody, nobody) },
		"all may write": func(dir string) error { return os.Chmod(dir, 0o777) },
		"a link": func(dir string) error {
			file := filepath.Join(dir, "a.json")
			return errors.Join(os.Rename(file, file+".real"), os.Symlink(file+".real", file))
		},
	} {
		s := KeptFolder{Dir: filepath.Join(t.TempDir(), "tare", "planes")}
		if err := errors.Join(s.Put(example("a")), change(s.Dir)); err != nil {
			t.Fatal(err)
		}
		if k, ok, err := s.Get("a"); ok || err == nil {
			t.Errorf("%s: read %+v", name, k)
		}
		if list, err := s.List(); len(list) > 0 || err == nil {
			t.Errorf("%s: listed %+v", name, list)
		}
	}
}

func FuzzParseKept(f *testing.F) {
	text, err := json.Marshal(example("a"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte(`{"name":"x","holder":{"pid":2,"start_ticks":1},"processes":[{"name":"etcd","pid":-2,"start_ticks":3}],"folders":["/"]}`))
	f.Add([]byte(`{"name":"x","holder":{"pid":2,"start_ticks":1},"folders":["/tare-plane-","/a//tare-plane-"]}`))
	f.Add([]byte(`null`))
	f.Fuzz(func(t *testing.T, text []byte) {
		defer memtest.Bound(t, len(text))()
		k, err := ParseKept(text)
		if err != nil {
			return
		}
		if CheckName(k.Name) != nil || k.Holder.PID <= 1 {
			t.Errorf("taken: %+v", k)
		}
		for _, p := range k.Processes {
			if p.PID <= 1 || p.StartTicks == 0 {
				t.Errorf("process %v", p)
			}
		}
		for _, dir := range k.Folders {
			if !strings.HasPrefix(filepath.Base(dir), folderPrefix) || !filepath.IsAbs(dir) || strings.Contains(dir, "..") &&
				filepath.Clean(dir) != dir {
				t.Errorf("folder %q", dir)
			}
		}
		again, err := json.Marshal(k)
		if err != nil {
			return // a year that JSON cannot write
		}
		back, err := ParseKept(again)
		if d := cmp.Diff(k, back); d != "" || err != nil {
			t.Error(err, d)
		}
	})
}

func TestStates(t *testing.T) {
	cmd := exec.Command("sleep", "60")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill() }()
	ticks, err := proc.StartTicks(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	k := example("a")
	k.Processes, k.Folders = nil, nil
	k.Holder = proc.ID{PID: cmd.Process.Pid, StartTicks: ticks}
	check := func(want State) {
		t.Helper()
		if got := k.State(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	check(Running)
	k.ReadySeconds = 0
	check(Starting)
	k.Holder.StartTicks++ // another process with the same number
	check(Lost)
	if err := k.End(t.Context()); err != nil { // must not touch it
		t.Error(err)
	}
	k.Holder.StartTicks--
	check(Starting)
	k.Failed = "etcd died"
	check(Broken)
	k.Failed = ""
	if err := k.End(t.Context()); err != nil {
		t.Error(err)
	}
	check(Lost) // although nobody has waited for it yet
	if err := cmd.Wait(); err == nil || !strings.Contains(err.Error(), "terminated") {
		t.Errorf("the holder ended otherwise than asked to: %v", err)
	}
}
