package report

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"tare/internal/capacity"
	"tare/internal/signature"
	"tare/internal/unit"
)

// opt prints a value that may be unknown.
func opt(v *float64, show func(float64) string) string {
	if v == nil {
		return ""
	}
	return show(*v)
}

// Rate prints a rate in 1/s with four significant digits and trailing zeros, which show its precision: "150.0".
func Rate(v float64) string {
	if v == 0 {
		return "0"
	}
	digits := 3 - int(math.Floor(math.Log10(math.Abs(v))))
	return strconv.FormatFloat(v, 'f', min(max(digits, 0), 6), 64)
}

// Percent prints a share.
func Percent(v float64) string { return strconv.FormatFloat(v*100, 'f', 1, 64) + " %" }

func count(n uint64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatUint(n, 10)
}

// headline describes the capacity in one line without its label.
func (r *Report) headline(c *Capacity) string {
	switch {
	case c.Stop == string(capacity.StopClient) && c.AtLeast != nil:
		return "at least " + unit.PerSecond(*c.AtLeast) + "; " + aboveThat + because(r.untold(c.Reason))
	case !c.Valid:
		return "not measured: the generator is the limit, not the target" + because(r.untold(c.Reason))
	case c.Rate != nil:
		s := Rate(*c.Rate) + " /s"
		if c.Lo != nil && c.Hi != nil {
			s += fmt.Sprintf(" [%s, %s]", Rate(*c.Lo), Rate(*c.Hi))
		}
		return s
	case len(c.Points) > 0 && c.Points[0].Name != "":
		return unit.Count(len(c.Points), "workload")
	case len(c.Points) > 0:
		return fmt.Sprintf("a ladder from %s to %s", unit.PerSecond(c.Points[0].Rate),
			unit.PerSecond(c.Points[len(c.Points)-1].Rate))
	case c.Bound() != "":
		return c.Bound() + because(c.Reason)
	}
	return "not measured" + because(c.Reason)
}

// aboveThat is what is said of higher rates where the generator limited a search.
const aboveThat = "above that the generator or its host is the limit, not the target"

func because(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + reason
}

// verified lists the rates that were tried.
func (c *Capacity) verified() string {
	var parts []string
	if c.VerifiedLow != nil {
		parts = append(parts, "holds "+unit.Number(*c.VerifiedLow))
	}
	if c.VerifiedHigh != nil {
		parts = append(parts, "fails "+unit.Number(*c.VerifiedHigh))
	}
	if len(parts) == 0 {
		return ""
	}
	return "verified: " + strings.Join(parts, ", ")
}

// effort describes the duration and steps of the search.
func (c *Capacity) effort() string {
	s := unit.Seconds(c.Seconds)
	switch {
	case len(c.Points) > 0:
		return fmt.Sprintf("%s, %d points", s, len(c.Points))
	case c.Phases == 1:
		return s + ", 1 phase"
	}
	return fmt.Sprintf("%s, %d phases", s, c.Phases)
}

// otherNumbers returns the other numbers of a capacity.
func (c *Capacity) otherNumbers() []string {
	var out []string
	if text := c.withinObjective(); text != "" {
		out = append(out, text)
	}
	if c.Burst != nil && *c.Burst >= 1 {
		out = append(out, "takes a burst of "+unit.Number(math.Round(*c.Burst))+" calls beyond the rate")
	}
	for _, f := range c.Findings {
		out = append(out, f.Kind+": "+f.Sentence)
	}
	return out
}

// withinObjective says at which rates the latency objective holds; "" where none was given.
func (c *Capacity) withinObjective() string {
	objective := "its latency objective"
	if c.Objective != nil {
		objective += " (" + c.Objective.String() + ")"
	}
	const wide = 1.15 // the ratio of the two rates from which on what lies between them is worth a word
	switch {
	case c.SLORate != nil && c.SLOFails != nil && *c.SLOFails > wide**c.SLORate:
		return "holds " + objective + " up to " + Rate(*c.SLORate) + " /s, and misses it at " + Rate(*c.SLOFails) +
			" /s; in between it is open"
	case c.SLORate != nil && c.SLOFails != nil:
		return "holds " + objective + " up to " + Rate(*c.SLORate) + " /s, and misses it at " + Rate(*c.SLOFails) + " /s"
	case c.SLORate != nil:
		return "holds " + objective + " up to " + Rate(*c.SLORate) + " /s; above that it is open"
	case c.SLOFails != nil:
		return "misses " + objective + " at " + Rate(*c.SLOFails) + " /s; no rate was seen to hold it"
	case c.Objective != nil:
		return "no rate is known to hold or to miss " + objective + because(c.Objective.Reason)
	}
	return ""
}

