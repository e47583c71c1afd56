// Package design turns an experiment into a seeded plan of trials.
package design

import (
	"math/rand/v2"
	"slices"
	"strings"

	"tare/area"
)

// A Factor is a property that the experiment varies, with its levels in the order of the file.
type Factor struct {
	Name   string
	Levels []string
}

// The words of the contract for what is varied.
type (
	// Treatment is area.Treatment.
	Treatment = area.Treatment
	// Control is area.Control.
	Control = area.Control
)

// The controls.
const (
	None     = area.Ordinary
	AA       = area.AA
	Negative = area.Negative
)

// ID names a combination of levels in a stable order: "mode=enforce policies=10". Without levels it is "default".
func ID(levels map[string]string) string {
	if len(levels) == 0 {
		return "default"
	}
	parts := make([]string, 0, len(levels))
	for k, v := range levels {
		parts = append(parts, k+"="+v)
	}
	slices.Sort(parts)
	return strings.Join(parts, " ")
}

// An Experiment is the input of a plan.
type Experiment struct {
	Treatments []Treatment
	Blocks     int
	Seed       uint64
}

// A Trial is one treatment under load once.
type Trial struct {
	Index     int    `json:"index"`
	Block     int    `json:"block"`
	Treatment string `json:"treatment"`
	Seed      uint64 `json:"seed"`
}

// Plan draws randomised complete blocks: each block holds every treatment once, in an order drawn from the seed. The
// first blocks of a longer plan equal those of a shorter one, so that blocks can be added to a finished run.
func Plan(e Experiment) []Trial {
	rng := rand.New(rand.NewPCG(e.Seed, 0x5eed))
	var plan []Trial
	for b := range e.Blocks {
		for _, i := range rng.Perm(len(e.Treatments)) {
			plan = append(plan, Trial{Index: len(plan), Block: b, Treatment: e.Treatments[i].ID, Seed: rng.Uint64()})
		}
	}
	return plan
}

// Question is what an experiment asks.
type Question string

// The questions.
const (
	Compare  Question = "compare"  // what does the control add, against a baseline?
	Scale    Question = "scale"    // how does that cost grow with N?
	Capacity Question = "capacity" // at what rate does it break, and how?
	Soak     Question = "soak"     // does it hold, and what does it use, over a long mixed load?
	Guard    Question = "guard"    // does it refuse what it must, also when it is overloaded or disturbed?
)

// Trespasses reports whether the question asks of every treatment what its control must refuse, so that each needs one.
func (q Question) Trespasses() bool { return q == Guard }

// AAArm is the name of the arm that repeats the baseline.
const AAArm = "aa"

// Arms returns the treatments followed by the A/A arm: the baseline again under another name, or the first treatment if
// there is no baseline. Every comparison has one.
func Arms(treatments []Treatment) []Treatment {
	if len(treatments) == 0 {
		return nil
	}
	of := treatments[max(0, slices.IndexFunc(treatments, func(t Treatment) bool { return t.Baseline }))]
	return append(slices.Clone(treatments), Treatment{ID: AAArm, Control: AA, Levels: of.Levels, Of: of.ID})
}

// Beside reports whether a treatment with these levels is compared with the baseline with the levels base: it must have
// the same levels of the crossed factors, those in which baselines differ.
func Beside(base, levels map[string]string, baselines []map[string]string) bool {
	for factor, level := range base {
		crossed := slices.ContainsFunc(baselines, func(x map[string]string) bool { return x[factor] != level })
		if crossed && levels[factor] != level {
			return false
		}
	}
	return true
}
