package cedarset

import (
	"slices"
	"strings"

	"github.com/cedar-policy/cedar-go/types"
	"github.com/cedar-policy/cedar-go/x/exp/schema/ast"
)

// mostMeant bounds what the schemas of a set stand for. cedar-go writes the type out in the place of each name, and for
// each policy lists the pairs of a principal's and a resource's type of all actions. It writes names out with that of
// their namespace: as many characters of them as usualName count as much as a type.
const mostMeant, usualName = 200_000, 100

// weight is what names count that are written out.
func weight[S ~string](names ...S) (n int) {
	for _, name := range names {
		n += len(name)
	}
	return n / usualName
}

// A meter counts what a schema stands for.
type meter struct {
	named map[types.Path]ast.IsType
	sizes map[types.Path]int // of what a name stands for
	seen  int                // types that were looked at, each once
}

// meant is how many types and pairs of types a schema stands for, or more than mostMeant.
func meant(s *ast.Schema) (n int) {
	if n = spelled("", ast.Namespace{
		Entities: s.Entities, Enums: s.Enums, Actions: s.Actions, CommonTypes: s.CommonTypes,
	}); n > mostMeant {
		return n
	}
	for space, is := range s.Namespaces {
		if n += spelled(space, is); n > mostMeant {
			return n
		}
	}
	m := meter{named: map[types.Path]ast.IsType{}, sizes: map[types.Path]int{}}
	m.name("", s.CommonTypes)
	for space, is := range s.Namespaces {
		m.name(space, is.CommonTypes)
	}
	n += m.declared("", s.Entities, s.Actions)
	for space, is := range s.Namespaces {
		n += m.declared(space, is.Entities, is.Actions)
	}
	return n
}

// spelled is what the names of a namespace's declarations count, and those to which they refer by themselves.
func spelled(space types.Path, in ast.Namespace) (n int) {
	for _, is := range in.CommonTypes {
		n += weight(space) + referred(space, is.Type)
	}
	for name, is := range in.Entities {
		n += weight(space, types.Path(name))
		for _, parent := range is.ParentTypes {
			n += weight(space, types.Path(parent))
		}
	}
	for name, is := range in.Enums {
		n += (1 + len(is.Values)) * weight(space, types.Path(name))
	}
	for _, is := range in.Actions {
		n += weight(space)
		for _, parent := range is.Parents {
			n += weight(space, types.Path(parent.Type))
		}
		if to := is.AppliesTo; to != nil {
			for _, name := range slices.Concat(to.Principals, to.Resources) {
				n += weight(space, types.Path(name))
			}
		}
	}
	return n
}

// referred is what the names count to which a type refers by itself.
func referred(space types.Path, t ast.IsType) (n int) {
	switch t := t.(type) {
	case ast.SetType:
		return referred(space, t.Element)
	case ast.RecordType:
		for _, is := range t {
			n += referred(space, is.Type)
		}
	case ast.EntityTypeRef:
		return weight(space, types.Path(t))
	case ast.TypeRef:
		return weight(space, types.Path(t))
	}
	return n
}

func (m *meter) name(space types.Path, all ast.CommonTypes) {
	for name, is := range all {
		m.named[within(space, types.Path(name))] = is.Type
	}
}

func (m *meter) declared(space types.Path, entities ast.Entities, actions ast.Actions) (n int) {
	for _, is := range entities {
		n += m.size(space, is.Shape) + m.size(space, is.Tags)
	}
	for _, is := range actions {
		if to := is.AppliesTo; to != nil {
			n += m.size(space, to.Context) + len(to.Principals)*len(to.Resources)
		}
	}
	return n
}

func (m *meter) size(space types.Path, t ast.IsType) int {
	n := 1
	if m.seen++; m.seen > mostMeant {
		return m.seen
	}
	switch t := t.(type) {
	case ast.SetType:
		n += m.size(space, t.Element)
	case ast.RecordType:
		for name, is := range t {
			n = min(n+weight(name)+m.size(space, is.Type), mostMeant+1)
		}
	case ast.EntityTypeRef:
		n += referred(space, t)
	case ast.TypeRef:
		n = referred(space, t)
		if m.seen += n; m.seen <= mostMeant {
			n += m.meant(space, types.Path(t))
		}
	}
	return n
}

func (m *meter) meant(space, name types.Path) int {
	if in := within(space, name); m.named[in] != nil && !strings.Contains(string(name), "::") {
		name = in
	}
	is := m.named[name]
	if n, known := m.sizes[name]; known || is == nil {
		return max(n, 1)
	}
	m.sizes[name] = 1 // should it stand for itself, which cedar-go refuses
	m.sizes[name] = m.size(name[:max(0, strings.LastIndex(string(name), "::"))], is)
	return m.sizes[name]
}

// within is a name in a namespace.
func within(space, name types.Path) types.Path {
	if space == "" {
		return name
	}
	return space + "::" + name
}
