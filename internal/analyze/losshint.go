package analyze

import (
	"fmt"
	"strings"

	"tare/internal/report"
	"tare/internal/unit"
)

// LossHint says of a comparison that is still measured that too many of its blocks have no times to give any, why, and
// what would help; "" if it lost none or few.
func LossHint(rep *report.Report) string {
	d := rep.Design
	if d == nil {
		return ""
	}
	lost, all := d.Late+d.Dropped, d.Blocks+d.Dropped
	if lost == 0 || float64(lost) <= spoiledShare*float64(all) {
		return ""
	}
	why := "the generator sent late"
	if g := rep.Generator; g != nil && g.Reason != "" {
		why = g.Reason
	}
	for _, w := range rep.Warnings {
		if strings.Contains(w, "this host's CPU time") {
			w, _, _ = strings.Cut(w, ":")
			why += "; " + w
		}
	}
	return fmt.Sprintf("%d of %s so far are without times (%s). A host with less other work helps, or, if tare lacks it, "+
		"the right to a real-time priority (CAP_SYS_NICE); a budget on cpu needs no times, where the target's processes can "+
		"be read", lost, unit.Count(all, "block"), why)
}
