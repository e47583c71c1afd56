package report

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"

	"tare/internal/budget"
	terminal "tare/internal/term"
)

// SummaryLimit is the most bytes that StepSummary writes. GitHub drops a step's summary if it is larger than 1 MiB; the
// rest is left for other output of the step.
const SummaryLimit = 1000 << 10

// StepSummary writes the Markdown format to the file that GITHUB_STEP_SUMMARY names, cut between lines if it is longer
// than SummaryLimit.
func StepSummary(w io.Writer, r *Report) error {
	var b bytes.Buffer
	if err := Markdown(&b, r); err != nil {
		return err
	}
	_, err := w.Write(cutLines(b.Bytes(), SummaryLimit))
	return err
}

// cutLines keeps whole lines within the limit, and notes it if it left some out.
func cutLines(b []byte, limit int) []byte {
	if len(b) <= limit {
		return b
	}
	const rest = "\nThe rest is omitted because GitHub limits the size of a summary. The report has all of it.\n"
	kept := b[:max(0, limit-len(rest))]
	return append(bytes.Clone(kept[:bytes.LastIndexByte(kept, '\n')+1]), rest...)
}

// MaxAnnotations is the most annotations of a run; GitHub shows ten of a kind per step.
const MaxAnnotations = 10

// Annotations writes workflow commands for GitHub actions, which go to standard output, one a line: errors first (the
// run is invalid or unfinished, budgets broken), then warnings (budgets undecided or not measured, the report's
// warnings), then notices (gating effects that regressed and that no budget is about: whether that is wrong nobody
// said). A run without any of these writes nothing. Where there are more than MaxAnnotations, the last one counts the
// rest. The commands' syntax: https://docs.github.com/actions/reference/workflow-commands-for-github-actions.
func Annotations(w io.Writer, r *Report) error {
	all := r.annotations()
	if n := len(all); n > MaxAnnotations {
		all = append(all[:MaxAnnotations-1:MaxAnnotations-1], annotation{
			all[MaxAnnotations-1].level, r.Experiment.Name, fmt.Sprintf("and %d more: see the report", n-MaxAnnotations+1),
		})
	}
	var b strings.Builder
	for _, a := range all {
		b.WriteString(a.command() + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// The levels of annotations.
const (
	asError   = "error"
	asWarning = "warning"
	asNotice  = "notice"
)

// An annotation is one remark on a run.
type annotation struct{ level, title, message string }

// Lengths in characters. GitHub accepts titles of up to 255 characters and messages of up to 64 KiB, but nobody reads
// that much beside a diff.
const (
	titleLength   = 120
	messageLength = 1000
)

// command returns the annotation as a workflow command.
func (a annotation) command() string {
	return "::" + a.level + " title=" + escapeProperty(textOr(a.title, titleLength, "tare")) + "::" +
		escapeData(textOr(a.message, messageLength, "see the report"))
}

var (
	dataEscapes     = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	propertyEscapes = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
)

// escapeData escapes a command's message, and escapeProperty a property, as the runner's toolkit does (actions/toolkit,
// command.ts). Line breaks remain; other control characters and commands are removed, because logs show the text.
func escapeData(s string) string { return dataEscapes.Replace(terminal.Inert(cleanLines(s))) }

func escapeProperty(s string) string { return propertyEscapes.Replace(terminal.Inert(sanitize(s))) }

// cleanLines applies sanitize to a text of several lines.
func cleanLines(s string) string {
	parts := strings.Split(s, "\n")
	return lines(parts)
}

// textOr returns a text cut to a length, or a fallback if it is empty: the runner drops commands without a message.
func textOr(s string, length int, other string) string {
	if strings.TrimSpace(s) == "" {
		return other
	}
	return shorten(s, length)
}

// shorten cuts a text at so many characters.
func shorten(s string, length int) string {
	if r := []rune(s); len(r) > length {
		return string(r[:length-1]) + "…"
	}
	return s
}

// annotations returns all annotations, the most severe first.
func (r *Report) annotations() []annotation {
	name := orElse(r.Experiment.Name, "tare")
	var errs, warnings, notices []annotation
	if r.Verdict == Invalid {
		errs = append(errs, annotation{
			asError, name + ": the run is invalid",
			orElse(r.Reason, "its figures cannot be trusted"),
		})
	}
	if u := r.Status.unfinished(); u != "" {
		errs = append(errs, annotation{asError, name + ": not finished", u})
	}
	for i := range r.Treatments {
		if t := &r.Treatments[i]; len(t.Permits) > 0 {
			errs = append(errs, annotation{asError, name + ": it permits what was refused", t.PermitsMore()})
		}
		if t := &r.Treatments[i]; len(t.Unshown) > 0 {
			warnings = append(warnings, annotation{asWarning, name + ": it may permit what was refused", t.NotShown()})
		}
	}
	for i := range r.Budgets {
		b := &r.Budgets[i]
		a := annotation{title: name + ": " + b.title(), message: b.account() + r.answersOf(b)}
		switch {
		case r.Verdict == Invalid || b.Verdict == Pass:
		case b.Verdict == Fail:
			a.level = asError
			errs = append(errs, a)
		default:
			a.level = asWarning
			warnings = append(warnings, a)
		}
	}
	if r.Verdict != Invalid {
		for _, x := range r.gating() {
			if x.Gating && x.Verdict == Regressed && !r.limits(x) {
				title := name + ": " + x.measured() + " " + string(x.shown())
				notices = append(notices, annotation{asNotice, title, x.Treatment + ": " + x.Change() + " against " + x.Baseline})
			}
		}
	}
	notices = append(notices, r.driftNotices(name)...)
	for _, text := range r.Warnings {
		warnings = append(warnings, annotation{asWarning, name, text})
	}
	return slices.Concat(errs, warnings, notices)
}

// driftNotices returns the trends beyond the margin that no budget limits.
func (r *Report) driftNotices(name string) []annotation {
	if r.Verdict == Invalid {
		return nil
	}
	var out []annotation
	for i := range r.Soak {
		s := &r.Soak[i]
		for _, m := range driftNames(s.Drift) {
			d := s.Drift[m]
			if d.Verdict == Regressed && !r.limitsDrift(s, m) {
				what := Measured(s.Operation, m, "")
				out = append(out, annotation{asNotice, name + ": " + what + " drifts", r.subject(s.Treatment, d.Trend(what))})
			}
		}
	}
	return out
}

// limitsDrift reports whether a budget limits a trend.
func (r *Report) limitsDrift(s *Soak, what string) bool {
	for i := range r.Budgets {
		limit, err := budget.Parse(r.Budgets[i].Text)
		if err == nil && limit.Drift && Measured(limit.Operation, limit.Metric, limit.Quantile) == Measured(s.Operation, what,
			"") && (r.Budgets[i].Treatment == "" || r.Budgets[i].Treatment == s.Treatment) {
			return true
		}
	}
	return false
}

// title returns the budget with the treatment that it applies to.
func (b *Budget) title() string {
	if b.Treatment == "" || strings.HasPrefix(b.Text, b.Treatment+":") {
		return b.Text
	}
	return b.Treatment + ": " + b.Text
}

// limits reports whether a budget limits an effect's metric: then the budget's verdict counts.
func (r *Report) limits(x *Effect) bool {
	for i := range r.Budgets {
		b := &r.Budgets[i]
		limit, err := budget.Parse(b.Text)
		if err == nil && b.Treatment == x.Treatment && limit.Metric == x.Metric && limit.Quantile == x.Quantile &&
			(limit.Operation == "" || limit.Operation == x.Operation) {
			return true
		}
	}
	return false
}
