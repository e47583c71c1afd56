package question

import (
	"time"

	"tare/internal/design"
	"tare/internal/unit"
)

// A File is an experiment file that is being checked. Paths are those of the file: "load.rate".
type File interface {
	// Given reports whether the file has the field, Valid whether it is well-formed too, Broken whether it is not.
	Given(path string) bool
	Valid(path string) bool
	Broken(path string) bool
	// Fail rejects a field's value, Refuse the field itself.
	Fail(path, format string, args ...any)
	Refuse(path, format string, args ...any)
	Warn(path, format string, args ...any)
	// Missing rejects the file if it lacks a field, at the field that asks for it.
	Missing(path, asker, message string)
	// Load is what the file says of the load, without defaults.
	Load() Load
	Factors() []design.Factor
	// OwnPace reports whether the area's workloads run at their own pace, and rejects all fields of the load that then
	// have no effect.
	OwnPace() bool
	// CheckWorkloads checks each workload by itself.
	CheckWorkloads()
}

// Load is the load of a file, as far as questions look at it.
type Load struct {
	Duration   unit.Duration
	WorkerRamp unit.Duration // over which closed workers start
	Ramp       bool          // arrivals rise from 0 to the rate
}

// A Form is what a JSON Schema can say of a file.
type Form struct {
	Required []string // fields of the file
	Either   []string // fields of the file, at least one of which is needed
	Load     LoadForm
}

// A LoadForm is what a JSON Schema can say of the section load.
type LoadForm struct {
	Without, Required, Either []string
	Needs                     map[string][]string // fields that a field needs beside it
	NotBoth                   []string
}

// A Forecast is what a plan knows of a run.
type Forecast struct {
	Treatments int
	Duration   unit.Duration   // of the load
	WorkerRamp time.Duration   // over which closed workers start
	Points     []time.Duration // lengths of a ladder's points under one treatment; none for a search
	Timeout    time.Duration
	MaxTime    time.Duration // 0: the search's own
	Rates      []float64     // of Points, in 1/s
	Trespass   float64       // share of the calls
	Conditions int           // that can be brought about under a treatment
}

// each ends a sentence about one treatment.
func (f *Forecast) each() string {
	if f.Treatments < 2 {
		return ""
	}
	return ", for each of " + unit.Count(f.Treatments, "treatment")
}

// steadyTrials checks the load of a question whose trials offer one rate, or have workers. It reports whether there is
// a load to check further. without are fields besides those that only capacity has.
func steadyTrials(f File, name design.Question, duration string, without ...string) bool {
	for _, path := range append([]string{"load.rates", "load.workloads", "load.slo"}, without...) {
		if f.Given(path) {
			f.Refuse(path, "%q belongs to other questions, not to %s", path[len("load."):], name)
		}
	}
	if f.OwnPace() {
		return false
	}
	if !f.Given("load") {
		f.Missing("load", "question", string(name)+" needs a load: load: {rate: 10/s, duration: "+duration+"}")
		return false
	}
	if !f.Given("load.closed") && !f.Given("load.rates") && !f.Broken("load") {
		f.Missing("load.rate", "load", "load needs a rate (open loop) or closed workers")
	}
	return true
}

// refuseElsewhere refuses a field of the load that belongs to other questions.
func refuseElsewhere(f File, name design.Question, field, others string) {
	if f.Given("load." + field) {
		f.Refuse("load."+field, "%q belongs to %s, not to %s", field, others, name)
	}
}
