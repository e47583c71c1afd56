package cli

import (
	"errors"
	"os"

	"tare/internal/report"
)

// github shows the report where GitHub Actions shows results: as the step's summary, and as annotations. The annotations go to standard
// error, where the runner reads workflow commands as well: standard output may carry a report that a program reads. What cannot be
// written is a warning: the run's own result stands.
func (a *app) github(rep *report.Report) {
	if on, _ := a.lookup("GITHUB_ACTIONS"); on != "true" {
		return
	}
	if err := report.Annotations(a.Stderr, rep); err != nil {
		a.tell("tare: without annotations: %v\n", err)
	}
	name, ok := a.lookup("GITHUB_STEP_SUMMARY")
	if !ok {
		return
	}
	if err := appendTo(name, rep); err != nil {
		a.tell("tare: warning: without a step summary: %v\n", err)
	}
}

// appendTo adds to what other commands of the same step have written.
func appendTo(name string, rep *report.Report) (err error) {
	f, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return report.StepSummary(f, rep)
}
