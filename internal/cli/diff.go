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
	"tare/internal/shell"
	"tare/internal/unit"
)

func (a *app) diffCommand() *cobra.Command {
	var outputs, budgets []string
	var results, treatment, margin string
	c := &cobra.Command{
		Use: "diff A B", Short: "Compare two runs, or two treatments of one run", Args: exactly("A", "B"),
		Long: "Estimates the cost of B relative to A from their records. A and B are folders, names below results/,\n" +
			"or names of experiments, which stand for their latest runs. A suffix ':TREATMENT' selects one\n" +
			"treatment; without it, all treatments that both runs have are compared.\n\n" +
			"Two treatments of one run are compared block by block. Two runs were measured at different times, so\n" +
			"their comparison is marked as unblocked and never says equivalent.\n\n" +
			"Exit codes: 0 pass, or no budget given; 10 budget broken; 11 inconclusive; 12 a run is\n" +
			"invalid; 13 a control was not in force; 14 B permits what A refuses.",
		RunE: func(_ *cobra.Command, args []string) error {
			outs, err := parseOutputs(outputs)
			if err != nil {
				return err
			}
			o, err := compareOptions(budgets, margin)
			if err != nil {
				return err
			}
			return a.diff(args, treatment, results, o, outs)
		},
	}
	outputFlag(c, &outputs)
	budgetFlag(c, &budgets)
	resultsFlag(c, &results)
	a.inconclusiveFlag(c)
	c.Flags().StringVar(&treatment, "treatment", "", "compare this treatment of both runs")
	c.Flags().StringVar(&margin, "margin", "",
		"largest effect that counts as no effect, such as 2% (default: the run's margin)")
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

// diff compares the second of two runs with the first.
func (a *app) diff(args []string, treatment, results string, o analyze.CompareOptions, outs []output) error {
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
		picked = applyTreatmentFlag(picked, treatment, analyze.SameRun(runs[0].Record, runs[1].Record))
	}
	arms, alone, err := analyze.MatchArms(runs[0], runs[1], picked[0], picked[1])
	if err != nil {
		return unmatched(args, err)
	}
	if i := slices.IndexFunc(arms, func(x analyze.Arms) bool { return x.Likely }); i >= 0 && len(o.Budget) > 0 {
		return unmatched(args, &analyze.Unmatched{
			Reason: fmt.Sprintf("a budget needs treatments that correspond for certain: %q and %q have different levels",
				arms[i].Base, arms[i].Treated),
			Candidates: []analyze.Arms{arms[i]},
		})
	}
	o.Alone = alone
	rep, err := analyze.CompareRuns(runs[0], runs[1], arms, o)
	if m, ok := errors.AsType[*analyze.Misfit](err); ok {
		return usage("--budget %w", m)
	}
	if err != nil {
		return fmt.Errorf("diff: %w", err)
	}
	return a.emit(rep, outs)
}

// unmatched is the error about treatments that cannot be paired, with the commands that name a pair.
func unmatched(args []string, err error) error {
	u, ok := errors.AsType[*analyze.Unmatched](err)
	if !ok || len(u.Candidates) == 0 {
		return usage("diff: %w", err)
	}
	const most = 6
	lines := []string{"name the two that do:"}
	for _, x := range u.Candidates[:min(most, len(u.Candidates))] {
		lines = append(lines, "tare diff "+shell.Line([]string{args[0] + ":" + x.Base, args[1] + ":" + x.Treated}))
	}
	if n := len(u.Candidates) - most; n > 0 {
		lines = append(lines, fmt.Sprintf("or one of %d other pairs", n))
	}
	return usage("diff: %w; %s", err, strings.Join(lines, "\n  "))
}

// applyTreatmentFlag applies --treatment: within one run, it selects the treatment that is compared with the baseline.
func applyTreatmentFlag(picked [2]string, treatment string, same bool) [2]string {
	for i := range picked {
		if picked[i] == "" && (i == 1 || !same) {
			picked[i] = treatment
		}
	}
	return picked
}

// findArm finds a run, the name under which it is shown, and the treatment after a colon. Names of runs and treatments
// may contain colons: the longest matching run name wins.
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

// stamp matches the time that a run's folder name has after the experiment's name.
var stamp = regexp.MustCompile(`^-\d{8}T\d{6}Z(-\d+)?$`)

// findRecord finds the folder of the one run that is to be changed: an experiment's name does not stand for a run here.
func findRecord(name, results string) (string, error) {
	for _, dir := range []string{name, filepath.Join(results, name)} {
		_, err := os.Stat(filepath.Join(dir, record.JournalFile))
		if err == nil {
			return filepath.Clean(dir), nil
		}
		if errors.Is(err, os.ErrPermission) {
			return "", usage("this user may not read the run %s: %w", name, err)
		}
	}
	return "", usage("no run %s: neither a folder nor a name below %s; 'tare list runs' lists all runs", name, results)
}

// findRun finds a run's folder by its path, by its name below results, or by its experiment's name: then the latest.
func (a *app) findRun(name, results string) (string, error) {
	dir, missing := findRecord(name, results)
	if missing == nil {
		return dir, nil
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
		return "", missing
	}
	dir = filepath.Join(results, slices.Max(found))
	a.tell("%s is %s\n", name, dir)
	return dir, nil
}
