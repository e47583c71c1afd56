package probe

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
)

// A selector picks samples of one name by some of their labels.
type selector struct {
	text string // as the user wrote it
	want exposed
}

// parseSelector parses a series as a user names it: `name`, or `name{label="x",…}`. Omitted labels match all values,
// and matching samples are summed.
func parseSelector(text string) (selector, error) {
	s := selector{text: text}
	name, rest := takeName(strings.TrimSpace(text))
	s.want.name = name
	if after, ok := strings.CutPrefix(trimBlanks(rest), "{"); ok {
		var err error
		if rest, err = s.want.takeLabels(after); err != nil {
			return selector{}, fmt.Errorf("series %q: %w", text, err)
		}
	}
	if s.want.name == "" || strings.TrimSpace(rest) != "" {
		return selector{}, fmt.Errorf("series %q: want name or name{label=\"value\"}", text)
	}
	if strings.HasSuffix(s.want.name, "_bucket") && s.want.get("le") == "" {
		return selector{}, fmt.Errorf("series %q: buckets are cumulative, so that their sum means nothing: name one by "+
			"its label le", text)
	}
	return s, nil
}

func (s selector) matches(e exposed) bool {
	return e.name == s.want.name &&
		!slices.ContainsFunc(s.want.labels, func(l label) bool { return e.get(l.name) != l.value })
}

// isCounter reports whether a series only grows, by the type of its family or, without a type, by the suffix _total.
func (f families) isCounter(name string) bool {
	if t, ok := f[name]; ok && t != "untyped" && t != "unknown" {
		return t == "counter"
	}
	if base, ok := strings.CutSuffix(name, "_total"); ok {
		t, typed := f[base] // OpenMetrics names the family without it
		return !typed || t == "counter"
	}
	for _, suffix := range []string{"_count", "_sum", "_bucket"} {
		if base, ok := strings.CutSuffix(name, suffix); ok && (f[base] == "histogram" || f[base] == "summary") {
			return true
		}
	}
	return false
}

// A rule turns a well-known series into a quantity.
type rule struct {
	name  string
	label label // the label that a sample must have; no name: any sample
	q     Quantity
	part  string // a fixed part, or
	parts []string
	scale float64
	set   ruleSet
}

type ruleSet uint8

const (
	goRules ruleSet = iota
	jvmRules
	processRules
)

// rules returns the series of the Prometheus client libraries for Go and Java (two generations), of Micrometer, and
// those common to all client libraries. If several rules for a quantity match, the first counts: the others report the
// same under other names.
func rules() []rule {
	heap, meta := label{"area", "heap"}, label{"id", "Metaspace"}
	pool, by := label{"pool", "Metaspace"}, []string{"gc", "action"}
	return []rule{
		{name: "go_gc_duration_seconds_count", q: GCCount, part: "go", scale: 1},
		{name: "jvm_gc_collection_seconds_count", q: GCCount, parts: by, scale: 1, set: jvmRules},
		{name: "jvm_gc_pause_seconds_count", q: GCCount, parts: by, scale: 1, set: jvmRules},
		{name: "go_gc_duration_seconds_sum", q: GCTime, part: "go", scale: 1},
		{name: "jvm_gc_collection_seconds_sum", q: GCTime, parts: by, scale: 1, set: jvmRules},
		{name: "jvm_gc_pause_seconds_sum", q: GCTime, parts: by, scale: 1, set: jvmRules},
		{name: "go_memstats_heap_inuse_bytes", q: HeapUsed, scale: 1},
		{name: "jvm_memory_used_bytes", label: heap, q: HeapUsed, scale: 1, set: jvmRules},
		{name: "jvm_memory_bytes_used", label: heap, q: HeapUsed, scale: 1, set: jvmRules},
		{name: "go_memstats_heap_sys_bytes", q: HeapCommitted, scale: 1},
		{name: "jvm_memory_committed_bytes", label: heap, q: HeapCommitted, scale: 1, set: jvmRules},
		{name: "jvm_memory_bytes_committed", label: heap, q: HeapCommitted, scale: 1, set: jvmRules},
		{name: "jvm_memory_used_bytes", label: meta, q: Metaspace, scale: 1, set: jvmRules},
		{name: "jvm_memory_pool_used_bytes", label: pool, q: Metaspace, scale: 1, set: jvmRules},
		{name: "jvm_memory_pool_bytes_used", label: pool, q: Metaspace, scale: 1, set: jvmRules},
		{name: "go_goroutines", q: Goroutines, scale: 1},
		{name: "process_cpu_seconds_total", q: CPU, scale: 1, set: processRules},
		{name: "process_cpu_time_ns_total", q: CPU, scale: 1e-9, set: processRules},
		{name: "process_resident_memory_bytes", q: RSS, scale: 1, set: processRules},
		{name: "process_start_time_seconds", q: Started, scale: 1, set: processRules},
	}
}

