package fga

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"tare/areas/decision/replica"
)

// Replicate returns the store with copies of its relationships: those of entities of the types that d names, or of all.
// What a type's name stands for otherwise, as in user:*, has no copy.
func (s *Store) Replicate(d *replica.Data) (*Store, error) {
	named, err := s.Replicable(d)
	if err != nil {
		return nil, err
	}
	out := *s
	out.Tuples = slices.Grow(slices.Clone(s.Tuples), len(named)*(d.Times-1))
	for k := 2; k <= d.Times; k++ {
		for _, t := range named {
			key, err := renamed(t.Key, d.Of, k)
			if err != nil {
				return nil, err
			}
			out.Tuples = append(out.Tuples, Tuple{key, t.File, t.Line})
		}
	}
	return &out, nil
}

// Replicable are the relationships that can be copied.
func (s *Store) Replicable(d *replica.Data) (named []Tuple, err error) {
	seen, bytes := map[string]bool{}, 0
	for _, t := range s.Tuples {
		var key tupleKey
		if err := json.Unmarshal(t.Key, &key); err != nil {
			return nil, err
		}
		grows := false
		for _, of := range key.types() {
			seen[of] = true
			grows = grows || len(d.Of) == 0 || slices.Contains(d.Of, of)
		}
		if grows {
			named = append(named, t)
			bytes += len(t.Key)
		}
	}
	for _, of := range d.Of {
		if !seen[of] {
			return nil, fmt.Errorf("of: %s: no relationship is about an entity of this type", of)
		}
	}
	return named, d.Check(len(named), bytes)
}

// A tupleKey is a relationship in the API's form.
type tupleKey struct {
	User      string          `json:"user"`
	Relation  string          `json:"relation"`
	Object    string          `json:"object"`
	Condition json.RawMessage `json:"condition,omitempty"`
}

// types are those of the entities that the relationship names.
func (k tupleKey) types() (out []string) {
	for _, who := range []string{k.User, k.Object} {
		if of, id, ok := entity(who); ok && id != "*" {
			out = append(out, of)
		}
	}
	return out
}

// entity takes TYPE:ID, or TYPE:ID#RELATION, apart.
func entity(who string) (of, id string, ok bool) {
	of, id, ok = strings.Cut(who, ":")
	id, _, _ = strings.Cut(id, "#")
	return of, id, ok
}

// renamed is a relationship as a copy has it.
func renamed(text json.RawMessage, types []string, number int) (json.RawMessage, error) {
	var key tupleKey
	if err := json.Unmarshal(text, &key); err != nil {
		return nil, err
	}
	for _, who := range []*string{&key.User, &key.Object} {
		of, id, ok := entity(*who)
		if ok && id != "*" && (len(types) == 0 || slices.Contains(types, of)) {
			*who = strings.Replace(*who, ":"+id, ":"+replica.Name(id, number), 1)
		}
	}
	return json.Marshal(key)
}
