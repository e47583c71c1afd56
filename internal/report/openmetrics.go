package report

import (
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"tare/internal/metric"
	terminal "tare/internal/term"
)

// OpenMetrics writes the report's numbers as OpenMetrics 1.0 text, for a textfile collector, a push gateway or a job
// summary. All values are in base units; unknown values are absent. Every sample has the labels experiment, area and
// question. There are no timestamps, because most collectors reject them.
func OpenMetrics(w io.Writer, r *Report) error {
	e := exposition{common: labels{{"experiment", r.Experiment.Name}, {"area", r.Area}, {"question", string(r.Question)}}}
	e.run(r)
	e.budgets(r)
	e.capacity(r)
	e.operations(r)
	e.times(r)
	e.guard(r)
	e.soak(r)
	e.metrics(r)
	e.controlPlane(r)
	e.targets(r)
	e.generator(r.Generator)
	e.buf.WriteString("# EOF\n")
	_, err := io.WriteString(w, e.buf.String())
	return err
}

// An exposition collects metric families in order.
type exposition struct {
	buf    strings.Builder
	common labels
	family family
	// seen counts the label sets of the family: duplicate samples in a report must not become duplicate samples in the
	// text.
	seen map[string]int
}

// family is a metric family. Its unit, if it has one, is the last part of the name, as the specification demands.
type family struct {
	name, kind, unit, help string
	open                   bool // its descriptors are written
}

// The types of metric families.
const (
	gauge    = "gauge"
	counter  = "counter"
	info     = "info"
	stateset = "stateset"
	untyped  = "unknown"
)

// Units as OpenMetrics names them.
const (
	inSeconds   = "seconds"
	inBytes     = "bytes"
	inRatio     = "ratio"
	inPerSecond = "per_second"
)

// begin starts a family. The family appears only if a sample follows.
func (e *exposition) begin(name, kind, unit, help string) {
	if unit != "" {
		name += "_" + unit
	}
	e.family = family{name: "tare_" + name, kind: kind, unit: unit, help: help}
	e.seen = map[string]int{}
}

type label struct{ name, value string }

type labels []label

// with returns l with more labels.
func (l labels) with(more ...label) labels { return append(slices.Clip(l), more...) }

// String returns the label set as OpenMetrics writes it. An empty label equals an absent one.
func (l labels) String() string {
	var b strings.Builder
	for _, x := range l {
		if x.value == "" {
			continue
		}
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		b.WriteString(x.name + `="` + escapeLabel(x.value) + `"`)
	}
	return b.String()
}

// escapeLabel escapes a label's value. The format has three escapes; tabs become blanks, and other control characters
// and commands are replaced.
func escapeLabel(s string) string { return labelEscapes.Replace(terminal.Plain(s)) }

