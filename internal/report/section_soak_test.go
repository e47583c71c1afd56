package report

import (
	"encoding/json"
	"math"
	"regexp"
	"strings"
	"testing"
)

// TestSoakLeads: the first thing on the page is how long it held and what drifts, then what makes that worth little.
func TestSoakLeads(t *testing.T) {
	page := bare(render(t, recorded("soak")))
	at := -1
	for _, want := range []string{
		"It held 50m with 10 workers, but for 12 s in 1 outage:", "rss grows by 60 MiB/h [57.9, 62.2]: a leak?",
		"guard-frequency: 7 of 283134 answers were not what was expected.",
		"permit: the target counted 81197, its callers 493201", "<caption>Budgets</caption>", `id="q1"`, "<caption>The summary report, as JMeter has it</caption>", `id="q2"`,
	} {
		i := strings.Index(page, want)
		if i <= at {
			t.Errorf("%q is at %d, want it after what comes before (%d)", want, i, at)
		}
		at = max(at, i)
	}
}

func TestInvalidSoakSaysSo(t *testing.T) {
	r := recorded("soak")
	r.Verdict, r.Reason = Invalid, "a known deny is permitted"
	if page := render(t, r); !strings.Contains(page,
		"✗ INVALID</strong> Nothing of this counts: a known deny is permitted. What was seen: It held 50m") {
		t.Errorf("not said: %s", regexp.MustCompile(`<p class="lead.*`).FindString(page))
	}
}

// TestTrendLines: one piece for each stretch between restarts, all with the slope of the estimate and through the mean
// of the stretch; the warm-up and the window of the restart are left out.
func TestTrendLines(t *testing.T) {
	const perHour = 3600.0
	s := Soak{
		Drift:    map[string]Drift{"rss": {PerHour: perHour, Lo: new(perHour / 2), Hi: new(perHour * 2)}},
		Restarts: []float64{55},
	}
	for k := range 10 {
		at := float64(k) * 10
		v := 100 + at
		if at > 50 {
			v = 20 + at
		}
		if k < 2 {
			v = 1e6 // a warm-up that would spoil any mean
		}
		s.Moments = append(s.Moments, Moment{Start: at, End: at + 10, WarmUp: k < 2, Restarted: k == 5, RSS: &v})
	}
	c := soakChart{s: &s}
	for i := range s.Moments {
		c.middle = append(c.middle, s.Moments[i].Start+5)
	}
	y := c.each(func(m *Moment) *float64 { return m.RSS })
	all := c.trend("rss", y)
	if len(all) != 1 {
		t.Fatalf("%d series", len(all))
	}
	l := all[0]
	// Windows 2 to 4 and 6 to 9 are measured; of each stretch its first middle, its mean and its last.
	for i, want := range [][2]float64{{25, 120}, {35, 130}, {45, 140}, {0, math.NaN()}, {65, 80}, {80, 95}, {95, 110}} {
		if math.IsNaN(want[1]) {
			if !math.IsNaN(l.Y[i]) {
				t.Errorf("no gap between the stretches: %v", l.Y)
			}
			continue
		}
		if math.Abs(l.X[i]-want[0]) > 1e-9 || math.Abs(l.Y[i]-want[1]) > 1e-9 {
			t.Errorf("point %d is (%v, %v), want %v", i, l.X[i], l.Y[i], want)
		}
	}
	// The band has no width at the mean, and half and twice the slope at the ends.
	if l.Lo[1] != l.Hi[1] || math.Abs(l.Lo[2]-135) > 1e-9 || math.Abs(l.Hi[2]-150) > 1e-9 || math.Abs(l.Lo[0]-110) > 1e-9 {
		t.Errorf("the band is %v to %v", l.Lo, l.Hi)
	}
	s.Drift["rss"] = Drift{PerHour: perHour}
	if got := c.trend("rss", y); got != nil {
		t.Error("a trend without an interval is drawn")
	}
}

// TestLongSoaksStaySmall: 24 hours in 360 moments of six operations make a page that can be mailed, and its data is a
// whole report but for the moments.
func TestLongSoaksStaySmall(t *testing.T) {
	r := recorded("soak")
	s := &r.Soak[0]
	one := s.Moments[len(s.Moments)-1]
	for _, o := range one.Operations {
		o.Operation += "-again"
		one.Operations = append(one.Operations, o)
	}
	s.Moments = nil
	for k := range 360 {
		m := one
		m.Start, m.End, m.WarmUp = float64(k)*240, float64(k+1)*240, k < 2
		m.Good = 549.123456789012 + float64(k)/7
		s.Moments = append(s.Moments, m)
	}
	page := render(t, r)
	if len(page) > 1<<20 {
		t.Errorf("the page has %d KiB", len(page)>>10)
	}
	inside := regexp.MustCompile(`(?s)<script type="application/json" id="report">(.*?)</script>`).FindStringSubmatch(page)
	var back Report
	if err := json.Unmarshal([]byte(inside[1]), &back); err != nil {
		t.Fatal(err)
	}
	if len(back.Soak) != len(r.Soak) || back.Soak[0].Total == nil || len(back.Soak[0].Moments) != 0 {
		t.Errorf("%d soaks with %d moments are embedded, want all soaks and no moments",
			len(back.Soak), len(back.Soak[0].Moments))
	}
	if !strings.Contains(page, "but for its moments, which would make the page too large") {
		t.Error("the page does not say what its data lacks")
	}
	if len(r.Soak[0].Moments) != 360 {
		t.Error("the report itself lost its moments")
	}
}

// TestMarksOfASoak: warm-up, outage and restart are marked in the chart, with words.
func TestMarksOfASoak(t *testing.T) {
	drawing := svgs.FindString(render(t, recorded("soak")))
	for _, want := range []string{
		"warm-up", "outage", "restart", "rss trend, 60 MiB/h", "time in garbage collection",
		"heap in use", "response, p99", "guard-frequency",
	} {
		if !strings.Contains(drawing, want) {
			t.Errorf("the chart does not say %q", want)
		}
	}
	r := recorded("soak")
	for i := range r.Soak[0].Moments {
		m := &r.Soak[0].Moments[i]
		for k := range m.Operations {
			m.Operations[k].P50, m.Operations[k].P99 = nil, nil
		}
	}
	if page := render(t, r); strings.Contains(svgs.FindString(page), "response, p99") ||
		!strings.Contains(page, "Response times are not drawn") {
		t.Error("response times that are not known have a panel, or nothing says that they are not known")
	}
	r.Soak[0].Moments = nil
	if page := render(t, r); strings.Contains(page, "chart-5-soak") {
		t.Error("a chart of nothing is drawn")
	}
}
