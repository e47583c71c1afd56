package decision

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"tare/area"
	"tare/areas/decision/engine"
	"tare/internal/clock"
	"tare/internal/design"
	"tare/internal/kit"
	"tare/internal/probe"
	"tare/internal/unit"
	"tare/rigs/areatest"
	"tare/rigs/hosttest"
)

// TestKilledServerIsRestarted kills the decision point: another one starts at the same address, and the restart is
// counted.
func TestKilledServerIsRestarted(t *testing.T) {
	tg, j := prepared(t, specOf(t, "embedded: {engine: cedar}, policies: 3"))
	p := tg.arm(standard.ID)
	before, _ := p.latest()
	addr := p.addr()
	if err := before.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	for p.restarted() == 0 && ctx.Err() == nil {
		time.Sleep(10 * time.Millisecond)
	}
	if err := errors.Join(tg.Enter(ctx, standard), tg.Verify(ctx, standard)); err != nil {
		t.Fatal(err)
	}
	after, _ := p.latest()
	if after.PID == before.PID || p.addr() != addr || p.restarted() != 1 {
		t.Errorf("pid %d → %d, address %v → %v, %d restarts", before.PID, after.PID, addr, p.addr(), p.restarted())
	}
	if n := len(j.Changes()); n != 2 || len(j.Pending()) != 1 {
		t.Errorf("%d changes journaled, %d open; want two processes, of which one lives", n, len(j.Pending()))
	}
	if notes := strings.Join(tg.Notes(), "\n"); !strings.Contains(notes, "started again 1 times") {
		t.Errorf("notes %s", notes)
	}
	if err := tg.Leave(ctx, standard); err != nil {
		t.Errorf("leave: %v", err)
	}
}

