package cedarset

import (
	"bytes"
	"encoding/json"
	"slices"
)

// An Aside decides nothing here, and may do so elsewhere: a file with policies in Cedar's JSON, one in JSON of another
// name and form than those of a set, which may hold policies or entities for somebody's program, or a template without
// a link, which a decision point may be given later.
type Aside struct {
	Name  string
	Slots []string // those of a template; JSON has some entity in each
	JSON  []byte
}

// Asides are what a set leaves aside.
func (s *Set) Asides() ([]Aside, error) {
	out := slices.Clone(s.aside)
	for _, t := range s.unlinked {
		policy, err := t.example()
		if err != nil {
			return nil, err
		}
		is := Aside{Name: "template " + t.title}
		if is.JSON, err = policy.MarshalJSON(); err != nil {
			return nil, err
		}
		for _, slot := range t.slots {
			is.Slots = append(is.Slots, slot.name)
		}
		out = append(out, is)
	}
	return out, nil
}

// holdsPolicies reports whether a policy stands somewhere in a text in JSON: what has all fields of one.
func holdsPolicies(text []byte) bool {
	type bracket struct {
		isKey  bool // the next token
		fields map[string]bool
	}
	var open []bracket
	d := json.NewDecoder(bytes.NewReader(text))
	for {
		token, err := d.Token()
		if err != nil {
			return false
		}
		end, isBracket := token.(json.Delim)
		if isBracket && (end == '}' || end == ']') {
			open = open[:len(open)-1]
			continue
		}
		if n := len(open); n > 0 && open[n-1].fields != nil {
			in := &open[n-1]
			name, _ := token.(string)
			switch {
			case !in.isKey:
			case name == "effect", name == "principal", name == "action", name == "resource":
				if in.fields[name] = true; len(in.fields) == 4 {
					return true
				}
			}
			in.isKey = !in.isKey
		}
		switch {
		case !isBracket:
		case len(open) == mostNested:
			return false
		case end == '{':
			open = append(open, bracket{isKey: true, fields: map[string]bool{}})
		default:
			open = append(open, bracket{})
		}
	}
}
