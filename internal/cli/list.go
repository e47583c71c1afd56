package cli

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"tare/internal/question"
	"tare/internal/record"
	"tare/internal/unit"
)

func (a *app) listCommand() *cobra.Command {
	var results string
	var out form
	c := &cobra.Command{
		Use: "list [areas|adapters|presets|runs]", Short: "List areas with their questions, adapters, presets, or runs",
		Args: cobra.MaximumNArgs(1), ValidArgs: []string{"areas", "adapters", "presets", "runs"},
		RunE: func(_ *cobra.Command, args []string) error {
			asJSON, err := out.json()
			if err != nil {
				return err
			}
			what := "areas"
			if len(args) == 1 {
				what = args[0]
			}
			doc := listing{Schema: schemaList, List: what}
			switch what {
			case "areas":
				doc.Areas = a.listAreas()
			case "adapters", "presets":
				doc.Names = a.listNames(what)
			case "runs":
				doc.Runs, err = listRuns(results)
			default:
				err = usage("cannot list %q; lists are: areas, adapters, presets, runs", what)
			}
			switch {
			case err != nil:
				return err
			case asJSON:
				return a.printJSON(doc)
			}
			a.printListing(doc)
			return nil
		},
	}
	c.Flags().StringVar(&results, "results", resultsDir, "folder with records")
	out.add(c)
	return c
}

// A listing is one of the lists of tare list.
type listing struct {
	Schema string       `json:"schema"`
	List   string       `json:"list"`
	Areas  []listedArea `json:"areas,omitempty"`
	Names  []listedName `json:"names,omitempty"` // adapters or presets
	Runs   []listedRun  `json:"runs,omitempty"`
}

// A listedArea says whether an area answers a question.
type listedArea struct {
	Area     string `json:"area"`
	Question string `json:"question"`
	Answers  bool   `json:"answers"`
	Reason   string `json:"reason,omitempty"` // why not
}

type listedName struct {
	Area string `json:"area"`
	Name string `json:"name"`
	Help string `json:"help"`
}

type listedRun struct {
	Run       string `json:"run"`
	Area      string `json:"area,omitempty"`
	Question  string `json:"question,omitempty"`
	Status    string `json:"status,omitempty"` // empty: killed, or still running
	NotUndone int    `json:"not_undone"`       // changes
	Error     string `json:"error,omitempty"`  // why it cannot be read
}

// printListing prints a list, one line for each entry.
func (a *app) printListing(doc listing) {
	for _, x := range doc.Areas {
		a.print("%-10s %-9s ", x.Area, x.Question)
		if x.Answers {
			a.print("yes\n")
		} else {
			a.print("no: %s\n", x.Reason)
		}
	}
	for _, x := range doc.Names {
		a.print("%-10s %-18s %s\n", x.Area, x.Name, x.Help)
	}
	for _, x := range doc.Runs {
		if x.Error != "" {
			a.print("%-50s cannot be read: %s\n", x.Run, x.Error)
			continue
		}
		status, more := x.Status, ""
		if status == "" {
			status = unfinished
		}
		if x.NotUndone > 0 {
			more = fmt.Sprintf(", %s not undone: tare undo %s", unit.Count(x.NotUndone, "change"), x.Run)
		}
		a.print("%-50s %-9s %-9s ", x.Run, x.Area, x.Question)
		a.judged(a.Stdout, status, "%s\n", more)
	}
}

// unfinished is the status of a record without an end.
const unfinished = "killed, or still running"

// listAreas returns the table of area × question.
func (a *app) listAreas() (out []listedArea) {
	for _, ar := range a.Areas {
		for _, q := range question.All() {
			o := q.Needs(ar.Offers())
			out = append(out, listedArea{ar.Name(), string(q.Name), o.Given, o.Reason})
		}
	}
	return out
}

func (a *app) listNames(what string) (out []listedName) {
	for _, ar := range a.Areas {
		names, parts := map[string]string{}, ar.Parts()
		if what == "presets" {
			for _, n := range parts.Presets {
				names[n.Name] = n.Help
			}
		} else {
			for _, n := range parts.Adapters {
				names[n.Name] = n.Help
			}
		}
		for _, n := range sortedKeys(names) {
			out = append(out, listedName{ar.Name(), n, names[n]})
		}
	}
	return out
}

// listRuns returns the records below results, the oldest first.
func listRuns(results string) (out []listedRun, err error) {
	dirs, err := os.ReadDir(results)
	if err != nil {
		return nil, fmt.Errorf("list runs: %w; 'tare run' writes records; --results names another folder", err)
	}
	for _, d := range dirs {
		dir := filepath.Join(results, d.Name())
		if _, err := os.Stat(filepath.Join(dir, record.JournalFile)); err != nil {
			continue
		}
		rec, err := record.Open(dir)
		if err != nil {
			out = append(out, listedRun{Run: dir, Error: err.Error()})
			continue
		}
		x := listedRun{
			Run: dir, Area: rec.Header.Area, Question: string(rec.Header.Question), NotUndone: len(rec.Pending()),
		}
		if rec.Finish != nil {
			x.Status = string(rec.Finish.Status)
		}
		out = append(out, x)
	}
	return out, nil
}
