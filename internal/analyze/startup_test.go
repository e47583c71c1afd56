package analyze

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"tare/internal/design"
	"tare/internal/hist"
	"tare/internal/load"
	"tare/internal/record"
	"tare/internal/report"
)

// startups writes the phases of n pods a trial: a tenth of them waits in admission for as long as slow.
func startups(n int, slow time.Duration) func(t *testing.T, w *record.Writer, trial design.Trial) {
	return func(t *testing.T, w *record.Writer, trial design.Trial) {
		phases := map[string]*hist.Histogram{}
		add := func(name string, d time.Duration) {
			if phases[name] == nil {
				phases[name] = &hist.Histogram{}
			}
			phases[name].Record(int64(d))
		}
		for i := range n {
			post, rest := 5*time.Millisecond, time.Duration(100+i%100)*time.Millisecond
			if i%10 == 0 && trial.Treatment == "policies=10" {
				post += slow
			}
			add("post", post)
			add("scheduled", rest/2)
			add("running", rest-rest/2)
			add("startup", post+rest)
			add("created-to-watch", rest.Truncate(time.Second)+time.Second)
			add("watch-to-watch", rest)
			add("conditions", time.Second)
		}
		var out []load.Phase
		for _, name := range []string{
			"startup", "conditions", "post", "scheduled", "running", "created-to-watch", "watch-to-watch",
		} {
			out = append(out, load.Phase{Name: name, Hist: phases[name]})
		}
		must(
			t,
			w.Cells(
				trial.Treatment, trial.Block,
				[]load.Cell{{Operation: 0, Outcome: load.OK, Response: phases["startup"], Phases: out}},
			),
		)
	}
}

// TestPodStartup: phases are of all trials, and time that is lost in admission is seen by the client's clock only.
func TestPodStartup(t *testing.T) {
	t.Parallel()
	x := admission("pod-startup", nil)
	x.blocks, x.calls = 20, 20
	x.beside = startups(500, 6*time.Second)
	x.fail = func(treatment string, block, call int) bool {
		return treatment == "policies=10" && block == 3 && call == 110
	}
	rep := analyzed(t, x.write(t, t.TempDir()))
	var names []string
	for _, p := range rep.Phases {
		if p.Treatment == "policies=10" {
			names = append(names, p.Phase)
			if p.N != 10_000 || p.Operation != "pod-startup" || p.P50 > p.P90 || p.P90 > p.P99 || p.P99 > p.Max || p.Mean <= 0 {
				t.Errorf("%+v", p)
			}
			if p.Phase == "post" && (math.Abs(p.P50-5e-3) > 1e-5 || math.Abs(p.P99/6.005-1) > .01 ||
				math.Abs(p.Mean/.605-1) > .01) {
				t.Errorf("post: %+v", p)
			}
		}
	}
	if want := []string{
		"post", "scheduled", "running", "startup", "created-to-watch", "watch-to-watch", "conditions",
	}; !slices.Equal(names, want) {
		t.Errorf("phases %q", names)
	}
	for _, c := range []struct {
		f     report.Formula
		want  report.Verdict
		value float64
	}{
		{report.Official, report.Pass, 1},
		{report.ClusterLoader2, report.Pass, .199},
		{report.KubeBurner, report.Pass, 1},
		{report.ClientClock, report.Fail, 6.19},
	} {
		s := levelOf(t, rep, "policies=10", "pod-startup", c.f)
		if s.Verdict != c.want || math.Abs(*s.Value/c.value-1) > .01 || s.Limit != 5 || s.N != 10_000 ||
			!strings.Contains(s.Note, "1 pod was never seen running") {
			t.Errorf("%s: %+v, value %v", c.f, s, *s.Value)
		}
		if base := levelOf(t, rep, "policies=0", "pod-startup", c.f); base.Verdict != report.Pass ||
			strings.Contains(base.Note, "never seen") {
			t.Errorf("baseline by %s: %+v", c.f, base)
		}
	}
	if s := levelOf(t, rep, "policies=10", "pod-startup", report.ClientClock); s.Lo == nil || *s.Lo > *s.Value ||
		*s.Hi < *s.Value || *s.Level != .95 {
		t.Errorf("without an interval: %+v", s)
	}
	if said := strings.Join(rep.Warnings, "\n"); !strings.Contains(
		said,
		"policies=10: the service level verdicts on pod-startup DISAGREE: official and clusterloader2 and kube-burner pass "+
			"it, client fail it. creationTimestamp",
	) {
		t.Errorf("warnings %q", said)
	}
}
