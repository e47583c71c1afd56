package kit

import (
	"fmt"
	"slices"
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
