package drive

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tare/internal/design"
	"tare/internal/load"
	"tare/internal/metric"
	"tare/internal/probe"
	"tare/internal/record"
	"tare/internal/run"
	"tare/internal/term"
)

// soakEvents returns the events of a soak of ten minutes with slices of two seconds, whose target restarts in the
// fourth minute.
func soakEvents() []run.Event {
	var events []run.Event
	var p load.Progress
	const warm, planned, every = time.Minute, 10 * time.Minute, 2 * time.Second
	restarts := 0
	cpu, born := 0.0, 1.0
	for at := every; at <= warm+planned; at += every {
		good, bad := uint64(1980), uint64(20)
		samples := func() []metric.Sample {
			return []metric.Sample{
				{Subject: "pdp", Metric: probe.CPU.Name, At: at, Value: cpu},
				{Subject: "pdp", Metric: probe.RSS.Name, At: at, Value: 300 << 20},
				{Subject: "pdp", Metric: probe.Started.Name, At: at, Value: born},
			}
		}
		cpu += 2.5
		s := record.Slice{Treatment: "pdp", Start: at - every, End: at, WarmUp: at <= warm, Samples: samples()}
		switch minute := at.Minutes(); {
		case minute > 4 && minute <= 4.5:
			good, bad, s.Samples = 0, 400, nil
			cpu, born = 0.5, 2
		case minute > 4.5 && restarts == 0:
			restarts = 1
		}
		o := record.SliceOperation{
			Operation: "guard", P99: 0.0123, Max: 0.1,
			Outcomes: []record.SliceOutcome{{Outcome: load.ConnFailed, Count: bad}},
		}
		if good > 0 {
			o.Outcomes = append(o.Outcomes, record.SliceOutcome{Outcome: load.OK, Count: good})
		}
		s.Operations = []record.SliceOperation{{Operation: "health", Max: 0.002}, o}
		p.Done[load.OK] += good
		p.Done[load.ConnFailed] += bad
		p.InFlight = 10
		phase := run.Measuring
		if s.WarmUp {
			phase = run.WarmingUp
		}
		e := Soak{
			Planned: planned, Elapsed: at, Left: warm + planned - at, WarmUp: s.WarmUp, Slice: s, Cut: true, Restarts: restarts,
			Progress: p,
		}
		events = append(events, run.Event{Phase: phase, Treatment: "pdp", Trial: 1, Trials: 2, Detail: &e})
		again := e
		again.Cut, again.Elapsed = false, at+time.Second
		events = append(events, run.Event{Phase: phase, Treatment: "pdp", Trial: 1, Trials: 2, Detail: &again})
	}
	return events
}

func sameAsFile(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if os.Getenv("UPDATE_VIEWS") != "" {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("%s (-want +got):\n%s", name, d)
	}
}

// TestSoakInPlainLines: without a terminal a soak prints one line a minute, and one for each event.
func TestSoakInPlainLines(t *testing.T) {
	var b bytes.Buffer
	show := NewView(design.Soak, "xacml", term.NewView(&b, false, nil, time.Now))
	events := soakEvents()
	for _, e := range events {
		show(e)
	}
	sameAsFile(t, "view_soak_plain.txt", b.String())
	if n := strings.Count(b.String(), "\n"); n > 11+4 {
		t.Errorf("%d lines in eleven minutes", n)
	}
}

func TestSoakOnATerminal(t *testing.T) {
	live := term.NewView(&bytes.Buffer{}, true, func() (int, int) { return 100, 40 }, time.Now)
	v := &soakView{Screen: &Screen{View: live, Name: "xacml"}}
	var shown []string
	for i, e := range soakEvents() {
		v.show(e)
		if i == 0 || i%130 == 1 {
			lines := v.lines(e, soakState(e))
			if len(lines) > 8 {
				t.Errorf("%d lines", len(lines))
			}
			shown = append(shown, strings.Join(lines, "\n")+"\n")
		}
	}
	sameAsFile(t, "view_soak_live.txt", strings.Join(shown, "\n"))
}

// TestEmptySliceShowsNothing: the view shows no values for a slice without calls or without readings.
func TestEmptySliceShowsNothing(t *testing.T) {
	m := sliceMoment(record.Slice{}, record.Slice{End: time.Second})
	if m.rate != 0 || m.errors != 0 || m.p99 != 0 || m.cpu >= 0 || m.rss >= 0 || target(m, 0) != "" {
		t.Errorf("an empty slice shows %+v, want no values", m)
	}
}
