package toy

import (
	"cmp"
	"fmt"
	"net/url"
	"time"

	"tare/area"
	"tare/internal/kit"
)

// Spec is the `target:` section of an experiment with Area.
type Spec struct {
	Adapter string      `yaml:"adapter,omitempty" json:"adapter,omitempty" jsonschema:"enum=toy-http" jsonschema_description:"The protocol. Default toy-http."`
	URL     string      `yaml:"url,omitempty" json:"url,omitempty" jsonschema_description:"Address of the server. Empty: the toy's own."`
	Key     area.Secret `yaml:"key,omitempty" json:"key,omitzero" jsonschema_description:"What the header X-Key says."`
}

// Validate implements area.Spec.
func (s *Spec) Validate(_ area.Asked, treatments []area.Treatment) (out []area.Finding) {
	if u, err := url.Parse(s.URL); err != nil || s.URL != "" && u.Host == "" {
		out = append(out, area.Finding{
			Path: "url", Severity: area.Error, Message: fmt.Sprintf("%q has no host", s.URL), Hint: "write one such as http://127.0.0.1:8080",
		})
	}
	for _, t := range treatments {
		if _, err := work(t); err != nil {
			out = append(out, area.Fault("", err, "").In(t))
		}
	}
	return out
}

// Under implements area.Spec: a level `url` names another server. The level `work` is for the server, not for the
// section.
func (s *Spec) Under(t area.Treatment) (area.Spec, error) { return s.under(t), nil }

func (s *Spec) under(t area.Treatment) *Spec {
	own := *s
	own.URL = cmp.Or(t.Levels["url"], s.URL)
	return &own
}

// Says implements area.Spec.
func (s *Spec) Says() area.Says {
	says := area.Says{
		Loopback: s.URL == "", LockKey: s.URL,
		Forecast: func(area.Asked, area.Treatment) area.Forecast { return area.Forecast{Operations: []string{operation}} },
	}
	if u, err := url.Parse(s.URL); err == nil && s.URL != "" {
		says.Loopback = kit.LoopbackHost(u.Hostname())
	}
	if s.URL == "" {
		says.Conditions = []string{area.Slow}
		says.Creates = func([]area.Treatment) []string { return []string{"a toy server for each treatment"} }
	}
	return says
}

// work is how long a call of a treatment takes, as its level `work` says: "1ms".
func work(t area.Treatment) (time.Duration, error) {
	text, ok := t.Levels["work"]
	if !ok {
		return 0, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0, fmt.Errorf("work: %q is no time such as 1ms", text)
	}
	return d, nil
}

// TimerSpec is the `target:` section of an experiment with Timer.
type TimerSpec struct {
	Rounds int `yaml:"rounds,omitempty" json:"rounds,omitempty" jsonschema:"minimum=3,maximum=100" jsonschema_description:"Batches in a block. Default 16."`
}

// Validate implements area.Spec.
func (*TimerSpec) Validate(_ area.Asked, treatments []area.Treatment) (out []area.Finding) {
	return (&Spec{}).Validate(area.Asked{}, treatments)
}

// Under implements area.Spec.
func (s *TimerSpec) Under(area.Treatment) (area.Spec, error) { return s, nil }

// Says implements area.Spec.
func (s *TimerSpec) Says() area.Says {
	batches := area.Batches{Operation: operation, Rounds: s.Rounds}.OrUsual()
	return area.Says{
		Loopback: true, Batches: []area.Batches{batches},
		Forecast: func(area.Asked, area.Treatment) area.Forecast {
			return area.Forecast{Operations: []string{operation}, Metrics: []string{"wall"}, Rounds: batches.Rounds}
		},
		Creates: func([]area.Treatment) []string { return []string{"a folder " + folderPrefix + "*"} },
	}
}
