package analyze

import (
	"strings"
	"testing"

	"tare/area"
	"tare/internal/design"
	"tare/internal/record"
)

// TestUndecidedRequestsAreNotTheControls: calls that the target let pass since the control did not answer are told; if
// they are more than a hundredth, the treatment was not in force. Of two controls that are asked about one request the
// request counts once.
func TestUndecidedRequestsAreNotTheControls(t *testing.T) {
	t.Parallel()
	// Each treatment has some more than 400 calls in four blocks.
	for name, c := range map[string]struct {
		each    uint64 // requests that were let pass, in each block
		inForce bool
		says    string
	}{
		"none": {0, true, ""},
		"few":  {1, true, "policies=10: the target let 4 requests pass that gate and other should have decided"},
		"many": {3, false, "policies=10 was not in force: the target let 12 requests pass that gate and other"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := admission("create-pod", map[string]*plane{"policies=0": {total: 20e-3, sli: 20e-3}})
			beside := x.beside
			x.beside = func(t *testing.T, w *record.Writer, trial design.Trial) {
				beside(t, w, trial)
				if trial.Treatment != "policies=10" {
					return
				}
				must(t, w.Served(record.Served{Treatment: trial.Treatment, Block: trial.Block, Served: area.Served{
					Parts: []area.ServedPart{
						{Part: area.Undecided, Name: "gate", Action: "validating", Count: c.each},
						{Part: area.Undecided, Name: "other", Action: "validating", Count: c.each},
					},
				}}))
			}
			rep := analyzed(t, x.write(t, t.TempDir()))
			inForce, code := rep.Treatments[1].NotInForce == "", ExitCode(rep)
			if inForce != c.inForce || (code == ExitNotInForce) == inForce {
				t.Errorf("in force: %v, want %v; exit %d", inForce, c.inForce, code)
			}
			if said := strings.Join(append(rep.Warnings, rep.Reason), "\n"); !strings.Contains(said, c.says) ||
				c.says == "" && strings.Contains(said, "pass that") {
				t.Errorf("it says:\n%s\nwant %q", said, c.says)
			}
		})
	}
}