var labelEscapes = strings.NewReplacer("\t", " ", "\n", `\n`, `\`, `\\`, `"`, `\"`)

// add writes a sample of the family that was begun last. It omits a counter that went backwards or is not a number.
func (e *exposition) add(v float64, more ...label) {
	f := &e.family
	name := f.name
	switch f.kind {
	case counter:
		if !(v >= 0) {
			return
		}
		name += "_total"
	case info:
		name += "_info"
	}
	if !f.open {
		f.open = true
		e.buf.WriteString("# TYPE " + f.name + " " + f.kind + "\n")
		if f.unit != "" {
			e.buf.WriteString("# UNIT " + f.name + " " + f.unit + "\n")
		}
		e.buf.WriteString("# HELP " + f.name + " " + f.help + "\n")
	}
	set := e.common.with(more...)
	key := set.String()
	if e.seen[key]++; e.seen[key] > 1 {
		key = set.with(label{"repeat", strconv.Itoa(e.seen[key])}).String()
	}
	e.buf.WriteString(name)
	if key != "" {
		e.buf.WriteString("{" + key + "}")
	}
	e.buf.WriteString(" " + metricNumber(v) + "\n")
}

// opt adds a value that may be unknown.
func (e *exposition) opt(v *float64, more ...label) {
	if v != nil {
		e.add(*v, more...)
	}
}

// A familyOf is a family with samples for each item of a list.
type familyOf[T any] struct {
	name, kind, unit, help string
	samples                func(*T) []sample
}

// A sample is a value of an item, with the labels that tell it from the item's others.
type sample struct {
	value  *float64
	labels labels
}

// gauges returns a family of gauges, one per item.
func gauges[T any](name, unit, help string, value func(*T) *float64) familyOf[T] {
	return familyOf[T]{name, gauge, unit, help, func(x *T) []sample { return []sample{{value: value(x)}} }}
}

// counters returns a family of counters, one per item.
func counters[T any](name, unit, help string, value func(*T) *float64) familyOf[T] {
	c := gauges(name, unit, help, value)
	c.kind = counter
	return c
}

// write writes families. name returns the labels of an item.
func write[T any](e *exposition, items []*T, name func(*T) labels, families ...familyOf[T]) {
	for _, c := range families {
		e.begin(c.name, c.kind, c.unit, c.help)
		for _, x := range items {
			for _, s := range c.samples(x) {
				e.opt(s.value, name(x).with(s.labels...)...)
			}
		}
	}
}

// maxSeries limits how many items of a list are written: a hostile or very large record can have very many, and a time
// series database stores each of them forever.
const maxSeries = 500

// few returns the first items of a list.
func few[T any](all []T) []*T { return pointers(all[:min(len(all), maxSeries)]) }

// within returns a value from a part of the report that may be absent.
func within[T any](part *T, of func(*T) *float64) *float64 {
	if part == nil {
		return nil
	}
	return of(part)
}

// A quantile is a value with its fraction, as the label prints it.
type quantile struct {
	fraction string
	value    *float64
}

// quantiles returns samples that differ in their quantile.
func quantiles(all ...quantile) []sample {
	out := make([]sample, len(all))
	for i, q := range all {
		out[i] = sample{q.value, labels{{"quantile", q.fraction}}}
	}
	return out
}

// samples returns the quantiles of a distribution in ascending order; none if there is no distribution.
func (d *Distribution) samples() []sample {
	if d == nil {
		return nil
	}
	return quantiles(quantile{"0", &d.Min}, quantile{"0.5", d.P50}, quantile{"0.9", d.P90}, quantile{"0.95", d.P95},
		quantile{"0.99", d.P99}, quantile{"0.999", d.P999}, quantile{"1", &d.Max})
}

// states adds one sample for each state of a stateset: 1 for the current state.
func (e *exposition) states(is string, all []string, more ...label) {
	for _, s := range all {
		v := 0.0
		if s == is {
			v = 1
		}
		e.add(v, append(slices.Clip(more), label{e.family.name, s})...)
	}
}

func metricNumber(v float64) string {
	switch {
	case math.IsNaN(v):
		return "NaN"
	case math.IsInf(v, 1):
		return "+Inf"
	case math.IsInf(v, -1):
		return "-Inf"
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}

func boolean(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// stateNames returns verdicts as the states of a stateset.
func stateNames[T ~string](all []T) []string {
	out := make([]string, len(all))
	for i, v := range all {
		out[i] = string(v)
	}
	return out
}

// run writes what was run, how it ended and its verdict.
func (e *exposition) run(r *Report) {
	e.begin("run", info, "", "What was run, where, and by which version.")
	e.add(1, label{"file", r.Experiment.File}, label{"sha256", r.Experiment.SHA256},
		label{"seed", strconv.FormatUint(r.Experiment.Seed, 10)},
		label{"version", r.Tool.Version}, label{"commit", r.Tool.Commit}, label{"host", r.Environment.Host},
		label{"kernel", r.Environment.Kernel})
	e.begin("run_start_timestamp", gauge, inSeconds, "When the run began, since the Unix epoch.")
	e.add(float64(r.Started.UnixMilli()) / 1e3)
	e.begin("run_duration", gauge, inSeconds, "How long the run took.")
	e.add(r.Seconds)
	e.begin("run_status", stateset, "", "How the run ended.")
	e.states(string(r.Status), []string{string(Complete), string(Interrupted), string(Killed), string(Errored)})
	e.begin("run_verdict", stateset, "", "The verdict on the whole run.")
	e.states(string(r.Verdict), stateNames(Verdicts()))
	e.begin("run_warnings", gauge, "", "How many warnings the report has.")
	e.add(float64(len(r.Warnings)))
	e.begin("treatment_verified", gauge, "", "1 if the treatment was proved in force.")
	for i := range r.Treatments {
		e.add(boolean(r.Treatments[i].Verified), label{"treatment", r.Treatments[i].ID})
	}
}

// budgets writes a budget's limit and measured value in families without a unit: the unit is in the label.
func (e *exposition) budgets(r *Report) {
	name := func(b *Budget) labels { return labels{{"budget", b.Text}, {"treatment", b.Treatment}} }
	e.begin("budget_verdict", stateset, "", "The verdict on a budget.")
	for i := range r.Budgets {
		e.states(string(r.Budgets[i].Verdict), stateNames(Verdicts()), name(&r.Budgets[i])...)
	}
	united := func(b *Budget) labels { return name(b).with(label{"unit", b.unitWord()}) }
	write(e, pointers(r.Budgets), united,
		gauges("budget_limit", "", "A budget's limit, in the unit of the label.",
			func(b *Budget) *float64 { return b.Limit }),
		gauges("budget_estimate", "", "The measured value for a budget, in the unit of the label.",
			func(b *Budget) *float64 { return b.Estimate }),
		gauges("budget_lower", "", "The lower bound of what was measured for a budget, in the unit of the label.",
			func(b *Budget) *float64 { return b.Lo }),
		gauges("budget_upper", "", "The upper bound of what was measured for a budget, in the unit of the label.",
			func(b *Budget) *float64 { return b.Hi }),
	)
}

// unitWord returns the unit of a budget's numbers; those of a trend are per hour, as in the file.
func (b *Budget) unitWord() string {
	if b.drift() {
		return unitWord(b.Unit) + "_per_hour"
	}
	return unitWord(b.Unit)
}

// unitWord returns a base unit as OpenMetrics names it.
func unitWord(u metric.Unit) string {
	switch u {
	case metric.Seconds:
		return inSeconds
	case metric.CPUSeconds:
		return "cpu_" + inSeconds
	case metric.Bytes:
		return inBytes
	case metric.PerSecond:
		return inPerSecond
	case metric.Ratio:
		return inRatio
	case metric.Count:
		return "count"
	}
	return string(u)
}
