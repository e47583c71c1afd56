// Package question holds the questions that tare asks, each with what tells it from the others: what it accepts of a
// file, how it measures, what answers it, and which limits it judges. Other packages ask for these properties and do
// not compare names.
package question

import (
	"slices"
	"strings"
	"time"

	"tare/area"
	"tare/internal/budget"
	"tare/internal/design"
	"tare/internal/unit"
)

// A Question is one question with all its properties. Each must be filled in; a test names one that is not.
type Question struct {
	// Name is what the file and the record call it.
	Name design.Question
	// Asks is the question itself, in a few words: "what does the control add?".
	Asks string
	// Drive is how its trials measure.
	Drive Drive
	// Answer is the part of the report that answers it.
	Answer Answer
	// LeastTreatments is how many treatments it needs, with the baseline.
	LeastTreatments int
	// Needs returns the offer of an area without which it cannot be asked there.
	Needs func(area.Offers) area.Offer
	// CheckTreatments checks what the file varies, CheckLoad what it offers. Both refuse the rest, each with a sentence.
	CheckTreatments, CheckLoad func(File)
	// Form is what the JSON Schema can say of these checks.
	Form Form
	// MaxConnections is the default of the field of that name.
	MaxConnections int
	// AbortAfter is how long calls must fail by default before the run of a target off this machine ends.
	AbortAfter time.Duration
	// Budgets say which limits it judges.
	Budgets budget.Rules
	// Trespass is the default of the field of that name.
	Trespass unit.Percent
	// Takes says for the plan how long a run takes. It is nil for trials in blocks, whose length the plan estimates.
	Takes func(f Forecast) string
}

// A Drive is a way to measure, as other packages see it. Package run/drive carries it out.
type Drive struct {
	Name string
	// InBlocks: it measures all treatments and an A/A arm in turn, in randomised complete blocks. Only such trials can be
	// compared with each other, and only a run of blocks can be resumed or extended.
	InBlocks bool
	// Overloads: it offers several rates to each treatment, also more than the target can take, so that a mean over a
	// trial says nothing.
	Overloads bool
	// LongTrials: each treatment has one trial, which is long enough to read slow counters.
	LongTrials bool
}

// The drives. The zero value is that of a question which this tare does not know.
var (
	// Blocks repeats short trials until the looks decide.
	Blocks = Drive{Name: "blocks", InBlocks: true}
	// Search measures each treatment once, at the rates that an adaptive search chooses or that a ladder gives.
	Search = Drive{Name: "search", Overloads: true}
	// Long measures each treatment once, under one steady load, and keeps its course. What an interrupt leaves counts.
	Long = Drive{Name: "long", LongTrials: true}
	// Guarded offers each treatment, among the calls that it must allow, some that it must refuse: at several rates, and
	// under conditions.
	Guarded = Drive{Name: "guarded", Overloads: true}
)

// An Answer is a part of the report.
type Answer struct {
	Name string
	// GrowthFirst: laws of growth come before single effects.
	GrowthFirst bool
	// BreachesFirst: what was permitted comes before all else.
	BreachesFirst bool
	// OverTime: it says how each treatment fared over time.
	OverTime bool
}

// The answers. The zero value is that of a question which this tare does not know.
var (
	Effects = Answer{Name: "effects"}                   // what each treatment adds to the baseline
	Growth  = Answer{Name: "growth", GrowthFirst: true} // how that grows with a factor
	Rate    = Answer{Name: "rate"}                      // where each treatment breaks
	Course  = Answer{Name: "course", OverTime: true}    // how each treatment fared over time
	// Breaches are what each treatment permitted that it must refuse.
	Breaches = Answer{Name: "breaches", BreachesFirst: true}
)

// known are the questions, in the order in which lists have them. This is the only list.
var known = []*Question{compare(), scale(), capacity(), soak(), guarding()}

// All returns the questions in the order in which lists have them.
func All() []*Question { return slices.Clone(known) }

// Asked is what an area may know of the question.
func (q *Question) Asked() area.Asked {
	return area.Asked{Trespasses: q.Trespass > 0, InBlocks: q.Drive.InBlocks, LongTrials: q.Drive.LongTrials}
}

// Names returns the names of the questions for which has is true, in order; all if has is nil.
func Names(has func(*Question) bool) (out []string) {
	for _, q := range known {
		if has == nil || has(q) {
			out = append(out, string(q.Name))
		}
	}
	return out
}

// Find returns the question of that name.
func Find(name design.Question) (*Question, bool) {
	i := slices.IndexFunc(known, func(q *Question) bool { return q.Name == name })
	if i < 0 {
		return nil, false
	}
	return known[i], true
}

// Of returns the question of that name. One that this tare does not know, as in the record of a newer one, has a name,
// the usual defaults, and no other property.
func Of(name design.Question) *Question {
	if q, ok := Find(name); ok {
		return q
	}
	return &Question{
		Name: name, Needs: func(area.Offers) area.Offer { return area.Offer{} },
		CheckTreatments: func(File) {}, CheckLoad: func(File) {}, Takes: func(Forecast) string { return "" },
		MaxConnections: usualConnections, AbortAfter: usualAbort,
	}
}

// AnsweredBy reports whether an area with these offers can be asked, or why not.
func AnsweredBy(o area.Offers, name design.Question) area.Offer { return Of(name).Needs(o) }

// AddForTest adds a question until the test ends. Tests that run beside it see it too.
func AddForTest(t interface{ Cleanup(func()) }, q *Question) {
	before := known
	known = append(slices.Clone(known), q)
	t.Cleanup(func() { known = before })
}

// Listed joins names for a sentence: "compare, scale or soak" with the word "or".
func Listed(names []string, word string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " " + word + " " + names[last]
}
