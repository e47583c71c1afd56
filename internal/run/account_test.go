package run

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"tare/internal/hist"
	"tare/internal/load"
)

// testCell returns a cell of n calls, of which sent were sent.
func testCell(op int, o load.Outcome, n, sent int, causes ...load.CauseCount) load.Cell {
	c := load.Cell{Operation: op, Outcome: o, Response: &hist.Histogram{}, Service: &hist.Histogram{}, Causes: causes}
	c.Response.RecordN(1, uint64(n))
	c.Service.RecordN(1, uint64(sent))
	return c
}

func TestAccountCountsAnswers(t *testing.T) {
	ops := []load.Operation{
		{Name: "a", Answer: "permit", CauseAnswers: []string{"", "deny"}},
		{Name: "b", Answer: "deny"},
		{Name: "health"},
	}
	own := func(k int, status uint16, n uint64) load.CauseCount {
		return load.CauseCount{Cause: load.OwnCauses + load.Cause(k), Status: status, Count: n}
	}
	for name, c := range map[string]struct {
		cell       load.Cell
		seen       map[string]uint64
		unanswered uint64
	}{
		"good":                     {testCell(0, load.OK, 5, 5), map[string]uint64{"permit": 5}, 0},
		"denied as it should be":   {testCell(1, load.Denied, 4, 4), map[string]uint64{"deny": 4}, 0},
		"an answer without a word": {testCell(2, load.OK, 3, 3), map[string]uint64{}, 0},
		"wrong": {
			testCell(0, load.Wrong, 3, 3, own(1, 200, 2), own(0, 200, 1)),
			map[string]uint64{"deny": 2},
			0,
		},
		"wrong, of no known meaning": {testCell(1, load.Wrong, 2, 2, own(1, 200, 2)), map[string]uint64{}, 0},
		"timeouts": {testCell(0, load.Timeout, 7, 4, load.CauseCount{Cause: load.CauseNoByte, Count: 4},
			load.CauseCount{Cause: load.CauseNoConnection, Count: 3}), map[string]uint64{}, 4},
		"refused connections": {testCell(0, load.ConnFailed, 9, 0, load.CauseCount{
			Cause: load.CauseConnect, Errno: 111,
			Count: 9,
		}), map[string]uint64{}, 0},
		"resets": {testCell(0, load.ConnFailed, 9, 9,
			load.CauseCount{Cause: load.CauseClosedEarly, Errno: 104, Count: 9}), map[string]uint64{}, 9},
		"answers of 500": {
			testCell(0, load.Failed, 6, 6, load.CauseCount{Status: 500, Count: 6}),
			map[string]uint64{},
			0,
		},
		"closed without an answer": {
			testCell(0, load.Failed, 6, 6, load.CauseCount{Cause: load.CauseClosedEarly, Count: 6}),
			map[string]uint64{},
			6,
		},
		"cut within an answer": {testCell(0, load.Failed, 2, 2, load.CauseCount{
			Cause: load.CauseClosedWithin, Status: 200,
			Count: 2,
		}), map[string]uint64{}, 2},
		"redirects": {testCell(0, load.Failed, 2, 2, load.CauseCount{
			Cause: load.CauseRedirect, Status: 302,
			Count: 2,
		}), map[string]uint64{}, 0},
		"shed": {
			testCell(0, load.Refused, 2, 2, load.CauseCount{Status: 429, Count: 2}),
			map[string]uint64{},
			0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			a := &Account{Arm: &Arm{Ops: ops}, seen: map[string]uint64{}}
			a.Count([]load.Cell{c.cell})
			if d := cmp.Diff(c.seen, a.seen); d != "" || a.unanswered != c.unanswered {
				t.Errorf("unanswered %d, want %d; seen (-want +got):\n%s", a.unanswered, c.unanswered, d)
			}
		})
	}
}
