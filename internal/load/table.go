package load

import "tare/internal/hist"

// A table holds one Cell per operation and outcome, made when the first call needs it.
type table []*Cell

func newTable(operations int) table { return make(table, operations*Outcomes) }

// record counts a call that has ended.
func (t table) record(c *Call) {
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
}

func newCell(op int, o Outcome) *Cell {
	return &Cell{
		Operation: op, Outcome: o,
		Response: new(hist.Histogram), Service: new(hist.Histogram), PoolWait: new(hist.Histogram), Lateness: new(hist.Histogram),
	}
}

// mergeTables adds up the cells of several shards and leaves out the empty ones.
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
				sum.Unsent += c.Unsent
				sum.Response.Merge(c.Response)
				sum.Service.Merge(c.Service)
				sum.PoolWait.Merge(c.PoolWait)
				sum.Lateness.Merge(c.Lateness)
			}
		}
		if sum != nil {
			out = append(out, *sum)
		}
	}
	return out
}
