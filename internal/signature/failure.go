package signature

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

// Certainty says how well a statement about a target is founded. Its word is the same in all outputs.
type Certainty string

// The certainties.
const (
	Shown    Certainty = "shown"                  // observed directly, or predicted and then observed
	Likely   Certainty = "likely"                 // the evidence supports it, and excludes some alternatives
	NotKnown Certainty = "not known from outside" // several explanations remain
)

// Supports reports whether a statement of this certainty may be made at all.
func (c Certainty) Supports() bool { return c == Shown || c == Likely }

// An Exclusion is an alternative that an observation contradicts.
type Exclusion struct {
	What string `json:"what"` // the alternative, in a few words: "a limit on connections"
	By   string `json:"by"`   // the observation, a clause: "the rate is the same with 32 connections"
	// ByTimes: other work that keeps the processors busy may make the same observation.
	ByTimes bool `json:"-"`
}

// A Failure is what callers meet above the limit.
type Failure struct {
	// Class never names what only sets the rate: of a CPU quota, callers meet a queue.
	Class     Class             `json:"class"`
	Certainty Certainty         `json:"certainty"`
	Evidence  []string          `json:"evidence,omitempty"` // sentences, the strongest first
	Excluded  []Exclusion       `json:"excluded,omitempty"`
	Scores    map[Class]float64 `json:"scores,omitempty"` // of all classes, 0…1
}

// Known reports whether the failure has a class.
func (f *Failure) Known() bool { return f.Class != Unknown && f.Class != "" && f.Certainty.Supports() }

// Name names the failure in words: "accept queue"; "" where it has no class.
func (f *Failure) Name() string {
	if !f.Known() {
		return ""
	}
	return strings.ReplaceAll(string(f.Class), "-", " ")
}

// Statement names the failure with its certainty: "accept queue (likely)", "not known from outside".
func (f *Failure) Statement() string {
	if !f.Known() {
		return string(NotKnown)
	}
	return f.Name() + " (" + string(f.Certainty) + ")"
}

// Clause says how the target fails, as surely as it is known: "it likely fails as accept queue".
func (f *Failure) Clause() string {
	switch {
	case !f.Known():
		return "how it fails fits no known class"
	case f.Certainty == Likely:
		return "it likely fails as " + f.Name()
	}
	return "it fails as " + f.Name()
}

const (
	certain      = 0.95 // the score from which a class may be called shown
	shortPauses  = 0.1  // the share of the time below which pauses are not what makes calls wait
	mostExcluded = 3    // alternatives that a failure names
)

// Failure is what callers met. It is not known where nothing was classified, and where the generator was the limit.
func (v Verdict) Failure() Failure {
	if v.Met.Class == "" {
		return Failure{Class: Unknown, Certainty: NotKnown, Evidence: v.Evidence, Scores: v.Scores}
	}
	return v.Met
}

// failureOf says what callers met, by the scores of a verdict that is complete.
func (v Verdict) failureOf(f *features) Failure {
	c, why := f.met(v)
	out := Failure{Class: c, Certainty: Likely, Evidence: v.Evidence, Scores: v.Scores}
	switch {
	case c == Unknown:
		out.Certainty = NotKnown
	case c.definition().shown != nil && c.definition().shown(f):
		out.Certainty = Shown
	}
	if c != v.Class && c != Unknown {
		rest := v.Evidence
		if v.Class != Unknown && !v.Class.Traits().OnlyRate {
			rest = rest[1:] // the first is about another class
		}
		out.Evidence = append([]string{why}, rest...)
	}
	if v.Class != Client {
		out.Excluded = f.exclusions(c)
	}
	return out
}

// met is what callers met, with the evidence where that is not the class of the verdict: it may only set the rate, or
// they met something else more often; and where the class is not known, what happened to the calls still may be.
func (f *features) met(v Verdict) (Class, string) {
	switch c := v.Class; {
	case c == Client:
		return Unknown, ""
	case f.dial[c] > 0 && f.dial[c] < f.rejected:
		others := maps.Clone(f.found)
		others[c] = classScore{}
		if _, other := choose(others); other != Unknown && !other.Traits().OnlyRate {
			return other, f.found[other].evidence
		}
	case c.Traits().OnlyRate:
		return f.metBehindQuota(v)
	case c == Pauses && f.found[Queue].score >= wins && f.gaps < shortPauses: // they hardly lower the rate
		return Queue, f.queueEvidence()
	case c == Collapse && f.late == 0 && f.found[QuotaHang].score > 0.8:
		return QuotaHang, f.found[QuotaHang].evidence
	case (c == Queue || c == Shedding || c == Unknown) && f.growsBehindRefusals():
		return Queue, f.queueBehindRefusals()
	case c == Queue && f.share(f.rejected) > 0.05:
		return Shedding, fmt.Sprintf("%.1f %% of the calls were refused, after %s", 100*f.share(f.rejected),
			short(f.rejection.p50))
	case c == Queue && f.Sharp.Held == 0 && f.found[Collapse].score > 0.4, // nothing says what it does below the limit
		c == Queue && f.found[Queue].score < 0.6 && f.late < 0.6*f.Sharp.Held, // it does less under load
		// a limit on the rate explains it as well
		c == ConcurrencyLimit && f.separation < 0.9 && f.found[c].score < 0.7 && f.found[TokenBucket].score >= 0.4:
		return Unknown, ""
	case c == Unknown:
		return f.metByCounts()
	}
	return v.Class, ""
}