// Bounds on what an endpoint or a JVM may make tare report.
const (
	partMax  = 100 // bytes of a part's name
	partsMax = 64  // parts of a quantity
)

// partOf names the part that a sample belongs to.
func (r rule) partOf(e exposed) string {
	for _, l := range r.parts {
		if v := e.get(l); v != "" {
			return printable(v, partMax)
		}
	}
	return r.part
}

// matches reports whether the rule applies to a sample. It skips the ZGC and Shenandoah collectors called cycles: they
// run concurrently, so their time is no pause.
func (r rule) matches(e exposed) bool {
	return e.name == r.name && (r.label.name == "" || e.get(r.label.name) == r.label.value) &&
		(r.q != GCTime || !strings.HasSuffix(r.partOf(e), " Cycles"))
}

// heapReleased is heap that Go has returned to the operating system; heap_sys still counts it.
const heapReleased = "go_memstats_heap_released_bytes"

// tally sums the samples of an exposition for the rules and the user's series.
type tally struct {
	rules     []rule
	byRule    []map[string]float64 // one for each rule: by part
	selectors []selector
	bySeries  map[string]float64 // by the selector's text
	released  float64
}

func newTally(sets []ruleSet, series []string) (*tally, error) {
	t := &tally{bySeries: make(map[string]float64)}
	for _, r := range rules() {
		if slices.Contains(sets, r.set) {
			t.rules = append(t.rules, r)
			t.byRule = append(t.byRule, make(map[string]float64))
		}
	}
	var errs []error
	for i, text := range series {
		if slices.Contains(series[:i], text) {
			continue
		}
		s, err := parseSelector(text)
		errs = append(errs, err)
		t.selectors = append(t.selectors, s)
	}
	return t, errors.Join(errs...)
}

func (t *tally) add(e exposed) {
	for i, r := range t.rules {
		if r.matches(e) && len(t.byRule[i]) <= partsMax {
			t.byRule[i][r.partOf(e)] += e.value * r.scale
		}
	}
	for _, s := range t.selectors {
		if s.matches(e) {
			t.bySeries[s.text] += e.value
		}
	}
	if e.name == heapReleased {
		t.released = e.value
	}
}

// samples adds the sums to out. It leaves out a sum that is not finite or, for a count, negative, and a quantity with
// too many parts.
func (t *tally) samples(types families, out *samples) {
	done := make(map[string]bool)
	for i, r := range t.rules {
		if n := len(t.byRule[i]); done[r.q.Name] || n == 0 || n > partsMax {
			continue
		}
		done[r.q.Name] = true
		for _, part := range sortedKeys(t.byRule[i]) {
			v := t.byRule[i][part]
			if r.q == HeapCommitted && r.set == goRules {
				v -= t.released
			}
			if finite(v) && v >= 0 {
				out.part(r.q, part, v)
			}
		}
	}
	for _, s := range t.selectors {
		v, found := t.bySeries[s.text]
		switch total := types.isCounter(s.want.name); {
		case !found || !finite(v):
		case total && v >= 0:
			out.part(SeriesTotal, s.text, v)
		case !total && !manyQuantiles(types, s):
			out.part(SeriesValue, s.text, v)
		}
	}
}

// manyQuantiles reports whether a selector sums several quantiles of a summary, which is meaningless.
func manyQuantiles(types families, s selector) bool {
	return types[s.want.name] == "summary" && s.want.get("quantile") == ""
}

func sortedKeys(m map[string]float64) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }
