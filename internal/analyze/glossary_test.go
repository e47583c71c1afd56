package analyze

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"tare/area"
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
		capacity.StopCanceled, capacity.StopDown, capacity.StopRefusing, capacity.StopLadder, capacity.StopNoRetry,
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
	words = append(words, fields(reflect.TypeFor[report.Report](), map[reflect.Type]bool{
		// Of these, the sentence, the column or the page says what they are.
		reflect.TypeFor[time.Time](): true, reflect.TypeFor[area.Quantity](): true, reflect.TypeFor[report.Cause](): true,
		reflect.TypeFor[report.Diff](): true, reflect.TypeFor[report.Finding](): true,
		reflect.TypeFor[report.GuardOverload](): true, reflect.TypeFor[report.Timeline](): true,
		reflect.TypeFor[report.Attribution](): true, reflect.TypeFor[report.Served](): true,
	})...)
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

// fields are the JSON names of the fields of a struct, and of all structs in it that are not in seen.
func fields(of reflect.Type, seen map[reflect.Type]bool) (names []string) {
	for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice || of.Kind() == reflect.Map {
		of = of.Elem()
	}
	if of.Kind() != reflect.Struct || seen[of] {
		return nil
	}
	seen[of] = true
	for f := range of.Fields() {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" && name != "-" { // of what is embedded
			names = append(names, name)
		}
		names = append(names, fields(f.Type, seen)...)
	}
	return names
}
