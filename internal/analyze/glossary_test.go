package analyze

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"tare/internal/capacity"
	"tare/internal/design"
	"tare/internal/glossary"
	"tare/internal/limit"
	"tare/internal/load"
	"tare/internal/metric"
	"tare/internal/probe"
	"tare/internal/report"
	"tare/internal/signature"
	"tare/internal/stat"
)

// TestEveryWordIsExplained: whatever a report can say, "tare explain" knows. The test is here because the glossary lies
// below all packages whose words it holds. What an area's words explain is tested in cmd/tare.
func TestEveryWordIsExplained(t *testing.T) {
	t.Parallel()
	var words []string
	for _, c := range signature.Classes() {
		words = append(words, string(c))
	}
	for _, k := range limit.Kinds() {
		words = append(words, string(k))
	}
	for _, c := range []signature.Certainty{signature.Shown, signature.Likely, signature.NotKnown} {
		words = append(words, string(c))
	}
	for _, k := range []capacity.FindingKind{
		capacity.ColdStart, capacity.Autoscaling, capacity.SpentCredits, capacity.StaysDown,
	} {
		words = append(words, string(k))
	}
	for o := range load.Outcomes {
		words = append(words, load.Outcome(o).String())
	}
	for _, v := range report.Verdicts() {
		words = append(words, string(v))
	}
	for _, v := range report.EffectVerdicts() {
		words = append(words, string(v))
	}
	for _, q := range []design.Question{design.Compare, design.Scale, design.Capacity, design.Soak} {
		words = append(words, string(q))
	}
	for _, s := range []capacity.Stop{
		capacity.StopFound, capacity.StopMaxRate, capacity.StopClient, capacity.StopNoAnswer, capacity.StopFailing,
		capacity.StopTime,
		capacity.StopCanceled, capacity.StopDown, capacity.StopLadder, capacity.StopNoRetry,
	} {
		words = append(words, string(s))
	}
	for _, q := range probe.Quantities() {
		words = append(words, q.Name)
	}
	for _, m := range metric.Known() {
		words = append(words, m.Name)
	}
	for _, l := range stat.Laws() {
		words = append(words, string(l))
	}
	for _, v := range []any{
		report.Report{},
		report.Capacity{},
		limit.Verdict{},
		limit.Prediction{},
		limit.Tried{},
		signature.Failure{},
		signature.Exclusion{},
		report.Point{},
		report.Operation{},
		report.Outcomes{},
		report.Distribution{},
		report.Generator{},
		report.Budget{},
		report.Little{},
		report.Effect{},
		report.Design{},
		report.BlockValues{},
		report.Percentiles{},
		report.Percentile{},
		report.Growth{},
		report.GrowthPoint{},
		report.GrowthSide{},
		report.Step{},
		report.Bend{},
		report.Coefficients{},
		report.Crossing{},
		report.Interval{},
		report.Guard{},
		report.GuardPoint{},
		report.GuardCondition{},
		report.Trespasses{},
		report.Breach{},
		report.Onset{},
		report.Treatment{},
		report.Metric{},
		report.AA{},
		report.Soak{},
		report.Outage{},
		report.Moment{},
		report.MomentOperation{},
		report.Drift{},
		report.AnswerCheck{},
		report.Heap{},
		report.Target{},
	} {
		words = append(words, fields(v)...)
	}
	ofAnArea := []string{"attribution", "served"} // sections of a report of a control plane
	for _, w := range words {
		if slices.Contains(ofAnArea, w) {
			continue
		}
		if _, near, ok := glossary.Core().Lookup(w); !ok {
			t.Errorf("no entry for %q (near: %q)", w, near)
		}
	}
	if len(words) < 150 {
		t.Errorf("only %d words were looked up", len(words))
	}
}

// fields are the JSON names of a struct's fields.
func fields(v any) []string {
	var out []string
	for f := range reflect.TypeOf(v).Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		out = append(out, name)
	}
	return out
}
