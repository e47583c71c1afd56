package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	sec "github.com/elastic/go-seccomp-bpf"
	"github.com/elastic/go-seccomp-bpf/arch"
	moby "github.com/moby/profiles/seccomp"
	"golang.org/x/sys/unix"

	"tare/area"
	"tare/areas/sandbox/apparmor"
	"tare/areas/sandbox/workload"
	"tare/internal/design"
	"tare/internal/proc"
	"tare/rigs/areatest"
	"tare/rigs/hosttest"
)

// profileFile writes a profile and returns its path.
func profileFile(t testing.TB, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "own.json")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestDockersProfileAsAFile: the profile that Docker publishes as JSON gives the same filter as the mode that has it
// built in.
func TestDockersProfileAsAFile(t *testing.T) {
	text, err := json.Marshal(moby.DefaultProfile())
	if err != nil {
		t.Fatal(err)
	}
	p, err := readProfile(profileFile(t, string(text)))
	if err != nil {
		t.Fatal(err)
	}
	got, err := filterProgram(Policy{Profile: p})
	if err != nil {
		t.Fatal(err)
	}
	want, err := filterProgram(Policy{Mode: RuntimeDefault})
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%d instructions, want the %d of RuntimeDefault (%v)", len(got), len(want), err)
	}
}

// profileOf returns a profile with a default action and, separated by semicolons, entries of names, an action with its
// errno, and conditions on arguments, of which a mask may be named: "read,write ERRNO:38 0=7 1>=9 2&7=5".
func profileOf(otherwise, entries string) string {
	condition := regexp.MustCompile(`^(\d)(&\d+)?(>?=)(\d+)$`)
	action := func(text, key, errnoKey string) string {
		name, errno, ok := strings.Cut(text, ":")
		out := `"` + key + `":"SCMP_ACT_` + name + `"`
		if ok {
			out += `,"` + errnoKey + `":` + errno
		}
		return out
	}
	var all []string
	for e := range strings.SplitSeq(entries, "; ") {
		f := strings.Fields(e)
		if len(f) == 0 {
			continue
		}
		var args []string
		for _, text := range f[2:] {
			c := condition.FindStringSubmatch(text)
			op, value := map[string]string{"=": "EQ", ">=": "GE"}[c[3]], c[4]
			if c[2] != "" {
				op, value = "MASKED_EQ", c[2][1:]+`,"valueTwo":`+c[4]
			}
			args = append(args, `{"index":`+c[1]+`,"value":`+value+`,"op":"SCMP_CMP_`+op+`"}`)
		}
		all = append(all, `{"names":["`+strings.ReplaceAll(f[0], ",", `","`)+`"],`+action(f[1], "action", "errnoRet")+
			`,"args":[`+strings.Join(args, ",")+`]}`)
	}
	return `{` + action(otherwise, "defaultAction", "defaultErrnoRet") + `,"syscalls":[` + strings.Join(all, ",") + `]}`
}

