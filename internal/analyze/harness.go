package analyze

import (
	"fmt"
	"maps"
	"strings"

	"tare/internal/design"
	"tare/internal/metric"
	"tare/internal/record"
	"tare/internal/report"
	"tare/internal/stat"
	"tare/internal/unit"
)

// A harness is what operations that do nothing cost. They stand in a dataset of their own, so that nothing judges them,
// corrects for them or compares them: their cost is part of every other operation's and is no treatment's doing.

// idle names the operations that do nothing, by what any of the trials says.
func idle(trials []*record.Trial) map[string]bool {
	out := map[string]bool{}
	for _, t := range trials {
		for _, name := range t.Harness {
			out[name] = true
		}
	}
	return out
}

// overheads are, by operation, the one that does nothing in the same loop, where a target says so.
func overheads(trials []*record.Trial) map[string]string {
	out := map[string]string{}
	for _, t := range trials {
		maps.Copy(out, t.Overhead)
	}
	return out
}

// overreadFrom is the share of a figure from which on the harness's own cost must stand beside it.
const overreadFrom = 0.05

// harness reports what doing nothing costs under each treatment, and how much of every other figure that is. It is
// subtracted nowhere: the loop around a call that does something need not cost what the loop around nothing does.
func (a *analysis) harness(c *comparison) {
	own := comparison{dataset: c.idle}
	for _, m := range c.idle.measures {
		x, ok := own.metricOf(m, m.main)
		if !ok || !adds(m) {
			continue
		}
		a.rep.Harness = append(a.rep.Harness, report.Harness{
			Treatment: m.treatment, Operation: m.operation, Metric: x.Name, Unit: m.metric.Unit,
			Value: x.Value, Lo: x.Lo, Hi: x.Hi, Level: x.Level, N: x.N,
		})
	}
	of := overheads(a.trials())
	for i := range a.rep.Treatments {
		t := &a.rep.Treatments[i]
		for k := range t.Metrics {
			x := &t.Metrics[k]
			if h := a.adding(t.ID, x.Name, of[x.Operation]); h != nil && x.Quantile == "" && x.Value > 0 {
				share := h.Value / x.Value
				x.Harness = &share
			}
		}
	}
	a.noteHarnessShare()
}

// adds reports whether m is an amount, of which a call's own and the harness's add up; a share of calls is none.
func adds(m *measure) bool { return m.metric.Unit != metric.Ratio && m.metric.Better == metric.Lower }

// adding is what the harness adds to a metric under a treatment: the cost of the operation own, or, where it was not
// measured or there is none, of whichever operation that does nothing costs most.
func (a *analysis) adding(treatment, name, own string) *report.Harness {
	var out *report.Harness
	for i := range a.rep.Harness {
		h := &a.rep.Harness[i]
		switch {
		case h.Treatment != treatment || h.Metric != name:
		case h.Operation == own:
			return h
		case out == nil || h.Value > out.Value:
			out = h
		}
	}
	return out
}

// noteHarnessShare notes the figures of which the harness is a good part: for each treatment that has most of one, a
// note with all of these.
func (a *analysis) noteHarnessShare() {
	worst := map[gate]string{}
	shares := map[gate]float64{}
	for i := range a.rep.Treatments {
		t := &a.rep.Treatments[i]
		for k := range t.Metrics {
			x := &t.Metrics[k]
			g := gate{x.Operation, x.Name, ""}
			if overreadable(t, x) && *x.Harness > shares[g] {
				worst[g], shares[g] = t.ID, *x.Harness
			}
		}
	}
	for i := range a.rep.Treatments {
		t := &a.rep.Treatments[i]
		var parts []string
		for k := range t.Metrics {
			x := &t.Metrics[k]
			g := gate{x.Operation, x.Name, ""}
			if overreadable(t, x) && worst[g] == t.ID {
				show := report.Amount(g.metric, metric.Unit(x.Unit))
				parts = append(parts, fmt.Sprintf("%s of %s (%s)", unit.Share(*x.Harness), g, show(x.Value)))
			}
		}
		if len(parts) > 0 {
			addOnce(&a.rep.Notes, fmt.Sprintf("the harness's own cost is %s under %s; it is not subtracted, so that relative "+
				"changes against these come out nearer to 0 than they are",
				strings.Join(parts, ", "), t.ID))
		}
	}
}

