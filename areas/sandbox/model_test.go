package sandbox

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"tare/areas/sandbox/policy"
	"tare/areas/sandbox/workload"
)

// usedPaths returns paths that workloads use, below the folder of a run.
func usedPaths(t *testing.T, run string) []string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "s00001")
	if err := (&sample{dir: dir}).setUp(); err != nil {
		t.Fatal(err)
	}
	var out []string
	err := filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		rest, _ := filepath.Rel(filepath.Dir(dir), path)
		out = append(out, filepath.Join(run, rest))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range workload.Kinds() {
		out = append(out, workload.Starts(k.Name)...)
	}
	return append(out, "/proc/self/status", "/dev/null", "/usr/bin/ls")
}

// sharedComponents counts the leading components that two paths share.
func sharedComponents(a, b string) (n int) {
	x, y := strings.Split(a, "/")[1:], strings.Split(b, "/")[1:]
	for n < min(len(x), len(y)) && x[n] == y[n] {
		n++
	}
	return n
}

// TestFurtherRulesMatchNothing: rules that a treatment adds are there, share as much of a path as asked, and refuse
// nothing that workloads do.
func TestFurtherRulesMatchNothing(t *testing.T) {
	const run, n = "/tmp/tare-sandbox-abc", 60
	used := usedPaths(t, run)
	if len(used) < 5 {
		t.Fatalf("only %d paths are in use", len(used))
	}
	for match := 0; match <= maxMatch; match++ {
		m := (Policy{Rules: n, Match: match, Dir: run + "/arm001"}).furtherRules()
		if len(m.Files) != n || len(m.Execs) != n || len(m.Connects) != n || len(m.Mounts) != n {
			t.Fatalf("match %d: %d, %d, %d and %d rules, want %d of each kind", match, len(m.Files), len(m.Execs),
				len(m.Connects), len(m.Mounts), n)
		}
		for i, f := range m.Files {
			if got := sharedComponents(string(f.Path), used[0]); got != match || m.Execs[i] != f.Path {
				t.Errorf("match %d: %s shares %d components with %s", match, f.Path, got, used[0])
			}
			for _, path := range used {
				if f.Path.Matches(path) {
					t.Errorf("match %d: %s refuses %s, which workloads use", match, f.Path, path)
				}
			}
		}
		if wrong := m.Validate(); len(wrong) > 0 {
			t.Errorf("match %d: %s", match, strings.Join(wrong, "; "))
		}
	}
	if m := (Policy{Mode: AlwaysAllow}).model(); !m.Empty() {
		t.Errorf("AlwaysAllow refuses %+v", m)
	}
}

// TestFurtherRulesDiffer: no address, type of file systems or path is refused twice.
func TestFurtherRulesDiffer(t *testing.T) {
	const n = 1000
	m := (Policy{Rules: n, Dir: "/tmp/run/arm"}).furtherRules()
	seen := map[string]bool{}
	for i := range n {
		seen[string(m.Files[i].Path)], seen[string(m.Connects[i])], seen[m.Mounts[i].Type] = true, true, true
		if !isRuleType(m.Mounts[i].Type) {
			t.Errorf("%s is not recognised as a type of a rule", m.Mounts[i].Type)
		}
	}
	if len(seen) != 3*n {
		t.Errorf("%d different rules, want %d", len(seen), 3*n)
	}
	for _, name := range []string{"ext4", "tare", "tare1", "tare00001x", "tare-0001", ""} {
		if isRuleType(name) {
			t.Errorf("%q was taken for the type of a rule", name)
		}
	}
}

func TestRefusesRead(t *testing.T) {
	rule := func(path policy.Path, access ...policy.Access) policy.Policy {
		return policy.Policy{Files: []policy.File{{Path: path, Access: access}}}
	}
	for _, c := range []struct {
		policy policy.Policy
		path   string
		want   bool
	}{
		{rule("/etc/passwd", policy.Read), "/etc/passwd", true},
		{rule("/etc/passwd", policy.Write, policy.Read), "/etc/passwd", true},
		{rule("/etc/passwd", policy.Write), "/etc/passwd", false},
		{rule("/etc/passwd", policy.Read), "/etc/passwd2", false},
		{rule("/etc/**", policy.Read), "/etc/ssl/x", true},
		{rule("/proc/**/mounts", policy.Read), "/proc/self/mounts", true},
		{rule("/proc/**/mounts", policy.Read), "/proc/mounts", false},
		{rule("/proc/self/mounts", policy.Read), "/proc/self/mounts", false}, // no rule of a kernel matches the symbolic link
		{policy.Policy{}, "/etc/passwd", false},
	} {
		if got := refusesRead(c.policy, c.path); got != c.want {
			t.Errorf("%+v refuses to read %s: %t, want %t", c.policy.Files, c.path, got, c.want)
		}
	}
	for path, want := range map[string]string{"/proc/self/mounts": "mounts", "/proc/self/": "", "/proc/1/mounts": ""} {
		if rest, ok := cutSelf(path); rest != want || ok != (want != "") {
			t.Errorf("%s: %q, %t", path, rest, ok)
		}
	}
}

// TestOwnRulesFiles: a file that is no policy is an error that names it and says what is wrong with it.
func TestOwnRulesFiles(t *testing.T) {
	dir := t.TempDir()
	at := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	fifo := filepath.Join(dir, "fifo")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	good := "files: [{path: /etc/passwd, access: [read]}]\n"
	for path, want := range map[string]string{
		filepath.Join(dir, "none"): "no such file",
		dir:                        "want a regular file",
		fifo:                       "want a regular file",
		at("long", good+strings.Repeat("#", mostOwnRules)):        "longer than",
		at("field", good+"file: []\n"):                            "file",
		at("empty", ""):                                           "it is empty",
		at("nothing", "files: []\n"):                              "it refuses nothing",
		at("two", good+"---\n"+good):                              "want one YAML document",
		at("binary", "\x7fELF\x00\x00"):                           "parse it",
		at("relative", "execs: [bin/sh]\n"):                       "bin/sh",
		at("capability", "capabilities: [CAP_SYSLOG]\n"):          "did you mean",
		at("access", "files: [{path: /etc/x, access: [exec]}]\n"): "exec",
	} {
		_, err := readOwnRules(path)
		if err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
	}
	own, err := readOwnRules(at("good", good))
	if err != nil || len(own.Policy.Files) != 1 || len(own.Sum) != 64 {
		t.Fatalf("%+v: %v", own, err)
	}
	if again, err := readOwnRules(at("better", good+"# comment\n")); err != nil || again.Sum == own.Sum {
		t.Errorf("another file has the same sum: %v", err)
	}
	m := (Policy{Own: own, Mode: RuntimeDefault}).model()
	if !refusesRead(m, "/etc/passwd") || !refusesRead(m, "/proc/kcore") {
		t.Errorf("the policy lacks the user's rules or those of the mode: %+v", m)
	}
}
