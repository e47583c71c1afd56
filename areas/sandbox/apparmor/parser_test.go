package apparmor

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"tare/areas/sandbox/policy"
	"tare/internal/proc"
	"tare/rigs/hosttest"
)

// needParser skips a test where apparmor_parser is not installed.
func needParser(t *testing.T) {
	t.Helper()
	if _, err := parser.Find(); err != nil {
		hosttest.Missing(t, err.Error(), "apt-get install apparmor")
	}
	if _, err := os.Stat(fallbackABI); err != nil {
		hosttest.Missing(t, err.Error(), "apt-get install apparmor")
	}
}

func TestCompileBuiltinPolicies(t *testing.T) {
	needParser(t)
	all := policy.RuntimeDefault()
	for _, r := range policy.EnhanceProtect() {
		all = all.And(r.Policy)
	}
	sizes := map[string]int{}
	for name, p := range map[string]policy.Policy{"empty": {}, "default": policy.RuntimeDefault(), "all": all} {
		text, unsupported := Profile(name, p)
		if len(unsupported) != len(p.Connects) {
			t.Errorf("%s: not expressible: %q", name, unsupported)
		}
		binary, warnings, err := Compile(t.Context(), Source{name, text}, Enforce)
		if err != nil {
			t.Errorf("%s: %v\n%s", name, err, text)
		}
		if len(warnings) > 0 {
			t.Logf("%s: %q", name, warnings)
		}
		sizes[name] = len(binary)
	}
	if sizes["empty"] >= sizes["default"] || sizes["default"] >= sizes["all"] {
		t.Errorf("profiles have %v bytes, want more for more rules", sizes)
	}
}

func TestCompileSaysWhatIsWrongAndWhere(t *testing.T) {
	needParser(t)
	included := filepath.Join(t.TempDir(), "included")
	if err := os.WriteFile(included, []byte("\n\n/a b,\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"profile a {\n deny capability foo,\n}\n":                "compile mine: line 2: Invalid capability foo.",
		"profile a {\n include <abs/nobase>\n}\n":                "compile mine: line 2: Could not open 'abs/nobase'",
		"profile a {\n include \"" + included + "\"\n}\n":        "compile mine: " + included + ", line 3: syntax error",
		"profile a {\n /x px,\n /x ix,\n}\n":                     "has merged rule /x with conflicting x modifiers",
		"":                                                       "compile mine: it has no profile",
		"profile a {\n /" + strings.Repeat("x", 1<<20) + " r, {": "compile mine: ",
	} {
		_, _, err := Compile(t.Context(), Source{"mine", text}, Enforce)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.80q: got %v, want %q", text, err, want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := Compile(ctx, Source{"mine", "profile a { }"}, Enforce); err == nil {
		t.Error("compiled after the end of the context")
	}
}

// TestCompileIsOneProcess: a process that the parser started would go on after a kill −9 of tare.
func TestCompileIsOneProcess(t *testing.T) {
	needParser(t)
	takesMinutes := "profile a {\n /**a" + strings.Repeat("?", 40) + " r,\n}\n"
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, _, err := Compile(ctx, Source{"mine", takesMinutes}, Enforce)
		done <- err
	}()
	var all []int
	for took := time.Duration(0); took < 200*time.Millisecond && len(done) == 0; {
		var err error
		if all, err = proc.Descendants(os.Getpid()); err != nil {
			t.Fatal(err)
		}
		for _, pid := range all[1:] {
			if cpu, err := proc.CPUOf(pid); err == nil {
				took = max(took, cpu)
			}
		}
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) || len(all) != 2 {
		t.Errorf("the processes %v compiled, want one besides %d; %v", all, os.Getpid(), err)
	}
}

func TestCompileWithoutParser(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	if _, err := exec.LookPath("/usr/sbin/apparmor_parser"); err == nil {
		hosttest.Missing(t, "apparmor_parser is in /usr/sbin, where it is always found", "remove it")
	}
	_, _, err := Compile(t.Context(), Source{"mine", "profile a { }"}, Enforce)
	if err == nil || !strings.Contains(err.Error(), "is not installed") {
		t.Errorf("got %v", err)
	}
}

func TestComplainChangesTheBinary(t *testing.T) {
	needParser(t)
	s := Source{"mine", "profile a { /x r, }"}
	strict, _, err := Compile(t.Context(), s, Enforce)
	if err != nil {
		t.Fatal(err)
	}
	if lax, _, err := Compile(t.Context(), s, Complain); err != nil || string(lax) == string(strict) {
		t.Errorf("complain mode: %v, the same bytes: %t", err, string(lax) == string(strict))
	}
}

func TestReadProfile(t *testing.T) {
	needParser(t)
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	const one = "include <tunables/global>\nprofile one /usr/bin/one {\n include <abstractions/base>\n" +
		" deny /a w,\n ^hat { }\n}\n"
	f, err := ReadProfile(t.Context(), write("one", one))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := f.Pick(""); got != "one" || err != nil || !slices.Equal(f.Profiles, []string{"one"}) {
		t.Errorf("picked %q of %q, %v", got, f.Profiles, err)
	}
	asRead, _, err := Compile(t.Context(), Source{"one", one}, Enforce)
	if err != nil {
		t.Fatal(err)
	}
	if kept, _, err := Compile(t.Context(), f.Source(), Enforce); err != nil || string(kept) != string(asRead) {
		t.Errorf("the profile with its includes is another one than that in the file (%v)", err)
	}
	if _, _, err := Compile(t.Context(), f.Observed(), Complain); err != nil {
		t.Errorf("the profile to observe with: %v", err)
	}
	if !strings.Contains(f.Observed().Text, " audit deny /a w,") {
		t.Error("the deny rule is not reported when it refuses")
	}
	two, err := ReadProfile(t.Context(), write("two", "@{X}=c\nprofile a { }\nprofile b { }\nprofile @{X} { }\n"))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"": "name the one to use, of @{X}, a, b", "c": `has no profile "c"`, "@{X}": "holds a variable",
	} {
		if _, err := two.Pick(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("pick %q: got %v", name, err)
		}
	}
	if got, err := two.Pick("b"); got != "b" || err != nil {
		t.Errorf("pick b: got %q, %v", got, err)
	}
	pipe := filepath.Join(dir, "pipe")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		write("namespace", "profile :docker:x { }"):     "leave the namespace out",
		write("large", strings.Repeat("#", mostFile+1)): "longer than",
		write("none", "# nothing\n"):                    "it has no profile",
		pipe:                                            "want a regular file",
		dir:                                             "want a regular file",
		filepath.Join(dir, "absent"):                    "no such file",
		write("bad", "profile x {\n capability flying,\n"): "bad: line 2: Invalid capability flying",
		write("outer", "include \""+dir+"/bad\"\n"):        "outer with its includes: line 3: Invalid capability flying",
		write("steals", "include \"/etc/shadow\"\n"):       "steals: include \"/etc/shadow\": only files below",
	} {
		if _, err := ReadProfile(t.Context(), path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", filepath.Base(path), err, want)
		}
	}
}
