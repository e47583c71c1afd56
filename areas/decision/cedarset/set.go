// Package cedarset reads what a decision point of Cedar holds from the files that people keep: policies, templates with
// their links, entities, and a schema; and requests about them.
package cedarset

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/cedar-policy/cedar-go"
	"github.com/cedar-policy/cedar-go/x/exp/ast"
	"github.com/cedar-policy/cedar-go/x/exp/schema/resolved"
	"github.com/cedar-policy/cedar-go/x/exp/schema/validate"

	"tare/areas/bundle"
	"tare/internal/kit"
)

// A Set is what decides.
type Set struct {
	Policies *cedar.PolicySet
	// Entities are those of the files, and the actions of the schema.
	Entities cedar.EntityMap
	// Tests are those of the files; TestsCut: there are more.
	Tests    []Test
	TestsCut bool
	// Untaken are files with policies in Cedar's JSON.
	Untaken []string
	// Unlinked are templates of which no link makes a policy.
	Unlinked []string
	aside    []Aside // policies in Cedar's JSON, and JSON of which it is not known what it holds
	unlinked []*template
	schema   *resolved.Schema          // nil: none
	links    map[cedar.PolicyID]string // the names of policies that are made of templates
	linked   int                       // bytes of the templates of these
}

// A file is one of those that make a Set.
type file struct {
	path string
	text []byte
	// What is parsed of it begins behind so many lines, and behind so many characters of the next.
	lines, characters int
}

// found are the files of a set by what they hold.
type found struct {
	policies, entities, links, schemas, tests []file
	untaken, unknown                          []Aside
}

// The endings of names. Entities and links may have words before them.
const (
	policyEnd     = ".cedar"
	policyJSONEnd = ".cedar.json"
	schemaEnd     = ".cedarschema"
	schemaJSONEnd = "cedarschema.json"
	entitiesEnd   = "entities.json"
	entityEnd     = "entity.json"
	linksName     = "linked"
	linksEnd      = "linked.json"
	moreLinksEnd  = "templatelinks.json"
)

// Read reads a file of policies, or a folder and those below it, and validates the policies by the schema if there is
// one. Entities get their types from it, and are not validated: Cedar decides about others, too.
func Read(at string) (*Set, error) {
	isFolder, err := bundle.IsFolder(at)
	if err != nil {
		return nil, err
	}
	var all found
	err = bundle.Each(at, func(name string, text []byte) error {
		one := file{path: at, text: text}
		if isFolder {
			one.path = filepath.Join(at, name)
		}
		if isFolder && bundle.Hidden(name) {
			return refuseHidden(name, one)
		}
		all.add(name, one)
		return nil
	})
	if err != nil {
		return nil, err
	}
	if len(all.policies) == 0 {
		if len(all.untaken) > 0 {
			return nil, fmt.Errorf("%s: %s: policies in Cedar's JSON are not taken: write them as %s files, with "+
				"'cedar translate-policy --direction json-to-cedar'", at, all.untaken[0].Name, policyEnd)
		}
		return nil, fmt.Errorf("there is no %s file in %s", policyEnd, at)
	}
	return all.read()
}

// refuseHidden refuses a hidden file that would decide: Cedar itself reads no folders, and of those who do for it, some
// read what is hidden, and others do not.
func refuseHidden(name string, one file) error {
	if !Decides(name) {
		return nil
	}
	return fmt.Errorf("%s is hidden, and whether your decision point reads it is not known: rename it, or take it out of "+
		"the folder", one.path)
}

// Decides reports whether a file of a folder is called like one of what decides.
func Decides(name string) bool {
	var of found
	of.add(name, file{})
	return len(of.policies)+len(of.entities)+len(of.links)+len(of.schemas)+len(of.untaken) > 0
}

// add sorts a file by its name in the folder.
func (f *found) add(name string, one file) {
	switch base := path.Base(name); {
	case strings.HasSuffix(base, policyEnd):
		f.policies = append(f.policies, one)
	case strings.HasSuffix(base, schemaEnd), strings.HasSuffix(base, schemaJSONEnd):
		f.schemas = append(f.schemas, one)
	case strings.HasSuffix(base, policyJSONEnd):
		f.untaken = append(f.untaken, Aside{Name: name, JSON: one.text})
	case strings.HasSuffix(base, entitiesEnd), strings.HasSuffix(base, entityEnd):
		f.entities = append(f.entities, one)
	case base == linksName, strings.HasSuffix(base, linksEnd), strings.HasSuffix(base, moreLinksEnd):
		f.links = append(f.links, one)
	case path.Ext(base) == ".json" && holdsPolicies(one.text):
		f.untaken = append(f.untaken, Aside{Name: name, JSON: one.text})
	case path.Ext(base) == ".json" && (isRequest(one.text) || len(testsOf(one.text)) > 0):
		f.tests = append(f.tests, one)
	case path.Ext(base) == ".json":
		f.unknown = append(f.unknown, Aside{Name: name, JSON: one.text})
	}
}

