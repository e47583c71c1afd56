package cedarset

import (
	"fmt"

	"github.com/cedar-policy/cedar-go"
	"github.com/cedar-policy/cedar-go/types"
	"github.com/cedar-policy/cedar-go/x/exp/schema/resolved"
)

// JSON has no entities and none of Cedar's further types. With a schema, {"type": …, "id": …}, {"fn": …, "arg": …} and
// plain strings are what the schema says that they are.

// typeEntity gives the attributes and tags of an entity the types of the schema.
func (s *Set) typeEntity(e *cedar.Entity) (err error) {
	if s.schema == nil {
		return nil
	}
	is, ok := s.schema.Entities[e.UID.Type]
	if !ok {
		return nil // the validation reports it
	}
	if e.Attributes, err = typedRecord(e.Attributes, is.Shape); err != nil {
		return err
	}
	if is.Tags == nil {
		return nil
	}
	tags := types.RecordMap{}
	for name, v := range e.Tags.All() {
		if tags[name], err = typed(v, is.Tags); err != nil {
			return fmt.Errorf("tag %q: %w", name, err)
		}
	}
	e.Tags = types.NewRecord(tags)
	return nil
}

// Attributes gives the attributes of an entity the types of the schema.
func (s *Set) Attributes(of cedar.EntityType, attributes cedar.Record) (cedar.Record, error) {
	if s.schema == nil {
		return attributes, nil
	}
	return typedRecord(attributes, s.schema.Entities[of].Shape)
}

// Context gives the context of a request for an action the types of the schema.
func (s *Set) Context(action cedar.EntityUID, context cedar.Record) (cedar.Record, error) {
	if s.schema == nil {
		return context, nil
	}
	is, ok := s.schema.Actions[action]
	if !ok || is.AppliesTo == nil {
		return context, nil
	}
	return typedRecord(context, is.AppliesTo.Context)
}

func typedRecord(r cedar.Record, as resolved.RecordType) (cedar.Record, error) {
	out := cedar.RecordMap{}
	for name, v := range r.All() {
		out[name] = v
		is, ok := as[name]
		if !ok {
			continue // the validation reports it
		}
		var err error
		if out[name], err = typed(v, is.Type); err != nil {
			return r, fmt.Errorf("%q: %w", name, err)
		}
	}
	return cedar.NewRecord(out), nil
}

func typed(v cedar.Value, as resolved.IsType) (cedar.Value, error) {
	switch as := as.(type) {
	case resolved.EntityType:
		if r, ok := v.(cedar.Record); ok {
			return entityOf(r), nil
		}
	case resolved.ExtensionType:
		switch v := v.(type) {
		case cedar.String:
			return extension(string(as), string(v))
		case cedar.Record:
			if _, arg, ok := pair(v, "fn", "arg"); ok {
				return extension(string(as), arg)
			}
		}
	case resolved.RecordType:
		if r, ok := v.(cedar.Record); ok {
			return typedRecord(r, as)
		}
	case resolved.SetType:
		if set, ok := v.(cedar.Set); ok {
			return typedSet(set, as.Element)
		}
	}
	return v, nil
}

// entityOf is the entity that a record means, or the record.
func entityOf(r cedar.Record) cedar.Value {
	kind, id, ok := pair(r, "type", "id")
	if !ok {
		return r
	}
	return cedar.NewEntityUID(cedar.EntityType(kind), cedar.String(id))
}

// pair are the two strings that a record consists of.
func pair(r cedar.Record, first, second cedar.String) (a, b string, ok bool) {
	x, _ := r.Get(first)
	y, _ := r.Get(second)
	one, isOne := x.(cedar.String)
	two, isTwo := y.(cedar.String)
	return string(one), string(two), isOne && isTwo && r.Len() == 2
}

// extension reads a string as a value of one of Cedar's further types.
func extension(as, text string) (cedar.Value, error) {
	switch as {
	case "ipaddr":
		return asValue(types.ParseIPAddr(text))
	case "decimal":
		return asValue(types.ParseDecimal(text))
	case "datetime":
		return asValue(types.ParseDatetime(text))
	case "duration":
		return asValue(types.ParseDuration(text))
	}
	return cedar.String(text), nil
}

// asValue is the result of a parser of one type as that of any.
func asValue[T cedar.Value](v T, err error) (cedar.Value, error) { return v, err }

func typedSet(set cedar.Set, as resolved.IsType) (cedar.Value, error) {
	var out []cedar.Value
	for v := range set.All() {
		is, err := typed(v, as)
		if err != nil {
			return nil, err
		}
		out = append(out, is)
	}
	return cedar.NewSet(out...), nil
}