// overreadable reports whether a good part of x is the harness's.
func overreadable(t *report.Treatment, x *report.Metric) bool {
	return x.Harness != nil && *x.Harness >= overreadFrom && t.Control != design.AA
}

// skew notes gating metrics of which the mean is beyond the margin from the median, of the batches of blocks or of the
// blocks. Verdicts are of medians, which neither few batches move, such as those into which a garbage collection falls,
// nor few blocks, such as those of a process that is slow throughout; whether these are the host's noise or the
// target's work no statistic can tell.
func (a *analysis) skew(c *comparison) {
	for _, g := range c.gates.all {
		var batches, blocks skewest
		for _, m := range c.ofSubject[g.of()] {
			if g.quantile != m.main || m.treatment == design.AAArm || meansOnly(m.metric) {
				continue
			}
			if m.of == "batches" {
				share, ok := m.skewed(c.margin)
				batches.take(m, share, ok)
			}
			share, ok := m.skewedBlocks(c.margin)
			blocks.take(m, share, ok)
		}
		judges := ""
		if c.batched {
			judges = fmt.Sprintf(": a budget of %s.mean judges the mean", g)
		}
		if m := batches.worst; m != nil {
			addOnce(&a.rep.Notes, fmt.Sprintf("batches of %s are skewed: under %s their mean is %s above their median%s; "+
				"verdicts are of medians, which leave out what falls into few batches, such as a garbage collection%s",
				g, m.treatment, unit.Share(batches.by), batches.others(), judges))
		}
		if m := blocks.worst; m != nil {
			var apart []int
			for _, i := range m.apart() {
				apart = append(apart, c.blocks[i])
			}
			addOnce(&a.rep.Notes, fmt.Sprintf("blocks of %s are skewed: under %s their mean is %s above their median, by %s%s; "+
				"verdicts are of medians, which leave out what happens in few blocks, such as a process that is slow "+
				"throughout%s", g, m.treatment, unit.Share(blocks.by), blockList(apart), blocks.others(), judges))
		}
	}
}

// skewest is the treatment whose mean is furthest above its median.
type skewest struct {
	worst *measure
	by    float64
	all   int
}

func (s *skewest) take(m *measure, share float64, ok bool) {
	if !ok {
		return
	}
	s.all++
	if share > s.by {
		s.worst, s.by = m, share
	}
}

func (s *skewest) others() string {
	if s.all < 2 {
		return ""
	}
	return fmt.Sprintf(", and beyond the margin under %s", unit.Count(s.all-1, "further treatment"))
}

// skewed is by how much the mean of a block's batches exceeds their median, as a share of it: the median over blocks.
// It counts only if the whole interval is beyond the margin, for one disturbed block must not speak for all.
func (m *measure) skewed(margin float64) (share float64, ok bool) {
	var all []float64
	for i, s := range m.samples {
		if s != nil && s.Len() > 2 && m.value[i] > 0 {
			all = append(all, sampleMean(s)/m.value[i]-1)
		}
	}
	e, err := stat.MedianInterval(all, level)
	if err != nil || !isFinite(e.Lo) {
		return 0, false
	}
	return e.Value, e.Lo > margin
}

// apart are the places of the blocks whose values stand out above those of most.
func (m *measure) apart() (places []int) {
	values := measuredOnly(m.value)
	limit := stat.Median(values) + outlier*spreadOf(values)
	for i, v := range m.value {
		if v > limit {
			places = append(places, i)
		}
	}
	return places
}

// skewedBlocks is by how much the mean of all blocks exceeds their median, as a share of it. It counts beyond the
// margin, where some blocks are unlike the others.
func (m *measure) skewedBlocks(margin float64) (share float64, ok bool) {
	values := measuredOnly(m.value)
	if len(values) < minBlocks {
		return 0, false
	}
	share = stat.Mean(values)/stat.Median(values) - 1
	return share, share > margin && isFinite(share) && len(m.apart()) > 0
}
