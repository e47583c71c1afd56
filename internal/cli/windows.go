package cli

import (
	"fmt"
	"io"
	"path/filepath"

	"tare/internal/analyze"
	"tare/internal/record"
	"tare/internal/report"
)

// windows writes the windows of each treatment's soak beside its record, and names the files in the report. If it
// cannot write to the folder, it warns, and the report names no file.
func (a *app) windows(dir string, rec *record.Record, rep *report.Report) {
	n := 0
	for i := range rep.Soak {
		s := &rep.Soak[i]
		if s.Operation != "" {
			continue
		}
		moments := analyze.Windows(rec, s.Treatment)
		if len(moments) == 0 {
			continue
		}
		name := windowsFile(n)
		n++
		if err := writeInto(dir, name,
			func(w io.Writer) error { return report.WriteWindows(w, moments) }); err != nil {
			a.tell("tare: cannot write the windows: %v\n", err)
			continue
		}
		s.Windows = name
		a.tell("windows %s\n", filepath.Join(dir, name))
	}
}

// windowsFile returns the file name for the n-th treatment's windows; treatments' names may contain characters that
// file names must not.
func windowsFile(n int) string {
	if n == 0 {
		return "windows.csv"
	}
	return fmt.Sprintf("windows-%d.csv", n+1)
}
