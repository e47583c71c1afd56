package report

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"tare/internal/capacity"
	"tare/internal/design"
	"tare/internal/unit"
)

// How a comparison was made, whether it is reliable, and what to do next.

// layout describes the design in one line.
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
	s := unit.Count(d.Blocks, "block")
	if d.Planned > d.Blocks {
		s += fmt.Sprintf(" (of %d)", d.Planned)
	}
	s += " of " + unit.Count(arms, "treatment") + aa
	if d.Late > 0 {
		s += fmt.Sprintf(", %d of them without times", d.Late)
	}
	if d.Dropped > 0 {
		s += fmt.Sprintf(", %d more left out", d.Dropped)
	}
	if d.Turn > 0 {
		s += fmt.Sprintf(" × %d turns of %s", d.Rounds, unit.Seconds(d.Turn))
	} else if n := r.rounds(); n > 1 {
		s += fmt.Sprintf(" × %d rounds", n)
	}
	parts := []string{s}
	if d.Renewed > 0 {
		parts = append(parts, "processes started afresh for "+unit.Count(d.Renewed, "block"))
	}
	if d.Margin > 0 {
		parts = append(parts, "margin "+share(d.Margin))
	}
	if l := r.levels(); l != "" {
		parts = append(parts, l)
	}
	if d.Stopped != "" {
		stopped, _, _ := strings.Cut(d.Stopped, "; open: ") // the table has what is open
		parts = append(parts, "stopped: "+stopped)
	}
	return strings.Join(parts, " · ")
}

// rounds returns the number of batches of each treatment in a block if it was the same for all, else 0.
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

// levels describes the intervals' levels: each interval has the level that its verdict used.
func (r *Report) levels() string {
	gating := levelsOf(r.gating())
	others := levelsOf(r.effectsThat(func(x *Effect) bool { return !x.Gating && x.Verdict != NotJudged }))
	switch {
	case gating == "":
		return ""
	case others == "" || others == gating:
		return gating + " % intervals"
	}
	return gating + " % intervals, exploratory " + others + " %"
}

// levelsOf returns the range of the levels of effects, in percent.
func levelsOf(effects []*Effect) string {
	lo, hi := math.Inf(1), math.Inf(-1)
	for _, x := range effects {
		if x.estimated() && x.Level > 0 && x.Level < 1 {
			lo, hi = min(lo, x.Level), max(hi, x.Level)
		}
	}
	show := func(v float64) string {
		return strings.TrimRight(strings.TrimRight(fmt.Sprintf("%.2f", v*100), "0"), ".")
	}
	switch {
	case math.IsInf(lo, 0):
		return ""
	case show(lo) == show(hi):
		return show(lo)
	}
	return show(lo) + "–" + show(hi)
}

// undecidable lists what the experiment could not decide by its design.
func (r *Report) undecidable() []string {
	if r.Design == nil {
		return nil
	}
	return r.Design.Undecidable
}

// trust reports the results of the experiment's self-checks. ok is false if the experiment is unreliable; then the text
// is empty if the verdict says why.
func (r *Report) trust() (text string, ok bool) {
	a := r.AA
	if a == nil {
		return "", true
	}
	var parts []string
	add := func(text string, x *Effect) {
		if text != "" && (a.Reliable || r.untold(x.Change()) != "") {
			parts = append(parts, text)
		}
	}
	arm, found := r.selfCheck(a.Effects)
	switch found {
	case checkDiffers:
		add("the baseline differs from itself"+r.slightly()+": "+arm.Change()+" of "+arm.measured(), arm)
	case checkQuiet:
		add("the baseline against itself is quiet: largest "+arm.Change()+" of "+arm.measured(), arm)
	case checkOpen:
		add("not known whether the baseline differs from itself: "+arm.Change()+" of "+arm.measured()+arm.fewBlocks(), arm)
	}
	negative, found := r.selfCheck(a.NegativeControls)
	switch of := operationsOf(a.NegativeControls); found {
	case checkDiffers:
		add("a negative control differs from 0"+r.slightly()+": "+negative.measured()+" of "+
			named(r.labels(), negative.Treatment)+" "+negative.Change(), negative)
	case checkQuiet:
		add(controlsQuiet+": "+of+", largest "+negative.Change(), negative)
	case checkOpen:
		add("not known whether negative controls are quiet: "+of+", widest "+negative.Change()+negative.fewBlocks(), negative)
	}
	s := strings.Join(parts, "; ")
	switch {
	case arm == nil && !a.Reliable:
		return strings.TrimSuffix("UNCHECKED: "+orElse(a.Unchecked, "there is no effect of the baseline on itself")+"; "+s,
			"; "), false
	case !a.Reliable && s != "":
		return "UNRELIABLE on this host: " + s, false
	}
	return s, a.Reliable
}

