package kit

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"tare/area"
	"tare/internal/design"
)

// A Need is something that a treatment needs of this host: its name, which is empty for nothing, and how to find it.
type Need struct {
	Name string
	Find func() error
}

// TrimMissing drops treatments whose need this host cannot meet, with a warning for each need, in the order of names.
// If the baseline needs it, or no treatment would remain, there is nothing to compare: that is an error, and all are
// kept. what says in words what is needed, and explain turns an error of Find into a finding that stops a run.
func TrimMissing(what string, names []string, treatments []design.Treatment,
	need func(t design.Treatment) Need, explain func(err error) area.Finding,
) (kept []design.Treatment, out []area.Finding) {
	missing := map[string]error{} // by name; nil: there
	dropped := map[string][]string{}
	for _, t := range treatments {
		n := need(t)
		err, known := missing[n.Name]
		if n.Name != "" && !known {
			err = n.Find()
			missing[n.Name] = err
		}
		switch {
		case err == nil:
			kept = append(kept, t)
		case t.Baseline || t.Control == design.AA:
			f := explain(err)
			f.Message = "the baseline needs " + what + " that this host cannot have: " + f.Message
			return treatments, []area.Finding{f}
		default:
			dropped[n.Name] = append(dropped[n.Name], t.ID)
		}
	}
	remains := slices.ContainsFunc(kept, func(t design.Treatment) bool { return t.Control == "" })
	for _, name := range names {
		if len(dropped[name]) == 0 {
			continue
		}
		f := explain(missing[name])
		if remains {
			f.Severity, f.Message = area.Warning, fmt.Sprintf("left out: %s: %s", FirstOf(dropped[name]), f.Message)
		}
		out = append(out, f)
	}
	if !remains {
		return treatments, out
	}
	return kept, out
}

// FirstOf lists the first names, and says how many more there are.
func FirstOf(names []string) string {
	const most = 3
	if len(names) > most {
		names = append(names[:most-1:most-1], fmt.Sprintf("and %d more", len(names)-most+1))
	}
	return strings.Join(names, "; ")
}

// Clipped is the beginning of a text, of so many characters at most.
func Clipped(text string, most int) string {
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return text
}

// Specs returns the sections of all treatments: s itself where there are none. A treatment that Validate refuses is
// left out.
func Specs(s area.Spec, treatments []design.Treatment) []area.Spec {
	if len(treatments) == 0 {
		return []area.Spec{s}
	}
	var out []area.Spec
	for _, t := range treatments {
		if under, err := s.Under(t); err == nil {
			out = append(out, under)
		}
	}
	return out
}

// Loopback reports whether all traffic of all treatments stays on this machine.
func Loopback(s area.Spec, treatments []design.Treatment) bool {
	for _, x := range Specs(s, treatments) {
		if !x.Says().Loopback {
			return false
		}
	}
	return true
}

// ParseCount reads a level that is a number from least to most.
func ParseCount(factor, level string, least, most int) (int, error) {
	n, err := strconv.Atoi(level)
	if err != nil || n < least || n > most {
		return 0, fmt.Errorf("%s: %q is not a number from %d to %d", factor, level, least, most)
	}
	return n, nil
}
