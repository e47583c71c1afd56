package cli

import (
	"slices"

	"github.com/spf13/cobra"

	"tare/area"
	"tare/internal/analyze"
	"tare/internal/budget"
	"tare/internal/report"
)

func (a *app) checkCommand() *cobra.Command {
	var outputs, budgets []string
	var results string
	c := &cobra.Command{
		Use: "check RUN", Short: "Judge a run's budgets from its record", Args: exactly("RUN"),
		Long: "Judges RUN's budgets, or those given with --budget, from the record alone, and prints one line for\n" +
			"each. RUN is a folder or a name below results/. With -o it writes the whole report instead.\n\n" +
			"Exit codes: 0 all budgets hold, or there are none; 10 a budget is broken; 11 a budget is undecided;\n" +
			"12 the run is invalid; 13 a control was not in force; 14 a treatment permits what the baseline\n" +
			"refuses; 130 it was interrupted.",
		RunE: func(_ *cobra.Command, args []string) error {
			outs, err := parseOutputs(outputs)
			if err != nil {
				return err
			}
			if err := parseBudgets(budgets); err != nil {
				return err
			}
			dir, err := a.findRun(args[0], results)
			if err != nil {
				return err
			}
			return a.check(dir, budgets, outs)
		},
	}
	c.Flags().StringArrayVarP(&outputs, "output", "o", nil, "write the report in this format, as 'tare report' does")
	allFlag(c, &outputs)
	budgetFlag(c, &budgets)
	resultsFlag(c, &results)
	a.inconclusiveFlag(c)
	return c
}

func budgetFlag(c *cobra.Command, values *[]string) {
	c.Flags().StringArrayVar(values, "budget", nil, `a limit, as in an experiment file: "exec.cpu <= +5%"; repeatable`)
}

func resultsFlag(c *cobra.Command, value *string) {
	c.Flags().StringVar(value, "results", resultsDir, "folder for records")
}

// parseBudgets parses budgets, so that an invalid one is refused before a record is read.
func parseBudgets(texts []string) error {
	for _, t := range texts {
		if _, err := budget.Parse(t); err != nil {
			return usage("--budget: %w", err)
		}
	}
	return nil
}

// check judges the budgets of the record in dir.
func (a *app) check(dir string, budgets []string, outs []output) error {
	_, rep, err := analyzed(dir, budgets)
	if err != nil {
		return err
	}
	if len(outs) == 0 {
		a.budgetLines(rep)
	}
	return a.emit(rep, outs)
}

// emit writes a report in every requested format. The error carries its exit code.
func (a *app) emit(rep *report.Report, outs []output) error {
	if err := a.writeAll(outs, rep, "--all"); err != nil {
		return err
	}
	a.github(rep)
	return a.verdictOf(rep)
}

// verdictOf returns the error that carries a report's exit code.
func (a *app) verdictOf(rep *report.Report) error {
	code := analyze.ExitCode(rep)
	switch unshown := slices.ContainsFunc(rep.Treatments, func(t report.Treatment) bool { return len(t.Unshown) > 0 }); {
	case code != analyze.ExitInconclusive:
	case a.unshownOK, a.inconclusiveOK && !unshown:
		by := "--inconclusive-ok"
		if a.unshownOK {
			by = "--unshown-ok"
		}
		a.judged(a.Stderr, area.Warning.String(), "  the result is inconclusive; exit code 0 instead of %d, by %s\n",
			code, by)
		code = ExitPass
	case a.inconclusiveOK:
		a.judged(a.Stderr, area.Warning.String(), "  exit code %d stays, although --inconclusive-ok is given: no number of "+
			"blocks shows what differs between the policies; once somebody has read that, --unshown-ok\n", code)
	}
	if code == ExitPass {
		return nil
	}
	return &exit{code: code, quiet: true}
}

// inconclusiveFlag adds --inconclusive-ok and --unshown-ok.
func (a *app) inconclusiveFlag(c *cobra.Command) {
	c.Flags().BoolVar(&a.inconclusiveOK, "inconclusive-ok", false,
		"exit with 0 instead of 11 if the result is inconclusive, and say so; the verdict stays; 11 remains if policies "+
			"differ in what no request shows")
	c.Flags().BoolVar(&a.unshownOK, "unshown-ok", false, "the same, also if policies differ in what no request shows")
}

// budgetLines prints one line per budget and treatment, and one for the overall verdict.
func (a *app) budgetLines(rep *report.Report) {
	for i := range rep.Budgets {
		b := &rep.Budgets[i]
		a.budgetLine(b.Verdict, b.Text+accountOf(b, len(rep.Treatments) > 1))
	}
	a.budgetLine(rep.Verdict, rep.Reason)
}

func (a *app) budgetLine(v report.Verdict, text string) {
	const width = 13
	a.judged(a.Stdout, string(v), "%*s %s\n", width-len(v), "", text)
}

// accountOf names the treatment and the figures on which a budget was judged.
func accountOf(b *report.Budget, named bool) string {
	s := ""
	if named && b.Treatment != "" {
		s = "  " + b.Treatment + ":"
	}
	if found := b.Found(); found != "" {
		s += "  " + found
	}
	if b.Reason != "" {
		s += "  " + b.Reason
	}
	return s
}
