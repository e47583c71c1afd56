package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"tare/area"
	"tare/internal/analyze"
	"tare/internal/doctor"
	"tare/internal/files"
	"tare/internal/record"
	"tare/internal/report"
	"tare/internal/term"
)

// An output is a format of the report and its destination; file "" is standard output, where text is brief unless the
// whole is asked for.
type output struct {
	form, file string
	brief      bool
	rest       string // how to get the whole of what is brief
	encode     report.Encoder
}

// wholeText stands for --all among the values of -o.
const wholeText = "--all"

func outputFlag(c *cobra.Command, values *[]string) {
	c.Flags().StringArrayVarP(values, "output", "o", []string{"text"},
		"format of the report: "+strings.Join(formats(), ", ")+"; FORMAT=FILE writes to a file; repeatable")
	allFlag(c, values)
}

// allFlag adds --all, which is passed on in the values of -o.
func allFlag(c *cobra.Command, values *[]string) {
	all := c.Flags().Bool("all", false, "print the whole report; without it, text on standard output is one screen")
	c.PreRun = func(*cobra.Command, []string) {
		if *all {
			*values = append(*values, wholeText)
		}
	}
}

// pageFile is the name of the page in every run's folder.
const pageFile = "report.html"

// encoders returns the encoders of all formats by name.
func encoders() map[string]report.Encoder {
	all := report.Encoders()
	all["html"] = report.HTML
	return all
}

// formats lists the formats by name.
func formats() []string { return slices.Sorted(maps.Keys(encoders())) }

// parseOutputs parses all -o flags before anything is measured.
func parseOutputs(values []string) ([]output, error) {
	var outs []output
	toStdout, brief := 0, !slices.Contains(values, wholeText)
	for _, v := range values {
		if v == wholeText {
			continue
		}
		form, file, toFile := strings.Cut(v, "=")
		enc, ok := encoders()[form]
		if !ok {
			return nil, usage("-o %s: unknown format %q; formats are: %s", v, form, strings.Join(formats(), ", "))
		}
		if toFile && file == "" {
			return nil, usage("-o %s: the file's name is missing after '='", v)
		}
		if !toFile {
			toStdout++
		} else if err := files.CheckSave(file); err != nil {
			return nil, usage("-o %s: %w", v, err)
		}
		outs = append(outs, output{
			form: form, file: file, encode: enc, brief: brief && form == "text" && !toFile,
		})
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
		Use: "report RUN", Short: "Recompute the report from a record", Args: exactly("RUN"),
		Long: "Computes the report from RUN's record alone. RUN is a folder or a name below results/. The exit code\n" +
			"is that of the run.",
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
	a.inconclusiveFlag(c)
	return c
}

// analyzed computes the report of the record in dir. Budgets, if any are given, replace those of the record.
func analyzed(dir string, budgets []string) (*record.Record, *report.Report, error) {
	rec, err := record.Open(dir)
	if err != nil {
		return nil, nil, fmt.Errorf("read record: %w", err)
	}
	rep, err := analyze.Analyze(rec, analyze.Options{Budget: budgets, Fit: len(budgets) > 0})
	if m, ok := errors.AsType[*analyze.Misfit](err); ok {
		return rec, nil, usage("--budget %w", m)
	}
	if err != nil {
		return rec, nil, fmt.Errorf("analyze %s: %w", dir, err)
	}
	return rec, rep, nil
}

// report analyzes the record in dir and writes it in every requested format, and the page into dir. The error carries
// the run's exit code; the record is nil if it cannot be opened.
func (a *app) report(dir string, outs []output) (*record.Record, error) {
	rec, rep, err := analyzed(dir, nil)
	if err != nil {
		return rec, err
	}
	a.windows(dir, rec, rep)
	unwritten := a.writeAll(outs, rep, "tare report "+dir+" --all, or the page")
	name := filepath.Join(dir, pageFile)
	// The report has been written: a read-only folder, such as one in an archive, is no reason to fail.
	if err := writeInto(dir, pageFile, func(w io.Writer) error { return report.HTML(w, rep) }); err != nil {
		a.tell("tare: cannot write the page: %v\n", err)
	} else {
		a.tell("page    %s\n", name)
	}
	a.github(rep)
	if unwritten != nil {
		return rec, fmt.Errorf("%w; next: tare report %s -o FORMAT=FILE writes it from the record", unwritten, dir)
	}
	return rec, a.verdictOf(rep)
}

// writeAll writes a report in every requested format, also after one that cannot be written. Brief text names rest as
// the way to the whole.
func (a *app) writeAll(outs []output, rep *report.Report, rest string) (err error) {
	for _, o := range outs {
		if o.brief {
			o.rest = rest
		}
		err = errors.Join(err, a.write(o, rep))
	}
	return err
}

// write encodes to standard output or to a file. It never leaves an incomplete file.
func (a *app) write(o output, rep *report.Report) error {
	switch {
	case o.file == "" && o.form == "text":
		style := report.Style{Rest: o.rest, Color: term.Colors(a.Stdout, a.Getenv)}
		if columns, ok := term.Columns(a.Stdout); ok {
			style.Width = min(columns, report.Width)
		}
		return unlessUnread(style.Text(a.Stdout, rep))
	case o.file == "":
		return unlessUnread(o.encode(a.Stdout, rep))
	}
	return files.Save(o.file, func(w io.Writer) error { return o.encode(w, rep) })
}

// writeInto writes a file into a record's folder, which must be this user's: another user's could hold a link of that
// name.
func writeInto(dir, name string, encode func(io.Writer) error) error {
	var text bytes.Buffer
	if err := encode(&text); err != nil {
		return err
	}
	folder, err := record.OwnFolder(dir)
	if err != nil {
		return err
	}
	return errors.Join(folder.Write(name, text.Bytes()), folder.Close())
}

// unlessUnread returns err, except where it says that the reader of the output has ended: head needs no more lines.
func unlessUnread(err error) error {
	if errors.Is(err, syscall.EPIPE) {
		return nil
	}
	return err
}

// whole writes a text that is known already.
func whole(text []byte) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := w.Write(text)
		return err
	}
}

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

// wordColors are those of words that judge: verdicts, severities, states of checks and of runs.
func wordColors() map[string]term.Color {
	return map[string]term.Color{
		string(report.Pass): term.Green, string(report.Fail): term.Red, string(report.Invalid): term.Red,
		string(report.Inconclusive): term.Yellow, string(report.NotMeasured): term.Yellow,
		area.Error.String(): term.Red, area.Warning.String(): term.Yellow,
		"ok": term.Green, string(doctor.Broken): term.Red, string(doctor.Missing): term.Yellow,
		string(doctor.Limited): term.Yellow, string(record.Interrupted): term.Yellow, unfinished: term.Yellow,
	}
}

// judged writes a word, in its colour if w is a terminal that shows colours, and the rest of its line.
func (a *app) judged(w io.Writer, word, format string, args ...any) {
	_, err := io.WriteString(w, a.painted(w, term.Plain(word))+term.Plain(fmt.Sprintf(format, args...)))
	if err != nil && w == a.Stdout && a.lost == nil {
		a.lost = fmt.Errorf("write to standard output: %w", err)
	}
}

// painted returns a word that judges in its colour, if w is a terminal that shows colours.
func (a *app) painted(w io.Writer, word string) string {
	if !term.Colors(w, a.Getenv) {
		return word
	}
	return wordColors()[word].Paint(word)
}