// TestRenewedProcessesServeOn: the decision point and the enforcement point before it are other processes at the same
// addresses, a keeper watches them as before, and no restart is reported.
func TestRenewedProcessesServeOn(t *testing.T) {
	for name, enforcer := range map[string]*Enforcer{
		"alone": nil, "behind an enforcement point": {Timeout: unit.Duration(time.Minute)}, // of a busy host
	} {
		t.Run(name, func(t *testing.T) {
			spec := embedded(engine.Cedar, Planted{})
			spec.Policies, spec.Embedded.Enforcer = 3, enforcer
			tg, j := prepared(t, spec)
			p := tg.arm(standard.ID)
			before, _ := p.latest()
			front, addr, pdp, open := p.front, p.addr(), p.config.Addr, len(j.Pending())
			if did, err := tg.Can().Renew(t.Context(), standard); !did || err != nil {
				t.Fatal(did, err)
			}
			after, down := p.latest()
			if after.PID == before.PID || down || p.addr() != addr || after.ready.Addr != pdp {
				t.Errorf("pid %d → %d, address %v → %v, %s → %s", before.PID, after.PID, addr, p.addr(), pdp, after.ready.Addr)
			}
			if enforcer != nil && p.front.PID == front.PID {
				t.Errorf("the enforcement point is process %d still", front.PID)
			}
			for _, step := range []func(context.Context, design.Treatment) error{tg.Enter, tg.Verify, tg.Leave} {
				if err := step(t.Context(), standard); err != nil {
					t.Error(err)
				}
			}
			if n := len(j.Pending()); n != open {
				t.Errorf("%d processes are journaled as living, want %d", n, open)
			}
			if notes := strings.Join(tg.Notes(), "\n"); strings.Contains(notes, "started again") {
				t.Errorf("notes %s", notes)
			}
			if err := after.Signal(syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			for p.restarted() == 0 && t.Context().Err() == nil {
				time.Sleep(10 * time.Millisecond)
			}
		})
	}
}

// TestPortsAreKept: while a decision point and its enforcement point are replaced, no other user can listen in their
// places.
func TestPortsAreKept(t *testing.T) {
	hosttest.NeedsRoot(t)
	for _, k := range []engine.Kind{engine.Cedar, engine.PDPX, engine.OPA, engine.ATT, engine.AuthzForce} {
		t.Run(string(k), func(t *testing.T) {
			spec, env := embedded(k, Planted{}), testEnv(t)
			if k != engine.Cedar && k != engine.PDPX {
				env, _ = requireEngine(t, k)
			}
			if k != engine.PDPX {
				spec.Embedded.Enforcer = &Enforcer{Timeout: unit.Duration(time.Minute)} // of a cold JVM
			}
			tg, j := opened(t, spec, env)
			tg.warmth = rehearsal{workers: 1, calls: 1, within: 20 * time.Second}
			if err := tg.Prepare(t.Context(), standard, j); err != nil {
				t.Fatal(err)
			}
			p := tg.arm(standard.ID)
			before, _ := p.latest()
			p.stopKeeper()
			if err := errors.Join(before.Stop(t.Context()), p.front.Stop(t.Context())); err != nil {
				t.Fatal(err)
			}
			hosttest.NoStrangerListens(t, p.pdp.Port())
			hosttest.NoStrangerListens(t, p.addr().Port())
			if err := errors.Join(p.renew(t.Context()), tg.Verify(t.Context(), standard)); err != nil {
				t.Error(err)
			}
			if after, _ := p.latest(); after.ready.Addr != before.ready.Addr {
				t.Errorf("address %s → %s", before.ready.Addr, after.ready.Addr)
			}
		})
	}
}

// TestTakenPortEndsTheRun: no decision point is started again at a port that another process has taken meanwhile.
func TestTakenPortEndsTheRun(t *testing.T) {
	tg, _ := prepared(t, embedded(engine.Cedar, Planted{}))
	p := tg.arm(standard.ID)
	c, _ := p.latest()
	p.stopKeeper()
	if err := errors.Join(c.Stop(t.Context()), p.ports[0].Close()); err != nil {
		t.Fatal(err)
	}
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", p.pdp.String())
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() //nolint:errcheck // it has accepted nothing
	p.startKeeper()
	for p.failed() == nil && t.Context().Err() == nil {
		time.Sleep(10 * time.Millisecond)
	}
	if err := tg.Leave(t.Context(), standard); err == nil || !strings.Contains(err.Error(), "took the port of cedar") {
		t.Errorf("leave: %v", err)
	}
}

// TestOPAInPATHIsAskedOverTLS, by the run and by its enforcement point, also when another process has taken its place.
func TestOPAInPATHIsAskedOverTLS(t *testing.T) {
	if _, err := exec.LookPath("opa"); err != nil {
		hosttest.Missing(t, "no opa in PATH", "put an opa into PATH")
	}
	for name, enforcer := range map[string]*Enforcer{
		"alone": nil, "behind an enforcement point": {Timeout: unit.Duration(time.Minute)}, // of a busy host
	} {
		t.Run(name, func(t *testing.T) {
			spec, env, built := embedded(engine.OPA, Planted{}), testEnv(t), t.TempDir()
			spec.Policies, spec.Embedded.Enforcer = 3, enforcer
			env.Getenv = func(name string) (string, bool) {
				if name == "TARE_CACHE" {
					return built, true
				}
				return os.LookupEnv(name)
			}
			tg, _ := preparedIn(t, spec, env)
			if p := tg.arm(standard.ID); !p.foreign() || p.config.Pair == "" || (p.session.TLS == nil) != (enforcer != nil) {
				t.Errorf("it is %s, asked with %v", p.launch.Version, p.session.TLS)
			}
			renew := func(ctx context.Context, tr design.Treatment) error {
				_, err := tg.Can().Renew(ctx, tr)
				return err
			}
			steps := []func(context.Context, design.Treatment) error{tg.Enter, tg.Verify, renew, tg.Verify, tg.Leave}
			for _, step := range steps {
				if err := step(t.Context(), standard); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// TestRestartsAreLimited: a decision point that keeps ending is an error in the end, not an endless loop.
func TestRestartsAreLimited(t *testing.T) {
	ends := []time.Time{}
	begin := time.Unix(0, 0)
	for i := range 30 {
		ends = recent(append(ends, begin.Add(time.Duration(i)*10*time.Second)))
	}
	if len(ends) != 7 {
		t.Errorf("%d ends in the last minute, want 7: one every 10 s", len(ends))
	}
	for n, want := range map[int]time.Duration{1: 100 * time.Millisecond, 3: 400 * time.Millisecond, 10: 5 * time.Second} {
		if got := backoff(n); got != want {
			t.Errorf("backoff after %d ends: %v, want %v", n, got, want)
		}
	}
	tg, _ := prepared(t, embedded(engine.Cedar, Planted{}))
	p := tg.arm(standard.ID)
	p.giveUp(errors.New("it ends and ends"))
	for _, err := range []error{
		tg.Enter(t.Context(), standard), tg.Leave(t.Context(), standard),
		tg.Verify(t.Context(), standard),
	} {
		if err == nil || !strings.Contains(err.Error(), "ends and ends") {
			t.Errorf("after giving up: %v", err)
		}
	}
}

// TestUndo leaves a target as a killed run would, and undoes it twice from the journal's data alone.
func TestUndo(t *testing.T) {
	tg, j := prepared(t, embedded(engine.PDPX, Planted{}))
	p := tg.arm(standard.ID)
	p.stopKeeper() // the killed run's keeper
	areatest.UndoTwice(t, Area{}, j.Pending(), area.Env{})
	c, _ := p.latest()
	if err := c.Wait(t.Context()); err == nil {
		t.Error("the decision point was not killed")
	}
}

func TestUndoRejectsForeignChanges(t *testing.T) {
	for _, c := range []area.Change{
		{Kind: "namespace"},
		{Kind: kit.ProcessKind, Data: map[string]string{"pid": "x", "start_ticks": "1"}},
		{Kind: changePolicies},
		{Kind: changePolicies, Data: map[string]string{"target": `{"adapter":"opa","url":"http://127.0.0.1:1","load":true}`, "name": "system"}},
		{Kind: changePolicies, Data: map[string]string{"target": `{"adapter":"authzen","url":"http://127.0.0.1:1"}`, "name": "tare-x"}},
	} {
		if err := (Area{}).Undo(t.Context(), []area.Change{c}, area.Env{}); err == nil {
			t.Errorf("%v was undone", c)
		}
	}
}

// TestPrepareNeedsAJournal: Prepare changes nothing if the journal cannot be written.
func TestPrepareNeedsAJournal(t *testing.T) {
	tg, j := opened(t, embedded(engine.Cedar, Planted{}), testEnv(t))
	full := errors.New("disk full")
	j.Deny = func(area.Change) error { return full }
	if err := tg.Prepare(t.Context(), standard, j); !errors.Is(err, full) {
		t.Errorf("prepare: %v", err)
	}
}

// TestNoSecretsOnDisk looks for the password of the embedded pdpx server in everything that a run leaves on disk.
func TestNoSecretsOnDisk(t *testing.T) {
	env := testEnv(t)
	tg, j := verifiedIn(t, embedded(engine.PDPX, Planted{}), env)
	p := tg.arm(standard.ID)
	right := p.session.Password
	if len(right) < 16 {
		t.Fatalf("a password of %d characters", len(right))
	}
	p.session.Password = "not-the-password"
	err := tg.Verify(t.Context(), standard)
	if err == nil || !strings.Contains(err.Error(), "check username, password or token") ||
		strings.Contains(err.Error(), "not-the-password") {
		t.Errorf("with a wrong password: %v", err)
	}
	p.session.Password = right
	check := func(what string, b []byte) {
		if bytes.Contains(b, []byte(right)) {
			t.Errorf("%s holds the password", what)
		}
	}
	journal, err := json.Marshal(j.Changes())
	if err != nil {
		t.Fatal(err)
	}
	check("the journal", journal)
	check("a session in print", fmt.Appendf(nil, "%v %+v %#v", p.session, p.session, p.session))
	noSecret(t, env.Dir, right)
	c, _ := p.latest()
	for _, file := range []string{"cmdline", "environ"} {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", c.PID, file))
		if err != nil {
			t.Fatal(err)
		}
		check(file, b)
	}
}

// TestProbes reads the process, its times, its listen queue and, of Cedar, the runtime.
func TestProbes(t *testing.T) {
	tg, _ := prepared(t, embedded(engine.Cedar, Planted{}))
	seen := sampled(t, tg, standard)
	for _, q := range []probe.Quantity{
		probe.CPU, probe.RSS, probe.Started, probe.StartSeconds, probe.LoadSeconds,
		probe.ListenQueueDepth, probe.GCCount,
	} {
		if _, ok := seen[q.Name]; !ok {
			t.Errorf("no sample of %s", q.Name)
		}
	}
	if seen[probe.StartSeconds.Name] <= 0 || seen[probe.RSS.Name] < 1<<20 {
		t.Errorf("started in %v s, %v bytes", seen[probe.StartSeconds.Name], seen[probe.RSS.Name])
	}
}

// TestTreatmentsHaveOwnDecisionPoints starts one for each treatment.
func TestTreatmentsHaveOwnDecisionPoints(t *testing.T) {
	a := areatest.Treatment("engine", "cedar", "policies", "2")
	tg, j := opened(t, &Spec{}, testEnv(t))
	at := map[netip.AddrPort]bool{}
	for _, tr := range []design.Treatment{a, areatest.Treatment("engine", "pdpx", "policies", "2")} {
		if err := errors.Join(tg.Prepare(t.Context(), tr, j), tg.Verify(t.Context(), tr)); err != nil {
			t.Fatal(err)
		}
		end, err := tg.Endpoint(tr)
		if err != nil {
			t.Fatal(err)
		}
		at[end.Addr] = true
	}
	if len(at) != 2 {
		t.Errorf("both at %v", at)
	}
	if err := tg.Prepare(t.Context(), a, j); err == nil {
		t.Error("prepared twice")
	}
	if _, err := tg.Endpoint(standard); err == nil {
		t.Error("an unknown treatment has an endpoint")
	}
}

// TestCountsMatchQuestions compares pdpx's own counts with the questions that were asked.
func TestCountsMatchQuestions(t *testing.T) {
	tg, _ := prepared(t, embedded(engine.PDPX, Planted{}))
	counted := func(tg *target) map[string]float64 {
		counts, err := tg.Counted(t.Context(), standard)
		if err != nil {
			t.Fatal(err)
		}
		return counts
	}
	before := counted(tg)
	p := tg.arm(standard.ID)
	asked := map[string]float64{}
	for range 3 {
		for _, q := range p.questions {
			a, err := p.question(t.Context(), q)
			if err != nil {
				t.Fatal(err)
			}
			if a.Decision != 0 {
				asked[a.Decision.String()]++
			}
		}
	}
	after := counted(tg)
	if asked["permit"] != 9 || asked["deny"] != 6 {
		t.Errorf("asked %v, want 9 permits and 6 denies", asked)
	}
	for word, n := range asked {
		if got := after[word] - before[word]; got != n {
			t.Errorf("%s: the decision point counts %v, and %v were asked", word, got, n)
		}
	}
	cedar, _ := prepared(t, embedded(engine.Cedar, Planted{}))
	if counts := counted(cedar); counts != nil {
		t.Errorf("cedar: %v, want none", counts)
	}
}

// TestCloseDuringARestart: Close leaves no process behind, whatever state a restart is in.
func TestCloseDuringARestart(t *testing.T) {
	for i := range 8 {
		tg, j := prepared(t, embedded(engine.Cedar, Planted{}))
		p := tg.arm(standard.ID)
		c, _ := p.latest()
		if err := c.Signal(syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(i) * 20 * time.Millisecond)
		if err := tg.Close(t.Context()); err != nil || len(j.Pending()) > 0 {
			t.Errorf("close: %v, %d changes left", err, len(j.Pending()))
		}
		if c, down := p.latest(); !down && alive(c) {
			t.Error("a decision point is still running")
		}
	}
}

// shortSleeps is a clock whose sleeps are short.
type shortSleeps struct{ clock.System }

func (h shortSleeps) Sleep(ctx context.Context, _ time.Duration) error {
	return h.System.Sleep(ctx, time.Millisecond)
}

// TestProcessThatKeepsEnding: after too many restarts there is an error, and no process is left.
func TestProcessThatKeepsEnding(t *testing.T) {
	env := testEnv(t)
	env.Clock = shortSleeps{}
	tg, j := preparedIn(t, embedded(engine.Cedar, Planted{}), env)
	p := tg.arm(standard.ID)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Second)
	defer cancel()
	for p.failed() == nil && ctx.Err() == nil {
		if c, down := p.latest(); !down {
			if err := c.Signal(syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Millisecond)
	}
	err := tg.Leave(ctx, standard)
	if err == nil || !strings.Contains(err.Error(), "ended more than 10 times within 1m0s") {
		t.Errorf("leave: %v", err)
	}
	if p.restarted() != mostEnds || len(j.Pending()) != 0 {
		t.Errorf("%d restarts, %d processes left; want %d and none", p.restarted(), len(j.Pending()), mostEnds)
	}
}