// slightly says of a difference that leaves the run reliable that it is small.
func (r *Report) slightly() string {
	if r.AA.Reliable {
		return " by less than half the margin"
	}
	return ""
}

const controlsQuiet = "negative controls quiet"

// The findings of a self-check: an effect where there can be none, none within the margin, or neither is known.
const (
	checkDiffers = "differs"
	checkQuiet   = "quiet"
	checkOpen    = "not known"
)

// selfCheck returns what the effects of a control show, and the effect that shows it: the largest of those that differ
// from 0, else the one whose interval reaches farthest of those that are not within the margin, else the largest. It
// prefers gating effects, since only they can make a run invalid.
func (r *Report) selfCheck(effects []Effect) (x *Effect, found string) {
	gates := slices.ContainsFunc(effects, func(x Effect) bool { return x.Gating })
	rank := map[string]int{"": 0, checkQuiet: 1, checkOpen: 2, checkDiffers: 3}
	for i := range effects {
		c := &effects[i]
		if gates && !c.Gating || !c.estimated() {
			continue
		}
		is, size := checkOpen, (*Effect).reach
		switch {
		case c.differsFromZero():
			is, size = checkDiffers, (*Effect).magnitude
		case c.Verdict == Equivalent:
			is, size = checkQuiet, (*Effect).magnitude
		}
		if rank[is] > rank[found] || is == found && size(c) > size(x) {
			x, found = c, is
		}
	}
	return x, found
}

func (x *Effect) magnitude() float64 { return math.Abs(x.Estimate) }

// reach returns how far from 0 the interval reaches.
func (x *Effect) reach() float64 { return max(math.Abs(x.Lo), math.Abs(x.Hi)) }

// fewBlocks says that there were too few blocks to judge an effect, if that is so.
func (x *Effect) fewBlocks() string {
	if x.Verdict == NotJudged {
		return ", from too few blocks"
	}
	return ""
}

// unreliable reports whether the experiment's self-checks failed.
func (r *Report) unreliable() bool { return r.AA != nil && !r.AA.Reliable }

// differsFromZero reports whether an effect differs from 0 after correction for multiple tests.
func (x *Effect) differsFromZero() bool {
	switch x.Verdict {
	case Regressed, Improved, Slower, Faster:
		return true
	case Equivalent, EffectInconclusive, NotJudged:
	}
	return x.Measurable
}

// operationsOf returns the distinct operations of effects.
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

// unblocked warns about values that were not measured in blocks.
func (r *Report) unblocked() string {
	if r.Design == nil || !r.Design.Unblocked {
		return ""
	}
	return "the values were not taken in interleaved blocks: an effect may be the host's drift between the runs, and " +
		"nothing is called equivalent"
}

