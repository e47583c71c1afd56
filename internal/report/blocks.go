package report

import (
	"cmp"
	"errors"
	"math"
	"slices"
	"strings"

	"tare/internal/design"
	"tare/internal/metric"
)

// The values of blocks, for other tools' formats.

// ErrNoTimes reports that a format for times was requested, and the report has no times.
var ErrNoTimes = errors.New("hyperfine: this format holds only times, and the report has no elapsed times by block " +
	"(metrics wall or response.p50); benchfmt has the other metrics")

// ErrFailedCalls reports that a format for times without failures was requested, and failed calls leave a time untold.
var ErrFailedCalls = errors.New("hyperfine: this format has no place for failed calls, benchfmt has")

// ErrNoBlocks reports that a format for blocks was requested, and the report has none: only comparisons measure in
// blocks.
var ErrNoBlocks = errors.New("this format holds values block by block, and the report has none: only the questions " +
	"compare and scale measure in blocks; use json, html or openmetrics")

// A series is one operation under one treatment, measured block by block. untold are values that say nothing of the
// calls that were answered, since others failed: readers of these formats would take quick failures for quick answers.
type series struct {
	treatment      *Treatment
	operation      string
	values, untold []*BlockValues
}

// series groups the values of blocks, in the order of treatments and of the first mention of an operation.
func (r *Report) series() ([]series, error) {
	if len(r.Blocks) == 0 {
		return nil, ErrNoBlocks
	}
	var out []series
	at := map[[2]string]int{}
	for i := range r.Blocks {
		b := &r.Blocks[i]
		k := [2]string{b.Treatment, b.Operation}
		n, ok := at[k]
		if !ok {
			n = len(out)
			at[k] = n
			out = append(out, series{treatment: r.treatment(b.Treatment), operation: b.Operation})
		}
		if b.Untold != "" {
			out[n].untold = append(out[n].untold, b)
			continue
		}
		out[n].values = append(out[n].values, b)
	}
	order := map[string]int{}
	for i := range r.Treatments {
		order[r.Treatments[i].ID] = i - len(r.Treatments)
	}
	slices.SortStableFunc(out, func(a, b series) int { return cmp.Compare(order[a.treatment.ID], order[b.treatment.ID]) })
	return out, nil
}

// treatment returns the treatment of that name; if the report lacks it, one without levels.
func (r *Report) treatment(id string) *Treatment {
	for i := range r.Treatments {
		if r.Treatments[i].ID == id {
			return &r.Treatments[i]
		}
	}
	return &Treatment{ID: id}
}

// find returns the first value that matches, or nil.
func (s *series) find(is func(*BlockValues) bool) *BlockValues {
	if i := slices.IndexFunc(s.values, is); i >= 0 {
		return s.values[i]
	}
	return nil
}

// elapsed returns the time of a call as its user sees it: the main time of the series.
func (s *series) elapsed() *BlockValues {
	if b := s.find(isWall); b != nil {
		return b
	}
	return s.find(isElapsed)
}

func isWall(b *BlockValues) bool { return b.Metric == metric.Wall.Name && b.Quantile == "" }

// isElapsed reports whether values are such a time.
func isElapsed(b *BlockValues) bool {
	return isWall(b) || b.Metric == metric.Response.Name && b.Quantile == "p50"
}

// at returns the value of one block, and false if there is no finite value.
func (b *BlockValues) at(block int) (float64, bool) {
	if block >= len(b.Values) || b.Values[block] == nil {
		return 0, false
	}
	v := *b.Values[block]
	return v, !math.IsNaN(v) && !math.IsInf(v, 0)
}

// measuredValues returns the values of the blocks that have one.
func (b *BlockValues) measuredValues() []float64 {
	var out []float64
	for i := range b.Values {
		if v, ok := b.at(i); ok {
			out = append(out, v)
		}
	}
	return out
}

// factors returns the treatment's levels in the order of the experiment, as far as its name contains them; the A/A arm
// is marked as such.
func (r *Report) factors(t *Treatment) [][2]string {
	names := make([]string, 0, len(t.Levels))
	for f := range t.Levels {
		names = append(names, f)
	}
	rank := func(f string) int {
		if r.Design != nil {
			if i := slices.Index(r.Design.Factors, f); i >= 0 {
				return i
			}
		}
		return math.MaxInt
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(cmp.Compare(rank(a), rank(b)), strings.Compare(a, b)) })
	out := make([][2]string, 0, len(names)+1)
	for _, f := range names {
		out = append(out, [2]string{f, t.Levels[f]})
	}
	switch {
	case t.Control == design.AA:
		out = append(out, [2]string{"control", string(design.AA)})
	case len(out) == 0:
		out = append(out, [2]string{"treatment", t.ID})
	}
	return out
}
