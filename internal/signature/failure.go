package signature

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
)

// Certainty says how well a statement about a target is founded. Its word is the same in all outputs.
type Certainty string

// The certainties.
const (
	Shown    Certainty = "shown"                  // observed directly, or predicted and then observed
	Likely   Certainty = "likely"                 // the evidence supports it, and excludes some alternatives
	NotKnown Certainty = "not known from outside" // several explanations remain
)

// An Exclusion is an alternative that an observation contradicts.
type Exclusion struct {
	What string `json:"what"` // the alternative, in a few words: "a limit on connections"
	By   string `json:"by"`   // the observation, a clause: "the rate is the same with 32 connections"
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

// mostExcluded is how many alternatives a failure names.
const mostExcluded = 3

// Failure is what callers met. It is not known where nothing was classified, and where the generator was the limit.
func (v Verdict) Failure() Failure {
	if v.Met.Class == "" {
		return Failure{Class: Unknown, Certainty: NotKnown, Evidence: v.Evidence, Scores: v.Scores}
	}
	return v.Met
}

// failureOf says what callers met, by the scores of a verdict that is complete.
func (v Verdict) failureOf(e Evidence, f features, found map[Class]classScore) Failure {
	c, why := f.met(v, e, found)
	out := Failure{Class: c, Certainty: Likely, Evidence: v.Evidence, Scores: v.Scores}
	switch {
	case c == Unknown:
		out.Certainty = NotKnown
	case f.shows(c, e, found):
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
		out.Excluded = exclusions(c, found)
	}
	return out
}

// met is what callers met, with the evidence where that is not the class of the verdict: it may only set the rate, or
// they met something else more often; and where the class is not known, what happened to the calls still may be.
func (f features) met(v Verdict, e Evidence, found map[Class]classScore) (Class, string) {
	switch c := v.Class; {
	case c == Client:
		return Unknown, ""
	case f.dial[c] > 0 && f.dial[c] < f.rejected:
		others := maps.Clone(found)
		others[c] = classScore{}
		if _, other := choose(others); other != Unknown && !other.Traits().OnlyRate {
			return other, found[other].evidence
		}
	case c.Traits().OnlyRate:
		return f.metBehindQuota(v, e, found)
	case c == Collapse && f.late == 0 && found[QuotaHang].score > 0.8:
		return QuotaHang, found[QuotaHang].evidence
	case c == Queue && f.share(f.rejected) > 0.05:
		return Shedding, fmt.Sprintf("%.1f %% of the calls were refused, after %s",
			100*f.share(f.rejected), short(f.rejection.p50))
	case c == Queue && e.Sharp.Held == 0 && found[Collapse].score > 0.4: // nothing says what it does below the limit
		return Unknown, ""
	case c == Queue && found[Queue].score < 0.6 && f.late < 0.6*e.Sharp.Held: // it does less under load
		return Unknown, ""
	// a limit on the rate explains it as well
	case c == ConcurrencyLimit && f.separation < 0.9 && found[c].score < 0.7 && found[TokenBucket].score >= 0.4:
		return Unknown, ""
	case c == Unknown:
		return f.metByCounts(e, found)
	}
	return v.Class, ""
}

// metBehindQuota is what callers meet of a service whose CPU time is limited: a queue, which may drop calls.
func (f features) metBehindQuota(v Verdict, e Evidence, found map[Class]classScore) (Class, string) {
	switch waited := fmt.Sprintf("calls that were served took %s, and %s well below the limit",
		short(f.acceptance.p50), short(e.BaseP50.Seconds())); {
	case f.share(f.rejected) > 0.05:
		return Shedding, fmt.Sprintf("%.1f %% of the calls were refused, where the service is what sets the rate; %s",
			100*f.share(f.rejected), waited)
	case found[Queue].score >= wins:
		return Queue, f.queueEvidence()
	case v.Queued:
		return Queue, waited + ": they had waited"
	}
	return Unknown, ""
}

// metByCounts is what most of the calls met that were not served in time, where no class explains why.
func (f features) metByCounts(e Evidence, found map[Class]classScore) (Class, string) {
	for _, c := range []Class{ConnectionRefused, PortExhaustion, FDExhaustion} {
		if f.share(f.dial[c]) > 0.1 && f.dial[c] >= f.rejected && f.away < 0.1 {
			return c, found[c].evidence
		}
	}
	excess := (f.window.Rate - f.late) * (f.window.End - f.window.Start).Seconds()
	switch {
	case f.late == 0 && f.rejected == 0 && f.left > f.n*9/10 && f.revived:
		return QuotaHang, fmt.Sprintf("%d of %d calls were still not answered at the end, and calls that came later were",
			f.left, f.n)
	case found[Pauses].score < 0.4 && f.share(f.rejected+f.failed+f.unconnected()) < 0.05 &&
		e.Capacity > 0 && f.late > 0.85*e.Capacity && f.window.Rate > 1.1*f.late &&
		math.Abs(float64(f.left+f.timed)/excess-1) < 0.5:
		return Queue, fmt.Sprintf("%d of %d calls still waited at the end or had timed out, as many as were offered beyond "+
			"the %s/s that were served; %d were refused", f.left+f.timed, f.n, rate(f.late), f.rejected)
	}
	return Unknown, ""
}

// shows reports whether a failure was observed itself, and no other one resembles it.
func (f features) shows(c Class, e Evidence, found map[Class]classScore) bool {
	const certain, near = 0.95, 0.4
	alike := []Class{c, CPUThrottling} // classes that may score as much
	switch c {
	case ConnectionRefused, PortExhaustion, FDExhaustion: // by their error numbers
		return f.share(f.dial[c]) > 0.05
	case AcceptQueue:
		read := e.Local.ListenQueue
		return f.flatness() == 1 || read != nil && *read > 0 && math.Abs(float64(*read-f.stuckNow())) <= 1
	case Pauses:
		return e.Local.Paused != nil && *e.Local.Paused > 0.015
	case ConcurrencyLimit:
		if f.separation < certain {
			return false
		}
		alike = append(alike, TokenBucket) // which does not refuse by the calls in flight
	case FixedWindow:
		if f.turns < 3 || found[c].score < certain {
			return false
		}
		alike = append(alike, TokenBucket) // which does not accept in bursts
	case TokenBucket:
		if found[c].score < certain || e.Sharp.Held == 0 { // no rate was seen to hold
			return false
		}
	case Queue:
		if !f.drifts() {
			return false
		}
	default:
		return false
	}
	for other, x := range found {
		if x.score > near && !slices.Contains(alike, other) {
			return false
		}
	}
	return true
}

// drifts reports whether responses grow as in a queue that drops nothing, and answers come in the order of the calls.
func (f features) drifts() bool {
	return !f.newestFirst && f.fifo > 0.95 && math.Abs(f.drift/f.wantDrift-1) < 0.15
}

// exclusions are the alternatives to a failure that an observation contradicts, those first that resemble it most.
func exclusions(failure Class, found map[Class]classScore) []Exclusion {
	var out []Exclusion
	others := slices.DeleteFunc(slices.Clone(order), func(c Class) bool {
		return c == failure || c.definition().phrase == "" || found[c].score >= wins || found[c].against == ""
	})
	slices.SortStableFunc(others, func(a, b Class) int { return cmp.Compare(found[b].score, found[a].score) })
	for _, c := range others[:min(mostExcluded, len(others))] {
		out = append(out, Exclusion{What: c.definition().phrase, By: found[c].against})
	}
	return out
}
