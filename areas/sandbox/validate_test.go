package sandbox

import (
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"

	"tare/area"
	"tare/areas/sandbox/vm"
	"tare/internal/design"
	"tare/rigs/areatest"
)

// specOf decodes a section.
func specOf(t *testing.T, text string) *Spec {
	t.Helper()
	s := &Spec{}
	if err := yaml.Unmarshal([]byte(text), s); err != nil {
		t.Fatal(err)
	}
	return s
}

// TestValidate names what is wrong with a section.
func TestValidate(t *testing.T) {
	for _, c := range []struct{ section, path, says string }{
		{"workloads: [open]", "", ""},
		{"{workloads: [" + strings.Join(kinds(), ", ") + "], commands: [{name: a, run: [a]}, {name: b, run: [b]}], " +
			"real: [redis, nginx, sysbench], rounds: 5, span: 1s}", "", ""},
		{"{}", "workloads", "name something to time"},
		{"workloads: [open, excc]", "workloads[1]", `did you mean "exec"?`},
		{"workloads: [banana]", "workloads[0]", `there is no workload "banana"; there are exec,`},
		{"workloads: [open, open]", "workloads[1]", "already"},
		{"{workloads: [open], commands: [{name: open, run: [a]}]}", "commands[0].name", "already"},
		{"commands: [{name: command, run: [a]}]", "commands[0].name", "already"},
		{"commands: [{name: a.b, run: [a]}]", "commands[0].name", "so that budgets can name it"},
		{"commands: [{name: a}]", "commands[0]", "needs a program"},
		{"real: [rediss]", "real[0]", `did you mean "redis"?`},
		{"{real: [redis, redis-get, apache-1000], connections: [1, 500]}", "", ""},
		{"real: [apache-1001]", "real[0]", `there is no real workload "apache-1001"`},
		{"{real: [redis], connections: [50, 1001]}", "connections[1]", "1001 connections: want 1 to 1000"},
		{"{real: [redis], connections: [0]}", "connections[0]", "0 connections: want 1 to 1000"},
		{"{real: [redis, redis-50], connections: [50]}", "real", `"redis-50" is real already`},
		{"{real: [sysbench, redis-50], connections: [50]}", "connections", "no server in real that takes the number"},
		{"real: [sysbench, sysbench-cpu]", "real", "already"},
		{"{workloads: [open], span: 1us}", "span", "want 1ms to 10s"},
		{"setup: [confine]", "", ""},
		{"setup: [confin]", "setup[0]", "there is no set-up cost"},
		{"setup: [start, start]", "setup[1]", "already"},
	} {
		found := areatest.Validate(specOf(t, c.section), "", nil)
		areatest.WantFinding(t, c.section, found, area.Finding{Path: c.path, Severity: area.Error, Message: c.says})
	}
}

