package main

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"tare/internal/report"
	"tare/internal/stat"
	"tare/internal/unit"
)

// tally counts what experiments of known truth came to.
type tally struct {
	n, invalid int
	wrong      int // experiments with a gating verdict that is not true, or invalid
	// of these, experiments that call something regressed or improved by more than the truth and the margin allow
	beyond  int
	blocks  []float64
	seconds []float64
	cells   []*cell
}

// cell is one gating effect over all experiments.
type cell struct {
	treatment, metric string
	truth             float64
	verdicts          map[report.EffectVerdict]int
	estimates         []float64
	covered, n        int
	halves            []float64
}

// add takes in one experiment.
func (t *tally) add(r *report.Report) {
	t.n++
	t.seconds = append(t.seconds, r.Seconds)
	if r.Design != nil {
		t.blocks = append(t.blocks, float64(r.Design.Blocks))
	}
	invalid := r.Verdict == report.Invalid
	wrong, beyond := invalid, false
	for i := range r.Effects {
		e := &r.Effects[i]
		if !e.Gating {
			continue
		}
		truth := planted(r, e.Treatment)
		t.cell(e, truth).add(e)
		margin := 0.02
		if e.Margin != nil {
			margin = *e.Margin
		}
		if !invalid && untrue(e.Verdict, truth, margin) {
			wrong = true
			beyond = beyond || e.Verdict == report.Regressed || e.Verdict == report.Improved
		}
	}
	if invalid {
		t.invalid++
	}
	if wrong {
		t.wrong++
	}
	if beyond {
		t.beyond++
	}
}

// untrue reports whether a verdict says what is not so. Undecided verdicts say nothing.
func untrue(v report.EffectVerdict, truth, margin float64) bool {
	switch v {
	case report.Regressed:
		return truth <= margin
	case report.Improved:
		return truth >= -margin
	case report.Slower:
		return truth <= 0
	case report.Faster:
		return truth >= 0
	case report.Equivalent:
		return math.Abs(truth) > margin
	case report.EffectInconclusive, report.NotJudged:
	}
	return false
}

// planted is the known cost of a treatment, as a share.
func planted(r *report.Report, treatment string) float64 {
	for _, t := range r.Treatments {
		if t.ID != treatment {
			continue
		}
		if p, err := unit.ParsePercent(t.Levels["planted"]); err == nil {
			return float64(p)
		}
	}
	return 0
}

func (t *tally) cell(e *report.Effect, truth float64) *cell {
	name := strings.TrimPrefix(e.Operation+"."+e.Metric, ".")
	if e.Quantile != "" {
		name += "." + e.Quantile
	}
	for _, c := range t.cells {
		if c.treatment == e.Treatment && c.metric == name {
			return c
		}
	}
	c := &cell{treatment: e.Treatment, metric: name, truth: truth, verdicts: map[report.EffectVerdict]int{}}
	t.cells = append(t.cells, c)
	return c
}

func (c *cell) add(e *report.Effect) {
	c.n++
	c.verdicts[e.Verdict]++
	c.estimates = append(c.estimates, e.Estimate)
	c.halves = append(c.halves, (e.Hi-e.Lo)/2)
	if e.Lo <= c.truth && c.truth <= e.Hi {
		c.covered++
	}
}

// write prints the tables in Markdown.
func (t *tally) write(w io.Writer, o options) error {
	var b bytes.Buffer
	p := func(format string, args ...any) { fmt.Fprintf(&b, format, args...) }
	p("%d experiments of %s, seeds %d to %d, %d busy loops beside them.\n\n", t.n, o.file, o.seed, o.seed+uint64(o.n)-1,
		o.busy)
	p("| | experiments |\n|---|--:|\n")
	p("| invalid (A/A arm or negative control not quiet) | %d |\n", t.invalid)
	p("| invalid, or a gating verdict that is not true | %d |\n", t.wrong)
	p("| called regressed or improved though the truth is within the margin | %d |\n", t.beyond)
	p("| blocks, median | %.0f |\n| seconds, median | %.0f |\n\n", stat.Quantile(t.blocks, .5),
		stat.Quantile(t.seconds, .5))
	p("| treatment | metric | truth | estimate, median | half width, median | covered | verdicts |\n" +
		"|---|---|--:|--:|--:|--:|---|\n")
	for _, c := range t.cells {
		p("| %s | %s | %+.1f %% | %+.2f %% | %.2f %% | %d of %d | %s |\n", c.treatment, c.metric, 100*c.truth,
			100*stat.Quantile(c.estimates, .5),
			100*stat.Quantile(c.halves, .5), c.covered, c.n, c.said())
	}
	p("\n")
	_, err := w.Write(b.Bytes())
	return err
}

// said lists the verdicts, the most frequent first.
func (c *cell) said() string {
	var words []report.EffectVerdict
	for v := range c.verdicts {
		words = append(words, v)
	}
	slices.SortFunc(words, func(a, b report.EffectVerdict) int {
		return 1000*(c.verdicts[b]-c.verdicts[a]) + strings.Compare(string(a), string(b))
	})
	var out []string
	for _, v := range words {
		out = append(out, fmt.Sprintf("%d %s", c.verdicts[v], v))
	}
	return strings.Join(out, ", ")
}
