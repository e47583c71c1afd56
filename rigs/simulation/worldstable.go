package simulation

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"tare/internal/capacity"
	"tare/internal/signature"
	"tare/internal/stat"
)

// A Goal is a bound on a share of the worlds, or on the median of the seconds that their searches take.
type Goal struct {
	Name string
	// Bound is at most when Most is set, else at least; a share in percent unless Seconds is set.
	Bound         float64
	Most, Seconds bool
	// missedBy says of one world that it misses the goal; nil for the seconds.
	missedBy func(WorldOutcome) bool
	// verdicts counts budget verdicts instead of worlds, limiters counts them alone.
	verdicts, limiters bool
}

// Goals are what the search has to reach over composed worlds.
func Goals() []Goal {
	not := func(is func(WorldOutcome) bool) func(WorldOutcome) bool {
		return func(o WorldOutcome) bool { return !is(o) }
	}
	return []Goal{
		{Name: "interval excludes the truth by more than 5 %", Bound: 1, Most: true, missedBy: WorldOutcome.excluded},
		{Name: `"at least" above 1.05 × truth`, Bound: 0.5, Most: true, missedBy: WorldOutcome.tooHigh},
		{Name: "budget verdicts that are wrong", Bound: 0.5, Most: true, missedBy: WorldOutcome.misjudged, verdicts: true},
		{Name: "answered at all", Bound: 85, missedBy: not(WorldOutcome.answered)},
		{Name: "class right", Bound: 90, missedBy: not(WorldOutcome.named)},
		{Name: "class wrong, and not unknown", Bound: 3, Most: true, missedBy: WorldOutcome.misnamed},
		{Name: "failure right", Bound: 92, missedBy: not(WorldOutcome.failureRight)},
		{Name: "failure wrong, and not unknown", Bound: 3, Most: true, missedBy: WorldOutcome.failureWrong},
		{Name: "failure wrong, and called shown", Bound: 1, Most: true, missedBy: WorldOutcome.failureShownWrong},
		{Name: "offered above the highest rate", Bound: 0, Most: true, missedBy: WorldOutcome.beyond},
		{Name: "within 180 s", Bound: 95, missedBy: func(o WorldOutcome) bool { return o.Result.Seconds > 180 }},
		{Name: "median seconds, limiters", Bound: 20, Most: true, Seconds: true, limiters: true},
		{Name: "median seconds, all", Bound: 60, Most: true, Seconds: true},
	}
}

// Reached is the value of a goal, and whether it is within its bound.
func (g Goal) Reached(s Worlds) (value float64, ok bool) {
	if g.limiters {
		s = s.only(WorldOutcome.limiter)
	}
	switch {
	case g.Seconds:
		value = s.quantile(0.5)
	case g.verdicts:
		n := 0
		for _, o := range s.Outcomes {
			n += o.Wrong
		}
		value = 100 * float64(n) / float64(max(1, len(judged)*len(s.Outcomes)))
	default:
		value = s.percent(g.missedBy)
		if !g.Most {
			value = 100 - value
		}
	}
	if g.Most {
		return value, value <= g.Bound
	}
	return value, value >= g.Bound
}

func (s Worlds) count(is func(WorldOutcome) bool) int {
	n := 0
	for _, o := range s.Outcomes {
		if is(o) {
			n++
		}
	}
	return n
}

func (s Worlds) only(is func(WorldOutcome) bool) Worlds {
	x := Worlds{Seed: s.Seed}
	for _, o := range s.Outcomes {
		if is(o) {
			x.Outcomes = append(x.Outcomes, o)
		}
	}
	return x
}

// quantile is one of the seconds that the searches took.
func (s Worlds) quantile(q float64) float64 {
	x := make([]float64, len(s.Outcomes))
	for i, o := range s.Outcomes {
		x[i] = o.Result.Seconds
	}
	if len(x) == 0 {
		return 0
	}
	return stat.Quantile(x, q)
}

// Write prints the goals, and where the search fails, as Markdown.
func (s Worlds) Write(w io.Writer) error {
	var text strings.Builder
	fmt.Fprintf(&text, "%d composed worlds, seed %d.\n\n", len(s.Outcomes), s.Seed)
	text.WriteString("| goal | bound | value | |\n|---|--:|--:|---|\n")
	for _, g := range Goals() {
		value, ok := g.Reached(s)
		sign, unit, said := "≥", " %", "missed"
		if g.Most {
			sign = "≤"
		}
		if g.Seconds {
			unit = " s"
		}
		if ok {
			said = "reached"
		}
		fmt.Fprintf(&text, "| %s | %s %g%s | %.2f%s | %s |\n", g.Name, sign, g.Bound, unit, value, unit, said)
	}
	fmt.Fprintf(&text, "\n| worlds with a wrong verdict | within 5 %% of the truth | 95 %% of searches within | "+
		"findings missed | spurious |\n"+
		"|--:|--:|--:|--:|--:|\n| %.2f %% | %.1f %% | %.0f s | %s | %s |\n", s.percent(WorldOutcome.misjudged),
		s.percent(func(o WorldOutcome) bool { return o.Error() <= 0.05 }), s.quantile(0.95),
		s.findings(false), s.findings(true))
	text.WriteString("\n| due to | worlds | excluded | at least too high | wrong verdict | answered | class right | " +
		"wrong | " +
		"unknown | s, median | p95 |\n" +
		"|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n")
	for _, part := range s.parts() {
		text.WriteString(s.only(func(o WorldOutcome) bool { return o.Truth.Part == part }).row(string(part)))
	}
	text.WriteString(s.only(func(o WorldOutcome) bool { return o.Truth.Soft }).row("soft: hardly worse at 1.25 × truth"))
	text.WriteString(s.row("all"))
	text.WriteString(s.confusion())
	if _, err := io.WriteString(w, text.String()); err != nil {
		return fmt.Errorf("write table of worlds: %w", err)
	}
	return nil
}

