package report

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"tare/internal/design"
)

// How a comparison was made, whether to believe it, and what to do next.

// layout is the design in one line.
func (r *Report) layout() string {
	d := r.Design
	if d == nil {
		return ""
	}
	arms, aa := 0, ""
	for i := range r.Treatments {
		if r.Treatments[i].Control == design.AA {
			aa = " + A/A"
		} else {
			arms++
		}
	}
	s := countOf(d.Blocks, "block")
	if d.Planned > d.Blocks {
		s += fmt.Sprintf(" (of %d)", d.Planned)
	}
	s += " of " + countOf(arms, "treatment") + aa
	if n := r.rounds(); n > 1 {
		s += fmt.Sprintf(" × %d rounds", n)
	}
	parts := []string{s}
	if d.Margin > 0 {
		parts = append(parts, "margin "+share(d.Margin))
	}
	if l := r.levels(); l != "" {
		parts = append(parts, l)
	}
	if d.Stopped != "" {
		parts = append(parts, "stopped: "+d.Stopped)
	}
	return strings.Join(parts, " · ")
}

func countOf(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// rounds is how many batches of each treatment a block had, where it was the same for all; else 0.
func (r *Report) rounds() int {
	n := 0
	for i := range r.Percentiles {
		p := &r.Percentiles[i]
		if p.Of != "batches" {
			continue
		}
		if r.Design.Blocks == 0 || p.N%r.Design.Blocks != 0 || n != 0 && n != p.N/r.Design.Blocks {
			return 0
		}
		n = p.N / r.Design.Blocks
	}
	return n
}

// levels are those of the gating intervals: each is the one that its verdict used.
func (r *Report) levels() string {
	lo, hi := math.Inf(1), math.Inf(-1)
	for _, x := range r.gating() {
		if x.estimated() && x.Level > 0 {
			lo, hi = min(lo, x.Level), max(hi, x.Level)
		}
	}
	show := func(v float64) string { return strings.TrimSuffix(fmt.Sprintf("%.1f", v*100), ".0") }
	switch {
	case math.IsInf(lo, 0):
		return ""
	case show(lo) == show(hi):
		return show(lo) + " % intervals"
	}
	return show(lo) + "–" + show(hi) + " % intervals"
}

// trust says what the experiment's checks of itself found. ok is false where it must not be trusted.
func (r *Report) trust() (text string, ok bool) {
	a := r.AA
	if a == nil {
		return "", true
	}
	arm, quiet := loudest(a.Effects)
	negative, controlsQuiet := loudest(a.NegativeControls)
	var parts []string
	if arm != nil {
		s := "the baseline against itself is quiet: largest "
		if !quiet {
			s = "the baseline differs from itself: "
		}
		parts = append(parts, s+arm.Change()+" of "+arm.measured())
	}
	if negative != nil {
		s := "negative controls quiet: " + operationsOf(a.NegativeControls) + ", largest " + negative.Change()
		if !controlsQuiet {
			s = "a negative control is not quiet: " + negative.measured() + " of " + named(r.labels(), negative.Treatment) + " " + negative.Change()
		}
		parts = append(parts, s)
	}
	s := strings.Join(parts, "; ")
	if arm == nil && !a.Reliable {
		return strings.TrimSuffix("UNCHECKED: "+orElse(a.Unchecked, "there is no effect of the baseline on itself")+"; "+s, "; "), false
	}
	if !a.Reliable {
		return strings.TrimSuffix("UNRELIABLE on this host: "+s, ": "), false
	}
	return s, true
}

// unreliable says whether the checks of the experiment itself failed.
func (r *Report) unreliable() bool { return r.AA != nil && !r.AA.Reliable }

// loudest is the effect that is farthest from 0 among those that can be told from it, or where none can, among all; quiet says that none
// can. Gating ones are asked first, since only they can make a run invalid.
func loudest(effects []Effect) (x *Effect, quiet bool) {
	gates := slices.ContainsFunc(effects, func(x Effect) bool { return x.Gating })
	quiet = true
	for i := range effects {
		c := &effects[i]
		if gates && !c.Gating || !c.estimated() {
			continue
		}
		loud := c.loud()
		if x == nil || loud && quiet || loud == !quiet && math.Abs(c.Estimate) > math.Abs(x.Estimate) {
			x = c
		}
		quiet = quiet && !loud
	}
	return x, quiet
}

// loud says whether an effect can be told from 0 after the correction for all that were asked with it.
func (x *Effect) loud() bool {
	switch x.Verdict {
	case Regressed, Improved, Slower, Faster:
		return true
	case Equivalent, EffectInconclusive:
	}
	return x.Measurable
}

// operationsOf names the operations of effects once each.
func operationsOf(effects []Effect) string {
	set := map[string]bool{}
	var names []string
	for i := range effects {
		if n := orElse(effects[i].Operation, effects[i].Metric); !set[n] {
			set[n] = true
			names = append(names, n)
		}
	}
	return strings.Join(names, ", ")
}

// unblocked is what must be said about values that were not taken in blocks.
func (r *Report) unblocked() string {
	if r.Design == nil || !r.Design.Unblocked {
		return ""
	}
	return "the values were not taken in interleaved blocks: an effect may be the host's drift between the runs, and nothing is called equivalent"
}

// next are the commands that would help most.
func (r *Report) next() []string {
	file := orElse(r.Experiment.File, "FILE")
	if r.Design == nil || r.Design.Unblocked || len(r.Effects) == 0 {
		return nil
	}
	switch {
	case r.unreliable() && r.AA.Remedy != "":
		return []string{r.AA.Remedy}
	case r.unreliable() && r.AA.Unchecked != "":
		return nil
	case r.unreliable():
		return []string{"the host is too noisy for this: tare doctor shows its noise; a quieter host, pinned CPUs or longer batches help"}
	}
	switch {
	case r.Verdict == Invalid:
		return nil
	case r.Status.unfinished() != "":
		return []string{"go on with it: tare run --resume RUN, with its folder for RUN"}
	}
	// Blocks that decide, and how many effects they decide.
	need := map[int]int{}
	beyond := 0
	for _, x := range r.gating() {
		switch {
		case r.settled():
		case x.BlocksToDecide == nil || !x.Verdict.undecided():
		case *x.BlocksToDecide > design.MaxBlocks:
			beyond++
		case *x.BlocksToDecide > r.Design.Blocks:
			need[*x.BlocksToDecide-r.Design.Blocks]++
		}
	}
	var out []string
	if len(need) > 0 {
		all := 0
		for _, n := range need {
			all += n
		}
		most := slices.Max(slices.Collect(maps.Keys(need)))
		out = append(out, fmt.Sprintf("about %s would decide %s: tare run %s --add-blocks %d", countMore(most), countOf(all, "open effect"), file, most))
	}
	if beyond > 0 {
		out = append(out, fmt.Sprintf("%s would need more than %d blocks: a wider margin, or longer batches", countOf(beyond, "open effect"), design.MaxBlocks))
	}
	return out
}

func countMore(n int) string {
	if n == 1 {
		return "1 more block"
	}
	return fmt.Sprintf("%d more blocks", n)
}
