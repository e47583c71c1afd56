package analyze

import (
	"math"
	"testing"

	"tare/internal/load"
	"tare/internal/metric"
	"tare/internal/probe"
	"tare/internal/record"
	"tare/internal/report"
)

// TestAnswersOfAComparison: answers are counted by operation, and both sides' counts add up over blocks.
func TestAnswersOfAComparison(t *testing.T) {
	t.Parallel()
	x := experiment{
		blocks: 4, calls: 40, operations: []string{"deny"}, cost: millisecond,
		fail: func(_ string, block, call int) bool { return block == 1 && call == 3 },
	}
	r, err := record.Open(x.write(t, t.TempDir()))
	must(t, err)
	for _, trial := range r.Trials {
		trial.TrialBegin.Answers = []string{"deny"}
		trial.Answers = []record.Answers{{
			Treatment: trial.Treatment, Seen: map[string]uint64{"deny": 100}, Before: map[string]float64{"deny": 5},
			After: map[string]float64{"deny": 105, "permit": 0},
		}}
		if trial.Treatment == seccomp && trial.Block == 2 {
			trial.Answers[0].After["permit"] = 7
		}
	}
	rep := analyzedRecord(t, r)
	checks := map[string]report.AnswerCheck{}
	for _, c := range rep.Answers {
		checks[c.Treatment+" "+c.Answer] = c
	}
	if c := checks[seccomp+" deny"]; !c.Agrees || c.Client != 400 || c.Target != 400 {
		t.Errorf("%+v", rep.Answers)
	}
	if c := checks[seccomp+" permit"]; c.Agrees || c.Client != 0 || c.Target != 7 || !warned(rep, `the target counted 7 answers "permit", and its callers got 0`) {
		t.Errorf("%+v, warnings %q", rep.Answers, rep.Warnings)
	}
	for _, op := range rep.Operations {
		if n := op.Answers["deny"]; n == 0 || n != op.Outcomes.Good() {
			t.Errorf("%s %s: %v of %+v", op.Treatment, op.Operation, op.Answers, op.Outcomes)
		}
	}
}

func TestCauseAnswerOf(t *testing.T) {
	t.Parallel()
	trial := &record.Trial{
		TrialBegin: record.TrialBegin{
			Answers: []string{"permit", ""}, CauseAnswers: [][]string{{"deny", "", "not-applicable"}},
		},
	}
	for _, c := range []struct {
		operation int
		cause     load.Cause
		want      string
	}{
		{0, load.OwnCauses, "deny"},
		{0, load.OwnCauses + 1, ""},
		{0, load.OwnCauses + 2, "not-applicable"},
		{0, load.OwnCauses + 3, ""},
		{0, load.CauseTLS, ""},
		{0, 0, ""},
		{1, load.OwnCauses, ""},
		{-1, load.OwnCauses, ""},
	} {
		if got := causeAnswerOf(trial, c.operation, c.cause); got != c.want {
			t.Errorf("operation %d, cause %d: %q, want %q", c.operation, c.cause, got, c.want)
		}
	}
	if answerOf(trial, 0) != "permit" || answerOf(trial, 1) != "" || answerOf(trial, 2) != "" ||
		answerOf(trial, -1) != "" {
		t.Error("answers of operations")
	}
}

// TestMeter: counters add up over readings, parts apart; what was replaced counts from 0, and what could not be read
// waits.
func TestMeter(t *testing.T) {
	t.Parallel()
	s := func(name, part string, v float64) metric.Sample {
		return metric.Sample{Subject: "pdp", Metric: name, Part: part, Value: v}
	}
	at := func(born, cpu, young, full, rss float64) []metric.Sample {
		return []metric.Sample{
			s(probe.Started.Name, "", born), s(probe.CPU.Name, "", cpu), s(probe.GCCount.Name, "young", young),
			s(probe.GCCount.Name, "full", full), s(probe.RSS.Name, "", rss),
		}
	}
	m := newMeter()
	var replaced []bool
	for _, reading := range [][]metric.Sample{
		at(1, 10, 5, 2, 100), at(1, 12, 8, 2, 300), nil, at(1, 15, 9, 3, 200), at(2, 1, 1, 0, 50), at(2, 4, 2, 0, 60),
	} {
		_, who := m.read(reading)
		replaced = append(replaced, len(who) > 0)
	}
	for k, want := range map[probed]float64{
		{probe.CPU.Name, ""}: 5 + 1 + 3, {probe.GCCount.Name, "young"}: 4 + 1 + 1, {probe.GCCount.Name, "full"}: 1,
		{probe.RSS.Name, ""}: 60,
	} {
		if got := m.sums["pdp"][k]; math.Abs(got-want) > 1e-12 {
			t.Errorf("%s: %v, want %v", k.name(), got, want)
		}
	}
	if m.times["pdp"] != 1 || !replaced[4] || replaced[3] || m.peaks["pdp"] != 300 {
		t.Errorf("replaced %v, %v times, peak %v", replaced, m.times, m.peaks)
	}
	// What a process held at most before that does not count.
	p := newMeter()
	for i, mark := range []float64{900, 900, 950, 80} {
		p.read([]metric.Sample{
			s(probe.Started.Name, "", float64(1+i/3)), s(probe.RSS.Name, "", 70), s(probe.RSSPeak.Name, "", mark),
		})
		if i == 0 {
			p.resetSums()
		}
		if want := []float64{0, 70, 950, 950}[i]; p.peaks["pdp"] != want {
			t.Errorf("reading %d: peak %v, want %v", i, p.peaks["pdp"], want)
		}
	}
	// Without a start, a count that falls tells of another process.
	n := newMeter()
	n.read([]metric.Sample{s(probe.SeriesTotal.Name, "requests", 50)})
	if _, who := n.read([]metric.Sample{s(probe.SeriesTotal.Name, "requests", 20)}); len(who) != 1 ||
		n.sums["pdp"][probed{probe.SeriesTotal.Name, "requests"}] != 20 {
		t.Errorf("replaced %v, %v", who, n.sums)
	}
}
