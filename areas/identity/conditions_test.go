package identity

import (
	"context"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"tare/area"
	"tare/internal/load"
	"tare/internal/unit"
	"tare/rigs/hosttest"
)

// TestConditions: each is brought about and ended, leaves nothing behind, and is in force in between.
func TestConditions(t *testing.T) {
	hosttest.SkipIfShortUnlessRaced(t)
	t.Parallel()
	spec := embedded("healthy")
	spec.Operation = opIdentity // each call goes to the token service
	e := spec.Embedded
	e.CPUQuota, e.TTL = new(CPU(0.5)), new(unit.Duration(2*time.Second))
	e.RefreshEarly, e.Jitter = new(unit.Duration(0)), new(unit.Duration(0))
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
		ops, err := tg.Operations(standard)
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		outcome, _ := p.call(t.Context(), ops[0].Wire, 0, 500*time.Millisecond)
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
				if x > 2.2 {
					t.Errorf("%s: a token that lives 2 s was given for %v s", c.Name, x)
				}
			}
			if n := len(c.Figures()["revoke"]); n != staleOnes {
				t.Errorf("%s: %d figures, want %d: %v", c.Name, n, staleOnes, tg.Notes())
			}
		}
		if outcome, err := p.call(t.Context(), ops[0].Wire, 1, callTimeout); outcome != load.OK {
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
	spec := embedded("healthy")
	spec.Embedded.CPUQuota = new(CPU(0.1))
	tg, _ := prepared(t, spec, standard)
	p := tg.arm("default")
	levers := tg.Levers(standard)
	if p.group == nil {
		if len(levers) > 0 {
			t.Errorf("levers without a control group: %+v", levers)
		}
		hosttest.Missing(t, "this host gives no control group", hosttest.Root)
	}
	if len(levers) != 1 || levers[0].Limit != "cpu-quota" || levers[0].From != "100m" || levers[0].To != "200m" ||
		levers[0].Factor != 2 {
		t.Fatalf("%+v", levers)
	}
	wants := func(when string, quota int) {
		t.Helper()
		file := "cpu.cfs_quota_us"
		if p.group.V2() {
			file = "cpu.max"
		}
		text, err := os.ReadFile(filepath.Join(p.group.Path(), file))
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
