package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"tare/internal/analyze"
	"tare/internal/record"
	"tare/internal/unit"
)

func (a *app) compareCommand() *cobra.Command {
	var outputs, budgets []string
	var results, treatment, margin string
	c := &cobra.Command{
		Use: "compare A B", Short: "Hold two records, or two treatments of one, against each other", Args: exactly("A", "B"),
		Long: "Estimates what B costs against A from their records. A and B are folders, names below results/, or names of experiments, of which\n" +
			"the latest run is taken; ':TREATMENT' behind one picks an arm. Without treatments, those that both runs have are compared.\n\n" +
			"Two treatments of one run are compared block by block. Two runs were taken at different times: their comparison is marked\n" +
			"unblocked and never says equivalent.\n\n" +
			"Exit codes: 0 pass, or no budget given; 10 budget broken; 11 inconclusive; 12 a run is invalid.",
		RunE: func(_ *cobra.Command, args []string) error {
			outs, err := parseOutputs(outputs)
			if err != nil {
				return err
			}
			o, err := compareOptions(budgets, margin)
			if err != nil {
				return err
			}
			return a.compare(args, treatment, results, o, outs)
		},
	}
	outputFlag(c, &outputs)
	budgetFlag(c, &budgets)
	resultsFlag(c, &results)
	c.Flags().StringVar(&treatment, "treatment", "", "compare this treatment of both runs")
	c.Flags().StringVar(&margin, "margin", "", "largest effect that counts as none, such as 2% (default: the run's)")
	return c
}

func compareOptions(budgets []string, margin string) (o analyze.CompareOptions, err error) {
	if err := parseBudgets(budgets); err != nil {
		return o, err
	}
	o.Budget = budgets
	if margin != "" {
		m, err := unit.ParsePercent(margin)
		if err != nil || m.Ratio() <= 0 || m.Ratio() >= 1 {
			return o, usage("--margin %s: want a share of the base between 0%% and 100%%, such as 2%%", margin)
		}
		o.Margin = m.Ratio()
	}
	return o, nil
}

// compare holds the second of two runs against the first.
func (a *app) compare(args []string, treatment, results string, o analyze.CompareOptions, outs []output) error {
	var runs [2]analyze.Run
	var dirs, picked [2]string
	for i, arg := range args {
		dir, name, arm, err := a.findArm(arg, results)
		if err != nil {
			return err
		}
		rec, err := record.Open(dir)
		if err != nil {
			return fmt.Errorf("read record: %w", err)
		}
		runs[i], dirs[i], picked[i] = analyze.Run{Name: name, Record: rec}, dir, arm
	}
	if runs[0].Name == runs[1].Name && dirs[0] != dirs[1] {
		runs[0].Name, runs[1].Name = dirs[0], dirs[1]
	}
	if treatment != "" {
		picked = named(picked, treatment, analyze.SameRun(runs[0].Record, runs[1].Record))
	}
	arms, alone, err := analyze.MatchArms(runs[0], runs[1], picked[0], picked[1])
	if err != nil {
		return usage("compare: %w", err)
	}
	rep, err := analyze.CompareRuns(runs[0], runs[1], arms, o)
	if err != nil {
		return fmt.Errorf("compare: %w", err)
	}
	if len(alone) > 0 {
		rep.Notes = append(rep.Notes, "without a counterpart in the other run: "+strings.Join(alone, ", "))
	}
	return a.emit(rep, outs)
}

// named fills in the treatment of --treatment. Within one run it is the one that is held against the baseline.
func named(picked [2]string, treatment string, same bool) [2]string {
	for i := range picked {
		if picked[i] == "" && (i == 1 || !same) {
			picked[i] = treatment
		}
	}
	return picked
}

// findArm finds a run, with the name under which it is shown, and, behind a colon, a treatment. Both may hold colons themselves: the
// longest name of a run counts.
func (a *app) findArm(arg, results string) (dir, name, treatment string, err error) {
	dir, whole := a.findRun(arg, results)
	if whole == nil {
		return dir, filepath.Base(arg), "", nil
	}
	for i := len(arg) - 1; i > 0; i-- {
		if arg[i] != ':' {
			continue
		}
		if dir, err := a.findRun(arg[:i], results); err == nil {
			return dir, filepath.Base(arg[:i]), arg[i+1:], nil
		}
	}
	return "", "", "", whole
}

// stamp is what a run's folder has behind the experiment's name.
var stamp = regexp.MustCompile(`^-\d{8}T\d{6}Z(-\d+)?$`)

// findRun finds a run's folder by its path, its name below results, or its experiment's name: then the latest.
func (a *app) findRun(name, results string) (string, error) {
	for _, dir := range []string{name, filepath.Join(results, name)} {
		if _, err := os.Stat(filepath.Join(dir, record.JournalFile)); err == nil {
			return filepath.Clean(dir), nil
		}
	}
	all, err := os.ReadDir(results)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("look for %s: %w", name, err)
	}
	var found []string
	for _, d := range all {
		if rest, ok := strings.CutPrefix(d.Name(), name); ok && name != "" && stamp.MatchString(rest) {
			found = append(found, d.Name())
		}
	}
	if len(found) == 0 {
		return "", usage("there is no run %s, as a folder or below %s; 'tare list runs' lists them", name, results)
	}
	dir := filepath.Join(results, slices.Max(found))
	a.tell("%s is %s\n", name, dir)
	return dir, nil
}
