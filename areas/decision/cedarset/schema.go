package cedarset

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cedar-policy/cedar-go"
	"github.com/cedar-policy/cedar-go/x/exp/schema"
	"github.com/cedar-policy/cedar-go/x/exp/schema/resolved"
)

// readSchema reads the schema, which may be there in both of Cedar's forms.
func (s *Set) readSchema(files []file) error {
	size := 0
	for i, from := range files {
		is, err := from.schema(&size)
		if err != nil {
			return err
		}
		if i > 0 && meaning(s.schema) != meaning(is) {
			return fmt.Errorf("%s, %s: two schemas, and not the same in both: only one can be that of the policies",
				files[0].path, from.path)
		}
		s.schema = is
	}
	s.addActions(s.Entities)
	return nil
}

// addActions adds the actions of the schema to entities.
func (s *Set) addActions(to cedar.EntityMap) {
	if s.schema == nil {
		return
	}
	for uid, action := range s.schema.Actions {
		to[uid] = action.Entity
	}
}

// schema reads a schema, and adds to size what it stands for.
func (f file) schema(size *int) (*resolved.Schema, error) {
	if err := f.checkNested(); err != nil {
		return nil, err
	}
	var (
		all schema.Schema
		out *resolved.Schema
		err error
	)
	all.SetFilename(f.path)
	if strings.HasSuffix(f.path, schemaJSONEnd) {
		err = all.UnmarshalJSON(f.text)
	} else {
		err = all.UnmarshalCedar(f.text)
	}
	if err == nil {
		if *size += meant(all.AST()); *size > mostMeant {
			return nil, fmt.Errorf("%s: more than %d types, and pairs of a principal's and a resource's, with each name "+
				"written out: divide the schema", f.path, mostMeant)
		}
		out, err = all.Resolve()
	}
	if err != nil {
		return nil, fmt.Errorf("%s: the schema cannot be read: %w", f.path, err)
	}
	return out, nil
}

// Schema is a text that two sets share if their schemas mean the same; without a schema it is empty.
func (s *Set) Schema() string {
	if s.schema == nil {
		return ""
	}
	return meaning(s.schema)
}

// meaning is a text that two schemas share if they mean the same, whatever their form, order and annotations.
func meaning(s *resolved.Schema) string {
	var out strings.Builder
	for _, name := range slices.Sorted(maps.Keys(s.Entities)) {
		is := s.Entities[name]
		fmt.Fprintf(&out, "entity %s in %q %#v tags %#v\n", name, slices.Sorted(slices.Values(is.ParentTypes)),
			attributes(is.Shape), bare(is.Tags))
	}
	for _, name := range slices.Sorted(maps.Keys(s.Enums)) {
		fmt.Fprintf(&out, "enum %s %v\n", name, s.Enums[name].Values)
	}
	var actions []string
	for uid, is := range s.Actions {
		var parents []string
		for parent := range is.Entity.Parents.All() {
			parents = append(parents, parent.String())
		}
		slices.Sort(parents)
		line := fmt.Sprintf("action %s in %q", uid, parents)
		if to := is.AppliesTo; to != nil {
			line += fmt.Sprintf(" for %q %q %#v", slices.Sorted(slices.Values(to.Principals)),
				slices.Sorted(slices.Values(to.Resources)), attributes(to.Context))
		}
		actions = append(actions, line)
	}
	slices.Sort(actions)
	return out.String() + strings.Join(actions, "\n")
}

// attributes are those of a record, which may have none, without annotations.
func attributes(r resolved.RecordType) resolved.RecordType {
	if len(r) == 0 {
		return nil
	}
	out := resolved.RecordType{}
	for name, is := range r {
		out[name] = resolved.Attribute{Type: bare(is.Type), Optional: is.Optional}
	}
	return out
}

// bare is a type without annotations of the attributes in it.
func bare(t resolved.IsType) resolved.IsType {
	switch t := t.(type) {
	case resolved.RecordType:
		return attributes(t)
	case resolved.SetType:
		return resolved.SetType{Element: bare(t.Element)}
	}
	return t
}
