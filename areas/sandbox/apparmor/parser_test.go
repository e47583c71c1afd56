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

func TestProfileOfEachRule(t *testing.T) {
	for _, c := range []struct {
		name   string
		policy policy.Policy
		want   string
	}{
		{
			"read",
			policy.Policy{Files: []policy.File{{Path: "/a b", Access: []policy.Access{policy.Read}}}},
			`deny "/a b{,/}" r,`,
		},
		{
			"write",
			policy.Policy{Files: []policy.File{{Path: "/**/runc", Access: []policy.Access{policy.Write}}}},
			`deny "/**/runc{,/}" wl,`,
		},
		{
			"both",
			policy.Policy{Files: []policy.File{{Path: "/a/**", Access: []policy.Access{policy.Write, policy.Read}}}},
			`deny "/a/**" rwl,`,
		},
		{"exec", policy.Policy{Execs: []policy.Path{"/bin/nc"}}, `deny "/bin/nc" x,`},
		{"mount", policy.Policy{Mounts: []policy.Mount{{}}}, "deny mount,"},
		{"mount type", policy.Policy{Mounts: []policy.Mount{{Type: "ext4"}}}, "deny mount fstype=ext4,"},
		{
			"mount source",
			policy.Policy{Mounts: []policy.Mount{{Type: "xfs", Source: "/dev/sd**"}}},
			`deny mount fstype=xfs "/dev/sd**",`,
		},
		{"umount", policy.Policy{Umount: true}, "deny umount,"},
		{"capability", policy.Policy{Capabilities: []string{"sys_admin"}}, "deny capability sys_admin,"},
		{"ptrace", policy.Policy{Ptrace: true}, `ptrace (trace, read) peer="p",`},
		{"nothing", policy.Policy{}, "  ptrace,\n"},
	} {
		text, unsupported := Profile("p", c.policy)
		if !strings.Contains(text, c.want) || len(unsupported) > 0 {
			t.Errorf("%s: want %q in:\n%s%q", c.name, c.want, text, unsupported)
		}
		if c.policy.Ptrace == strings.Contains(text, "  ptrace,\n") {
			t.Errorf("%s: tracing is allowed and refused:\n%s", c.name, text)
		}
	}
}

func TestProfileListsWhatItCannotExpress(t *testing.T) {
	text, unsupported := Profile("p", policy.Policy{
		Connects: []policy.Address{"169.254.169.254"},
		Files:    []policy.File{{Path: "/a[b", Access: []policy.Access{policy.Read}}, {Path: "/a\tb"}},
		Execs:    []policy.Path{"/*/x"},
		Mounts:   []policy.Mount{{Type: "ext4) options=(rw"}, {Source: `a"b`}},
	})
	for i, want := range []string{
		`files[0] ("/a[b"): it has one of`, `files[1] ("/a\tb"): the control character`, `execs[0] ("/*/x"): the only wildcard`,
		"connects[0] (169.254.169.254): AppArmor mediates", `mounts[0]: type "ext4) options=(rw"`, `mounts[1] (source "a\"b")`,
	} {
		if i >= len(unsupported) || !strings.HasPrefix(unsupported[i], want) {
			t.Errorf("want %q at %d of %q", want, i, unsupported)
		}
	}
	if allowed, _ := Profile("p", policy.Policy{}); text != allowed {
		t.Errorf("what cannot be expressed is in the profile:\n%s", text)
	}
}

