package cli

import (
	"fmt"
	"io"
	"path/filepath"

	"tare/internal/analyze"
	"tare/internal/record"
	"tare/internal/report"
)

// windows writes the windows of each treatment's soak beside its record, and names the files in the report. A folder that cannot be written
// to is no reason to fail: the report then names no file.
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
		if err := writeFile(filepath.Join(dir, name), func(w io.Writer) error { return report.WriteWindows(w, moments) }); err != nil {
			a.tell("tare: without windows: %v\n", err)
			continue
		}
		s.Windows = name
		a.tell("windows %s\n", filepath.Join(dir, name))
	}
}

// windowsFile is the file of the n-th treatment's windows; treatments' names may hold what file names may not.
func windowsFile(n int) string {
	if n == 0 {
		return "windows.csv"
	}
	return fmt.Sprintf("windows-%d.csv", n+1)
}
