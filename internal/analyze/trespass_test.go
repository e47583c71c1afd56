package analyze

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"tare/internal/budget"
	"tare/internal/design"
	"tare/internal/guard"
	"tare/internal/load"
	"tare/internal/metric"
	"tare/internal/record"
	"tare/internal/report"
)

// trespassed is the report on a soak of 60 windows of a second after ten of warm-up, whose load began 5 s after its
// stream did: each has 30 trespasses, of which so many were permitted. at is when breaches were, since the load began.
func trespassed(t *testing.T, permitted func(window int) uint64, at ...float64) *analysis {
	t.Helper()
	trial := &record.Trial{TrialBegin: record.TrialBegin{
		Trial: design.Trial{Treatment: "a"}, Operations: []string{"read", "delete"},
		Twins: map[string]string{"delete": "read"},
	}}
	const origin = 5 * time.Second
	for i := range 70 {
		start := origin + time.Duration(i)*time.Second
		k := permitted(i - 10)
		trial.Slices = append(trial.Slices, record.Slice{
			Start: start, End: start + time.Second, WarmUp: i < 10, Operations: []record.SliceOperation{
				{Operation: "read", Outcomes: []record.SliceOutcome{{Outcome: load.OK, Count: 70}}},
				{Operation: "delete", Outcomes: []record.SliceOutcome{
					{Outcome: load.Denied, Count: 30 - k}, {Outcome: load.Permitted, Count: k},
				}},
			},
		})
	}
	for _, s := range at {
		b, err := json.Marshal(guard.Breach{Operation: "delete", At: origin + time.Duration(s*float64(time.Second))})
		if err != nil {
			t.Fatal(err)
		}
		trial.Steps = append(trial.Steps, record.Step{Name: guard.StepBreach, Payload: b})
	}
	a := &analysis{rec: &record.Record{}, rep: &report.Report{Question: design.Soak}}
	a.rec.Header.Question = design.Soak
	a.soakedTrespasses(newSoak(trial))
	return a
}

// TestSoakedBreachesAreTimed: breaches of a soak are timed from the begin of its load, and those of the warm-up do not
// count.
func TestSoakedBreachesAreTimed(t *testing.T) {
	t.Parallel()
	a := trespassed(t, func(int) uint64 { return 1 }, 3, 20.1, 30.1)
	got := a.rep.Guard[0].Breaches
	if len(got) != 2 || got[0].At != 20.1 || got[1].At != 30.1 {
		t.Errorf("%+v, want two after 20.1 s and 30.1 s", got)
	}
}

// TestBurstsOfASoak: breaches of a soak that came in few stretches of time tell as much as so many events do, in the
// share and in a budget; those that came by themselves tell what single ones do.
func TestBurstsOfASoak(t *testing.T) {
	t.Parallel()
	for name, x := range map[string]struct {
		permitted func(window int) uint64
		stretches int
		times     float64 // the upper end, of the share
		limit     float64 // a multiple of the share
		want      report.Verdict
		why       string
	}{
		"six bursts": {
			permitted: func(w int) uint64 { return map[bool]uint64{w%10 == 5: 6}[true] }, stretches: 6, times: 2.1765,
			limit: 1.6, want: report.Inconclusive, why: "36 of 1800 trespasses were permitted: delete; they came in 6 stretches",
		},
		"six bursts, and a wide limit": {
			permitted: func(w int) uint64 { return map[bool]uint64{w%10 == 5: 6}[true] }, stretches: 6, times: 2.1765,
			limit: 2.5, want: report.Pass, why: "they came in 6 stretches",
		},
		"one long stretch": {
			permitted: func(w int) uint64 { return map[bool]uint64{w >= 40 && w < 44: 9}[true] }, stretches: 1, times: 5.5716,
			limit: 1.6, want: report.Inconclusive, why: "they came in 1 stretch",
		},
		"each by itself": {
			permitted: func(w int) uint64 { return map[bool]uint64{w%3 == 1: 1}[true] }, times: 1.5397, limit: 1.6,
			want: report.Pass, why: "20 of 1800 trespasses were permitted: delete",
		},
		"in most windows, and most of them in a few": {
			permitted: func(w int) uint64 { return map[bool]uint64{w%4 > 0: 1, w >= 20 && w < 24: 20}[true] }, times: 2.455,
			limit: 1.6, want: report.Inconclusive, why: "of 1800 trespasses",
		},
		"in most windows": {
			permitted: func(w int) uint64 { return map[bool]uint64{w%5 > 0: 1}[true] }, times: 1.3201, limit: 1.6,
			want: report.Pass, why: "48 of 1800 trespasses",
		},
	} {
		a := trespassed(t, x.permitted)
		g := &a.rep.Guard[0]
		share := g.Trespasses.Share
		if times := share.Hi / share.Value; g.Stretches != x.stretches || times < x.times-1e-3 || times > x.times+1e-3 {
			t.Errorf("%s: %d stretches, %+v, the upper end is %.4f of the share", name, g.Stretches, share, times)
		}
		if of := g.Operations["delete"].Share; *of != *share {
			t.Errorf("%s: of the operation %+v, of all %+v", name, of, share)
		}
		b := &budget.Budget{Metric: metric.Permitted.Name, Op: budget.AtMost, Limit: budget.Limit{
			Value: x.limit * share.Value, Unit: metric.Ratio, Against: budget.Absolute,
		}}
		f := a.guardFinding(b, "a")
		if f.verdict != x.want || !strings.Contains(f.how, x.why) || x.stretches == 0 && strings.Contains(f.how, "stretch") {
			t.Errorf("%s: %s, %q %+v; want %s, %q", name, f.verdict, f.how, f.Interval, x.want, x.why)
		}
	}
}
