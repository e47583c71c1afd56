package cedarset

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cedar-policy/cedar-go"

	"tare/internal/unit"
)

// A Test is one of those that `cedar run-tests` runs: a request about entities of its own, and what the policies must
// say to it.
type Test struct {
	Name string
	// fault says why it cannot be run.
	fault    error
	request  cedar.Request
	entities cedar.EntityMap
	decision cedar.Decision
	errors   int
	reasons  []string
}

// mostTests bounds the tests of a set.
const mostTests = 1000

// testsOf returns the tests that a file lists. A file that is no list of tests has none.
func testsOf(text []byte) []json.RawMessage {
	var all []json.RawMessage
	if !bytes.HasPrefix(bytes.TrimLeft(text, " \t\r\n"), []byte("[")) || json.Unmarshal(text, &all) != nil {
		return nil
	}
	for _, one := range all {
		var keys map[string]json.RawMessage
		if json.Unmarshal(one, &keys) != nil || keys["request"] == nil || keys["decision"] == nil {
			return nil
		}
	}
	return all
}

// readTests adds the tests of a file, if it holds some.
func (s *Set) readTests(from file) {
	for i, text := range testsOf(from.text) {
		if len(s.Tests) == mostTests {
			s.TestsCut = true
			return
		}
		s.Tests = append(s.Tests, s.readTest(fmt.Sprintf("%s#%d", filepath.Base(from.path), i+1), text))
	}
}

func (s *Set) readTest(name string, text []byte) Test {
	t := Test{Name: name}
	var is struct {
		Name     string          `json:"name"`
		Request  request         `json:"request"`
		Entities *[]cedar.Entity `json:"entities"`
		Decision string          `json:"decision"`
		Reason   []string        `json:"reason"`
		Errors   int             `json:"num_errors"`
	}
	if err := decode(text, &is); err != nil {
		t.fault = err
		return t
	}
	if is.Name != "" {
		t.Name = is.Name
	}
	switch is.Decision {
	case "allow":
		t.decision = cedar.Allow
	case "deny":
		t.decision = cedar.Deny
	default:
		t.fault = fmt.Errorf("decision %q: want allow or deny", is.Decision)
		return t
	}
	t.errors, t.reasons = is.Errors, is.Reason
	if t.request, t.fault = s.requestOf(is.Request); t.fault != nil {
		return t
	}
	t.entities = s.Entities
	if is.Entities != nil {
		t.entities, t.fault = s.entitiesOf(*is.Entities)
	}
	return t
}

// requestOf is Cedar's request of one as its command line reads it.
func (s *Set) requestOf(r request) (out cedar.Request, err error) {
	if err := r.check(); err != nil {
		return out, err
	}
	out = cedar.Request{
		Principal: cedar.EntityUID(r.Principal), Action: cedar.EntityUID(r.Action), Resource: cedar.EntityUID(r.Resource),
	}
	if len(r.Context) > 0 {
		err = json.Unmarshal(r.Context, &out.Context)
	}
	if err == nil {
		out.Context, err = s.Context(out.Action, out.Context)
	}
	if err != nil {
		err = fmt.Errorf("context: %w", err)
	}
	return out, err
}

// entitiesOf are those of a test, and the actions of the schema.
func (s *Set) entitiesOf(all []cedar.Entity) (cedar.EntityMap, error) {
	out := cedar.EntityMap{}
	s.addActions(out)
	for _, e := range all {
		if err := s.typeEntity(&e); err != nil {
			return nil, fmt.Errorf("entity %s: %w", e.UID, err)
		}
		out[e.UID] = e
	}
	return out, nil
}

// Run runs a test. It returns the policies that decide, or why the test fails.
func (s *Set) Run(t Test) (deciders []cedar.PolicyID, err error) {
	if t.fault != nil {
		return nil, t.fault
	}
	is, why := cedar.Authorize(s.Policies, t.entities, t.request)
	if is != t.decision {
		return nil, fmt.Errorf("the decision is %s", is)
	}
	if n := len(why.Errors); n != t.errors {
		if n > 0 {
			return nil, fmt.Errorf("%s, and %d expected: %s", unit.Count(n, "error"), t.errors, why.Errors[0].Message)
		}
		return nil, fmt.Errorf("no error, and %d expected", t.errors)
	}
	for _, reason := range why.Reasons {
		deciders = append(deciders, reason.PolicyID)
	}
	for _, reason := range t.reasons {
		if !slices.ContainsFunc(deciders, func(id cedar.PolicyID) bool { return s.isNamed(id, reason) }) {
			return nil, fmt.Errorf("policy %s does not decide", reason)
		}
	}
	return deciders, nil
}

// isNamed reports whether a test means a policy by a name: that of its link or annotation, or policy0, the first of a
// file.
func (s *Set) isNamed(id cedar.PolicyID, name string) bool {
	return s.Name(id) == name || strings.HasSuffix(string(id), "#"+name)
}