// next returns the most helpful next commands.
func (r *Report) next() []string {
	again := "tare run " + r.Experiment.File
	if r.Experiment.File == "" {
		again = "tare run --resume RUN" // RUN is named below the report
	}
	if len(r.Effects) == 0 && len(r.Guard) == 0 && !r.unreliable() {
		return r.nextSearch()
	}
	if r.Design == nil || r.Design.Unblocked || len(r.Effects) == 0 && !r.unreliable() {
		return nil
	}
	switch {
	case r.unreliable() && r.AA.Remedy != "":
		return []string{r.AA.Remedy}
	case r.unreliable() && r.AA.Unchecked != "":
		return nil
	case r.unreliable():
		return []string{"the host is too noisy for this: tare doctor shows its noise; a quieter host, pinned CPUs or " +
			"longer batches help"}
	}
	switch {
	case r.Verdict == Invalid:
		return nil
	case r.Status.unfinished() != "":
		return []string{"continue it: tare run --resume RUN, where RUN is its folder"}
	}
	// Numbers of blocks, and how many effects each would decide.
	need := map[int]int{}
	beyond := 0
	for _, x := range r.gating() {
		switch {
		case r.allDecided():
		case x.BlocksToDecide == nil || !x.Verdict.undecided():
		case *x.BlocksToDecide > design.MaxBlocks:
			beyond++
		case *x.BlocksToDecide > r.Design.Blocks:
			need[*x.BlocksToDecide-r.Design.Blocks]++
		}
	}
	out := r.offerLess()
	if len(need) > 0 {
		all := 0
		for _, n := range need {
			all += n
		}
		most := slices.Max(slices.Collect(maps.Keys(need)))
		out = append(out, fmt.Sprintf("about %s would decide %s: %s --add-blocks %d",
			countMore(most), unit.Count(all, "open effect"), again, most))
	}
	if beyond > 0 {
		out = append(out, fmt.Sprintf("%s would need more than %d blocks with this noise, so small is the distance to the "+
			"margin: a wider margin, or longer batches", unit.Count(beyond, "open effect"), design.MaxBlocks))
	}
	return out
}

// offerLess names a rate with which the target keeps up, where it did not in its turns.
func (r *Report) offerLess() []string {
	if r.Design.SlowerRate == 0 {
		return nil
	}
	return []string{"ask at a rate with which the target keeps up: --set load.rate=" +
		unit.Decimal(r.Design.SlowerRate, 4) + "/s"}
}

// nextSearch returns what to do about searches that found no capacity, each step once.
func (r *Report) nextSearch() []string {
	var out []string
	for i := range r.Capacity {
		c := &r.Capacity[i]
		untried := c.Stop == string(capacity.StopTime) && c.Objective != nil && c.Objective.Reason != ""
		if c.Rate != nil && !untried {
			continue
		}
		next := afterStop(capacity.Stop(c.Stop), c.AtLeast != nil && !untried)
		if next != "" && !slices.Contains(out, next) {
			out = append(out, next)
		}
	}
	return out
}

// afterStop says what to do after a search or a ladder that ended in this way without a capacity. bounded: a rate is
// known that holds. It is empty after a ladder, and for an unknown stop.
func afterStop(s capacity.Stop, bounded bool) string {
	switch {
	case s == capacity.StopFound && !bounded:
		return "no rate held or broke at every try: run it again while less else runs on this host"
	case s == capacity.StopFound:
		return "to find where it breaks, run it again while less else runs on this host; the warnings say what was missing"
	case s == capacity.StopMaxRate:
		return "to find where it breaks, allow more: --max-rate (load.max_rate)"
	case s == capacity.StopClient && bounded:
		return "to search above that rate, give the generator more: processors of its own (pin), or a host other than the " +
			"target's; 'tare doctor' says what this host can do"
	case s == capacity.StopClient:
		return "give the generator processors of its own (pin), or a host other than the target's; 'tare doctor' says what " +
			"this host can do"
	case s == capacity.StopNoAnswer:
		return "see that the server answers one such call, made by hand, and within load.timeout"
	case s == capacity.StopFailing:
		return "the table of causes ('tare report RUN --all') says how the calls failed; for a server that takes fewer " +
			"calls, begin lower: --max-rate 2/s, or wait longer: load.timeout"
	case s == capacity.StopTime && bounded:
		return "more time narrows it: load.max_time (--set load.max_time=10m)"
	case s == capacity.StopTime:
		return "give the search more time: load.max_time (--set load.max_time=10m)"
	case s == capacity.StopDown:
		return "restart the target, and look in its log for the reason; a max_rate below the rate at which it broke keeps " +
			"it up"
	case s == capacity.StopRefusing:
		return "see in what it answers why it refuses: of a quota wait until it is over, and ask with fewer calls " +
			"(load.max_time, load.max_rate); of a fault restart the target, and look in its log"
	case s == capacity.StopNoRetry:
		return "restart the target, and measure the points that are missing in a run of their own (load.rates)"
	case s == capacity.StopCanceled:
		return "run it again: a search that was interrupted cannot be continued"
	}
	return ""
}

func countMore(n int) string {
	if n == 1 {
		return "1 more block"
	}
	return fmt.Sprintf("%d more blocks", n)
}
