package identity

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"tare/area"
	"tare/areas/identity/reference"
	"tare/internal/kit"
	"tare/internal/load"
	"tare/internal/probe"
	"tare/internal/unit"
	"tare/rigs/areatest"
	"tare/rigs/hosttest"
)

func TestIdentities(t *testing.T) {
	spec := embedded("healthy")
	spec.Identities, spec.Account = 20, accountEmail
	for _, name := range []OperationName{opToken, opIdentity} {
		t.Run(string(name), func(t *testing.T) {
			spec.Operation = name
			tg, _ := prepared(t, spec, standard)
			if err := tg.Verify(t.Context(), standard); err != nil {
				t.Fatal(err)
			}
			first := onlyOp(t, tg, standard)
			if end := endpointOf(t, tg, standard); end.Keys != 20 || end.Local(19) != netip.MustParseAddr("127.1.0.20") {
				t.Errorf("%d identities, the last at %v", end.Keys, end.Local(19))
			}
			wantGoodCalls(t, tg, 40)
			again := onlyOp(t, tg, standard)
			if name == opIdentity && bytes.Equal(first.Wire.Render(nil, 0), again.Wire.Render(nil, 0)) {
				t.Error("a second run asks for the same audiences: they are in the cache")
			}
			// Warm tokens come from the cache; unique audiences never do.
			if c := countersOf(t, tg.arm("default")); (c.Misses >= 40) != (name == opIdentity) {
				t.Errorf("%d misses, %d hits", c.Misses, c.Hits)
			}
		})
	}
}

// TestProbes reads the processes, the group and the listen queue.
func TestProbes(t *testing.T) {
	tg, _ := prepared(t, embedded("blog-2020"), standard)
	seen := map[string]bool{}
	for _, p := range tg.Probes(standard) {
		samples, err := p.Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range samples {
			seen[s.Subject+" "+s.Metric] = true
		}
	}
	want := []string{"endpoint " + probe.CPU.Name, "sts " + probe.CPU.Name, "endpoint " + probe.ListenQueueDepth.Name}
	if tg.arm("default").group != nil {
		want = append(want, "endpoint "+probe.ThrottledPeriods.Name)
	}
	for _, w := range want {
		if !seen[w] {
			t.Errorf("no sample of %s", w)
		}
	}
}

