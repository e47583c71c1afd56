package config

import (
	"context"
	"slices"

	"tare/area"
	"tare/internal/unit"
)

// fakeAreas stand for the areas of a program.
type fakeAreas []area.Area

func (f fakeAreas) Find(name string) (area.Area, bool) {
	for _, a := range f {
		if a.Name() == name {
			return a, true
		}
	}
	return nil, false
}

func (f fakeAreas) Names() []string {
	var names []string
	for _, a := range f {
		names = append(names, a.Name())
	}
	return names
}

func testAreas() Areas {
	return fakeAreas{
		fakeArea{"turnpike", area.Offers{AnyRate: area.Yes, SteadyLoad: area.Yes}},
		fakeArea{"padlock", area.Offers{AnyRate: area.No("a kernel hook has no queue that could fill")}},
	}
}

type fakeArea struct {
	name   string
	offers area.Offers
}

var _ area.Area = fakeArea{}

func (f fakeArea) Name() string                                                 { return f.name }
func (f fakeArea) Offers() area.Offers                                          { return f.offers }
func (fakeArea) NewSpec() area.Spec                                             { return &fakeSpec{} }
func (fakeArea) Preflight(context.Context, area.Spec, area.Env) []area.Finding  { return nil }
func (fakeArea) Open(context.Context, area.Spec, area.Env) (area.Target, error) { return nil, nil }
func (fakeArea) Undo(context.Context, []area.Change, area.Env) error            { return nil }
func (fakeArea) Parts() area.Parts                                              { return area.Parts{} }

// fakeSpec has a field of every kind that an area may use.
type fakeSpec struct {
	Adapter   string            `yaml:"adapter,omitempty" json:"adapter,omitempty" jsonschema:"enum=gce-metadata,enum=imdsv2"`
	URL       string            `yaml:"url,omitempty" json:"url,omitempty"`
	Embedded  *fakeEmbedded     `yaml:"embedded,omitempty" json:"embedded,omitempty"`
	Password  Secret            `yaml:"password,omitempty" json:"password,omitzero"`
	Headers   map[string]Secret `yaml:"headers,omitempty" json:"headers,omitempty"`
	Workloads []string          `yaml:"workloads,omitempty" json:"workloads,omitempty" jsonschema:"minItems=1"`
	Common    `yaml:",inline" json:",inline"`
}

// Common is inlined.
type Common struct {
	Insecure bool `yaml:"insecure,omitempty" json:"insecure,omitempty"`
}

type fakeEmbedded struct {
	Preset  string        `yaml:"preset" json:"preset" jsonschema:"required"`
	Backlog int           `yaml:"backlog,omitempty" json:"backlog,omitempty" jsonschema:"minimum=1,maximum=65535"`
	Jitter  float64       `yaml:"jitter,omitempty" json:"jitter,omitempty" jsonschema:"minimum=0,maximum=1"`
	Memory  unit.Size     `yaml:"memory,omitempty" json:"memory,omitempty"`
	TTL     unit.Duration `yaml:"ttl,omitempty" json:"ttl,omitempty"`
	Cache   *bool         `yaml:"cache,omitempty" json:"cache,omitempty"`
}

var presets = []string{"blog-2020", "healthy"}

func (s *fakeSpec) Validate(area.Asked, []area.Treatment) []area.Finding {
	var out []area.Finding
	if s.Embedded != nil && !slices.Contains(presets, s.Embedded.Preset) {
		out = append(out, area.Finding{
			Path: "target.embedded.preset", Severity: area.Error, Message: "there is no preset " + quote(s.Embedded.Preset),
			Hint: "try healthy",
		})
	}
	if s.Insecure {
		out = append(out, area.Finding{Path: "insecure", Severity: area.Warning, Message: "certificates are not checked"})
	}
	if s.Embedded != nil && s.URL != "" {
		out = append(out, area.Finding{Path: "target", Severity: area.Error, Message: "give url or embedded, not both"})
	}
	return out
}

func (s *fakeSpec) Under(area.Treatment) (area.Spec, error) { return s, nil }

func (s *fakeSpec) Says() area.Says {
	return area.Says{Loopback: s.URL == "", Stages: s.Stages(), Conditions: []string{area.Restart}}
}

// Stages is area.Says.Stages: an embedded target can be brought into any stage, others can only be warmed.
func (s *fakeSpec) Stages() []area.Stage {
	if s.URL != "" {
		return []area.Stage{area.Warm}
	}
	return []area.Stage{area.Warm, area.Cold, area.Renewed, area.Rebooted}
}
