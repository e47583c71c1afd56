package sandbox

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	sec "github.com/elastic/go-seccomp-bpf"
	"github.com/elastic/go-seccomp-bpf/arch"
	moby "github.com/moby/profiles/seccomp"
	"golang.org/x/sys/unix"

	"tare/area"
	"tare/internal/design"
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

// conditional is a profile that refuses each of these calls if one of so many conditions holds.
func conditional(names string, conditions int) string {
	args := strings.Repeat(`,{"index":0,"value":3,"op":"SCMP_CMP_EQ"}`, conditions)[1:]
	return `{"defaultAction":"SCMP_ACT_ALLOW","syscalls":[{"names":[` + names + `],"action":"SCMP_ACT_ERRNO","args":[` +
		args + `]}]}`
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
		strings.Repeat(" ", mostProfile+1): "longer than",
		conditional(`"read"`, 1025):        "syscalls[0]: its filter would have more than 4096 instructions",
		conditional(`"read","write"`, 511): "compile the seccomp filter: its filter would have more than 4096 instructions",
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
	entry := func(name, action, rest string) string {
		return `{"names":["` + name + `"],"action":"SCMP_ACT_` + action + `"` + rest + `}`
	}
	arg := func(index, value, op string) string {
		return `{"index":` + index + `,"value":` + value + `,"op":"SCMP_CMP_` + op + `"}`
	}
	masked := func(index, mask, value string) string {
		return `{"index":` + index + `,"value":` + mask + `,"valueTwo":` + value + `,"op":"SCMP_CMP_MASKED_EQ"}`
	}
	args := func(all ...string) string { return `,"args":[` + strings.Join(all, ",") + `]` }
	for _, c := range []struct {
		name, otherwise string
		entries         []string
		call            string
		args            [6]uint64
		want            sec.Action
	}{
		{"default", `ERRNO","defaultErrnoRet":38,"x":"`, nil, "read", [6]uint64{}, enosys},
		{"allowed", "ERRNO", []string{entry("read", "ALLOW", "")}, "read", [6]uint64{}, allow},
		{"its errno", "ALLOW", []string{entry("read", "ERRNO", `,"errnoRet":38`)}, "read", [6]uint64{}, enosys},
		{
			"the first without conditions", "KILL",
			[]string{entry("read", "ERRNO", ""), entry("read", "ALLOW", "")},
			"read",
			[6]uint64{},
			eperm,
		},
		{
			"one without conditions overrides", "KILL",
			[]string{entry("read", "ERRNO", args(arg("0", "7", "EQ"))), entry("read", "ALLOW", "")},
			"read",
			[6]uint64{7},
			allow,
		},
		{
			"all conditions", "ERRNO",
			[]string{entry("read", "ALLOW", args(arg("0", "7", "EQ"), arg("1", "9", "GE")))},
			"read",
			[6]uint64{7, 8},
			eperm,
		},
		{
			"any of two on one argument", "ERRNO", []string{entry("read", "ALLOW", args(arg("0", "7", "EQ"),
				arg("0", "8", "EQ")))}, "read", [6]uint64{8}, allow,
		},
		{
			"one name many times", "ERRNO",
			[]string{entry(strings.Repeat(`read","`, 999)+"read", "ALLOW", args(arg("0", "7", "EQ"), arg("0", "8", "EQ")))},
			"read",
			[6]uint64{8},
			allow,
		},
		{
			"all 64 bits", "ERRNO",
			[]string{entry("read", "ALLOW", args(arg("2", "4294967303", "EQ")))},
			"read",
			[6]uint64{0, 0, 7},
			eperm,
		},
		{
			"as the default", "ALLOW",
			[]string{entry("read", "ALLOW", args(arg("0", "1", "EQ"))), entry("write", "ERRNO", "")},
			"read",
			[6]uint64{1},
			allow,
		},
		{
			"masked", "ERRNO", []string{entry("read", "ALLOW", args(masked("0", "7", "5")))}, "read", [6]uint64{0xf0d}, allow,
		},
		{
			"masked, a bit too many", "ERRNO",
			[]string{entry("read", "ALLOW", args(masked("0", "7", "5")))},
			"read",
			[6]uint64{7},
			eperm,
		},
		{
			"masked, a bit too few", "ERRNO",
			[]string{entry("read", "ALLOW", args(masked("0", "7", "5")))},
			"read",
			[6]uint64{4},
			eperm,
		},
		{
			"masked, never", "ERRNO", []string{entry("read", "ALLOW", args(masked("0", "0", "5")))}, "read", [6]uint64{5}, eperm,
		},
		{
			"masked, always", "ERRNO",
			[]string{entry("read", "ALLOW", args(masked("0", "0", "0")))},
			"read",
			[6]uint64{5},
			allow,
		},
		{"kills", "ALLOW", []string{entry("read", "KILL_PROCESS", "")}, "read", [6]uint64{}, sec.ActionKillProcess},
		{"logs", "LOG", []string{entry("write", "ERRNO", "")}, "read", [6]uint64{}, sec.ActionLog},
		{"another call", "ALLOW", []string{entry("read", "ERRNO", "")}, "write", [6]uint64{}, allow},
	} {
		text := strings.ReplaceAll(`{"defaultAction":"SCMP_ACT_`+c.otherwise+`","syscalls":[`+strings.Join(c.entries, ",")+`]}`,
			`,"x":""`, "")
		p, err := readProfile(profileFile(t, text))
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
		{`"ptrace","mount"`, []string{"own.json refused no call that the workloads made"}, nil, area.Info},
		{
			`"ptrace","pipe2","pipe"`,
			[]string{"own.json refuses calls that were made when each workload ran once: pipe: pipe2 (EPERM)"},
			[]string{"compute:"},
			area.Warning,
		},
	} {
		path := profileFile(t, `{"defaultAction":"SCMP_ACT_ALLOW","syscalls":[{"names":[`+c.refuses+
			`],"action":"SCMP_ACT_ERRNO"}]}`)
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
	path := profileFile(t, `{"defaultAction":"SCMP_ACT_ALLOW","syscalls":[{"names":["ptrace"],"action":"SCMP_ACT_ERRNO"}]}`)
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
	text := `{"defaultAction":"SCMP_ACT_ALLOW","syscalls":[{"names":["mount"],"action":"SCMP_ACT_ERRNO"}]}`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
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
		p, err := readProfile(profileFile(t, `{"defaultAction":"SCMP_ACT_ALLOW","syscalls":[{"names":[`+names+
			`],"action":"SCMP_ACT_ERRNO","errnoRet":38}]}`))
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	strict, lax := read(`"ptrace","mount","swapon"`), read(`"ptrace"`)
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
	s.plan.policy.Profile = &Profile{Name: "stricter.json", Text: json.RawMessage(
		`{"defaultAction":"SCMP_ACT_ALLOW","syscalls":[{"names":["getppid"],"action":"SCMP_ACT_ERRNO"}]}`)}
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