// TestRestart: while a client holds all slots, only a restart makes the endpoint answer again, at the same address.
func TestRestart(t *testing.T) {
	tg, j := prepared(t, specOf(t, gceFields+"embedded: {preset: healthy, max_conns: 2}"), standard)
	p := tg.arm("default")
	before := *p.endpoint
	for range 2 {
		conn, err := p.client(0).Dial(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
	}
	if err := p.awaitConns(t.Context(), 2); err != nil {
		t.Fatal(err)
	}
	if err := p.restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	after := p.child(serverEndpoint)
	if after.PID == before.PID || after.ready.Addr != before.ready.Addr || p.restarted() != 1 {
		t.Errorf("pid %d → %d, address %s → %s, %d restarts", before.PID, after.PID, before.ready.Addr, after.ready.Addr,
			p.restarted())
	}
	if err := tg.Verify(t.Context(), standard); err != nil {
		t.Error(err)
	}
	if !strings.Contains(strings.Join(tg.Notes(), "\n"), "restarted 1 times") {
		t.Errorf("notes %q", tg.Notes())
	}
	if n := len(j.Changes()); n != 3 || len(j.Pending()) != 2 {
		t.Errorf("%d changes journaled, %d open; want the restarted endpoint as a third", n, len(j.Pending()))
	}
}

// TestPortIsKept: while the endpoint is replaced, no other user can listen in its place.
func TestPortIsKept(t *testing.T) {
	tg, _ := prepared(t, embedded("healthy"), standard)
	p := tg.arm("default")
	if err := p.endpoint.stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	hosttest.NoStrangerListens(t, p.addr.Port())
	if err := errors.Join(p.replace(t.Context(), true), tg.Verify(t.Context(), standard)); err != nil {
		t.Error(err)
	}
}

// TestLivenessRestarts stops the endpoint, so that its health checks time out.
func TestLivenessRestarts(t *testing.T) {
	hosttest.SkipIfShortUnlessRaced(t)
	t.Parallel()
	const knobs = "embedded: {preset: healthy, liveness_period: 100ms, liveness_failures: 1}"
	tg, _ := prepared(t, specOf(t, gceFields+knobs), standard)
	p := tg.arm("default")
	hung := p.child(serverEndpoint)
	if err := hung.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	if err := hung.Wait(ctx); errors.Is(err, context.DeadlineExceeded) {
		t.Fatal("the hung endpoint was not restarted")
	}
	for p.restarted() == 0 && ctx.Err() == nil {
		time.Sleep(10 * time.Millisecond)
	}
	if err := tg.Verify(ctx, standard); err != nil {
		t.Errorf("after the restart: %v", err)
	}
	if err := tg.Leave(ctx, standard); err != nil {
		t.Errorf("leave: %v", err)
	}
}

// TestTreatmentsSideBySide: each treatment has servers of its own.
func TestTreatmentsSideBySide(t *testing.T) {
	both := levels("cache=on | cache=off")
	tg, j := prepared(t, embedded("healthy"), both[0])
	if err := tg.Prepare(t.Context(), both[1], j); err != nil {
		t.Fatal(err)
	}
	for _, tr := range both {
		if err := tg.Verify(t.Context(), tr); err != nil {
			t.Error(err)
		}
	}
	if a, b := endpointOf(t, tg, both[0]).Addr, endpointOf(t, tg, both[1]).Addr; a == b {
		t.Errorf("both at %v", a)
	}
	if err := tg.Prepare(t.Context(), both[0], j); err == nil {
		t.Error("prepared twice")
	}
	if _, err := tg.Endpoint(standard); err == nil {
		t.Error("an unknown treatment has an endpoint")
	}
}

// TestVerifyPresets: every preset can be prepared, and Verify finds it in force.
func TestVerifyPresets(t *testing.T) {
	hosttest.SkipIfShortUnlessRaced(t)
	t.Parallel()
	for _, preset := range reference.Presets() {
		t.Run(preset, func(t *testing.T) {
			tg, _ := prepared(t, embedded(preset), standard)
			for range 2 { // canaries must not use up what they verify
				tg.arm("default").proven = 0
				if err := tg.Enter(t.Context(), standard); err != nil {
					t.Fatal(err)
				}
				if err := tg.Verify(t.Context(), standard); err != nil {
					t.Fatal(err)
				}
			}
			local := tg.Observe(t.Context(), standard)
			if local.ListenQueue == nil || *local.ListenQueue != 0 {
				t.Errorf("listen queue %v, want 0", local.ListenQueue)
			}
			if local.Throttled != nil && tg.arm("default").knobs.CPUQuota == 0 {
				t.Error("a throttled share without a CPU limit")
			}
			if err := tg.Leave(t.Context(), standard); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// TestVerifyRejectsMissingKnobs expects knobs that the servers do not have.
func TestVerifyRejectsMissingKnobs(t *testing.T) {
	hosttest.SkipIfShortUnlessRaced(t)
	limited := func(mode reference.Mode) func(*arm) {
		return func(p *arm) { p.knobs.QuotaRate, p.knobs.QuotaMode = 5, mode }
	}
	for _, c := range []struct {
		name, preset string
		change       func(*arm)
		check        func(*arm, context.Context) error
		want         string
	}{
		{"knobs", "healthy", func(p *arm) { p.knobs.Jitter++ }, (*arm).verifyKnobs, "do not run with the knobs"},
		{"connections", "healthy", func(p *arm) { p.knobs.MaxConns = 3 }, (*arm).verifyMaxConns, "must go unanswered"},
		{"quota", "healthy", limited(reference.Reject), (*arm).verifyQuota, "exchanges passed"},
		{"queue", "healthy", limited(reference.Queue), (*arm).verifyQuota, "exchanges passed"},
		{"another mode", "sts-quota-reject", limited(reference.Tarpit), (*arm).verifyQuota, "in mode tarpit"},
		{"smaller burst", "sts-quota-reject", func(p *arm) { p.knobs.QuotaBurst = 200 }, (*arm).verifyQuota, "limited after"},
		{"cache", "healthy", func(p *arm) { p.knobs.Cache = false }, (*arm).verifyCache, "got the same token"},
		{"no cache", "sts-quota-reject", func(p *arm) { p.knobs.Cache = true }, (*arm).verifyCache, "got different tokens"},
		{"not shared", "healthy", func(p *arm) { p.knobs.Singleflight = false }, (*arm).verifySharing, "never showed it"},
		{"backlog", "blog-2020", func(p *arm) { p.endpoint.ready.Backlog = 5 }, (*arm).verifyBacklog, "is 1024, not 5"},
		{"owner", "healthy", func(p *arm) { p.emails[0] = "o@x.invalid" }, (*arm).verifyOwner, "not o@x.invalid's"},
	} {
		t.Run(c.name, func(t *testing.T) {
			spec := embedded(c.preset)
			if strings.HasPrefix(c.preset, "sts") {
				spec.Embedded.QuotaRate = new(unit.Rate(5)) // a rate that even a busy machine exceeds
			}
			tg, _ := prepared(t, spec, standard)
			p := tg.arm("default")
			if err := c.check(p, t.Context()); err != nil {
				t.Fatalf("before the change: %v", err)
			}
			c.change(p)
			if err := c.check(p, t.Context()); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}

// TestVerifyRejectsALiftedLimit removes the CPU limit without telling the target.
func TestVerifyRejectsALiftedLimit(t *testing.T) {
	tg, _ := prepared(t, embedded("cpu-only"), standard)
	file, none := quotaFile(t, tg.arm("default"))
	if err := os.WriteFile(file, []byte(none), 0); err != nil {
		t.Fatal(err)
	}
	if err := tg.Verify(t.Context(), standard); err == nil || !strings.Contains(err.Error(), "no CPU limit") {
		t.Errorf("error %v", err)
	}
}

// quotaFile is the file of a group's CPU limit, and what stands there without one. It skips the test where this host
// gives no group.
func quotaFile(t *testing.T, p *arm) (path, none string) {
	t.Helper()
	if p.group == nil {
		hosttest.Missing(t, "this host gives no control group", hosttest.Root)
	}
	if p.group.V2() {
		return filepath.Join(p.group.Path(), "cpu.max"), "max"
	}
	return filepath.Join(p.group.Path(), "cpu.cfs_quota_us"), "-1"
}

// TestUndo leaves a target as a killed run would, and undoes it twice from the journal's data alone.
func TestUndo(t *testing.T) {
	tg, j := prepared(t, embedded("blog-2020"), standard)
	areatest.UndoTwice(t, Area{}, j.Pending(), area.Env{})
	processes := 0
	for _, c := range j.Changes() {
		if c.Kind == kit.ProcessKind {
			processes++
		}
		if c.Kind == changeCgroup {
			if _, err := os.Stat(c.Data["path"]); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s is still there: %v", c.Data["path"], err)
			}
		}
	}
	if processes != 2 {
		t.Errorf("journaled %v, want two processes", j.Changes())
	}
	for _, name := range []string{serverSTS, serverEndpoint} {
		if err := tg.arm("default").child(name).Wait(t.Context()); err == nil {
			t.Errorf("%s was not killed", name)
		}
	}
	if err := tg.Leave(t.Context(), standard); err == nil || !strings.Contains(err.Error(), "ended by itself") {
		t.Errorf("leave after the kill: %v", err)
	}
}

// TestRunsOfOnePathHaveOwnControlGroups: two runs whose records have the same path do not share a control group.
func TestRunsOfOnePathHaveOwnControlGroups(t *testing.T) {
	dir := t.TempDir()
	seen := map[string]bool{}
	for range 2 {
		tg, _ := prepared(t, embedded("blog-2020"), standard, func(tg *target) { tg.env.Dir = dir })
		file, _ := quotaFile(t, tg.arm("default"))
		if seen[file] {
			t.Errorf("both runs have %s", file)
		}
		seen[file] = true
	}
}

func TestUndoRejectsForeignChanges(t *testing.T) {
	for _, c := range []area.Change{
		{Kind: "namespace"},
		{Kind: kit.ProcessKind, Data: map[string]string{"pid": "x", "start_ticks": "1"}},
		{Kind: kit.ProcessKind, Data: map[string]string{"pid": "1", "start_ticks": "1"}},
		{Kind: kit.ProcessKind, Data: map[string]string{"pid": "99999999"}},
		{Kind: changeCgroup, Data: map[string]string{"path": "/sys/fs/cgroup"}},
		{Kind: changeCgroup},
	} {
		if err := (Area{}).Undo(t.Context(), []area.Change{c}, area.Env{}); err == nil {
			t.Errorf("%v was undone", c)
		}
	}
}

// TestPrepareNeedsAJournal: Prepare changes nothing if the journal cannot be written.
func TestPrepareNeedsAJournal(t *testing.T) {
	tg, j := areatest.Open[*target](t, Area{}, embedded("blog-2020"), testEnv(t))
	full := errors.New("disk full")
	j.Deny = func(area.Change) error { return full }
	if err := tg.Prepare(t.Context(), standard, j); !errors.Is(err, full) {
		t.Errorf("prepare: %v", err)
	}
}

// TestNoSecretsOnDisk looks for tokens and keys in everything that a run leaves on disk.
func TestNoSecretsOnDisk(t *testing.T) {
	tg, j := prepared(t, embedded("healthy"), standard)
	p := tg.arm("default")
	if err := tg.Verify(t.Context(), standard); err != nil {
		t.Fatal(err)
	}
	token, err := p.token(t.Context())
	if err != nil || token == "" {
		t.Fatalf("no token: %v", err)
	}
	// Failures are logged: a restart, a refused exchange, an STS that has ended.
	if err := p.restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	x := p.exchanger()
	defer x.Close()
	_, refused := x.Exchange(t.Context(), token, reference.Pool)
	if refused == nil {
		t.Error("the STS exchanges an access token")
	}
	if err := p.sts.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	got, err := p.client(0).Do(t.Context(), p.adapter.wire(p.session("x")).Render(nil, 0), callTimeout)
	if err != nil || got.Status != 500 {
		t.Errorf("without an STS: status %d, %v", got.Status, err)
	}
	journal, err := json.Marshal(j.Changes())
	if err != nil {
		t.Fatal(err)
	}
	private, err := p.signer.Private()
	if err != nil {
		t.Fatal(err)
	}
	key, err := json.Marshal(private) // as it travels
	if err != nil {
		t.Fatal(err)
	}
	logs := 0
	check := func(what string, b []byte) {
		for _, secret := range []string{token, "ya29.", "eyJ", strings.Trim(string(key), `"`)[:40]} {
			if bytes.Contains(b, []byte(secret)) {
				t.Errorf("%s holds a secret", what)
			}
		}
	}
	check("the journal", journal)
	check("an error", []byte(fmt.Sprint(refused)))
	check("an answer of the endpoint", got.Body)
	err = filepath.WalkDir(p.env.Dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		logs++
		check(path, b)
		return err
	})
	if err != nil || logs < 2 {
		t.Errorf("%d files looked through: %v", logs, err)
	}
	for _, file := range []string{"cmdline", "environ"} {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", p.endpoint.PID, file))
		if err != nil {
			t.Fatal(err)
		}
		check(file, b)
	}
}

// TestConditions: each is brought about and ended, leaves nothing behind, and is in force in between.
func TestConditions(t *testing.T) {
	hosttest.SkipIfShortUnlessRaced(t)
	t.Parallel()
	const knobs = "embedded: {preset: healthy, cpu_quota: '0.5', ttl: 2s, refresh_early: 0s, jitter: 0s}"
	spec := specOf(t, gceFields+"operation: identity, "+knobs) // each call goes to the token service
	tg, _ := prepared(t, spec, standard)
	p := tg.arm("default")
	seen := map[string]bool{}
	for _, c := range tg.Conditions(standard) {
		seen[c.Name] = true
		pid, sts := p.child(serverEndpoint).PID, p.child(serverSTS).PID
		lift, err := c.Impose(t.Context())
		if err != nil {
			t.Fatalf("%s: %v", c.Name, err)
		}
		op := onlyOp(t, tg, standard)
		began := time.Now()
		outcome, _ := p.call(t.Context(), op.Wire, 0, 500*time.Millisecond)
		hindered := c.Name == area.Slow || c.Name == area.Partition
		if slow := outcome == load.Timeout; slow != hindered && c.Name != area.Starved {
			t.Errorf("%s: %v after %v", c.Name, outcome, time.Since(began))
		}
		if c.Figures != nil {
			time.Sleep(3 * time.Second)
		}
		if lift != nil {
			if err := lift(context.WithoutCancel(t.Context())); err != nil {
				t.Fatalf("%s: %v", c.Name, err)
			}
		}
		restarted := p.child(serverEndpoint).PID != pid
		if restarted != (c.Name == area.Restart) || p.child(serverSTS).PID != sts {
			t.Errorf("%s: a restart: %v", c.Name, restarted)
		}
		if c.Figures != nil {
			for _, x := range c.Figures()["revoke"] {
				if !(x.Least < 2.2 && x.Least < x.Most && x.Most < 2.6) {
					t.Errorf("%s: a token that lives 2 s was given for %+v s", c.Name, x)
				}
			}
			if n := len(c.Figures()["revoke"]); n != staleOnes {
				t.Errorf("%s: %d figures, want %d: %v", c.Name, n, staleOnes, tg.Notes())
			}
		}
		if outcome, err := p.call(t.Context(), op.Wire, 1, callTimeout); outcome != load.OK {
			t.Errorf("after %s: %v, %v", c.Name, outcome, err)
		}
		if err := p.verifyCPU(t.Context()); err != nil {
			t.Errorf("after %s: %v", c.Name, err)
		}
	}
	for _, name := range spec.Conditions() {
		if !seen[name] && (name != area.Starved || p.group != nil) {
			t.Errorf("the condition %s is not offered", name)
		}
	}
	if got := (&Spec{URL: "http://127.0.0.1:1"}).Conditions(); len(got) > 0 {
		t.Errorf("conditions of an endpoint that is not ours: %v", got)
	}
}

// TestLongTokensAreNotWithdrawn: nobody waits an hour.
func TestLongTokensAreNotWithdrawn(t *testing.T) {
	tg, _ := prepared(t, embedded("healthy"), standard)
	for _, c := range tg.Conditions(standard) {
		if c.Figures != nil {
			t.Errorf("%s lasts %v", c.Name, c.Hold)
		}
	}
}

// TestLevers: the CPU limit of an endpoint that has one can be raised, if the endpoint can use that, and is set back.
func TestLevers(t *testing.T) {
	tg, _ := prepared(t, specOf(t, gceFields+"embedded: {preset: healthy, cpu_quota: 100m}"), standard)
	p := tg.arm("default")
	levers := tg.Levers(standard)
	if p.group == nil && len(levers) > 0 {
		t.Errorf("levers without a control group: %+v", levers)
	}
	file, _ := quotaFile(t, p)
	if len(levers) != 1 || levers[0].Limit != "cpu-quota" || levers[0].From != "100m" || levers[0].To != "200m" ||
		levers[0].Factor != 2 {
		t.Fatalf("%+v", levers)
	}
	wants := func(when string, quota int) {
		t.Helper()
		text, err := os.ReadFile(file)
		if err != nil || !strings.HasPrefix(string(text), strconv.Itoa(quota)) {
			t.Errorf("%s the limit is %q, %v; want %d", when, text, err, quota)
		}
	}
	wants("first", 10_000)
	back, err := levers[0].Move(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	wants("raised", 20_000)
	if err := back(t.Context()); err != nil {
		t.Fatal(err)
	}
	wants("set back", 10_000)
	p.knobs.CPUQuota = 0.6 // and its process has one processor
	if levers := tg.Levers(standard); len(levers) > 0 {
		t.Errorf("a limit that the endpoint cannot use: %+v", levers)
	}
	p.url = &url.URL{}
	if levers := tg.Levers(standard); len(levers) > 0 {
		t.Errorf("levers of an endpoint that is not ours: %+v", levers)
	}
	p.url = nil
}

func TestTallyCountsDifferentTokens(t *testing.T) {
	tally := newTally(10)
	read := func() float64 {
		t.Helper()
		samples, err := tally.Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		n, ok := probe.Find(samples, serverEndpoint, probe.Distinct)
		if !ok {
			t.Fatalf("no count among %v", samples)
		}
		return n
	}
	var wg sync.WaitGroup
	for worker := range 4 {
		wg.Go(func() {
			for i := range 1000 {
				key := (i + worker) % 10
				tally.saw(key, fmt.Appendf(nil, "token-%d-%d", key, i%3)) // 30 tokens, each from several sides
			}
		})
	}
	wg.Wait()
	if n := read(); n != 30 {
		t.Errorf("%v different tokens, want 30", n)
	}
	if n := read(); n != 30 {
		t.Errorf("%v after no token at all, want 30 still", n)
	}
	for key := range 10 {
		tally.saw(key, fmt.Appendf(nil, "token-%d-2", key))
	}
	if n := read(); n != 40 {
		t.Errorf("%v, want 40: the same tokens count again after a reading", n)
	}
	for i := range maxTokens + 1 {
		tally.saw(0, fmt.Appendf(nil, "t%d", i))
	}
	if samples, err := tally.Read(t.Context()); err != nil || len(samples) != 0 {
		t.Errorf("%v, %v: more than can be counted must be unknown", samples, err)
	}
}
