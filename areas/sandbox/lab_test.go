package sandbox

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"tare/area"
	"tare/areas/sandbox/vm"
	"tare/areas/sandbox/vm/shell"
	"tare/areas/sandbox/workload"
	"tare/internal/design"
	"tare/internal/kit/remote"
	"tare/internal/load"
	"tare/internal/metric"
	"tare/rigs/areatest"
	"tare/rigs/hosttest"
)

// thenShell is the line after which a guest of the tests has a shell in place of its agent.
const thenShell = "shell\n"

// serveGuest lets a test binary be the program of a lab VM, as tare's binary is: it returns unless it runs in one.
func serveGuest() {
	if len(os.Args) < 3 || os.Args[1] != "lab" {
		return
	}
	var err error
	switch ctx := context.Background(); os.Args[2] {
	case "shell":
		err = shell.Serve(ctx, os.Stdin, os.Stdout)
	case "init":
		err = vm.Init(ctx, os.Stderr, os.Args[0], append([]string{"lab"}, os.Args[3:]...)...)
	case "agent":
		log := slog.New(slog.NewTextHandler(os.Stderr, nil))
		in := &untilShell{lines: bufio.NewReader(os.Stdin)}
		if err = remote.Serve(ctx, Area{}, log, in, os.Stdout); err == nil {
			err = shell.Serve(ctx, in.lines, os.Stdout)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// untilShell reads the lines before thenShell.
type untilShell struct {
	lines *bufio.Reader
	rest  []byte // of a line
}

func (r *untilShell) Read(b []byte) (n int, err error) {
	if len(r.rest) == 0 {
		if r.rest, err = r.lines.ReadBytes('\n'); err != nil {
			return 0, err
		}
		if string(r.rest) == thenShell {
			return 0, io.EOF
		}
	}
	n = copy(b, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// emulated holds a place for each test that may have emulated lab VMs at a time, of which one takes a processor.
var emulated = make(chan struct{}, 2)

// requireLab skips the test where no lab VM can be booted, or a guest would lack a program of this host. It returns an
// environment in which one can. The test then runs beside others.
func requireLab(t *testing.T, program, packages string) area.Env {
	t.Helper()
	hosttest.SkipIfShort(t)
	env := areatest.Env(t)
	env.Getenv = os.LookupEnv
	hosttest.Program(t, program, packages)
	if _, err := vm.Emulator(); err != nil {
		hosttest.Missing(t, err.Error(), "apt-get install qemu-system-x86")
	}
	all, err := vm.Kernels(env.Getenv)
	if err != nil || len(all) == 0 {
		hosttest.Missing(t, "there is no kernel for the lab VM", "unpack one: areas/sandbox/docs/lab.md")
	}
	t.Parallel()
	emulated <- struct{}{}
	t.Cleanup(func() { <-emulated })
	return env
}

// A lab is a target whose machines are used again, for another section and other treatments: a boot takes longer than
// most of what is measured.
type lab struct {
	*labTarget

	journal *areatest.Journal
}

// openLabs opens a lab whose machines have what all sections and treatments need.
func openLabs(t *testing.T, env area.Env, all *Spec, treatments ...design.Treatment) lab {
	t.Helper()
	env.Treatments = treatments
	tg, j := areatest.Open[*labTarget](t, Area{}, all, env)
	tg.journal = j
	if _, err := tg.initrd(t.Context()); err != nil {
		t.Fatal(err)
	}
	return lab{tg, j}
}

// use opens the section, until the end of the test, in machines that run. Prepare boots those that are missing.
func (l lab) use(t *testing.T, spec *Spec, treatments ...design.Treatment) {
	t.Helper()
	idle := l.machines
	l.spec, l.env.Treatments, l.of, l.notes, l.machines = spec, treatments, map[string]*labMachine{}, nil, nil
	t.Cleanup(func() {
		for _, m := range l.machines {
			if m.target != nil {
				if err := m.target.Close(context.WithoutCancel(t.Context())); err != nil {
					t.Error(err)
				}
			}
		}
		l.machines = append(l.machines, idle...)
	})
	seen := map[labKind]bool{}
	for _, tr := range treatments {
		kind, err := l.kindOf(tr)
		if err != nil {
			t.Fatal(err)
		}
		if seen[kind] || len(idle) == 0 {
			continue
		}
		seen[kind] = true
		m := idle[0]
		m.labKind, m.holdsBaseline, idle = kind, false, idle[1:]
		l.machines = append(l.machines, m)
		if err := l.open(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
}

// inEach puts each treatment in force, proves it, and measures n operations there.
func (l lab) inEach(t *testing.T, n int, measure func(tr design.Treatment, ops []load.Operation)) {
	t.Helper()
	for _, tr := range l.env.Treatments {
		ctx := t.Context()
		var err error
		if l.of[tr.ID] == nil {
			err = l.Prepare(ctx, tr, l.journal)
		}
		if err := errors.Join(err, l.Enter(ctx, tr), l.Verify(ctx, tr)); err != nil {
			t.Errorf("%s: %v", tr.ID, err)
			continue
		}
		ops, err := l.Operations(tr)
		if err != nil || len(ops) != n {
			t.Fatalf("%s: %d operations: %v", tr.ID, len(ops), err)
		}
		measure(tr, ops)
		if err := l.Leave(ctx, tr); err != nil {
			t.Errorf("%s: leave: %v", tr.ID, err)
		}
	}
}

// instructionsOf makes a batch and returns the instructions of one call.
func instructionsOf(t *testing.T, o load.Operation, n int) float64 {
	t.Helper()
	s, err := o.Batch(t.Context(), n)
	if err != nil || len(s) != 1 || s[0].Metric != metric.Instructions.Name || s[0].Value <= 0 {
		t.Fatalf("%s: %+v, %v", o.Name, s, err)
	}
	return s[0].Value
}

func (l lab) wantNotes(t *testing.T, want ...string) {
	t.Helper()
	notes := strings.Join(l.Notes(), "\n")
	for _, w := range want {
		if !strings.Contains(notes, w) {
			t.Errorf("want %q in:\n%s", w, notes)
		}
	}
}

// TestLab measures in lab VMs whose kernel has AppArmor and BPF.
func TestLab(t *testing.T) {
	env := requireLab(t, "apparmor_parser", "apparmor")
	own := rulesFile(t, "files: [{path: /etc/passwd, access: [read]}, {path: /proc/version, access: [read]}]\n"+
		"execs: [/usr/bin/no-such-program]\ncapabilities: [syslog]\n")
	stacks, mild, hard := labStacks(own), appArmorLevel(t, "", ""), appArmorLevel(t, strictRules, "#web")
	tail := Command{
		Name: "tail", Run: []string{"head", "-q", "-n1", "/proc/uptime"},
		Prepare: []string{"sh", "-c", "head /proc/version /proc/loadavg; :"},
	}
	all := &Spec{On: onLab, Workloads: []string{"open", "syscall"}, Commands: []Command{tail}}
	if apache := (&Spec{Real: []string{"apache-20"}}); len(apache.missing()) == 0 { // a program with modules
		all.Real = apache.Real
	}
	l := openLabs(t, env, all, append(stacks, mild, hard)...)
	t.Run("stacks", func(t *testing.T) { l.testStacks(t, stacks) })
	t.Run("planted program", l.testPlanted)
	t.Run("figures", func(t *testing.T) { l.testFigures(t, all.Real) })
	t.Run("AppArmor files", func(t *testing.T) { l.testAppArmorFiles(t, tail, mild, hard) })
	t.Run("undo after a kill", l.testUndo)
}

// labStacks returns each stack of enforcers, and each kind of rules.
func labStacks(own string) []design.Treatment {
	out := []design.Treatment{baseline()}
	for _, s := range []string{
		enforcerSeccomp, enforcerLandlock, enforcerBPF, enforcerAppArmor, "bpf+seccomp", "apparmor+seccomp", "bpf+landlock",
		"apparmor+bpf", "apparmor+bpf+landlock+seccomp", // testFigures has landlock+seccomp
	} {
		out = append(out, treatment(factorEnforcer, s))
	}
	for _, e := range []string{enforcerBPF, enforcerAppArmor} {
		out = append(
			out,
			treatment(factorEnforcer, e, factorMode, string(RuntimeDefault)),
			treatment(factorEnforcer, e, factorMode, string(EnhanceProtect)),
			treatment(factorEnforcer, e, factorRules, "8", factorMatch, "1"),
			treatment(factorEnforcer, e, factorRules, "50", factorMatch, "2"),
			treatment(factorEnforcer, e, factorRules, own),
			treatment(factorEnforcer, e, factorOthers, "30"),
		)
	}
	return append(out, treatment(factorEnforcer, enforcerBPF, factorMode, string(Unconfined)))
}

// testStacks proves and measures each stack: in a worker and in threads that are confined for set-up costs. What the
// user's rules refuse is named, and more enforcement takes more instructions of an open.
func (l lab) testStacks(t *testing.T, stacks []design.Treatment) {
	l.use(t, &Spec{
		On: onLab, Workloads: []string{"open"}, SetUp: []string{workload.KindConfine},
		Commands: []Command{{Name: "version", Run: []string{"sh", "-c", "read x < /proc/version; :"}}},
	}, stacks...)
	cost := map[string]float64{}
	l.inEach(t, 3, func(tr design.Treatment, ops []load.Operation) {
		instructionsOf(t, ops[1], 5)
		cost[tr.ID] = instructionsOf(t, ops[0], 500)
	})
	if len(l.machines) != 2 {
		t.Errorf("%d machines, want one with BPF programs and one without", len(l.machines))
	}
	const refuses = " refuses accesses that were made when each workload ran once: version: open /proc/version (read) " +
		"by files[1]"
	l.wantNotes(t, "own.yaml under bpf"+refuses, "own.yaml under apparmor"+refuses)
	id := func(levels ...string) string { return treatment(append([]string{factorEnforcer}, levels...)...).ID }
	none, all := baseline().ID, id("apparmor+bpf+landlock+seccomp")
	eight := id(enforcerBPF, factorRules, "8", factorMatch, "1")
	for _, c := range [][2]string{ // those that differ by more than what the placement of a worker's memory makes
		{none, id(enforcerLandlock)},
		{none, id(enforcerAppArmor)},
		{none, id(enforcerBPF, factorMode, string(RuntimeDefault))},
		{id(enforcerAppArmor), all},
		{id("bpf+landlock"), all},
		{id(enforcerBPF), eight},
		{eight, id(enforcerBPF, factorRules, "50", factorMatch, "2")},
	} {
		if less, more := cost[c[0]], cost[c[1]]; less == 0 || more <= less {
			t.Errorf("an open takes %.0f instructions under %s and %.0f under %s: want more", less, c[0], more, c[1])
		}
	}
	t.Logf("instructions of an open: %v", cost)
}

// testPlanted: a program of known length costs as many instructions as it has, compared with an empty one.
func (l lab) testPlanted(t *testing.T) {
	const planted = 20_000 // far more than what the placement of memory makes
	base := treatment(factorEnforcer, enforcerNone, factorPlanted, "0 instructions")
	more := treatment(factorEnforcer, enforcerNone, factorPlanted, "20000 instructions")
	base.Baseline = true
	l.use(t, &Spec{On: onLab, Workloads: []string{"open"}}, base, more)
	cost := map[string]float64{}
	for range 3 { // workers, of which the least counts: the placement of their memory differs
		l.inEach(t, 1, func(tr design.Treatment, ops []load.Operation) {
			// Batches of a few milliseconds, as in runs: of long system calls these were charged to other threads in part.
			for range 3 {
				now := instructionsOf(t, ops[0], 200)
				if before := cost[tr.ID]; before == 0 || now < before {
					cost[tr.ID] = now
				}
			}
		})
	}
	got := cost[more.ID] - cost[base.ID]
	t.Logf("an open takes %v instructions, %.0f more with %d planted", cost, got, planted)
	if got < planted*0.95 || got > planted*1.05 {
		t.Errorf("%d planted instructions cost %.0f, want them within 5 %%", planted, got)
	}
}

// testFigures: the same call takes the same number of instructions, and more under enforcers.
func (l lab) testFigures(t *testing.T, daemons []string) {
	bare, both := baseline(), treatment("enforcer", "landlock+seccomp")
	l.use(t, &Spec{On: onLab, Workloads: []string{"open", "syscall"}, Real: daemons}, bare, both)
	per := map[string]float64{}
	l.inEach(t, 2+len(daemons), func(tr design.Treatment, ops []load.Operation) {
		for _, o := range ops {
			if o.Whole > 1 { // threads take turns by chance
				if n := instructionsOf(t, o, o.Whole); n < 20_000 || n > 2_000_000 {
					t.Errorf("%s under %s: %.0f instructions", o.Name, tr.ID, n)
				}
				continue
			}
			before, now := instructionsOf(t, o, 2000), instructionsOf(t, o, 2000)
			if now > before*1.05 || now < before*.95 {
				t.Errorf("%s under %s: %.0f instructions, then %.0f", o.Name, tr.ID, before, now)
			}
			per[tr.ID+o.Name] = now
		}
	})
	for _, o := range []string{"open", "syscall"} {
		if less, more := per[bare.ID+o], per[both.ID+o]; more < less*1.1 {
			t.Errorf("%s: %.0f instructions under both, %.0f under none: want at least 10 %% more", o, more, less)
		}
	}
	l.wantNotes(t, "guest instructions") // what the figures are
}

// strictRules refuse what may prove them.
const strictRules = "  deny /proc/kcore r,\n  deny /proc/version r,\n  audit deny /proc/loadavg r,\n"

// appArmorLevel writes a file with the profile web, which allows the most but what the rules say. It returns the
// treatment that names it, with what follows the path.
func appArmorLevel(t *testing.T, rules, after string) design.Treatment {
	t.Helper()
	path := appArmorFile(t, "profile web {\n  file,\n  capability,\n  network,\n  signal,\n  unix,\n"+rules+"}\n")
	return treatment("enforcer", "apparmor", "profile", path+after)
}

// testAppArmorFiles measures two files whose profiles have the same name. Before anything is timed, what each would
// refuse is named; what it refuses proves it.
func (l lab) testAppArmorFiles(t *testing.T, tail Command, mild, hard design.Treatment) {
	l.use(t, &Spec{On: onLab, SetUp: []string{"load"}, Commands: []Command{tail}}, baseline(), mild, hard)
	per := map[string]float64{}
	l.inEach(t, 2, func(tr design.Treatment, ops []load.Operation) { per[tr.ID] = instructionsOf(t, ops[0], 30) })
	if bare := per[baseline().ID]; per[mild.ID] < 10*bare || per[hard.ID] < 10*bare {
		t.Errorf("instructions to load a profile: %v", per)
	}
	const enforced = ": the kernel says that the profile is in enforce mode"
	l.wantNotes(
		t,
		"profile web of own.apparmor refuses accesses that were made when each workload ran once: tail: "+
			"open /proc/version (r), open /proc/loadavg (r)",
		"profile web of own.apparmor refused no access that the workloads made",
		hard.ID+enforced+", and it refuses to open /proc/kcore, /proc/version",
		mild.ID+enforced+"; no refusal proves it",
	)
}

// testUndo forgets machines that run, as a killed run does: the journal suffices to end them.
func (l lab) testUndo(t *testing.T) {
	if len(l.machines) == 0 {
		l.use(t, &Spec{On: onLab, Workloads: []string{"open"}}, baseline())
		if err := l.Prepare(t.Context(), baseline(), l.journal); err != nil {
			t.Fatal(err)
		}
	}
	changes := l.journal.Pending()
	if want := 1 + len(l.machines); len(changes) != want {
		t.Fatalf("%d changes in the journal, want the folder and each QEMU, %d: %+v", len(changes), want, changes)
	}
	areatest.UndoTwice(t, Area{}, changes, area.Env{})
	for _, c := range changes {
		if path := c.Data["path"]; path != "" {
			if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("%s is still there: %v", path, err)
			}
		}
	}
	if err := l.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestSELinuxInLab proves the domains of all modes in one machine, alone and with Landlock, whose proof asks for the
// same refusal. A domain adds little to what an unconfined process pays.
func TestSELinuxInLab(t *testing.T) {
	modes := []design.Treatment{
		treatment("enforcer", "selinux", "mode", "Unconfined"),
		treatment("enforcer", "selinux"),
		treatment("enforcer", "selinux", "mode", "RuntimeDefault"),
		treatment("enforcer", "selinux", "mode", "EnhanceProtect"),
		treatment("enforcer", "landlock+selinux+seccomp"),
	}
	l := openLabs(t, requireLab(t, "secilc", "secilc"), &Spec{On: onLab, Workloads: []string{"open"}}, modes...)
	per := map[string]float64{}
	l.inEach(t, 1, func(tr design.Treatment, ops []load.Operation) { per[tr.ID] = instructionsOf(t, ops[0], 1000) })
	unconfined, all := per[modes[0].ID], per[modes[4].ID]
	for _, m := range modes[1:4] {
		if n := per[m.ID]; n < unconfined*.9 || n > unconfined*1.1 {
			t.Errorf("%s: %.0f instructions, and %.0f unconfined: want within 10 %%", m.ID, n, unconfined)
		}
	}
	if all < unconfined*1.1 {
		t.Errorf("%.0f instructions with Landlock, and %.0f without: want at least 10 %% more", all, unconfined)
	}
	l.wantNotes(t, "15 rules are not expressible and left out") // of EnhanceProtect
}

// TestKernelInLab tries a kernel that has all enforcers in a guest with two processors.
func TestKernelInLab(t *testing.T) {
	env := requireLab(t, "apparmor_parser", "apparmor")
	env.Trespasses = true
	tr := treatment("enforcer", "apparmor+bpf+seccomp", "rules", "4")
	l := openLabs(t, env, &Spec{On: onLab, Workloads: []string{"open", "exec"}}, tr)
	if err := l.Prepare(t.Context(), tr, l.journal); err != nil {
		t.Fatal(err)
	}
	t.Run("guard", func(t *testing.T) { l.testGuard(t, tr) })
	t.Run("proofs and reloads", l.testProofs)
}

// testGuard asks both workers for what AppArmor, BPF programs and seccomp must refuse, at rest and under each
// condition.
func (l lab) testGuard(t *testing.T, tr design.Treatment) {
	ctx := t.Context()
	if err := errors.Join(l.Enter(ctx, tr), l.Verify(ctx, tr)); err != nil {
		t.Fatal(err)
	}
	check := func(when string) {
		t.Helper()
		began := time.Now()
		allowed, refused := tallied(t, l, tr, 3)
		if len(allowed) != 1 || allowed[load.OK] != 12 || len(refused) != 1 || refused[load.Denied] == 0 {
			t.Errorf("%s: allowed %v, refused %v", when, allowed, refused)
		}
		t.Logf("%s: %d calls in %.1f s", when, allowed[load.OK]+refused[load.Denied], time.Since(began).Seconds())
	}
	check("at rest")
	names := ""
	for _, c := range l.Conditions(tr) {
		names += " " + c.Name
		lift, err := c.Impose(ctx)
		if err != nil {
			t.Fatalf("%s: %v", c.Name, err)
		}
		check(c.Name)
		if (lift == nil) != (c.Name == area.Restart) {
			t.Errorf("%s lasts: %t", c.Name, lift != nil)
		}
		if lift != nil {
			if err := lift(ctx); err != nil {
				t.Errorf("%s: %v", c.Name, err)
			}
		}
	}
	if names != " restart starved reload" {
		t.Errorf("conditions:%s", names)
	}
	twins, err := l.Trespasses(tr)
	if err != nil {
		t.Fatal(err)
	}
	if _, answer := twins[0].Describe(0, 0, nil); !strings.Contains(answer, "as where nothing is enforced") {
		t.Error(answer)
	}
	if err := l.Leave(ctx, tr); err != nil {
		t.Error(err)
	}
	l.wantNotes(t, "a serial line", "2 workers", "was replaced")
}

// testProofs runs the tests of proofs and of reloads in the guest, whose target it closes: a proof that cannot fail
// proves nothing.
func (l lab) testProofs(t *testing.T) {
	m := l.machines[0]
	err := m.target.Close(t.Context())
	m.target = nil
	if _, again := io.WriteString(m.vm.Link, thenShell); err != nil || again != nil {
		t.Fatal(err, again)
	}
	var out bytes.Buffer
	status, err := shell.Run(m.vm.Link, []string{
		vm.GuestSelf, "-test.v", "-test.run", "^(TestProofsRejectOtherEnforcers|TestReloadUnderLoad)$/" +
			"^(none|seccomp|landlock(_network|_scopes|_all)?|stack.*|apparmor|bpf.*)$", // more of a kind prove no more here
	}, &out)
	if err != nil || status != 0 {
		t.Errorf("in the guest: status %d, %v\n%s", status, err, &out)
	}
	for _, want := range []string{
		"all proofs tried in a worker under bpf\n", "all proofs tried in a worker under bpf unconfined\n",
		"all proofs tried in a worker under apparmor\n", "all proofs tried in a worker under bpf and apparmor\n",
		"reload of " + enforcerBPF + ":", "reload of " + enforcerAppArmor + ":",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the guest did not report %q:\n%s", want, &out)
		}
	}
	for line := range strings.Lines(out.String()) {
		if strings.HasPrefix(line, "reload of ") {
			t.Log(strings.TrimSpace(line))
		}
	}
}

// TestLabFindings: an error in the machine names the warnings before it, such as what a profile refuses.
func TestLabFindings(t *testing.T) {
	found := []area.Finding{
		{Severity: area.Info, Message: "plain"},
		{Severity: area.Warning, Message: "web refuses open /a (r)"},
	}
	if notes, err := labFindings("6.1", found); err != nil || len(notes) != 2 || notes[0] != "Linux 6.1: plain" {
		t.Errorf("%q, %v", notes, err)
	}
	found = append(found, area.Finding{Severity: area.Error, Message: "nginx ended", Hint: "allow it"})
	_, err := labFindings("6.1", found)
	if err == nil || err.Error() != "in the lab VM (Linux 6.1): nginx ended; web refuses open /a (r)" ||
		area.HintOf(err) != "allow it" {
		t.Errorf("%v, next %q", err, area.HintOf(err))
	}
}
