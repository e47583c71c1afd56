package identity

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tare/areas/identity/reference"
	"tare/internal/unit"
	"tare/rigs/hosttest"
)

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
	for _, c := range []struct {
		name, preset string
		change       func(*arm)
		check        func(*arm, context.Context) error
		want         string
	}{
		{"knobs", "healthy", func(p *arm) { p.knobs.Jitter++ }, (*arm).verifyKnobs, "do not run with the knobs"},
		{"connections", "healthy", func(p *arm) { p.knobs.MaxConns = 3 }, (*arm).verifyMaxConns, "must go unanswered"},
		{
			"quota", "healthy", func(p *arm) { p.knobs.QuotaRate, p.knobs.QuotaMode = 5, reference.Reject }, (*arm).verifyQuota,
			"exchanges passed",
		},
		{
			"queue", "healthy", func(p *arm) { p.knobs.QuotaRate, p.knobs.QuotaMode = 5, reference.Queue }, (*arm).verifyQuota,
			"exchanges passed",
		},
		{
			"another mode", "sts-quota-reject", func(p *arm) { p.knobs.QuotaMode = reference.Tarpit }, (*arm).verifyQuota,
			"in mode tarpit",
		},
		{"smaller burst", "sts-quota-reject", func(p *arm) { p.knobs.QuotaBurst = 200 }, (*arm).verifyQuota, "limited after"},
		{"cache", "healthy", func(p *arm) { p.knobs.Cache = false }, (*arm).verifyCache, "got the same token"},
		{"no cache", "sts-quota-reject", func(p *arm) { p.knobs.Cache = true }, (*arm).verifyCache, "got different tokens"},
		{"not shared", "healthy", func(p *arm) { p.knobs.Singleflight = false }, (*arm).verifySharing, "never showed it"},
		{"backlog", "blog-2020", func(p *arm) { p.endpoint.ready.Backlog = 5 }, (*arm).verifyBacklog, "is 1024, not 5"},
		{
			"owner", "healthy", func(p *arm) { p.emails[0] = "other@example.invalid" }, (*arm).verifyOwner,
			"not other@example.invalid's",
		},
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
	p := tg.arm("default")
	if p.group == nil {
		hosttest.Missing(t, "this host gives no control group", hosttest.Root)
	}
	file, none := "cpu.cfs_quota_us", "-1"
	if p.group.V2() {
		file, none = "cpu.max", "max"
	}
	if err := os.WriteFile(filepath.Join(p.group.Path(), file), []byte(none), 0); err != nil {
		t.Fatal(err)
	}
	if err := tg.Verify(t.Context(), standard); err == nil || !strings.Contains(err.Error(), "no CPU limit") {
		t.Errorf("error %v", err)
	}
}
