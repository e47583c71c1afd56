package cli

import (
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"tare/internal/analyze"
	"tare/internal/record"
	"tare/internal/report"
)

// An output is one form of the report and where it goes; file "" is standard output.
type output struct {
	form, file string
	encode     report.Encoder
}

func outputFlag(c *cobra.Command, values *[]string) {
	c.Flags().StringArrayVarP(values, "output", "o", []string{"text"},
		"form of the report: "+strings.Join(forms(), ", ")+"; FORM=FILE writes to a file; repeatable")
}

// pageFile is the page that every run's folder holds.
const pageFile = "report.html"

// encoders are all forms by name.
func encoders() map[string]report.Encoder {
	all := report.Encoders()
	all["html"] = report.HTML
	return all
}

// forms lists the forms by name.
func forms() []string { return slices.Sorted(maps.Keys(encoders())) }

// parseOutputs checks all of them before anything is measured.
func parseOutputs(values []string) ([]output, error) {
	var outs []output
	toStdout := 0
	for _, v := range values {
		form, file, toFile := strings.Cut(v, "=")
		enc, ok := encoders()[form]
		if !ok {
			return nil, usage("-o %s: there is no form %q; there are: %s", v, form, strings.Join(forms(), ", "))
		}
		if toFile && file == "" {
			return nil, usage("-o %s: the file's name is missing after '='", v)
		}
		if !toFile {
			toStdout++
		}
		outs = append(outs, output{form: form, file: file, encode: enc})
	}
	if toStdout > 1 {
		return nil, usage("only one -o can go to standard output; write the others to files: -o json=report.json")
	}
	return outs, nil
}

func (a *app) reportCommand() *cobra.Command {
	var outputs []string
	var results string
	c := &cobra.Command{
		Use: "report RUN", Short: "Compute the report again from a record", Args: exactly("RUN"),
		Long: "Computes the report from the record of RUN alone: a folder, or a name below results/. The exit code is the run's.",
		RunE: func(_ *cobra.Command, args []string) error {
			outs, err := parseOutputs(outputs)
			if err != nil {
				return err
			}
			dir, err := a.findRun(args[0], results)
			if err != nil {
				return err
			}
			_, err = a.report(dir, outs)
			return err
		},
	}
	outputFlag(c, &outputs)
	resultsFlag(c, &results)
	return c
}

// analyzed computes the report of the record in dir, with other budgets than its own if any are given.
func analyzed(dir string, budgets []string) (*record.Record, *report.Report, error) {
	rec, err := record.Open(dir)
	if err != nil {
		return nil, nil, fmt.Errorf("read record: %w", err)
	}
	rep, err := analyze.Analyze(rec, analyze.Options{Budget: budgets})
	if err != nil {
		return rec, nil, fmt.Errorf("analyze %s: %w", dir, err)
	}
	return rec, rep, nil
}

// report analyzes the record in dir and writes it in every form, and the page into dir. The error carries the run's exit code; the record is nil where it
// cannot be opened.
func (a *app) report(dir string, outs []output) (*record.Record, error) {
	rec, rep, err := analyzed(dir, nil)
	if err != nil {
		return rec, err
	}
	a.windows(dir, rec, rep)
	for _, o := range outs {
		if err := a.write(o, rep); err != nil {
			return rec, err
		}
	}
	// The run's numbers are out: a folder that cannot be written to, such as an archive's, is no reason to fail.
	name := filepath.Join(dir, pageFile)
	if err := a.write(output{file: name, encode: report.HTML}, rep); err != nil {
		a.tell("tare: without a page: %v\n", err)
	} else {
		a.tell("page    %s\n", name)
	}
	a.github(rep)
	if code := analyze.ExitCode(rep); code != ExitPass {
		return rec, &exit{code: code, quiet: true}
	}
	return rec, nil
}

// write encodes to standard output or to a file, which is complete or absent.
func (a *app) write(o output, rep *report.Report) error {
	if o.file == "" {
		return o.encode(a.Stdout, rep)
	}
	return writeFile(o.file, func(w io.Writer) error { return o.encode(w, rep) })
}

func writeFile(name string, encode func(io.Writer) error) error {
	tmp, err := os.CreateTemp(filepath.Dir(name), ".tare-*")
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	defer os.Remove(tmp.Name()) //nolint:errcheck // gone already when all went well
	if err := encode(tmp); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	if err := tmp.Chmod(0o644); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	if err := tmp.Close(); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	if err := os.Rename(tmp.Name(), name); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}