// TestLevels names what is wrong with the levels of treatments, which stand between bars.
func TestLevels(t *testing.T) {
	const (
		open    = "workloads: [open]"
		lab     = "{workloads: [open], on: lab}"
		pair    = "commands: [{name: a, run: [a]}, {name: b, run: [b]}]"
		confine = "setup: [confine]"
		rules   = "an unconfined process has no rules"
		every   = `planted: "1000 instructions": the kernel would execute them at each open of every process of this host; ` +
			"add on: lab"
	)
	replaced := strings.NewReplacer(
		"PROFILE", profileFile(t, profileOf("ALLOW", "ptrace ERRNO")),
		"HARMLESS", profileFile(t, profileOf("ALLOW", "flock ERRNO")),
		"EMPTY", profileFile(t, profileOf("ALLOW", "")),
		"PARTITIONS", rulesFile(t, "files: [{path: /proc/partitions, access: [read]}]\n"),
		"EXECS", rulesFile(t, "execs: [/bin/nc]\n"),
		"ADDRESSES", rulesFile(t, "connects: [169.254.169.254]\nexecs: [/bin/x]\n"),
	)
	for _, c := range []struct {
		section, levels, says string // says: empty: nothing is wrong
		q                     design.Question
	}{
		{open, "enforcer=landlock, rules=0 | enforcer=landlock, rules=2000", "", design.Scale},
		{open, "enforcer=secomp", `did you mean "seccomp"?`, ""},
		{open, "enforcer=none, rule=1", `did you mean "rules"?`, ""},
		{open, "enforcer=seccomp, mode=RuntimeDefalt", `did you mean "RuntimeDefault"?`, ""},
		{open, "enforcer=landlock, rules=-1", "not a number from 0 on", ""},
		{open, "enforcer=seccomp, rules=1000", "no more system calls", ""},
		{open, "enforcer=landlock, rules=10001", "up to 10000", ""},
		{open, "enforcer=none, rules=5", "rules: not expressible", ""},
		{open, "enforcer=none, mode=AlwaysAllow", "mode: not expressible", ""},
		{open, "enforcer=none, rules=0, match=0, planted=0%", "", ""},
		{open, "enforcer=seccomp, match=2", "match: not expressible by seccomp", ""},
		{open, "enforcer=landlock, match=2", "match: not expressible by landlock", ""},
		{open, "enforcer=landlock, mode=RuntimeDefault", "landlock cannot express RuntimeDefault", ""},
		{open, "enforcer=landlock, mode=EnhanceProtect", "landlock cannot express EnhanceProtect", ""},
		{open, "enforcer=seccomp, mode=EnhanceProtect", "seccomp cannot express EnhanceProtect", ""},
		{open, "planted=2", "planted: ", ""},
		{open, "planted=0.01%", "too fine", ""},
		{open, "planted=2000%", "cannot be planted", ""},
		{pair, "command=a | command=b", "", ""},
		{pair, "command=a | command=c", `command: there is no "c"`, ""},
		{pair, "enforcer=none | command=b", "cannot be compared with", ""},

		{confine, "others=1001", "others: up to 1000 policies", ""},
		{"setup: [memory]", "others=1", "others: not with memory in setup", ""},
		{"setup: [load]", "enforcer=seccomp", "setup: load: seccomp loads nothing", ""},
		{"setup: [load]", "enforcer=apparmor | enforcer=bpf, mode=Unconfined | enforcer=none", "", ""},
		{
			confine, "enforcer=apparmor+bpf, others=1 | enforcer=apparmor+seccomp, others=1",
			"others: some enforcers of the stack", "",
		},
		{"{setup: [confine], on: lab}", "enforcer=selinux", "setup: selinux cannot confine a single thread", ""},
		{confine, "others=-1", "others: ", ""},

		{open, "workers=2", "", ""},
		{"{workloads: [open], setup: [confine]}", "workers=1", "", ""},
		{
			"{workloads: [open], commands: [{name: a, run: [a]}]}", "workers=2",
			"workers: only workloads run in several workers at once: the processes", "",
		},
		{"real: [redis]", "workers=2", "a server of real shares", ""},
		{"setup: [start]", "workers=2", "setup is measured one thread", ""},
		{open, "workers=0", "not a number from 1", ""},
		{open, "workers=x", "not a number from 1", ""},

		{open, "enforcer=landlock, rights=files+network+scopes, rules=9", "", ""},
		{open, "enforcer=landlock+seccomp, rights=network, rules=9", "", ""},
		{open, "enforcer=landlock, rights=network, rules=9", "", ""},
		{open, "enforcer=landlock, rights=net", `rights: there is no "net"`, ""},
		{open, "enforcer=landlock, rights=files+files", "rights: files is named twice", ""},
		{open, "enforcer=landlock, rights=scopes, rules=1", "rules: scopes have no rules", ""},
		{open, "enforcer=seccomp, rights=network", "rights: only landlock", ""},
		{open, "enforcer=none, rights=files", "rights: only landlock", ""},

		{lab, "enforcer=selinux", "", ""},
		{lab, "enforcer=selinux, mode=Unconfined", "", ""},
		{lab, "enforcer=selinux, mode=RuntimeDefault", "", ""},
		{lab, "enforcer=landlock+selinux+seccomp, mode=AlwaysAllow", "", ""},
		{lab, "enforcer=selinux, rules=PARTITIONS", "", ""},
		{open, "enforcer=selinux", "add on: lab to the target", ""},
		{"{workloads: [open], on: host}", "enforcer=selinux+seccomp", "add on: lab to the target", ""},
		{lab, "enforcer=selinux+apparmor", "SELinux or AppArmor, not both", ""},
		{lab, "enforcer=selinux, rules=3", "takes a file of rules, not a number", ""},
		{lab, "enforcer=selinux, match=2", "there is no near miss", ""},
		{lab, "enforcer=selinux, mode=Unconfined, rules=PARTITIONS", "leave rules out", ""},
		{lab, "enforcer=selinux, profile=EMPTY", "only seccomp and apparmor take a profile", ""},
		{lab, "enforcer=selinux, rules=EXECS", "selinux cannot express all of", ""},

		{lab, "enforcer=bpf, match=3", "match: paths can share up to 2 components here, not 3", ""},
		{lab, "enforcer=apparmor, match=3", "match: paths can share up to 2 components here, not 3", ""},
		{lab, "enforcer=bpf, match=2, rules=8", "", ""},
		{lab, "enforcer=bpf, profile=PROFILE", "profile: ", ""},
		{lab, "enforcer=apparmor, profile=PROFILE", "profile: ", ""},
		{lab, "enforcer=bpf+apparmor, profile=PROFILE", "profile: not with several enforcers", ""},
		{lab, "enforcer=bpf, mode=Unconfined", "", ""},
		{lab, "enforcer=bpf, mode=Unconfined, rules=1", rules, ""},
		{lab, "enforcer=bpf, mode=Unconfined, match=1", rules, ""},
		{lab, "enforcer=bpf, mode=Unconfined, rules=ADDRESSES", rules, ""},
		{lab, "enforcer=apparmor, mode=Unconfined", "mode: Unconfined", ""},
		{lab, "enforcer=seccomp, mode=Unconfined", "mode", ""},
		{lab, "enforcer=landlock, mode=Unconfined", "mode", ""},
		{lab, "enforcer=bpf, rules=ADDRESSES", "", ""},
		{lab, "enforcer=apparmor, rules=ADDRESSES", "connects[0] (169.254.169.254)", ""},
		{lab, "enforcer=apparmor+bpf, rules=ADDRESSES", "apparmor cannot express all of ADDRESSES", ""},
		{lab, "enforcer=seccomp, rules=ADDRESSES", "rules", ""},
		{lab, "enforcer=landlock, rules=ADDRESSES", "rules", ""},
		{lab, "enforcer=bpf, rules=128", "", ""},
		{lab, "enforcer=bpf, rules=129", "bpf takes at most 128 rules of a kind, not 129", ""},
		{lab, "enforcer=bpf, mode=RuntimeDefault, rules=128", "bpf takes at most 128 rules of a kind, not 135", ""},
		{lab, "enforcer=bpf, rules=1099511627776", "rules: ", ""},
		{lab, "enforcer=apparmor, rules=129", "", ""},
		{lab, "enforcer=apparmor, rules=1099511627776", "rules: ", ""},
		{lab, "enforcer=bpf, rights=network", "rights", ""},

		// A profile is the whole policy.
		{open, "enforcer=seccomp, profile=PROFILE, mode=RuntimeDefault", "takes the place of a mode", ""},
		{open, "enforcer=seccomp, profile=PROFILE, rules=3", "add them to the profile", ""},
		{open, "enforcer=landlock, profile=PROFILE", "only seccomp", ""},
		{open, "profile=PROFILE", "only seccomp", ""},
		{open, "enforcer=seccomp, profile=PROFILEx", "no such file", ""},
		{open, "enforcer=seccomp, profile=HARMLESS", "nothing would prove", ""},

		{open, "kernel=6.1", "on: lab", ""},
		{lab, "kernel=6.1", "", ""},
		{open, "planted=1000 instructions", every, ""},
		{"{workloads: [open], on: host}", "planted=1000 instructions", every, ""},
		{lab, "planted=100001 instructions", "planted: want 0 to 100000 instructions", ""},
		{lab, "planted=-1 instructions", "planted: want 0 to 100000 instructions", ""},
		{lab, "planted=1k instructions", "planted: want 0 to 100000 instructions", ""},
		{lab, "planted=1000 instruction", "planted: want 0 to 100000 instructions", ""},
		{lab, "planted=1000", "planted: ", ""},

		{"real: [nginx]", "enforcer=seccomp", "calls of workloads", design.Guard},
		{open, "enforcer=none", "refuses nothing", design.Guard},
		{open, "enforcer=seccomp, planted=2%", "planted and others", design.Guard},
		{"real: [nginx]", "enforcer=none | enforcer=seccomp, planted=2% | enforcer=seccomp", "", design.Compare},
	} {
		var all [][]string
		for one := range strings.SplitSeq(replaced.Replace(c.levels), " | ") {
			all = append(all, strings.FieldsFunc(strings.ReplaceAll(one, ", ", "="), func(r rune) bool { return r == '=' }))
		}
		found := areatest.Validate(specOf(t, c.section), c.q, all)
		want := area.Finding{Severity: area.Error, Message: replaced.Replace(c.says)}
		areatest.WantFinding(t, c.section+" under "+c.levels, found, want)
	}
}

