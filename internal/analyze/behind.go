package analyze

import (
	"fmt"
	"math"
	"slices"
	"time"

	"tare/internal/budget"
	"tare/internal/design"
	"tare/internal/load"
	"tare/internal/metric"
	"tare/internal/record"
	"tare/internal/report"
	"tare/internal/stat"
	"tare/internal/unit"
)

const (
	// wavers is how much responses may rise within a turn for no reason, as a share of those at its begin.
	wavers = 0.5
	// fallsBehind is how much faster than the target's capacity a rate must be, as a share of it, for turns to show it.
	fallsBehind = 0.05
	// easily is the share of what the target did in turns that it takes without a queue.
	easily = 0.5
	// distance is how far apart the first and the last quarter of a turn are, without the calls that do not count.
	distance = 0.7
)

// A pace is what the calls of a trial's turns show of whether the target kept up with them. A turn ends when its last
// call has ended, so that its backlog is worked off before the next one: what is due in a turn shows no backlog.
type pace struct {
	first, last []float64       // response times of the first and the last quarter of the turns, in seconds
	ended       []time.Duration // by round: how long the calls of its turn took, from the turn's begin
}

// take takes in a call of a turn.
func (p *pace) take(c *load.Call, turn record.Turn, round int, settled bool) {
	if c.Done == 0 {
		return
	}
	for len(p.ended) <= round {
		p.ended = append(p.ended, 0)
	}
	p.ended[round] = max(p.ended[round], c.Done-turn.Start)
	quarter := (turn.End - turn.Start) / 4
	switch {
	case c.Intended >= turn.End-quarter:
		p.last = append(p.last, c.Response().Seconds())
	case settled && c.Intended < turn.Start+quarter:
		p.first = append(p.first, c.Response().Seconds())
	}
}

// behind reports whether responses rise within turns, as they do where calls queue up. Above the capacity they rise by
// rate ÷ capacity − 1 per second.
func (p *pace) behind(turn time.Duration) bool {
	first, last := midmean(p.first), midmean(p.last)
	return last-first > wavers*first+fallsBehind*distance*turn.Seconds()
}

// midmean is the mean of the middle half. It has no jumps where fast and slow operations are mixed, as a median has.
func midmean(v []float64) float64 {
	slices.Sort(v)
	sum, middle := 0.0, v[len(v)/4:len(v)-len(v)/4]
	for _, x := range middle {
		sum += x
	}
	return sum / float64(len(middle)) // NaN of none, which is not behind
}

// busy is how long the target worked for its turns: each turn until its last call had ended.
func (p *pace) busy(t *turns) (sum time.Duration) {
	for i, x := range t.list {
		length := x.End - x.Start
		if i < len(p.ended) {
			length = max(length, p.ended[i])
		}
		sum += length
	}
	return sum
}

// keepsUp says how the target kept up with the turns of a trial: goodput is then of the time that it needed. A closed
// loop waits for each answer and leaves no backlog, but its last call may end after the turn.
func (a *analysis) keepsUp(x *extract, g *gathering) {
	x.busy = x.seconds
	if !g.turns.taken {
		return
	}
	closed := a.rec.Plan.Load.Workers > 0
	x.behind = !closed && g.pace.behind(a.turnLength())
	if closed || x.behind {
		x.busy = g.pace.busy(&g.turns).Seconds()
	}
}

func (a *analysis) turnLength() time.Duration {
	if t := a.rec.Plan.Load.Turns; t != nil {
		return t.Length
	}
	return 0
}

// did is how many calls a second the target did at best in the turns of a trial: it was busy until the last had ended.
func (x *extract) did(rate float64) float64 { return rate * x.seconds / x.busy }

// behind says of which treatments the target did not keep up in most blocks, and keeps a rate at which it would.
func (a *analysis) behind(d *dataset) {
	least := math.Inf(1)
	for _, t := range d.arms {
		if 2*d.fellBehind[t.ID] <= len(d.blocks) {
			delete(d.fellBehind, t.ID)
			continue
		}
		a.warn(t.ID, "the target does not keep up with %s: within turns of %s responses rise, and what had to wait was "+
			"worked off between turns. Under standing load times are longer, more calls fail and goodput may be less: a soak, "+
			"or load: {turns: off}, shows it", unit.PerSecond(a.rec.Plan.Load.Rate), unit.Seconds(a.turnLength().Seconds()))
		least = min(least, stat.Quantile(d.did[t.ID], 0.5))
	}
	if slower := easily * least; !math.IsInf(slower, 1) && slower >= 1 {
		d.slower = math.Floor(slower)
		if d.slower >= 20 {
			d.slower -= math.Mod(d.slower, 10)
		}
	}
}

// queues are the metrics that get worse as a backlog grows.
func queues(m metric.Metric) bool { return timed(m) || m.Name == metric.Error.Name }

// unsettled says why turns do not show a value, or a change against base, of a metric; "" if they do. What they show
// to be worse stays so under standing load, unless the baseline would be worse, too: that is worse, with base behind
// better.
func (d *dataset) unsettled(treatment, base string, m metric.Metric, worse, better bool) string {
	x, y := d.fellBehind[treatment] > 0, d.fellBehind[base] > 0
	if !queues(m) || (!x && !y) || (worse && !y) || (better && !x) {
		return ""
	}
	who := treatment
	if !x {
		who = base
	}
	return fmt.Sprintf("%s does not keep up in turns, which do not show what it comes to under standing load", who)
}

// settled leaves a budget open that turns cannot decide.
func (c *comparison) settled(b *budget.Budget, treatment string, g gate, f finding) finding {
	m := c.find(treatment, g.operation, g.metric)
	if m == nil || f.why != "" {
		return f
	}
	base := ""
	if b.Limit.Against != budget.Absolute {
		i := slices.IndexFunc(c.arms, func(t design.Treatment) bool { return t.ID == treatment })
		from, _ := c.baselineOf(&c.arms[i])
		base = from.ID
	}
	harm := (b.Op == budget.AtMost) == (m.metric.Better != metric.Higher) // the limit is of how bad it may be
	fails := f.verdict == report.Fail
	// A limit from the other side fails where the treatment is not bad enough, and is kept where it is.
	if why := c.unsettled(treatment, base, m.metric, harm == fails, harm != fails); why != "" {
		f.verdict, f.how = report.Inconclusive, why
		f.Lo, f.Hi = math.Inf(-1), math.Inf(1)
	}
	return f
}
