package reference

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"tare/internal/clock"
)

// TestLivenessRestartsAfterFailures: the restart comes after the given number of failures in a row, and not before.
func TestLivenessRestartsAfterFailures(t *testing.T) {
	answers := []int{200, 500, 500, 200, 500, 500, 500, 200}
	var asked, restarts atomic.Int64
	ctx, cancel := context.WithCancel(t.Context())
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		n := asked.Add(1)
		if int(n) > len(answers) {
			cancel()
			return
		}
		w.WriteHeader(answers[n-1])
	}))
	defer srv.Close()
	restartedAt := int64(0)
	err := Watch(ctx, clock.NewFake(time.Now()), EndpointKnobs{LivenessPeriod: time.Second, LivenessFailures: 3},
		func() string { return strings.TrimPrefix(srv.URL, "http://") },
		func(context.Context) error { restarts.Add(1); restartedAt = asked.Load(); return nil })
	if err != nil {
		t.Fatal(err)
	}
	if restarts.Load() != 1 || restartedAt != 7 {
		t.Errorf("%d restarts, the last after probe %d; want one after probe 7", restarts.Load(), restartedAt)
	}
}

func TestPresetsAreValid(t *testing.T) {
	for _, name := range Presets() {
		k, ok := Preset(name)
		if !ok || PresetHelp(name) == "" {
			t.Errorf("%s: no preset or no help", name)
		}
		if err := k.Validate(); err != nil {
			t.Errorf("preset %s is invalid: %v", name, err)
		}
	}
	if _, ok := Preset("nothing"); ok {
		t.Error("an unknown preset is known")
	}
	blog, _ := Preset("blog-2020")
	if rate := blog.CPUQuota / blog.CPUPerRequest.Seconds(); rate < 162.5 || rate > 163.5 {
		t.Errorf("blog-2020 serves %.2f/s, want 163", rate)
	}
}

func TestValidateRejectsBadKnobs(t *testing.T) {
	for name, change := range map[string]func(*Knobs){
		"cpu_quota":         func(k *Knobs) { k.CPUQuota = -1 },
		"least":             func(k *Knobs) { k.CPUQuota = 0.001 },
		"out of range":      func(k *Knobs) { k.MaxConns = -1 },
		"durations":         func(k *Knobs) { k.IdleTimeout = -1 },
		"drop":              func(k *Knobs) { k.Drop = 1 },
		"signing":           func(k *Knobs) { k.Signing = "none" },
		"jitter":            func(k *Knobs) { k.RefreshEarly = 0 },
		"liveness_failures": func(k *Knobs) { k.LivenessPeriod, k.LivenessFailures = time.Second, 0 },
		"ttl":               func(k *Knobs) { k.TTL = time.Millisecond },
		"upstream_latency":  func(k *Knobs) { k.UpstreamLatency = -1 },
		"quota_rate":        func(k *Knobs) { k.QuotaRate = -1 },
		"quota_burst":       func(k *Knobs) { k.QuotaRate, k.QuotaBurst = 1, 0 },
		"quota_mode":        func(k *Knobs) { k.QuotaRate, k.QuotaMode = 1, "maybe" },
		"refresh_early":     func(k *Knobs) { k.TTL = time.Minute },
	} {
		k, _ := Preset("healthy")
		change(&k)
		if err := k.Validate(); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}
