package cli

import (
	"errors"

	"tare/internal/files"
	"tare/internal/report"
)

// github shows the report in GitHub Actions: as the step's summary, and as annotations. Annotations go to standard
// error, where the runner reads workflow commands as well, because a program may read the report on standard output. An
// error in writing them is a warning only: the run's own result stands.
func (a *app) github(rep *report.Report) {
	if on, _ := a.lookup("GITHUB_ACTIONS"); on != "true" {
		return
	}
	if err := report.Annotations(a.Stderr, rep); err != nil {
		a.tell("tare: cannot write annotations: %v\n", err)
	}
	name, ok := a.lookup("GITHUB_STEP_SUMMARY")
	if !ok {
		return
	}
	if err := appendTo(name, rep); err != nil {
		a.tell("tare: warning: cannot write the step summary: %v\n", err)
	}
}

// appendTo appends to the output of other commands of the same step.
func appendTo(name string, rep *report.Report) (err error) {
	f, err := files.ForAppending(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return report.StepSummary(f, rep)
}