func (s Worlds) percent(is func(WorldOutcome) bool) float64 {
	return 100 * float64(s.count(is)) / float64(max(1, len(s.Outcomes)))
}

func (s Worlds) row(name string) string {
	if name == "" {
		name = "no limit"
	}
	unknown := func(o WorldOutcome) bool { return !o.named() && !o.misnamed() }
	const form = "| %s | %d | %.1f %% | %.1f %% | %.1f %% | %.0f %% | %.0f %% | %.1f %% | %.0f %% | %.0f | %.0f |\n"
	return fmt.Sprintf(form, name, len(s.Outcomes), s.percent(WorldOutcome.excluded), s.percent(WorldOutcome.tooHigh),
		s.percent(WorldOutcome.misjudged), s.percent(WorldOutcome.answered), s.percent(WorldOutcome.named),
		s.percent(WorldOutcome.misnamed), s.percent(unknown), s.quantile(0.5), s.quantile(0.95))
}

func (s Worlds) parts() []PartKind {
	var parts []PartKind
	for _, o := range s.Outcomes {
		if !slices.Contains(parts, o.Truth.Part) {
			parts = append(parts, o.Truth.Part)
		}
	}
	slices.Sort(parts)
	return parts
}

// findings counts those that were missed, or that are spurious, by kind.
func (s Worlds) findings(spurious bool) string {
	var text []string
	for _, k := range []capacity.FindingKind{
		capacity.ColdStart, capacity.Autoscaling, capacity.SpentCredits, capacity.StaysDown,
	} {
		n, of := 0, 0
		for _, o := range s.Outcomes {
			missed, extra := o.missed()
			if spurious {
				missed = extra
			}
			if slices.Contains(missed, k) {
				n++
			}
			if !spurious && slices.Contains(o.Truth.Findings, k) || spurious && !slices.Contains(o.Truth.Possible, k) {
				of++
			}
		}
		if of > 0 {
			text = append(text, fmt.Sprintf("%s %d of %d", k, n, of))
		}
	}
	return strings.Join(text, ", ")
}

// confusion is how often each true failure, the best name of it, was given each name. A right second name counts as the
// best one.
func (s Worlds) confusion() string {
	count := map[[2]signature.Class]int{}
	for _, o := range s.Outcomes {
		truth, said := signature.Class("none"), o.Failure().Class
		if len(o.Truth.Classes) > 0 {
			truth = met(o.Truth.Classes[0])
		}
		if o.failureRight() {
			said = truth
		}
		count[[2]signature.Class{truth, said}]++
	}
	classes := append(signature.Classes(), "none")
	of := func(truth, said []signature.Class) (n int) {
		for _, t := range truth {
			for _, s := range said {
				n += count[[2]signature.Class{t, s}]
			}
		}
		return n
	}
	said := slices.DeleteFunc(slices.Clone(classes), func(c signature.Class) bool {
		return of(classes, []signature.Class{c}) == 0
	})
	var text, rule strings.Builder
	for _, c := range said {
		fmt.Fprintf(&text, " %s |", c)
		rule.WriteString("--:|")
	}
	head := "\n| true failure, and as what it was reported |" + text.String() + "\n|---|" + rule.String() + "\n"
	text.Reset()
	for _, truth := range classes {
		if of([]signature.Class{truth}, classes) == 0 {
			continue
		}
		fmt.Fprintf(&text, "| %s |", truth)
		for _, c := range said {
			fmt.Fprintf(&text, " %d |", count[[2]signature.Class{truth, c}])
		}
		text.WriteString("\n")
	}
	return head + text.String()
}

// Line is the outcome in one line.
func (o WorldOutcome) Line() string {
	r := o.Result
	var failures []string
	for _, f := range o.Failures() {
		failures = append(failures, string(f))
	}
	truth := "no limit"
	if o.Truth.Stop != capacity.StopMaxRate {
		truth = fmt.Sprintf("%.4g/s %v", o.Truth.Capacity, o.Truth.Classes)
		if o.Truth.Soft {
			truth += " soft"
		}
	}
	said := fmt.Sprintf("%.4g/s [%.4g, %.4g] verified %.4g to %.4g", r.Rate, r.Lo, r.Hi, r.VerifiedLow, r.VerifiedHigh)
	if r.AtLeast > 0 {
		said = fmt.Sprintf("at least %.4g/s", r.AtLeast)
	}
	return fmt.Sprintf("seed %d index %d: %s · due to %s · truth %s %v · said %s %s (%s: %s) %v · %s %s · "+
		"%d phases, %.0f s, %d calls · %s", o.Seed, o.Index, strings.Join(failures, ", "), o.Truth.Part, truth,
		o.Truth.Findings, said, r.Signature.Class, o.Failure().Class, o.Failure().Certainty, kinds(r.Findings), r.Stop,
		r.Reason, r.Phases, r.Seconds, o.Calls, o.Composition)
}

func kinds(f []capacity.Finding) []capacity.FindingKind {
	var k []capacity.FindingKind
	for _, x := range f {
		k = append(k, x.Kind)
	}
	return k
}
