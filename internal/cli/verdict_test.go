package cli

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"tare/internal/analyze"
	"tare/internal/report"
)

// TestUnshownIsForgivenByItsOwnFlag: --inconclusive-ok is given for noise, and policies that differ in what no request
// shows are none.
func TestUnshownIsForgivenByItsOwnFlag(t *testing.T) {
	noise := report.Report{Status: report.Complete, Verdict: report.Inconclusive}
	unshown, permits := noise, noise
	unshown.Treatments = []report.Treatment{{}, {ID: "pr", Unshown: []string{"namespaces differ"}}}
	permits.Treatments = []report.Treatment{{ID: "pr", Permits: []string{"a"}, Unshown: []string{"namespaces differ"}}}
	for _, c := range []struct {
		of                        report.Report
		inconclusiveOK, unshownOK bool
		want                      int
		says                      string
	}{
		{noise, false, false, analyze.ExitInconclusive, ""},
		{noise, true, false, ExitPass, "exit code 0 instead of 11, by --inconclusive-ok"},
		{noise, false, true, ExitPass, "exit code 0 instead of 11, by --unshown-ok"},
		{unshown, false, false, analyze.ExitInconclusive, ""},
		{unshown, true, false, analyze.ExitInconclusive, "exit code 11 stays, although --inconclusive-ok is given"},
		{unshown, true, true, ExitPass, "by --unshown-ok"},
		{permits, true, true, analyze.ExitPermits, ""},
	} {
		var out bytes.Buffer
		a := &app{Env: Env{Stderr: &out}, inconclusiveOK: c.inconclusiveOK, unshownOK: c.unshownOK}
		got := ExitPass
		if e, is := errors.AsType[*exit](a.verdictOf(&c.of)); is {
			got = e.code
		}
		if got != c.want || !strings.Contains(out.String(), c.says) || (out.String() == "") != (c.says == "") {
			t.Errorf("%+v: exit %d, want %d: %s", c, got, c.want, &out)
		}
	}
}
