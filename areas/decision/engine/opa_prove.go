package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"

	"tare/areas/bundle"
)

// Proofs are what OPA says of the rules of a bundle.
type Proofs struct {
	Rules  []RuleProof  // but for defaults and tests, in the order of their places
	Tests  int          // how many of the bundle's own tests were run
	Failed []FailedTest // of them
	Cut    bool         // not all were run in time
	Reach  []string     // functions that the policies call, which reach other servers: http.send
}

// A RuleProof says whether a rule holds for anything.
type RuleProof struct {
	bundle.Place
	Says   string // the rule's name
	Asked  bool   // it holds for a request
	Tested bool   // it holds in one of the bundle's own tests
}

// String is the name and the place.
func (r RuleProof) String() string {
	return fmt.Sprintf("%s (%s)", r.Says, bundle.Place{File: r.File, Line: r.Line})
}

// A FailedTest is one of the bundle's own.
type FailedTest struct {
	bundle.Place
	Says string // its name, and why if OPA says so
}

// String is the name and the place.
func (t FailedTest) String() string { return fmt.Sprintf("%s (%s)", t.Says, t.Place) }

// CanProve reports whether Prove knows anything: an opa that was found in PATH is not asked.
func (l Launch) CanProve() bool { return l.Kind == OPA && filepath.Base(l.Path) == opa.binary }

// Prove says which rules of a bundle hold for the bodies of requests, and in its own tests. The names of files are as
// seen from the bundle.
func (l Launch) Prove(ctx context.Context, c Config, bodies []json.RawMessage) (*Proofs, error) {
	at, err := filepath.Abs(c.File)
	if err != nil {
		return nil, err
	}
	c.File = at
	out := &Proofs{}
	line := struct {
		Config
		Prove  bool              `json:"prove"`
		Bodies []json.RawMessage `json:"bodies"`
	}{c, true, bodies}
	if err := l.tell(ctx, at, line, out); err != nil {
		return nil, err
	}
	name := func(p *bundle.Place) { p.File = strings.TrimPrefix(strings.TrimPrefix(p.File, at), "/") }
	for i := range out.Rules {
		name(&out.Rules[i].Place)
	}
	for i := range out.Failed {
		name(&out.Failed[i].Place)
	}
	return out, nil
}