// TestWhatAProfileIncludes: the parser gets no directive that names a file outside of /etc/apparmor.d, however it is
// written.
func TestWhatAProfileIncludes(t *testing.T) {
	outside := t.TempDir()
	own := filepath.Join(outside, "own")
	if err := os.Mkdir(own, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"more":       "# see include files\n/more r,\n",
		"nested":     "include \"" + own + "/more\"",
		"itself":     "include \"" + own + "/itself\"",
		"abi":        "abi",
		"name":       "\"/root/x\"",
		"own/inside": "/inside r,",
		"../secret":  "/secret r,",
	} {
		path := filepath.Join(own, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{"out": "../secret", "in": "own/inside"} {
		if err := os.Symlink(to, filepath.Join(own, link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := unix.Mkfifo(filepath.Join(own, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	const refused = "are read, and includes of files below"
	for text, want := range map[string]string{
		"include <tunables/global>\n":                            "include <tunables/global>\n",
		"#include <a>#include <b> # for include files\n":         "#include <a>#include <b>\n",
		"include if exists \"/etc/apparmor.d/local/x\"\n":        "include if exists <local/x>\n",
		"abi <abi/3.0>, # abi of include\nprofile x {":           "abi <abi/3.0>,\nprofile x {",
		"# include \"/x\"\n/usr/include r,\n/lib/{abi,y}/z r,\n": "\n/usr/include r,\n/lib/{abi,y}/z r,\n",
		"{include \"OWN/more\"\n}":                               "{\n\n/more r,\n\n\n}",
		"include \"OWN/nested\"":                                 "\n\n\n/more r,\n\n\n",
		"include \"OWN/in\"":                                     "\n/inside r,\n",
		"include if exists \"OWN/absent\"":                       "\n\n",
		"include \"OWN/absent\"":                                 "no such file",
		"include \"OWN/out\"":                                    "secret",
		"include \"OWN/../secret\"":                              refused,
		"include \"OWN/pipe\"":                                   "want a regular file",
		"include \"OWN\"":                                        "no regular file",
		"include \"OWN/itself\"":                                 "more than 10000 files",
		"include\t\"/etc/shadow\"":                               refused,
		"include <../shadow>":                                    refused,
		"include </etc/shadow>":                                  refused,
		"include \"/etc/apparmor.d/../shadow\"":                  refused,
		"include if exists <../shadow>":                          refused,
		"include \"local/x\"":                                    refused,
		"include /etc/shadow":                                    "want <FILE>",
		"include <\"../shadow\">":                                "want <FILE>",
		"include if exists\n\"/etc/shadow\"":                     "want <FILE>",
		"include <a>include \"/etc/shadow\"":                     refused,
		"#include\n\"/etc/shadow\"":                              refused,
		"x#include\"/etc/shadow\"":                               refused,
		"{ include \n \"/etc/shadow\"":                           refused,
		"\"/a\n# b\" include \"/etc/shadow\"":                    "\"/a\n",
		"priority=5include \"/etc/shadow\"":                      refused,
		"include \"/\\x65tc/shadow\"":                            "want <FILE>",
		"abi \"/etc/shadow\",":                                   refused,
		"abi\n<../shadow>,":                                      refused,
		"abi/etc/shadow,":                                        "want <FILE>",
		"abi\\057etc/shadow,":                                    "want <FILE>",
		"abi \"OWN/more\",":                                      refused,
		"include \"OWN/abi\"include \"OWN/name\"":                "want <FILE>",
		"abi#include \"OWN/name\"":                               "want <FILE>",
	} {
		got, _, err := included(strings.ReplaceAll(text, "OWN", own), own)
		if err != nil {
			got = err.Error()
		}
		if got != want && (err == nil || !strings.Contains(got, want)) {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

func TestParseRecord(t *testing.T) {
	const head = `audit(1700000000.123:45): `
	for _, c := range []struct {
		record, namespace, text string
		enforced                bool
	}{
		{`apparmor="ALLOWED" operation="open" class="file" namespace="root//tare-x" profile="p" name="/etc/x" pid=12 ` +
			`comm="sh" requested_mask="r" denied_mask="r" fsuid=0 ouid=0`, "tare-x", "open /etc/x (r)", false},
		{`apparmor="DENIED" operation="open" namespace="root//tare-x" profile="p" name=2F612062 pid=12 comm="sh" ` +
			`requested_mask="wc" denied_mask="wc" fsuid=0 ouid=0`, "tare-x", "open /a b (wc)", true},
		{`apparmor="ALLOWED" operation="capable" namespace="root//tare-x" profile="p" pid=12 comm="sh" capability=12  ` +
			`capname="net_admin"`, "tare-x", "capable net_admin", false},
		{`apparmor="ALLOWED" operation="create" profile="p" pid=12 comm="sh" family="inet" sock_type="stream" protocol=0 ` +
			`requested_mask="create" denied_mask="create"`, "", "create inet stream (create)", false},
		{`apparmor="ALLOWED" operation="signal" profile="p" pid=1 comm="sh" requested_mask="send" denied_mask="send" ` +
			`signal=term peer="unconfined"`, "", "signal term unconfined (send)", false},
		{`apparmor="ALLOWED" operation="open" info="Failed name lookup - disconnected path" error=-13 profile="p" ` +
			`name="x" pid=1 comm=61`, "", "open x [Failed name lookup - disconnected path]", false},
	} {
		r, namespace, ok := parseRecord(head + c.record + "\n\x00")
		if !ok || namespace != c.namespace || r.String() != c.text || r.Enforced != c.enforced || r.Profile != "p" {
			t.Errorf("%s:\ngot %+v, %q, %t, %t", c.record, r, r.String(), r.Enforced, ok)
		}
	}
	for _, other := range []string{"", `apparmor="STATUS" operation="profile_load"`, `avc:  denied  { read }`} {
		if r, _, ok := parseRecord(head + other); ok {
			t.Errorf("%q is no refusal, and gave %+v", other, r)
		}
	}
}

// TestRefusalsAreActs: what rules can refuse is told in terms of rules.
func TestRefusalsAreActs(t *testing.T) {
	for record, want := range map[string]policy.Act{
		`operation="open" name="/etc/x" denied_mask="r"`: {Path: "/etc/x", Access: []policy.Access{policy.Read}},
		`operation="mknod" name="/a" denied_mask="c"`:    {Path: "/a", Access: []policy.Access{policy.Write}},
		`operation="exec" name="/bin/x" denied_mask="x"`: {Kind: policy.Execute, Path: "/bin/x"},
		`operation="capable" capname="syslog"`:           {Kind: policy.UseCapability, Name: "syslog"},
		`operation="mount" name="/mnt/" fstype="tmpfs" srcname="none"`: {
			Kind: policy.MountIt, Path: "none", Name: "tmpfs",
		},
		`operation="umount" name="/mnt/"`:                    {Kind: policy.Unmount, Path: "/mnt/"},
		`operation="ptrace" denied_mask="read" peer="other"`: {Kind: policy.Trace},
	} {
		r, _, ok := parseRecord(`apparmor="ALLOWED" profile="p" ` + record)
		if a, isAct := r.Act(); !ok || !isAct || !a.Same(want) {
			t.Errorf("%s: %+v, %t", record, a, isAct)
		}
	}
	if a, ok := (Refusal{Operation: "create", Denied: "create"}).Act(); ok {
		t.Errorf("a socket: %+v", a)
	}
}

func FuzzParseRecord(f *testing.F) {
	f.Add(`audit(1.2:3): apparmor="ALLOWED" operation="open" namespace="root//tare-x" profile=2F61 name="/a" pid=1`)
	f.Add(`apparmor="DENIED" name="`)
	f.Add("=== \x00 a= b")
	f.Fuzz(func(t *testing.T, text string) {
		r, namespace, ok := parseRecord(text)
		if !ok && (namespace != "" || r != Refusal{}) {
			t.Errorf("%q: no refusal, and yet %+v of %q", text, r, namespace)
		}
		_ = r.String()
	})
}

func TestObservedMakesDenyRulesReported(t *testing.T) {
	f := File{Text: "# deny this\nprofile deny {\n  deny /a r,deny \"/b deny \" w,\n  audit deny /c r,\n" +
		"\tdeny capability,\n}\n"}
	const want = "# deny this\nprofile deny {\n  audit deny /a r,audit deny \"/b deny \" w,\n  audit deny /c r,\n" +
		"\taudit deny capability,\n}\n"
	if got := f.Observed().Text; got != want {
		t.Errorf("got:\n%s", got)
	}
}

func TestParseLabel(t *testing.T) {
	for text, want := range map[string]Label{
		"unconfined\n":                  {Profile: "unconfined"},
		":tare-x://p (enforce)\n":       {Namespace: "tare-x", Profile: "p", Mode: "enforce"},
		"/usr/bin/man (complain)\n\x00": {Profile: "/usr/bin/man", Mode: "complain"},
		"a//b (c) (enforce)":            {Profile: "a//b (c)", Mode: "enforce"},
		"":                              {},
	} {
		if got := parseLabel(text); got != want {
			t.Errorf("%q: got %+v", text, got)
		}
	}
	if l := (Label{"n", "p", "complain"}); l.String() != ":n://p (complain)" {
		t.Errorf("got %s", l)
	}
}

func TestNamespaceNames(t *testing.T) {
	for _, name := range []string{
		"", "tare", "tare-", "docker", "tare-a/..", "tare-..", "tare-a b", "../tare-a", "tare-a\n",
	} {
		if Remove(name) == nil || Enter(Label{Namespace: name, Profile: "p"}) == nil || Enter(Label{Profile: name}) == nil {
			t.Errorf("%q is taken for a namespace of tare's", name)
		}
	}
	if err := checkNamespace(Namespace("20260101-abc_1")); err != nil {
		t.Error(err)
	}
	if err := Remove(Namespace("was-never-made")); err != nil {
		t.Errorf("remove what does not exist: %v", err)
	}
}
