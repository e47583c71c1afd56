package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"tare/internal/area/all"
	"tare/internal/question"
	"tare/internal/record"
)

func (a *app) listCommand() *cobra.Command {
	var results string
	c := &cobra.Command{
		Use: "list [areas|adapters|presets|runs]", Short: "List areas with their questions, adapters, presets, or runs",
		Args: cobra.MaximumNArgs(1), ValidArgs: []string{"areas", "adapters", "presets", "runs"},
		RunE: func(_ *cobra.Command, args []string) error {
			what := "areas"
			if len(args) == 1 {
				what = args[0]
			}
			switch what {
			case "areas":
				return a.listAreas()
			case "adapters", "presets":
				return a.listNames(what)
			case "runs":
				return a.listRuns(results)
			}
			return usage("cannot list %q; lists are: areas, adapters, presets, runs", what)
		},
	}
	c.Flags().StringVar(&results, "results", resultsDir, "folder with records")
	return c
}

// listAreas prints the table of area × question.
func (a *app) listAreas() error {
	for _, ar := range all.Areas() {
		for _, q := range question.All() {
			answer := "yes"
			if o := q.Needs(ar.Offers()); !o.Given {
				answer = "no: " + o.Reason
			}
			a.print("%-10s %-9s %s\n", ar.Name(), q.Name, answer)
		}
	}
	return nil
}

// lister is an optional interface of an area: names with one line of description each.
type lister interface {
	Adapters() map[string]string
	Presets() map[string]string
}

func (a *app) listNames(what string) error {
	for _, ar := range all.Areas() {
		l, ok := ar.(lister)
		if !ok {
			continue
		}
		names := l.Adapters()
		if what == "presets" {
			names = l.Presets()
		}
		for _, n := range sortedKeys(names) {
			a.print("%-10s %-18s %s\n", ar.Name(), n, names[n])
		}
	}
	return nil
}

// listRuns prints the records below results, the oldest first.
func (a *app) listRuns(results string) error {
	dirs, err := os.ReadDir(results)
	if err != nil {
		return fmt.Errorf("list runs: %w; 'tare run' writes records; --results names another folder", err)
	}
	for _, d := range dirs {
		dir := filepath.Join(results, d.Name())
		if _, err := os.Stat(filepath.Join(dir, record.JournalFile)); err != nil {
			continue
		}
		rec, err := record.Open(dir)
		if err != nil {
			a.print("%-50s cannot be read: %v\n", dir, err)
			continue
		}
		status := "killed, or still running"
		if rec.Finish != nil {
			status = string(rec.Finish.Status)
		}
		if n := len(rec.Pending()); n > 0 {
			status += fmt.Sprintf(", %d change(s) not undone: tare undo %s", n, dir)
		}
		line := fmt.Sprintf("%-50s %-9s %-9s %s", dir, rec.Header.Area, rec.Header.Question, status)
		a.print("%s\n", strings.TrimRight(line, " "))
	}
	return nil
}
