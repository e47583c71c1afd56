package cedarset

import (
	"fmt"
	"maps"
	"slices"

	"github.com/cedar-policy/cedar-go"

	"tare/areas/decision/replica"
)

// Replicate adds copies of the entities of the types that d names, or of all, to the set.
func (s *Set) Replicate(d *replica.Data) error {
	named, err := s.Replicable(d)
	if err != nil {
		return err
	}
	names := map[cedar.EntityUID]bool{}
	for _, e := range named {
		names[e.UID] = true
	}
	copies := cedar.EntityMap{}
	for k := 2; k <= d.Times; k++ {
		r := renaming{names, k}
		for _, e := range named {
			made := r.entity(e)
			if _, ok := s.Entities[made.UID]; ok {
				return fmt.Errorf("%s is there, and a copy would be called so", made.UID)
			}
			copies[made.UID] = made
		}
	}
	maps.Copy(s.Entities, copies)
	return nil
}

// Replicable are the entities that can be copied. The actions of the schema cannot.
func (s *Set) Replicable(d *replica.Data) (named []cedar.Entity, err error) {
	bytes := 0
	for uid, e := range s.Entities {
		if !s.isAction(e) && (len(d.Of) == 0 || slices.Contains(d.Of, string(uid.Type))) {
			text, err := e.MarshalJSON()
			if err != nil {
				return nil, fmt.Errorf("%s: %w", uid, err)
			}
			named = append(named, e)
			bytes += len(text)
		}
	}
	for _, of := range d.Of {
		if !slices.ContainsFunc(named, func(e cedar.Entity) bool { return string(e.UID.Type) == of }) {
			return nil, fmt.Errorf("of: %s: there is no entity of this type", of)
		}
	}
	return named, d.Check(len(named), bytes)
}

// A renaming says how one copy calls what has a name.
type renaming struct {
	names  map[cedar.EntityUID]bool
	number int
}

func (r renaming) uid(u cedar.EntityUID) cedar.EntityUID {
	if !r.names[u] {
		return u
	}
	return cedar.NewEntityUID(u.Type, cedar.String(replica.Name(string(u.ID), r.number)))
}

func (r renaming) entity(e cedar.Entity) cedar.Entity {
	var parents []cedar.EntityUID
	for p := range e.Parents.All() {
		parents = append(parents, r.uid(p))
	}
	return cedar.Entity{
		UID: r.uid(e.UID), Parents: cedar.NewEntityUIDSet(parents...), Attributes: r.record(e.Attributes),
		Tags: r.record(e.Tags),
	}
}

func (r renaming) record(of cedar.Record) cedar.Record {
	out := cedar.RecordMap{}
	for key, value := range of.All() {
		out[key] = r.value(value)
	}
	return cedar.NewRecord(out)
}

func (r renaming) value(v cedar.Value) cedar.Value {
	switch v := v.(type) {
	case cedar.EntityUID:
		return r.uid(v)
	case cedar.Record:
		return r.record(v)
	case cedar.Set:
		var out []cedar.Value
		for in := range v.All() {
			out = append(out, r.value(in))
		}
		return cedar.NewSet(out...)
	}
	return v
}
