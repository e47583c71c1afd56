package decision

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"tare/area"
	"tare/areas/decision/engine"
	"tare/areas/decision/model"
	"tare/areas/decision/replica"
	"tare/internal/design"
	"tare/internal/kit"
	"tare/internal/spelling"
	"tare/internal/unit"
)

// The limits of numbers, as the schema has them.
const (
	maxPolicies = 1_000_000
	maxBatch    = 1000
)

// factors returns what treatments can vary.
func factors() []string {
	return []string{
		"engine", "adapter", "url", "bundle", "data.times", "policies", "position", "batch", "planted.answer",
		"planted.leak_per_minute", "enforcer.timeout", "enforcer.failure_mode_allow",
	}
}

// Under implements area.Spec.
func (s *Spec) Under(t design.Treatment) (area.Spec, error) { return s.under(t.Levels) }

// under returns a copy of s with levels in place of what the section says. A level "url" replaces an embedded decision
// point, and a level "engine" one behind a URL, so that they can be compared. Errors begin with the factor's name, or
// name it.
func (s *Spec) under(levels map[string]string) (*Spec, error) {
	out := *s
	if s.Embedded != nil {
		e := *s.Embedded
		if e.Planted != nil {
			e.Planted = new(*e.Planted)
		}
		if e.Enforcer != nil {
			e.Enforcer = new(*e.Enforcer)
		}
		if e.Data != nil {
			e.Data = new(*e.Data)
		}
		out.Embedded = &e
	}
	for _, name := range slices.Sorted(maps.Keys(levels)) {
		if err := out.setLevel(name, levels[name]); err != nil {
			return nil, err
		}
	}
	return &out, nil
}

// setLevel sets what one level says.
func (s *Spec) setLevel(name, level string) (err error) {
	switch name {
	case "engine":
		if !slices.Contains(engine.Kinds(), engine.Kind(level)) {
			return fmt.Errorf("engine: %q is not one of %s", level, engineNames())
		}
		s.embed().Engine = engine.Kind(level)
	case "bundle":
		s.embed().Bundle = level
	case "data.times":
		e := s.embed()
		if e.Data == nil {
			e.Data = &replica.Data{}
		}
		e.Data.Times, err = kit.ParseCount(name, level, 1, replica.MostTimes)
	case "adapter":
		s.Adapter = AdapterName(level)
	case "url":
		s.URL = level
	case "policies":
		s.Policies, err = kit.ParseCount(name, level, 1, maxPolicies)
	case "batch":
		s.Batch, err = kit.ParseCount(name, level, 1, maxBatch)
	case "position":
		s.Position = model.Position(level)
	case "planted.answer":
		s.plant().Answer = level
	case "planted.leak_per_minute":
		var size unit.Size
		if size, err = unit.ParseSize(level); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		s.plant().Leak = size
	case "enforcer.timeout", "enforcer.failure_mode_allow":
		err = s.setEnforcer(name, level)
	default:
		return fmt.Errorf("%s: there is no such factor; there are %s%s", name, strings.Join(factors(), ", "),
			spelling.DidYouMean(name, factors()))
	}
	return err
}

func (s *Spec) embed() *Embedded {
	if s.Embedded == nil {
		s.Embedded = &Embedded{}
	}
	return s.Embedded
}

func (s *Spec) plant() *Planted {
	e := s.embed()
	if e.Planted == nil {
		e.Planted = &Planted{}
	}
	return e.Planted
}

// engineNames lists the embedded engines in words.
func engineNames() string { return strings.Join(engine.Kind("").Words(), ", ") }