func (f *found) read() (*Set, error) {
	s := &Set{
		Policies: cedar.NewPolicySet(), Entities: cedar.EntityMap{}, links: map[cedar.PolicyID]string{},
		aside: slices.Concat(f.untaken, f.unknown),
	}
	for _, a := range f.untaken {
		s.Untaken = append(s.Untaken, a.Name)
	}
	if err := s.readSchema(f.schemas); err != nil {
		return nil, err
	}
	templates := map[string]*template{}
	for _, one := range f.policies {
		if err := s.readPolicies(one, templates); err != nil {
			return nil, err
		}
	}
	for _, one := range f.links {
		if err := s.readLinks(one, templates); err != nil {
			return nil, err
		}
	}
	s.unlinked = unlinked(templates)
	for _, t := range s.unlinked {
		s.Unlinked = append(s.Unlinked, t.title)
	}
	for _, one := range f.entities {
		if err := s.readEntities(one); err != nil {
			return nil, err
		}
	}
	for _, one := range f.tests {
		s.readTests(one)
	}
	return s, s.validate(bundle.DefaultLimit())
}

// readPolicies adds the policies of a file, and keeps its templates.
func (s *Set) readPolicies(from file, templates map[string]*template) error {
	if err := from.checkNested(); err != nil {
		return err
	}
	text, err := from.split(templates)
	if err != nil {
		return err
	}
	of, err := from.parse(text)
	if err != nil {
		return err
	}
	for id, policy := range of.All() {
		s.Policies.Add(cedar.PolicyID(from.path)+"#"+id, policy) // each file counts its policies from 0
	}
	return nil
}

// parse reads policies. What is wrong is shown in the file as it is.
func (f file) parse(text []byte) (*cedar.PolicySet, error) {
	all, err := cedar.NewPolicySetFromBytes(f.path, joined(text))
	if err != nil {
		return nil, errors.New(f.fault(err.Error()))
	}
	for _, policy := range all.All() {
		at := &(*ast.Policy)(policy.AST()).Position
		at.Line, at.Column = f.at(at.Line, at.Column)
	}
	return all, nil
}

// at is where a place of what is parsed stands in the file.
func (f file) at(line, column int) (inLine, inColumn int) {
	if line == 1 {
		column += f.characters
	}
	return line + f.lines, column
}

var faultAt = regexp.MustCompile(`^(?:parser error: )?(?:parse error at )?<input>:(\d+):(\d+):? `)

// fault describes a fault with its place in the file, the line and a caret.
func (f file) fault(said string) string {
	m := faultAt.FindStringSubmatch(said)
	if m == nil {
		return f.path + ": " + said
	}
	line, _ := strconv.Atoi(m[1])
	column, _ := strconv.Atoi(m[2])
	line, column = f.at(line, column)
	return bundle.Place{File: f.path, Line: line, Column: column}.Show(string(f.text), "at "+said[len(m[0]):])
}

// readEntities adds the entities of a file.
func (s *Set) readEntities(from file) error {
	var all []cedar.Entity
	if err := json.Unmarshal(from.text, &all); err != nil {
		return fmt.Errorf("%s: entities are a list of {uid, attrs, parents, tags}: %w", from.path, err)
	}
	for _, e := range all {
		if was, ok := s.Entities[e.UID]; ok && !s.isAction(was) {
			return fmt.Errorf("%s: %s is there twice", from.path, e.UID)
		}
		if err := s.typeEntity(&e); err != nil {
			return fmt.Errorf("%s: %s: %w", from.path, e.UID, err)
		}
		s.Entities[e.UID] = e
	}
	return nil
}

// isAction reports whether the schema has an entity as an action, which a file of entities may repeat.
func (s *Set) isAction(e cedar.Entity) bool {
	if s.schema == nil {
		return false
	}
	_, ok := s.schema.Actions[e.UID]
	return ok
}

// Name is the name of a policy for people: that of its link, its annotation id, or its place.
func (s *Set) Name(id cedar.PolicyID) string {
	if name, ok := s.links[id]; ok {
		return name
	}
	policy := s.Policies.Get(id)
	if policy == nil {
		return string(id)
	}
	if name, ok := policy.Annotations()[idAnnotation]; ok {
		return string(name)
	}
	at := policy.Position()
	return fmt.Sprintf("%s:%d", filepath.Base(at.Filename), at.Line)
}

const (
	// mostActions bounds the actions that cedar-go finds below those which the scope of a policy lists.
	mostActions = 5_000_000
	// mostSaid bounds what is said of a policy.
	mostSaid = 4_000
)

// validate checks the policies by the schema. Its time can be the cube of a schema's length, and an error writes out
// types for each pair of those of a principal and a resource.
func (s *Set) validate(l bundle.Limit) error {
	if s.schema == nil {
		return nil
	}
	return l.Check("whether the policies are valid by the schema", s.invalid)
}

// invalid is why a policy is not valid by the schema.
func (s *Set) invalid(ctx context.Context) error {
	by := validate.New(s.schema)
	for _, id := range slices.Sorted(maps.Keys(maps.Collect(s.Policies.All()))) {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		policy := s.Policies.Get(id)
		in, _ := (*ast.Policy)(policy.AST()).Action.(ast.ScopeTypeInSet)
		if len(in.Entities)*len(s.schema.Actions) > mostActions {
			return fmt.Errorf("%s: it lists too many actions: divide it", s.Name(id))
		}
		if err := by.Policy(string(id), (*ast.Policy)(policy.AST())); err != nil {
			at := policy.Position()
			place := bundle.Place{File: at.Filename, Line: at.Line, Column: at.Column}
			said := strings.ReplaceAll(kit.Clipped(err.Error(), mostSaid), fmt.Sprintf("for policy `%s`, ", id), "")
			return fmt.Errorf("%s: the policy is not valid by the schema: %s", place, said)
		}
	}
	return nil
}