// objectiveRate is the highest rate within the latency objective, or what is known of it; "" where none was given.
func (c *Capacity) objectiveRate() string {
	switch {
	case c.SLORate != nil:
		return rate(*c.SLORate)
	case c.SLOFails != nil:
		return "< " + rate(*c.SLOFails)
	case c.Objective != nil:
		return "not known"
	}
	return ""
}

// recovery returns the label and the sentence of the recovery probe; both are empty if it was not made. A target that
// did not break does not recover.
func (c *Capacity) recovery() (label, text string) {
	note := strings.TrimPrefix(strings.TrimPrefix(c.Recovery, "wedged: "), "recovers ")
	switch {
	case strings.HasPrefix(note, "partly: "):
		return "afterwards", "it " + strings.TrimPrefix(note, "partly: ")
	case !c.Broke && !c.Wedged && (note != "" || c.RecoverySeconds != nil):
		return "afterwards", "it answers single calls"
	case c.Wedged && strings.HasPrefix(note, "refuses: "):
		return "refuses", strings.TrimPrefix(note, "refuses: ")
	case c.Wedged && note != "":
		return "wedged", note
	case c.Wedged:
		return "wedged", "it did not answer again after the load had stopped"
	case note != "":
		return "recovers", note
	case c.RecoverySeconds != nil:
		return "recovers", RecoversAfter(*c.RecoverySeconds)
	}
	return "", ""
}

// soon is the limit, in seconds, below which a recovery counts as immediate: single calls are made twice a second.
const soon = 1

// RecoversAfter describes how long a target took to answer again after its load had stopped: "immediately", "after 12
// s".
func RecoversAfter(seconds float64) string {
	if seconds < soon {
		return "immediately"
	}
	return "after " + unit.Seconds(seconds)
}

// untold returns a reason, or "" if the verdict of an invalid run gives it.
func (r *Report) untold(reason string) string {
	if r.Verdict == Invalid && strings.Contains(r.Reason, reason) {
		return ""
	}
	return reason
}

// generatorLine says whether the generator limited the result, and the evidence; "" if the verdict says all of it.
func (r *Report) generatorLine() string {
	g := r.Generator
	if !g.Valid && g.Reason != "" {
		if r.untold(g.Reason) == "" {
			return ""
		}
		return g.judged() + because(g.Reason)
	}
	parts := nonEmpty(r.untold(g.Reason))
	for _, d := range g.Doubts {
		if d != g.Reason {
			parts = append(parts, d)
		}
	}
	if len(parts) > 0 {
		parts = []string{strings.Join(parts, "; ")}
	}
	if g.Lateness != nil {
		parts = append(parts, "lateness p99 "+unit.Seconds(g.Lateness.P99))
	}
	if g.AchievedRatio != nil {
		parts = append(parts, Percent(*g.AchievedRatio)+" of offered")
	}
	if g.RuledOut() {
		parts = append(parts, g.Evidence...)
	}
	return g.judged() + because(strings.Join(parts, ", "))
}

// RuledOut reports whether the evidence excludes that the generator shaped the result; false without evidence.
func (g *Generator) RuledOut() bool { return g.Valid && g.Verdict == signature.RuledOut }

// judged describes the verdict in the same words in every format.
func (g *Generator) judged() string {
	switch {
	case !g.Valid:
		return "THE GENERATOR is the limit"
	case g.RuledOut():
		return "not the generator"
	case len(g.Doubts) == 0 && g.Reason != "":
		return "the generator, in part"
	case g.Verdict == "" && len(g.Doubts) == 0:
		return "the generator is not ruled out"
	}
	return "the generator may be the limit"
}

// mark returns the verdict's word with its sign; a failure is in capitals.
func (v Verdict) mark() string {
	switch v {
	case Pass:
		return "✓ pass"
	case Fail:
		return "✗ FAIL"
	case Inconclusive:
		return "? inconclusive"
	case NotMeasured:
		return "– not-measured"
	case Invalid:
		return "✗ INVALID"
	case None:
		return "none"
	}
	return string(v)
}

// class returns the class of a verdict: good, bad or neither.
func (v Verdict) class() string {
	switch v {
	case Pass:
		return good
	case Fail, Invalid:
		return bad
	case Inconclusive, NotMeasured:
		return unsure
	case None:
	}
	return ""
}

// unfinished describes the limits of a report of a run that was cut short; empty for a complete one.
func (s Status) unfinished() string {
	const rest = "; the figures below cover only what was measured until then"
	switch s {
	case Complete:
		return ""
	case Interrupted:
		return "the run was interrupted" + rest
	case Killed:
		return "the run was killed, or is still going on" + rest
	case Errored:
		return "the run ended in an error" + rest
	}
	return "the run ended as " + string(s) + rest
}

// withTreatment reports whether tables need a column for the treatment.
func (r *Report) withTreatment(id string) string {
	if len(r.Treatments) > 1 {
		return id
	}
	return ""
}
