package load

import "tare/internal/hist"

// A table holds one Cell per operation and outcome, made when the first call needs it.
type table []*Cell

func newTable(operations int) table { return make(table, operations*Outcomes) }

// A footnote is what a table keeps of a call beside its record: its status or errno, and its sizes.
type footnote struct {
	code    uint16 // the errno of a ConnFailed call, else a status
	in, out uint64 // bytes
}

// record counts a call that has ended.
func (t table) record(c *Call, n footnote) {
	k := int(c.Operation)*Outcomes + int(c.Outcome)
	cell := t[k]
	if cell == nil {
		cell = newCell(int(c.Operation), c.Outcome)
		t[k] = cell
	}
	cell.Response.Record(int64(c.Done - c.Intended))
	if c.Ready != 0 {
		cell.PoolWait.Record(int64(c.Ready - c.Intended))
	}
	if c.Sent != 0 {
		cell.Service.Record(int64(c.Done - c.Sent))
		cell.Lateness.Record(int64(c.Sent - max(c.Intended, c.Ready)))
	} else if c.Outcome == Timeout {
		cell.Unsent++
	}
	cell.BytesIn += n.in
	cell.BytesOut += n.out
	if !c.Outcome.Good() {
		cell.countCause(c.Cause, n.code)
	}
}

func newCell(op int, o Outcome) *Cell {
	return &Cell{
		Operation: op, Outcome: o,
		Response: new(hist.Histogram), Service: new(hist.Histogram), PoolWait: new(hist.Histogram),
		Lateness: new(hist.Histogram),
	}
}

// mostCauses bounds the causes of a Cell: a target that answers with every possible status must not use unbounded
// memory. Further ones count as the zero CauseCount.
const mostCauses = 64

// countCause counts a failed call. Frequent failures have few causes, so a search from the front is short.
func (c *Cell) countCause(why Cause, code uint16) {
	n := CauseCount{Cause: why, Count: 1}
	if c.Outcome == ConnFailed {
		n.Errno = code
	} else {
		n.Status = code
	}
	c.addCause(n)
}

func (c *Cell) addCause(n CauseCount) {
	for i := range c.Causes {
		if k := &c.Causes[i]; k.Cause == n.Cause && k.Status == n.Status && k.Errno == n.Errno {
			k.Count += n.Count
			return
		}
	}
	if len(c.Causes) >= mostCauses && n != (CauseCount{Count: n.Count}) {
		c.addCause(CauseCount{Count: n.Count})
		return
	}
	c.Causes = append(c.Causes, n)
}

// Merge adds the calls of o, which must have the same operation and outcome. It leaves o unchanged, and keeps nothing
// of it.
func (c *Cell) Merge(o *Cell) {
	c.Unsent += o.Unsent
	c.Response.Merge(o.Response)
	c.Service.Merge(o.Service)
	c.PoolWait.Merge(o.PoolWait)
	c.Lateness.Merge(o.Lateness)
	c.BytesIn += o.BytesIn
	c.BytesOut += o.BytesOut
	for _, n := range o.Causes {
		c.addCause(n)
	}
	c.mergePhases(o)
}

// mergeTables sums the cells of several shards and omits empty ones.
func mergeTables(tables []table) []Cell {
	var out []Cell
	for k := range tables[0] {
		var sum *Cell
		for _, t := range tables {
			switch c := t[k]; {
			case c == nil:
			case sum == nil:
				sum = c
			default:
				sum.Merge(c)
			}
		}
		if sum != nil {
			out = append(out, *sum)
		}
	}
	return out
}