// TestProfilesThatAreRefused: what cannot be translated as it is meant is refused with the place and the reason.
func TestProfilesThatAreRefused(t *testing.T) {
	for text, want := range map[string]string{
		``:   "not a seccomp profile",
		`{}`: "defaultAction and syscalls are missing",
		`{"defaultAction":"SCMP_ACT_ALLOW","sycalls":[]}`:                                            `unknown field "sycalls"`,
		`{"defaultAction":"SCMP_ACT_ALLOW"} {}`:                                                      "something follows",
		`{"defaultAction":"SCMP_ACT_NOTIFY","syscalls":[]}`:                                          "defaultAction: action",
		`{"defaultAction":"SCMP_ACT_ERRNO","defaultErrnoRet":0}`:                                     "0 is no errno",
		`{"defaultAction":"SCMP_ACT_ERRNO","listenerPath":"/x"}`:                                     "no agent",
		`{"defaultAction":"SCMP_ACT_ALLOW","syscalls":[{"names":["read"],"action":"SCMP_ACT_MAY"}]}`: "syscalls[0]",
		`{"defaultAction":"SCMP_ACT_ALLOW","syscalls":[{"names":["read"],"action":"SCMP_ACT_ERRNO",` +
			`"args":[{"index":0,"value":3,"op":"SCMP_CMP_ABOUT"}]}]}`: `no operator "SCMP_CMP_ABOUT"`,
		`{"defaultAction":"SCMP_ACT_ALLOW","syscalls":[{"names":["read"],"action":"SCMP_ACT_ERRNO",` +
			`"args":[{"index":6,"value":3,"op":"SCMP_CMP_EQ"}]}]}`: "between 0 and 5",
		`{"defaultAction":"SCMP_ACT_ALLOW","syscalls":[{"name":"read","names":["write"],"action":"SCMP_ACT_ERRNO"}]}`: "both",
		strings.Repeat(" ", mostProfile+1):                            "longer than",
		profileOf("ALLOW", "read ERRNO"+strings.Repeat(" 0=3", 1025)): "syscalls[0]: its filter would have more than 4096",
		profileOf("ALLOW", "read,write ERRNO"+strings.Repeat(" 0=3", 511)): "compile the seccomp filter: its filter would " +
			"have more than 4096 instructions",
	} {
		if _, err := readProfile(profileFile(t, text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.100s: error %v, want %q", text, err, want)
		}
	}
	if _, err := readProfile(t.TempDir()); err == nil || !strings.Contains(err.Error(), "regular file") {
		t.Errorf("a folder: %v", err)
	}
}

// TestProfilesAreReadAsByLibseccomp compares verdicts with those that libseccomp and runc give.
func TestProfilesAreReadAsByLibseccomp(t *testing.T) {
	const (
		allow  = sec.ActionAllow
		eperm  = sec.ActionErrno | sec.Action(unix.EPERM)
		enosys = sec.ActionErrno | sec.Action(unix.ENOSYS)
	)
	for _, c := range []struct {
		name, otherwise, entries, call string
		args                           [6]uint64
		want                           sec.Action
	}{
		{"default", "ERRNO:38", "", "read", [6]uint64{}, enosys},
		{"allowed", "ERRNO", "read ALLOW", "read", [6]uint64{}, allow},
		{"its errno", "ALLOW", "read ERRNO:38", "read", [6]uint64{}, enosys},
		{"the first without conditions", "KILL", "read ERRNO; read ALLOW", "read", [6]uint64{}, eperm},
		{"one without conditions overrides", "KILL", "read ERRNO 0=7; read ALLOW", "read", [6]uint64{7}, allow},
		{"all conditions", "ERRNO", "read ALLOW 0=7 1>=9", "read", [6]uint64{7, 8}, eperm},
		{"any of two on one argument", "ERRNO", "read ALLOW 0=7 0=8", "read", [6]uint64{8}, allow},
		{
			"one name many times", "ERRNO", strings.Repeat("read,", 999) + "read ALLOW 0=7 0=8", "read", [6]uint64{8}, allow,
		},
		{"all 64 bits", "ERRNO", "read ALLOW 2=4294967303", "read", [6]uint64{0, 0, 7}, eperm},
		{"as the default", "ALLOW", "read ALLOW 0=1; write ERRNO", "read", [6]uint64{1}, allow},
		{"masked", "ERRNO", "read ALLOW 0&7=5", "read", [6]uint64{0xf0d}, allow},
		{"masked, a bit too many", "ERRNO", "read ALLOW 0&7=5", "read", [6]uint64{7}, eperm},
		{"masked, a bit too few", "ERRNO", "read ALLOW 0&7=5", "read", [6]uint64{4}, eperm},
		{"masked, never", "ERRNO", "read ALLOW 0&0=5", "read", [6]uint64{5}, eperm},
		{"masked, always", "ERRNO", "read ALLOW 0&0=0", "read", [6]uint64{5}, allow},
		{"kills", "ALLOW", "read KILL_PROCESS", "read", [6]uint64{}, sec.ActionKillProcess},
		{"logs", "LOG", "write ERRNO", "read", [6]uint64{}, sec.ActionLog},
		{"another call", "ALLOW", "read ERRNO", "write", [6]uint64{}, allow},
	} {
		p, err := readProfile(profileFile(t, profileOf(c.otherwise, c.entries)))
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		program, err := filterProgram(Policy{Profile: p})
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		info, err := arch.GetInfo("")
		if err != nil {
			t.Fatal(err)
		}
		got, err := program.nativeVerdict(uint32(info.SyscallNames[c.call]), c.args)
		if err != nil || got != c.want {
			t.Errorf("%s: the action is %#x (%v), want %#x", c.name, uint32(got), err, uint32(c.want))
		}
	}
}

// FuzzProfile: no text makes the reader panic, and what it accepts compiles or says why not.
func FuzzProfile(f *testing.F) {
	text, _ := json.Marshal(moby.DefaultProfile())
	f.Add(text)
	f.Add([]byte(`{"defaultAction":"SCMP_ACT_ERRNO","syscalls":[{"names":["read"],"action":"SCMP_ACT_ALLOW"}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		p := &Profile{Name: "fuzzed.json", Text: text}
		policy, err := p.policy()
		if err != nil {
			return
		}
		program, err := compile(policy)
		if err != nil {
			return
		}
		if _, err := program.nativeVerdict(0, [6]uint64{}); err != nil {
			t.Errorf("a compiled program does not run: %v", err)
		}
	})
}

// TestProfilesAreTriedBeforeTheRun: Preflight names the calls of each operation that a profile refuses, and proves the
// profile in a worker.
func TestProfilesAreTriedBeforeTheRun(t *testing.T) {
	requireEnforcer(t, enforcerSeccomp)
	for _, c := range []struct {
		refuses   string
		want, not []string
		severity  area.Severity
	}{
		{"ptrace,mount", []string{"own.json refused no call that the workloads made"}, nil, area.Info},
		{
			"ptrace,pipe2,pipe",
			[]string{"own.json refuses calls that were made when each workload ran once: pipe: pipe2 (EPERM)"},
			[]string{"compute:"},
			area.Warning,
		},
	} {
		path := profileFile(t, profileOf("ALLOW", c.refuses+" ERRNO"))
		levels := map[string]string{factorEnforcer: enforcerSeccomp, factorProfile: path}
		spec := &Spec{Workloads: []string{"compute", "pipe"}}
		env := areatest.Env(t)
		env.Treatments = []design.Treatment{{ID: design.ID(levels), Levels: levels}}
		var texts []string
		for _, f := range (Area{}).Preflight(t.Context(), spec, env) {
			texts = append(texts, f.Severity.String()+" "+f.Message)
		}
		all := strings.Join(texts, "\n")
		tg, _ := areatest.Open[*target](t, Area{}, spec, env)
		if notes := strings.Join(tg.Notes(), "\n"); !strings.Contains(notes, c.want[0]) {
			t.Errorf("the run does not note %q: %s", c.want[0], notes)
		}
		for _, w := range c.want {
			if !strings.Contains(all, w) || !strings.Contains(all, c.severity.String()) {
				t.Errorf("refusing %s: %s; want %q", c.refuses, all, w)
			}
		}
		for _, w := range c.not {
			if strings.Contains(all, w) {
				t.Errorf("refusing %s: %s; do not want %q", c.refuses, all, w)
			}
		}
	}
}

// TestContentsOfProfiles: a profile that was edited is another file, and so may not measure further blocks of a run.
func TestContentsOfProfiles(t *testing.T) {
	path := profileFile(t, profileOf("ALLOW", "ptrace ERRNO"))
	tr := treatment(factorEnforcer, enforcerSeccomp, factorProfile, path)
	contents := func(all ...design.Treatment) map[string]string {
		c, err := Area{}.Contents(&Spec{}, all)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	before := contents(baseline(), tr)
	if len(before) != 1 || contents(baseline()) != nil {
		t.Errorf("contents %v, and without a profile %v", before, contents(baseline()))
	}
	if err := os.WriteFile(path, []byte(profileOf("ALLOW", "mount ERRNO")), 0o600); err != nil {
		t.Fatal(err)
	}
	if after := contents(tr); reflect.DeepEqual(before, after) {
		t.Errorf("contents are still %v", after)
	}
}

// TestAProfileThatIsNotInForceIsFound: the proof of a profile fails in a worker that is under another one.
func TestAProfileThatIsNotInForceIsFound(t *testing.T) {
	requireEnforcer(t, enforcerSeccomp)
	read := func(names string) *Profile {
		p, err := readProfile(profileFile(t, profileOf("ALLOW", names+" ERRNO:38")))
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	strict, lax := read("ptrace,mount,swapon"), read("ptrace")
	e := mixedUp{seccompFilter{}, Policy{Enforcer: enforcerSeccomp, Profile: strict}}
	cpus, err := workerCPUs(areatest.Env(t), 1)
	if err != nil {
		t.Fatal(err)
	}
	l := launcher{self: areatest.Env(t).Self, cpus: cpus}
	if err := tryPolicy(t.Context(), stack{e.Enforcer}, e.want, l); err != nil {
		t.Errorf("in force: %v", err)
	}
	err = tryPolicy(t.Context(), stack{e}, Policy{Enforcer: enforcerSeccomp, Profile: lax}, l)
	if err == nil || !strings.Contains(err.Error(), "mount must be refused with ENOSYS") ||
		!strings.Contains(err.Error(), "swapon") || strings.Contains(err.Error(), "ptrace") {
		t.Errorf("not in force: %v", err)
	}
}

// TestServersProveTheirProfile: where only servers run, a profile need not allow what tare's worker needs. Each server
// proves it in its own process.
func TestServersProveTheirProfile(t *testing.T) {
	requireEnforcer(t, enforcerSeccomp)
	hosttest.Program(t, "nginx", "nginx-light")
	docker := moby.DefaultProfile()
	for _, entry := range docker.Syscalls { // without this call no Go program starts
		entry.Names = slices.DeleteFunc(entry.Names, func(n string) bool { return n == "sigaltstack" })
	}
	text, err := json.Marshal(docker)
	if err != nil {
		t.Fatal(err)
	}
	tr := treatment(factorEnforcer, enforcerSeccomp, factorProfile, profileFile(t, string(text)))
	env := areatest.Env(t)
	env.Treatments = []design.Treatment{tr}
	for _, workloads := range [][]string{nil, {"open"}} {
		var failed []string
		for _, f := range (Area{}).Preflight(t.Context(), &Spec{Real: []string{"nginx"}, Workloads: workloads}, env) {
			if f.Severity == area.Error {
				failed = append(failed, f.Message)
			}
		}
		if want := len(workloads) > 0; want != (len(failed) > 0) {
			t.Errorf("with the workloads %v: errors %q", workloads, failed)
		}
	}
	tg, _ := prepared(t, &Spec{Real: []string{"nginx"}}, tr)
	enter(t, tg, tr)
	if err := tg.Verify(t.Context(), tr); err != nil {
		t.Error(err)
	}
	s := tg.arms[tr.ID].sample
	s.plan.policy.Profile = &Profile{Name: "stricter.json", Text: []byte(profileOf("ALLOW", "getppid ERRNO"))}
	if err := tg.Verify(t.Context(), tr); err == nil || !strings.Contains(err.Error(), "nginx") ||
		!strings.Contains(err.Error(), "getppid") {
		t.Errorf("under another profile: %v", err)
	}
}

// mixedUp proves another policy than the one in force.
type mixedUp struct {
	Enforcer
	want Policy
}

func (m mixedUp) Prove(x *proof, p Policy) {
	m.want.Scratch = p.Scratch
	m.Enforcer.Prove(x, m.want)
}

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
