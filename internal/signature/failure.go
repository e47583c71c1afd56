package signature

import (
	"cmp"
	"fmt"
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
	out := Failure{Class: v.Class, Certainty: Likely, Evidence: v.Evidence, Scores: v.Scores}
	switch v.Class {
	case CPUThrottling: // which only sets the rate
		out.Class, out.Evidence = Queue, slices.Insert(slices.Clone(v.Evidence), 0, f.queueEvidence())
		if found[Queue].score < wins {
			out.Evidence[0] = fmt.Sprintf("calls that were served took %s, and %s well below the limit: they had waited",
				short(f.acceptance.p50), short(e.BaseP50.Seconds()))
			if !v.Queued {
				out.Class, out.Certainty, out.Evidence = Unknown, NotKnown, v.Evidence
			}
		}
	case Client, Unknown:
		out.Class, out.Certainty = Unknown, NotKnown
	}
	if f.shows(out.Class, e, found) {
		out.Certainty = Shown
	}
	if v.Class != Client {
		out.Excluded = exclusions(out.Class, found)
	}
	return out
}

// shows reports whether a failure was observed itself, and no other one resembles it.
func (f features) shows(c Class, e Evidence, found map[Class]classScore) bool {
	const certain, near = 0.95, 0.4
	alike := []Class{c, CPUThrottling} // classes that may score as much
	switch c {
	case ConnectionRefused, PortExhaustion, FDExhaustion: // by their error numbers
		return true
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
		if found[c].score < certain {
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
		return c == failure || c == CPUThrottling || c == Client || found[c].score >= wins || found[c].against == ""
	})
	slices.SortStableFunc(others, func(a, b Class) int { return cmp.Compare(found[b].score, found[a].score) })
	for _, c := range others[:min(mostExcluded, len(others))] {
		out = append(out, Exclusion{What: phrases[c], By: found[c].against})
	}
	return out
}

// phrases say what a class is, in a few words.
var phrases = map[Class]string{
	ConnectionRefused: "connections that the target refuses",
	PortExhaustion:    "a client without free ports",
	FDExhaustion:      "a client without free file descriptors",
	AcceptQueue:       "connections that are never accepted",
	ConcurrencyLimit:  "a limit on the calls in flight",
	FixedWindow:       "a limit per window of time",
	TokenBucket:       "a steady limit on the rate",
	Penalty:           "a limit that counts refused calls as well",
	Shedding:          "a queue that drops calls",
	Collapse:          "a service that does less under load",
	QuotaHang:         "a limit that leaves calls unanswered",
	Pauses:            "a target that stops altogether now and then",
	Queue:             "a queue that drops nothing",
}