// TestMachinesOfTheirOwn: BPF programs, SELinux and planted programs act on all processes of a machine. SELinux
// excludes AppArmor, and the notes say what comparing with another machine contains.
func TestMachinesOfTheirOwn(t *testing.T) {
	tg := &labTarget{}
	seen := map[string]bool{}
	for _, k := range []labKind{
		{selinux: true},
		{},
		{bpf: true},
		{planted: plantedProgram{true, 0}},
		{planted: plantedProgram{true, 10}},
		{bpf: true, planted: plantedProgram{true, 10}},
	} {
		k.kernel = vm.Kernel{Release: "6.1"}
		seen[k.name()] = true
		want := labSecurity
		if k.selinux {
			want = "landlock,lockdown,yama,selinux,bpf"
		}
		if got := k.security(); got != want {
			t.Errorf("%s: %s, want %s", k.name(), got, want)
		}
		tg.machines = append(tg.machines, &labMachine{labKind: k})
		if n := strings.Join(tg.Notes(), "\n"); strings.Contains(n, "mode: Unconfined") != (len(seen) > 1) {
			t.Errorf("%d machines: %s", len(seen), n)
		}
	}
	if len(seen) != 6 {
		t.Errorf("the names of six machines: %v", seen)
	}
}

func TestPlantedPrograms(t *testing.T) {
	for _, c := range []struct {
		on, level string
		want      plantedProgram
	}{
		{onLab, "1000 instructions", plantedProgram{true, 1000}},
		{onGuest, "0 instructions", plantedProgram{true, 0}},
		{onLab, "2%", plantedProgram{}},
	} {
		p, err := (&Spec{On: c.on}).plan(treatment(factorEnforcer, enforcerNone, factorPlanted, c.level))
		if err != nil || p.program != c.want {
			t.Errorf("%s on %q: %+v, %v; want %+v", c.level, c.on, p.program, err, c.want)
		}
	}
}
