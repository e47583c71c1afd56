package analyze

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"syscall"

	"tare/internal/load"
	"tare/internal/report"
)

// causes counts the ways in which calls did not end well.
type causes map[report.Cause]uint64

// add counts c, unless it ended well. own are the causes that its operation names.
func (m *causes) add(c *load.Call, own []string) {
	if !c.Outcome.Good() {
		m.count(report.Cause{Outcome: c.Outcome.String(), Cause: causeOf(c, own)}, 1)
	}
}

// count counts n calls of a cause.
func (m *causes) count(c report.Cause, n uint64) {
	if *m == nil {
		*m = causes{}
	}
	(*m)[c] += n
}

// list is the causes with their counts, the most frequent first.
func (m causes) list() []report.Cause {
	var out []report.Cause
	for c, n := range m {
		c.Calls = n
		out = append(out, c)
	}
	slices.SortFunc(out, func(a, b report.Cause) int {
		return cmp.Or(cmp.Compare(b.Calls, a.Calls), cmp.Compare(a.Outcome, b.Outcome), cmp.Compare(a.Cause, b.Cause))
	})
	return out
}

// causeOf says in words why a call did not end well, from the closest that is known.
func causeOf(c *load.Call, own []string) string {
	status := ""
	if c.Status != 0 {
		status = fmt.Sprintf("status %d", c.Status)
		if text := http.StatusText(int(c.Status)); text != "" {
			status += " " + text
		}
	}
	text := c.Cause.Text(own)
	switch {
	case text != "" && status != "" && c.Status != http.StatusOK:
		return status + ": " + text
	case text != "":
		return text
	case c.Errno == uint16(syscall.ECONNABORTED) && c.Outcome == load.ConnFailed:
		return "given up by the generator at the end of a step"
	case c.Errno != 0:
		return syscall.Errno(c.Errno).Error()
	case c.Outcome == load.Timeout:
		return c.Phase().Text(nil)
	case status == "":
		return "not known"
	}
	return status
}
