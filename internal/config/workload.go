package config

import (
	"fmt"
	"math"
	"slices"
	"time"

	"tare/area"
	"tare/internal/load"
	"tare/internal/question"
	"tare/internal/unit"
)

// A Workload is one shape of load. Each is a point of a ladder.
type Workload struct {
	// Kind names the shape.
	Kind Shape `yaml:"kind" json:"kind" jsonschema:"required,enum=steady,enum=pod-start,enum=expiry,enum=reboot" jsonschema_description:"steady: one rate. pod-start: many callers at once. expiry: one rate, while all that is cached expires at the same instant, again and again. reboot: the server starts anew with nothing cached, and all callers come at once."`
	// Calls is the number of callers, for pod-start and reboot.
	Calls int `yaml:"calls,omitempty" json:"calls,omitempty" jsonschema:"minimum=1,maximum=1000000" jsonschema_description:"Calls of pod-start and reboot: each identity asks in turn."`
	// Over spreads the calls.
	Over unit.Duration `yaml:"over,omitempty" json:"over,omitempty" jsonschema_description:"Time over which the calls of pod-start and reboot are spread evenly. Default: all at once."`
	// Rate is the rate of steady and expiry.
	Rate unit.Rate `yaml:"rate,omitempty" json:"rate,omitempty" jsonschema_description:"Rate of steady and expiry: 100/s."`
	// Duration is the window in which answers count as goodput.
	Duration unit.Duration `yaml:"duration,omitempty" json:"duration,omitempty" jsonschema_description:"Length of steady and expiry; for pod-start and reboot the window in which answers count as goodput, by default the time over which the calls come, at least 1s."`
	// Cache is the stage of the target before the load.
	Cache Cache `yaml:"cache,omitempty" json:"cache,omitempty" jsonschema:"enum=warm,enum=cold" jsonschema_description:"Whether the target's cache is filled or emptied before steady (default: as it is) and pod-start (default: cold)."`
}

// Shape names a kind of workload.
type Shape string

// The shapes.
const (
	Steady   Shape = "steady"
	PodStart Shape = "pod-start"
	Expiry   Shape = "expiry"
	Reboot   Shape = "reboot"
)

// Cache is a state of the target's cache, as the file spells it.
type Cache string

// isSimultaneous reports whether the callers arrive together, and not at a rate.
func (w Workload) isSimultaneous() bool { return w.Kind == PodStart || w.Kind == Reboot }

// Stage is the target's stage before the load; empty: unchanged.
func (w Workload) Stage() area.Stage {
	switch {
	case w.Kind == Reboot:
		return area.Rebooted
	case w.Kind == Expiry:
		return area.Renewed
	case w.Cache != "":
		return area.Stage(w.Cache)
	case w.Kind == PodStart:
		return area.Cold
	}
	return ""
}

// Title describes the workload in a few words.
func (w Workload) Title() string {
	title := string(w.Kind)
	if w.isSimultaneous() {
		title += fmt.Sprintf(" ×%d", w.Calls)
	} else {
		title += " " + w.Rate.String()
	}
	if w.Over > 0 {
		title += fmt.Sprintf(" over %v", w.Over)
	}
	if w.Cache != "" {
		title += ", " + string(w.Cache)
	}
	return title
}

// window is the length of the workload.
func (w Workload) window() time.Duration {
	if w.Duration > 0 {
		return time.Duration(w.Duration)
	}
	return max(time.Second, time.Duration(w.Over))
}

// PerSecond is the rate during the load, in 1/s. Simultaneous calls count as those of one second.
func (w Workload) PerSecond() float64 {
	switch {
	case !w.isSimultaneous():
		return float64(w.Rate)
	case w.Over > 0:
		return float64(w.Calls) / time.Duration(w.Over).Seconds()
	}
	return float64(w.Calls)
}

// Process returns the workload's arrival process.
func (w Workload) Process(arrivals Arrivals, seed uint64) load.Process {
	switch {
	case w.isSimultaneous():
		return load.Burst{Calls: w.Calls, Over: time.Duration(w.Over), Duration: w.window()}
	case arrivals == Poisson:
		return load.Poisson{Rate: float64(w.Rate), Duration: w.window(), Seed: seed}
	}
	return load.Constant{Rate: float64(w.Rate), Duration: w.window()}
}

// workloads checks each workload, and rejects fields that do not apply with workloads.
func (c *checker) workloads() {
	for _, path := range []string{"load.rates", "load.rate", "load.duration"} {
		if c.given(path) {
			c.errorAt(path, c.key(path), "workloads say themselves what is offered, and for how long; %q is for a search or "+
				"a ladder of rates", path[len("load."):])
		}
	}
	question.RefuseMaxTime(questioned{c})
	for i := range c.e.Load.Workloads {
		path := index("load.workloads", i)
		if c.broken(path) {
			continue
		}
		c.workload(path, &c.e.Load.Workloads[i])
	}
}

func (c *checker) workload(path string, w *Workload) {
	needs, foreign := []string{"rate", "duration"}, []string{"calls", "over"}
	if w.isSimultaneous() {
		needs, foreign = []string{"calls"}, []string{"rate"}
	}
	if w.Kind == Expiry || w.Kind == Reboot {
		foreign = append(foreign, "cache")
	}
	for _, name := range needs {
		if !c.given(path + "." + name) {
			c.errorAt(path, c.value(path), "%s needs %s", w.Kind, name)
		}
	}
	for _, name := range foreign {
		if at := path + "." + name; c.given(at) {
			c.errorAt(at, c.key(at), "%s has no %s", w.Kind, name)
		}
	}
	for name, v := range map[string]float64{
		"rate": float64(w.Rate), "over": float64(w.Over),
		"duration": float64(w.Duration),
	} {
		if at := path + "." + name; c.isValid(at) && v <= 0 {
			c.fail(at, "want more than zero; leave it out for the default")
		}
	}
	if at := path + ".duration"; c.isValid(at) && w.Over > w.Duration {
		c.fail(at, "the calls come over %v: the window must not end before", w.Over)
	}
	c.peak(path, w)
	c.stageable(path, w)
}

// peak checks a workload against max_rate: simultaneous calls have no rate below it.
func (c *checker) peak(path string, w *Workload) {
	limit := float64(c.e.Load.MaxRate)
	switch {
	case !c.isValid("load.max_rate") || c.broken(path):
	case w.isSimultaneous() && w.Over == 0:
		c.errorAt(path, c.value(path), "calls at once have no bounded rate; with max_rate (%v) spread them: over: %v",
			c.e.Load.MaxRate, unit.Duration(math.Ceil(float64(w.Calls)/limit*100)*1e7))
	case w.PerSecond() > limit:
		c.errorAt(path, c.value(path), "it offers %s/s, above max_rate (%v)", unit.Decimal(w.PerSecond(), 4),
			c.e.Load.MaxRate)
	}
}

// stageable asks the target's section whether the stage is supported.
func (c *checker) stageable(path string, w *Workload) {
	stage := w.Stage()
	if stage == "" || c.e.Target == nil || c.broken("target") {
		return
	}
	if slices.Contains(c.e.Target.Says().Stages, stage) {
		return
	}
	hint := ""
	if w.Kind == PodStart || w.Kind == Steady {
		hint = "; cache: warm asks for the cache as callers find it"
	}
	c.errorAt(path, c.value(path), "%s needs a target that can be made %q, and this one cannot%s", w.Kind, stage, hint)
}
