package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"tare/internal/chart"
	"tare/internal/stat"
	"tare/internal/unit"
)

// maxColumns limits the columns of a heat map: with more blocks, several share a column.
const maxColumns = 48

// steady is a deviation of a whole block that is too small to mention.
const steady = 0.05

// A heat map's row shows how far each block of one arm was from that arm's own median; NaN if it was not measured.
type deviations struct {
	arm    string
	values []float64
}

// heatBlocks show the noise of the host: each arm's blocks relative to that arm's own median, which removes the
// treatments' costs. Noise of the host appears as a column through all arms.
func heatBlocks(r *Report) []block {
	all := ratedBlocks(r)
	if len(all) == 0 {
		return nil
	}
	joint := jointly(r, all)
	if len(joint) == 0 || len(joint[0].values) < 2 {
		return nil
	}
	out := []block{
		{Heading: "Block by block"},
		{Text: blockText(joint)},
		{Figure: heatFigure(r, "all deciding metrics together", joint, "chart-7-blocks", len(all))},
	}
	if k := mostVaried(all); len(all) > 1 {
		out = append(out, block{Figure: heatFigure(r, "the noisiest: "+all[k].name, all[k].rows, "chart-7-noisiest", 1)})
	}
	return append(out, whenAsked("How much each arm varied from block to block", variation(all))...)
}

// A rated is the deviations of one quantity under every arm.
type rated struct {
	name string
	rows []deviations
}

// ratedBlocks returns the deviations of the deciding metrics; if none is marked as deciding, of all metrics.
func ratedBlocks(r *Report) []rated {
	deciding := func(b *BlockValues) bool {
		return slices.ContainsFunc(r.Effects, func(e Effect) bool {
			return e.Primary() && e.Operation == b.Operation && e.Metric == b.Metric && e.Quantile == b.Quantile
		})
	}
	marked := false
	for i := range r.Blocks {
		marked = marked || deciding(&r.Blocks[i])
	}
	var all []rated
	order := ranks(r)
	for i := range r.Blocks {
		b := &r.Blocks[i]
		if marked && !deciding(b) {
			continue
		}
		d, ok := deviationsOf(b)
		if !ok {
			continue
		}
		name := b.measured()
		k := slices.IndexFunc(all, func(x rated) bool { return x.name == name })
		if k < 0 {
			k = len(all)
			all = append(all, rated{name: name})
		}
		all[k].rows = append(all[k].rows, d)
	}
	for i := range all {
		slices.SortStableFunc(all[i].rows, func(a, b deviations) int { return cmp.Compare(order(a.arm), order(b.arm)) })
	}
	return all
}

// deviationsOf relates each block to the arm's median; ok is false if a share of the median has no meaning.
func deviationsOf(b *BlockValues) (d deviations, ok bool) {
	d = deviations{arm: b.Treatment, values: make([]float64, len(b.Values))}
	middle := median(pointed(b.Values))
	if !(middle > 0) {
		return d, false
	}
	for i, v := range b.Values {
		d.values[i] = orNaN(v)/middle - 1
	}
	return d, true
}

func pointed(v []*float64) []float64 {
	out := make([]float64, len(v))
	for i := range v {
		out[i] = orNaN(v[i])
	}
	return out
}

// median ignores NaN; without values it is NaN.
func median(v []float64) float64 {
	return stat.Median(slices.DeleteFunc(slices.Clone(v), math.IsNaN))
}

// jointly returns the median over quantities of each arm's deviations and, as the last row, over all arms.
func jointly(r *Report, all []rated) []deviations {
	per := map[string][][]float64{}
	blocks := 0
	for _, x := range all {
		for _, d := range x.rows {
			per[d.arm] = append(per[d.arm], d.values)
			blocks = max(blocks, len(d.values))
		}
	}
	order := ranks(r)
	var out []deviations
	for arm, rows := range per {
		out = append(out, deviations{arm: arm, values: across(rows, blocks)})
	}
	slices.SortFunc(out, func(a, b deviations) int {
		return cmp.Or(cmp.Compare(order(a.arm), order(b.arm)), strings.Compare(a.arm, b.arm))
	})
	if len(out) > 1 {
		var rows [][]float64
		for _, d := range out {
			rows = append(rows, d.values)
		}
		out = append(out, deviations{arm: allArms, values: across(rows, blocks)})
	}
	return out
}

const allArms = "median of all arms"

// across returns the median of rows, block by block.
func across(rows [][]float64, blocks int) []float64 {
	out := make([]float64, blocks)
	for k := range out {
		var column []float64
		for _, row := range rows {
			if k < len(row) {
				column = append(column, row[k])
			}
		}
		out[k] = median(column)
	}
	return out
}

