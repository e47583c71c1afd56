package sandbox

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"tare/area"
	"tare/areas/sandbox/apparmor"
	"tare/areas/sandbox/workload"
	"tare/internal/design"
	"tare/internal/proc"
	"tare/rigs/hosttest"
)

// appArmorFile writes a file of profiles and returns its path, or skips the test without the compiler.
func appArmorFile(t testing.TB, text string) string {
	t.Helper()
	if _, err := exec.LookPath("apparmor_parser"); err != nil {
		hosttest.Missing(t, err.Error(), "apt-get install apparmor")
	}
	path := filepath.Join(t.TempDir(), "own.apparmor")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestAppFilesAreChosen: a level names a file, and a profile in it if there are several.
func TestAppFilesAreChosen(t *testing.T) {
	one := appArmorFile(t, "profile web { /etc/hostname r, }\n")
	two := appArmorFile(t, "profile web { }\nprofile other { }\n")
	wrong := appArmorFile(t, "profile web { /etc/hostname q, }\n")
	for level, want := range map[string]string{
		one: "web", one + "#web": "web", two + "#other": "other",
		two:          "2 profiles: name the one to use, of other, web; write FILE#NAME, such as " + two + "#other",
		two + "#wed": `no profile "wed"`,
		wrong:        "line 1: syntax error",
		one + "x":    "no such file",
	} {
		p, err := (&Spec{}).plan(treatment("enforcer", "apparmor", "profile", level))
		switch {
		case err != nil && !strings.Contains(err.Error(), want):
			t.Errorf("%s: %v, want %q", level, err, want)
		case err == nil && (p.policy.AppFile.profile != want || p.policy.Mode != ""):
			t.Errorf("%s: profile %q and mode %q, want %q", level, p.policy.AppFile.profile, p.policy.Mode, want)
		}
	}
	for _, more := range [][]string{{"mode", "AlwaysAllow"}, {"rules", "2"}, {"match", "1"}} {
		_, err := (&Spec{}).plan(treatment(append([]string{"enforcer", "apparmor", "profile", one}, more...)...))
		if err == nil || !strings.HasPrefix(err.Error(), more[0]+": ") {
			t.Errorf("%q with a profile: %v", more, err)
		}
	}
	_, err := (&Spec{}).plan(treatment("enforcer", "apparmor+seccomp", "profile", one))
	if err == nil || !strings.Contains(err.Error(), "unclear whose profile") {
		t.Errorf("two enforcers: %v", err)
	}
}

// TestAppFilesAreContents: a run does not go on if a file that the profile includes has changed.
func TestAppFilesAreContents(t *testing.T) {
	path := appArmorFile(t, "")
	included := filepath.Join(filepath.Dir(path), "more")
	write := func(path, text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(included, "/etc/hostname r,\n")
	write(path, "profile web {\n  include \""+included+"\"\n}\n")
	contents := func() string {
		appFiles.files = map[string]*apparmor.File{} // as in another process
		all, err := Area{}.Contents(&Spec{}, []design.Treatment{treatment("enforcer", "apparmor", "profile", path+"#web")})
		if err != nil || len(all) != 1 {
			t.Fatalf("%v, %v", all, err)
		}
		return all["content of "+path]
	}
	before := contents()
	write(included, "/etc/hostname w,\n")
	if after := contents(); len(before) != 64 || after == before {
		t.Errorf("%q, then %q", before, after)
	}
}

// TestTrialsOfKilledRunsAreSwept: a trial's namespace is left alone while its process lives, and always where that is
// of another PID namespace; so are those of runs.
func TestTrialsOfKilledRunsAreSwept(t *testing.T) {
	child := exec.CommandContext(t.Context(), "true")
	if err := child.Run(); err != nil {
		t.Fatal(err)
	}
	ticks, err := proc.StartTicks(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	of := func(in uint64, pid int, ticks uint64) string {
		return apparmor.Namespace(fmt.Sprintf(trialRunForm, in, pid, ticks))
	}
	here, gone := pidNamespace(), child.Process.Pid
	for namespace, want := range map[string]bool{
		apparmor.Namespace(trialRun()):          false,
		apparmor.Namespace(trialRun() + "-x"):   false,
		of(here, gone, ticks):                   true,
		of(here, gone, ticks) + "-x":            true,
		of(here, os.Getpid(), ticks-1):          true, // its number is ours now
		of(here+1, gone, ticks):                 false,
		of(here+1, os.Getpid(), ticks-1) + "-x": false,
		apparmor.Namespace("20261123T102718Z"):  false,
	} {
		if got := isLeftTrial(namespace); got != want {
			t.Errorf("%s: %t, want %t", namespace, got, want)
		}
	}
}

// TestTriedSpeaksOfItsProfile: findings of an AppArmor profile and of a filter are the same but for what is refused.
func TestTriedSpeaksOfItsProfile(t *testing.T) {
	app := Policy{AppFile: &appFile{path: "a", file: &apparmor.File{Name: "a", Text: "x"}, profile: "web"}}.tried()
	filter := Policy{Profile: &Profile{Name: "p.json"}}.tried()
	refused := []refusal{{"open", []string{"open /a (r)"}}}
	const each = " that were made when each workload ran once: open: open /a (r)"
	for _, c := range []struct {
		got  area.Finding
		want string
	}{
		{app.finding(refused, nil), "profile web of a refuses accesses" + each},
		{filter.finding(refused, nil), "p.json refuses calls" + each},
		{app.finding(nil, nil), "profile web of a refused no access that the workloads made when each ran once"},
		{filter.finding(nil, errors.New("x")), "which calls of the workloads p.json would refuse is not known: x"},
	} {
		if c.got.Message != c.want {
			t.Errorf("%q, want %q", c.got.Message, c.want)
		}
	}
	if hint := app.finding(refused, nil).Hint; !strings.Contains(hint, "do without an access") ||
		!strings.Contains(hint, "allow the access") {
		t.Error(hint)
	}
}

// TestOpensProve: what the first worker could not open no other worker may open, and what nobody refuses is no proof.
func TestOpensProve(t *testing.T) {
	deny := func(paths ...string) fakeWorker {
		return fakeWorker{workload.Status{NoNewPrivs: true}, func(_ string, args []string) (syscall.Errno, error) {
			if slices.Contains(paths, args[0]) {
				return unix.EACCES, nil
			}
			return 0, nil
		}}
	}
	mine := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(mine, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	text := "profile a {\n  deny \"" + mine + "\" rw,\n  deny /does/not/exist r,\n deny /etc/** r,\n}\n"
	if got := deniedFiles(text); !slices.Equal(got, []string{mine}) {
		t.Errorf("files of deny rules: %q", got)
	}
	a := &appFile{path: "own", file: &apparmor.File{Name: "own", Text: text}, profile: "a", opens: &opens{}}
	for i, c := range []struct {
		worker fakeWorker
		wrong  string
	}{
		{deny(mine), ""},
		{deny(mine), ""},
		{deny(), "in the first worker"},
		{deny(mine, "/proc/self/mounts"), "in the first worker"},
	} {
		x := &proof{ctx: t.Context(), w: c.worker}
		a.opens.prove(x, text)
		if err := x.end(); (err == nil) != (c.wrong == "") || (err != nil && !strings.Contains(err.Error(), c.wrong)) {
			t.Errorf("worker %d: %v, want %q", i, err, c.wrong)
		}
	}
	if text := a.proved(); !strings.Contains(text, "refuses to open "+mine) {
		t.Error(text)
	}
	if text := a.describe(); !strings.Contains(text, "processes outside of that namespace") {
		t.Error(text)
	}
	a.opens = &opens{}
	if text := a.proved(); text != "" {
		t.Errorf("before the first proof: %q", text)
	}
	a.opens.prove(&proof{ctx: t.Context(), w: deny()}, text)
	if text := a.proved(); !strings.Contains(text, "no refusal proves it") {
		t.Error(text)
	}
}
