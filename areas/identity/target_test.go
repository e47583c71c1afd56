package identity

import (
	"bytes"
	"context"
	"errors"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"time"

	"tare/internal/design"
	"tare/internal/load"
	"tare/internal/probe"
	"tare/internal/unit"
	"tare/rigs/hosttest"
)

var standard = design.Treatment{ID: "default"}

func TestIdentities(t *testing.T) {
	spec := embedded("healthy")
	spec.Identities, spec.Account = 20, accountEmail
	for _, operation := range []string{opToken, opIdentity} {
		t.Run(operation, func(t *testing.T) {
			spec.Operation = OperationName(operation)
			tg, _ := prepared(t, spec, standard)
			if err := tg.Verify(t.Context(), standard); err != nil {
				t.Fatal(err)
			}
			ops, err := tg.Operations(standard)
			if err != nil {
				t.Fatal(err)
			}
			end, err := tg.Endpoint(standard)
			if err != nil {
				t.Fatal(err)
			}
			if end.Keys != 20 || end.Local(19) != netip.MustParseAddr("127.1.0.20") {
				t.Errorf("%d identities, the last at %v", end.Keys, end.Local(19))
			}
			p := tg.arm("default")
			for i := range uint64(40) {
				if outcome, err := p.call(t.Context(), ops[0].Wire, i, callTimeout); outcome != load.OK {
					t.Fatalf("call %d: %v, %v", i, outcome, err)
				}
			}
			again, err := tg.Operations(standard)
			if err != nil {
				t.Fatal(err)
			}
			if operation == opIdentity && bytes.Equal(ops[0].Wire.Render(nil, 0), again[0].Wire.Render(nil, 0)) {
				t.Error("a second run asks for the same audiences: they are in the cache")
			}
			c, err := p.endpoint.admin.Counters(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			// Warm tokens come from the cache; unique audiences never do.
			if cold := c.Misses >= 40; cold != (operation == opIdentity) {
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
	spec := embedded("healthy")
	spec.Embedded.MaxConns = new(2)
	tg, j := prepared(t, spec, standard)
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
	spec := embedded("healthy")
	spec.Embedded.LivenessPeriod, spec.Embedded.LivenessFailures = new(unit.Duration(100*time.Millisecond)), new(1)
	tg, _ := prepared(t, spec, standard)
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
	on := design.Treatment{ID: "cache=on", Levels: map[string]string{"cache": "on"}}
	off := design.Treatment{ID: "cache=off", Levels: map[string]string{"cache": "off"}}
	tg, j := prepared(t, embedded("healthy"), on)
	if err := tg.Prepare(t.Context(), off, j); err != nil {
		t.Fatal(err)
	}
	for _, tr := range []design.Treatment{on, off} {
		if err := tg.Verify(t.Context(), tr); err != nil {
			t.Error(err)
		}
	}
	a, err := tg.Endpoint(on)
	if err != nil {
		t.Fatal(err)
	}
	b, err := tg.Endpoint(off)
	if err != nil {
		t.Fatal(err)
	}
	if a.Addr == b.Addr {
		t.Errorf("both at %v", a.Addr)
	}
	if err := tg.Prepare(t.Context(), on, j); err == nil {
		t.Error("prepared twice")
	}
	if _, err := tg.Endpoint(standard); err == nil {
		t.Error("an unknown treatment has an endpoint")
	}
}
