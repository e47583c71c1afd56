package area

// A Treatment is one combination of levels. The baseline is a treatment; the A/A arm is the baseline again.
type Treatment struct {
	ID       string            `json:"id"`
	Baseline bool              `json:"baseline,omitempty"`
	Control  Control           `json:"control,omitempty"`
	Levels   map[string]string `json:"levels,omitempty"`
	// Of is the treatment that an A/A arm repeats.
	Of string `json:"of,omitempty"`
}

// Named reports whether a word names this treatment: its ID, one of its levels, or one of its factor=level.
func (t *Treatment) Named(word string) bool {
	if word == t.ID {
		return true
	}
	for factor, level := range t.Levels {
		if word == level || word == factor+"="+level {
			return true
		}
	}
	return false
}

// Control marks a treatment that checks the experiment itself.
type Control string

// The controls.
const (
	Ordinary Control = ""
	AA       Control = "aa"       // the baseline again: any effect is noise
	Negative Control = "negative" // where the control under test has no effect: any effect is an artefact
)
