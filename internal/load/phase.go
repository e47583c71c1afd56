package load

import (
	"time"

	"tare/internal/hist"
)

// mostPhases bounds the phases of a Cell: names that a Go call generates must not use unbounded memory.
const mostPhases = 16

// mark counts the phases of a call that ended, beside record. A phase that never ended (At is zero) does not count. Nor
// do phases of a call that timed out: a call that the engine abandons cannot report them.
func (t table) mark(c *Call, marks []Mark, clock streamClock) {
	if c.Outcome == Timeout {
		return
	}
	cell := t[int(c.Operation)*Outcomes+int(c.Outcome)]
	for i := range marks {
		m := &marks[i]
		if m.At.IsZero() {
			continue
		}
		if h := cell.phase(m.Name); h != nil {
			h.Record(int64(durationOf(m, c.Sent, clock)))
		}
	}
}

// durationOf returns the length of the phase, at least 0. If one of its ends comes from another host's clock, it
// compares wall-clock times.
func durationOf(m *Mark, sent time.Duration, clock streamClock) time.Duration {
	if m.From.IsZero() {
		return max(0, time.Duration(clock.at(m.At))-sent)
	}
	return max(0, m.At.Sub(m.From))
}

// phase returns the histogram of the phase of that name; nil when there are too many.
func (c *Cell) phase(name string) *hist.Histogram {
	for i := range c.Phases {
		if c.Phases[i].Name == name {
			return c.Phases[i].Hist
		}
	}
	if len(c.Phases) >= mostPhases {
		return nil
	}
	h := new(hist.Histogram)
	c.Phases = append(c.Phases, Phase{Name: name, Hist: h})
	return h
}

// mergePhases adds the phases of o, and keeps nothing of them.
func (c *Cell) mergePhases(o *Cell) {
	for _, p := range o.Phases {
		if h := c.phase(p.Name); h != nil {
			h.Merge(p.Hist)
		}
	}
}