// growsBehindRefusals reports whether the calls that are served wait ever longer, in order, while others are refused at
// once: something else refuses them.
func (f *features) growsBehindRefusals() bool {
	return f.share(f.rejected) > 0.05 && f.fifo > 0.9 && f.lateDrift > 0.2*f.wantDrift && f.lateDrift > 0.05 &&
		f.rejection.p90 < 0.1*f.acceptance.p50
}

func (f *features) queueBehindRefusals() string {
	return fmt.Sprintf("responses of the calls that are served go on growing, by %.3f s per second, and others are "+
		"refused within %s: a queue that drops nothing, behind something that refuses", f.lateDrift, short(f.rejection.p90))
}

// metBehindQuota is what callers meet of a service whose CPU time is limited: a queue, which may drop calls.
func (f *features) metBehindQuota(v Verdict) (Class, string) {
	switch waited := fmt.Sprintf("calls that were served took %s, and %s well below the limit",
		short(f.acceptance.p50), short(f.BaseP50.Seconds())); {
	case f.growsBehindRefusals():
		return Queue, f.queueBehindRefusals()
	case f.share(f.rejected) > 0.05:
		return Shedding, fmt.Sprintf("%.1f %% of the calls were refused, where the service is what sets the rate; %s",
			100*f.share(f.rejected), waited)
	case f.found[Queue].score >= wins:
		return Queue, f.queueEvidence()
	case v.Queued:
		return Queue, waited + ": they had waited"
	}
	return Unknown, ""
}

// metByCounts is what most of the calls met that were not served in time, where no class explains why.
func (f *features) metByCounts() (Class, string) {
	for _, c := range order {
		if f.share(f.dial[c]) > 0.1 && f.dial[c] >= f.rejected && f.away < 0.1 {
			return c, f.found[c].evidence
		}
	}
	base, excess := f.BaseP50.Seconds(), (f.window.Rate-f.late)*f.seconds()
	switch {
	case f.onlyHung():
		return QuotaHang, fmt.Sprintf("%d of %d calls were still not answered at the end, and calls that came later were",
			f.left, f.n)
	case f.Capacity <= 0 || f.window.Rate <= 1.1*f.late:
	case f.found[Pauses].score < wins && f.found[CPUThrottling].score < wins && f.endedWell > 0.97-f.ErrorFloor &&
		f.late > 0.8*max(f.Capacity, f.Sharp.Held) && f.eventual.p50 > 2*base:
		return Queue, fmt.Sprintf("%.0f %% of the calls were answered in the end, after %s, which is %.1f times as long as "+
			"well below the limit", 100*f.endedWell, short(f.eventual.p50), f.eventual.p50/base)
	case f.found[Pauses].score < 0.4 && f.found[QuotaHang].score < 0.4 && f.left < f.n && !f.hung &&
		f.late > 0.85*f.Capacity &&
		f.share(f.rejected+f.failed+f.unconnected()) < 0.05 && math.Abs(float64(f.left+f.timed)/excess-1) < 0.5:
		return Queue, fmt.Sprintf("%d of %d calls still waited at the end or had timed out, as many as were offered beyond "+
			"the %s/s that were served; %d were refused", f.left+f.timed, f.n, rate(f.late), f.rejected)
	}
	return Unknown, ""
}

// exclusions are the alternatives to a failure that an observation contradicts, those first that resemble it most.
func (f *features) exclusions(failure Class) []Exclusion {
	var out []Exclusion
	others := slices.DeleteFunc(slices.Clone(order), func(c Class) bool {
		x := f.found[c]
		return c == failure || c.definition().phrase == "" || x.score >= wins || x.against == "" || x.withheld
	})
	slices.SortStableFunc(others, func(a, b Class) int { return cmp.Compare(f.found[b].score, f.found[a].score) })
	for _, c := range others[:min(mostExcluded, len(others))] {
		d := c.definition()
		out = append(out, Exclusion{What: d.phrase, By: f.found[c].against, ByTimes: d.byTimes})
	}
	return out
}