// blockText names the blocks that were disturbed in every arm.
func blockText(joint []deviations) string {
	last := joint[len(joint)-1]
	text := "Each cell shows how far a block was from its own arm's median, without the controls' costs. A column of " +
		"one colour is the host, which the effects do not contain; a row that changes its colour is one arm that drifts."
	if last.arm != allArms {
		return text
	}
	type hit struct {
		block int
		by    float64
	}
	var hits []hit
	for k, v := range last.values {
		if math.Abs(v) >= steady && sameDirection(joint[:len(joint)-1], k, v) {
			hits = append(hits, hit{k + 1, v})
		}
	}
	if len(hits) == 0 {
		return text + " No block was more than " + axisShare(steady) + " off in every arm."
	}
	slices.SortStableFunc(hits, func(a, b hit) int { return cmp.Compare(math.Abs(b.by), math.Abs(a.by)) })
	var named []string
	for _, h := range hits[:min(3, len(hits))] {
		named = append(named, fmt.Sprintf("block %d by %s", h.block, tickShare(math.Round(h.by*100)/100)))
	}
	return text + " Off in every arm, by more than " + axisShare(steady) + ": " + unit.Count(len(hits), "block") + " of " +
		strconv.Itoa(len(last.values)) + ", most of all " + listed(named) + "."
}

// sameDirection reports whether all arms of a block deviated in the same direction.
func sameDirection(rows []deviations, k int, v float64) bool {
	for _, d := range rows {
		if k < len(d.values) && d.values[k]*v <= 0 {
			return false
		}
	}
	return true
}

// mostVaried returns the quantity whose arms vary most.
func mostVaried(all []rated) int {
	worst, most := 0, -1.0
	for i, x := range all {
		var spreads []float64
		for _, d := range x.rows {
			spreads = append(spreads, spreadOf(d.values))
		}
		if m := median(spreads); m > most {
			worst, most = i, m
		}
	}
	return worst
}

// spreadOf returns the median of the magnitudes of deviations.
func spreadOf(v []float64) float64 {
	sizes := make([]float64, len(v))
	for i := range v {
		sizes[i] = math.Abs(v[i])
	}
	return median(sizes)
}

// heatFigure draws deviations. If blocks share a column, it shows the largest one.
func heatFigure(r *Report, name string, rows []deviations, id string, of int) *figure {
	blocks := 0
	for _, d := range rows {
		blocks = max(blocks, len(d.values))
	}
	each := (blocks + maxColumns - 1) / maxColumns
	h := chart.Heat{
		Title: "Blocks by treatment, " + name, Desc: "How far each block of each arm was from that arm's median: " + name +
			".", ColLabel: "block, in the order of the run", Diverging: true,
		Format: func(v float64) string { return tickShare(math.Round(v*1000) / 1000) },
	}
	for k := 0; k < blocks; k += each {
		label := strconv.Itoa(k + 1)
		if last := min(k+each, blocks); last > k+1 {
			label += "–" + strconv.Itoa(last)
		}
		h.Cols = append(h.Cols, label)
	}
	var sizes []float64
	for _, d := range rows {
		var cells []float64
		for k := 0; k < len(d.values); k += each {
			v := furthest(d.values[k:min(k+each, len(d.values))])
			cells = append(cells, v)
			if !math.IsNaN(v) {
				sizes = append(sizes, math.Abs(v))
			}
		}
		h.Rows, h.Values = append(h.Rows, r.short(d.arm)), append(h.Values, cells)
	}
	h.Limit = shadeLimit(sizes)
	caption := name + "."
	if of > 1 {
		caption = "All " + strconv.Itoa(of) + " deciding quantities together: a cell is the median of their deviations."
	}
	if each > 1 {
		caption += " A column is " + strconv.Itoa(each) + " blocks; its cells show the one that was furthest off."
	}
	return &figure{SVG: drawn(h.SVG, id), Caption: caption}
}

func furthest(v []float64) float64 {
	most := nothing
	for _, x := range v {
		if math.IsNaN(most) || math.Abs(x) > math.Abs(most) {
			most = x
		}
	}
	return most
}

// shadeLimit returns where the strongest shade begins: above nineteen twentieths of the deviations, and at least at 1
// %, so that smaller deviations do not look like noise.
func shadeLimit(sizes []float64) float64 {
	if len(sizes) == 0 {
		return 0
	}
	slices.Sort(sizes)
	limit := max(1.5*sizes[len(sizes)*19/20], 0.01)
	digits := math.Pow(10, math.Floor(math.Log10(limit)))
	return math.Ceil(limit/digits) * digits
}

// variation returns a row for each quantity and arm.
func variation(all []rated) *grid {
	t := &grid{
		Caption: "Deviation of the blocks from their arm's median",
		table:   append(wordHeads("what", "arm"), numberHeads("blocks", "half within", "largest")...),
	}
	for _, x := range all {
		for _, d := range x.rows {
			n := 0
			for _, v := range d.values {
				if !math.IsNaN(v) {
					n++
				}
			}
			t.add(x.name, d.arm, strconv.Itoa(n), "±"+axisShare(math.Abs(spreadOf(d.values))), tickShare(furthest(d.values)))
		}
	}
	return t
}
