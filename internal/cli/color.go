package cli

import (
	"fmt"
	"io"

	"tare/area"
	"tare/internal/doctor"
	"tare/internal/record"
	"tare/internal/report"
	"tare/internal/term"
)

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
