package drive

import (
	"context"
	"errors"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tare/internal/clock"
	"tare/internal/design"
	"tare/internal/metric"
	"tare/internal/probe"
	"tare/internal/ratelimit"
	"tare/internal/run"
)

// A flakyProbe is a probe that returns what the test sets.
type flakyProbe struct {
	clock *clock.Fake
	took  time.Duration
	value float64
	born  float64
	err   error
}

func (*flakyProbe) Subject() string { return "pdp" }

func (f *flakyProbe) Read(context.Context) ([]metric.Sample, error) {
	f.clock.Advance(f.took)
	if f.err != nil {
		return nil, f.err
	}
	return []metric.Sample{
		{Subject: "pdp", Metric: "rss", Value: f.value},
		{Subject: "pdp", Metric: probe.Started.Name, Value: f.born},
	}, nil
}

// TestGaugesReadProbes checks what is recorded when a probe has no value, is late, fails, or finds another process.
func TestGaugesReadProbes(t *testing.T) {
	f := &flakyProbe{clock: clock.NewFake(time.Unix(0, 0)), value: 1, born: 7}
	v := &serverTarget{probes: []probe.Probe{f, f}} // two probes may be about one subject
	req, open := start(t, &v.exactTarget, run.Blocks{})
	req.Env.Clock = f.clock
	g := newGauges(&run.Arm{Stage: &run.Stage{Request: req, Target: v}, Treatment: design.Treatment{ID: "here"}})
	at := time.Duration(0)
	read := func(want int) {
		t.Helper()
		at += 10 * time.Second
		got, err := g.read(t.Context(), func() time.Duration { return at }, false)
		got = withoutHost(got)
		if err != nil || len(got) != want {
			t.Fatalf("at %v: %v, %v; want %d values", at, got, err, want)
		}
		for _, s := range got {
			if s.At != at {
				t.Errorf("%+v was taken at %v", s, at)
			}
		}
	}
	read(4)
	f.value = math.NaN() // no value, which JSON cannot represent
	read(2)
	f.value, f.took = 1, 2*time.Second // too late for that instant
	read(0)
	f.took, f.err = 0, errors.New("no such process")
	read(0)
	f.err, f.born = nil, 8
	read(4)
	if g.restarts != 1 {
		t.Errorf("%d restarts, want 1", g.restarts)
	}
	var texts []string
	for _, w := range open().Warned {
		texts = append(texts, w.Text)
	}
	gone := "the probe of pdp cannot be read any more, 30s after the load's stream was opened: it took more than 1s"
	back := "the probe of pdp can be read again, after 20s"
	if d := cmp.Diff([]string{gone, gone, back, back}, texts); d != "" {
		t.Errorf("warnings (-want +got):\n%s", d)
	}
}

// TestFlappingProbeWarningsAreLimited: a probe that fails and recovers all day does not fill the record with warnings.
func TestFlappingProbeWarningsAreLimited(t *testing.T) {
	f := &flakyProbe{clock: clock.NewFake(time.Unix(0, 0))}
	v := &serverTarget{probes: []probe.Probe{f}}
	req, open := start(t, &v.exactTarget, run.Blocks{})
	req.Env.Clock = f.clock
	g := newGauges(&run.Arm{Stage: &run.Stage{Request: req, Target: v}, Treatment: design.Treatment{ID: "here"}})
	for i := range 1000 {
		if f.err = nil; i%2 == 1 {
			f.err = errors.New("gone")
		}
		if _, err := g.read(t.Context(), func() time.Duration { return time.Duration(i) * time.Second }, false); err != nil {
			t.Fatal(err)
		}
	}
	w := open().Warned
	if len(w) != 2*mostLosses || !strings.Contains(w[len(w)-1].Text, "not said again") {
		t.Errorf("%d warnings, the last %v", len(w), w[len(w)-1])
	}
}

// TestMetricsOfTheTargetAreReadRarely: at a low max_rate an endpoint of metrics is not asked for every slice.
func TestMetricsOfTheTargetAreReadRarely(t *testing.T) {
	asked := 0
	srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked++ }))
	t.Cleanup(srv.Close)
	clk := clock.NewFake(time.Unix(0, 0))
	v := &serverTarget{probes: []probe.Probe{
		probe.Exposition{Name: "pdp", URL: srv.URL}, &flakyProbe{clock: clk, value: 1},
	}}
	req, _ := start(t, &v.exactTarget, run.Blocks{})
	req.Env.Clock = clk
	for _, c := range []struct {
		rate float64
		want int // of 40 slices of half a second: at 2/s after each 5 s
	}{{0, 40}, {20, 40}, {2, 5}} {
		req.Env.Limit, asked = ratelimit.New(clk, c.rate), 0
		g := newGauges(&run.Arm{Stage: &run.Stage{Request: req, Target: v}, Treatment: design.Treatment{ID: "here"}})
		for i := range 40 {
			got, err := g.read(t.Context(), func() time.Duration { return time.Duration(i) * time.Second / 2 }, i == 39)
			if n := len(withoutHost(got)); err != nil || n != 2 {
				t.Fatalf("%d values of the other probe, want 2; %v", n, err)
			}
		}
		if asked != c.want {
			t.Errorf("at %v/s it was asked %d times, want %d", c.rate, asked, c.want)
		}
	}
}

// withoutHost returns the samples without those of the host, which every slice has.
func withoutHost(all []metric.Sample) []metric.Sample {
	return slices.DeleteFunc(slices.Clone(all), func(s metric.Sample) bool { return s.Subject == probe.HostSubject })
}
