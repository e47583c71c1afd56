package decision

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/cedar-policy/cedar-go"

	"tare/area"
	"tare/areas/bundle"
	"tare/areas/decision/cedarset"
	"tare/areas/decision/engine"
	"tare/areas/decision/protocol"
	"tare/areas/decision/reference"
	"tare/internal/unit"
)

// bundles is area.Parts.Program: what says what is measured are the user's own policies, if there are any.
func bundles(_ context.Context, s area.Spec, env area.Env) (area.Program, error) {
	spec, err := area.SpecOf[*Spec](s)
	if err != nil {
		return area.Program{}, err
	}
	var paths []string
	for _, t := range env.Treatments {
		if p, err := spec.plan(t); err == nil && p.bundle != "" { // otherwise Validate reports it
			paths = append(paths, p.bundle)
		}
	}
	if spec.RequestFiles != "" {
		paths = append(paths, spec.RequestFiles)
	}
	sums, err := bundle.Sums(paths)
	return area.Program{Files: true, Identity: sums}, err
}

// judgeBundle checks what the file says of the user's own policies.
func (p *plan) judgeBundle() error {
	v0 := p.spec.Embedded != nil && p.spec.Embedded.RegoV0
	if v0 && (p.bundle == "" || p.kind != engine.OPA) {
		return errors.New("rego_v0: it is about the Rego of a bundle for opa")
	}
	if p.bundle == "" {
		return nil
	}
	if err := p.kind.CheckOwn(p.bundle); err != nil {
		return fmt.Errorf("bundle: %w", err)
	}
	switch {
	case len(p.spec.Requests) == 0:
		return errors.New("requests: name questions about the policies of the bundle, with their right answers, or " +
			"request_files: at least one must be refused")
	case p.spec.Policies > 0 || p.spec.Position != "":
		return errors.New("policies: a bundle has as many as it has; leave out policies and position")
	}
	return nil
}

// compileBundle reports what is wrong in the user's own policies, as far as tare can compile them itself.
func (p *plan) compileBundle() error {
	if p.bundle == "" {
		return nil
	}
	var err error
	switch p.kind {
	case engine.Cedar:
		_, err = cedarset.Read(p.bundle)
	case engine.ATT, engine.AuthzForce:
		err = engine.CheckXACML(p.bundle)
	case engine.OPA, engine.PDPX: // OPA's are compiled before a run begins
	}
	if err != nil {
		return fmt.Errorf("bundle: %w", err)
	}
	return nil
}

// proofNotes say how many policies of a bundle for Cedar decide about one of the questions, and which do not: whether
// those guard is not shown.
func (p *arm) proofNotes() ([]string, error) {
	set, err := cedarset.Read(p.config.File)
	if err != nil {
		return nil, err
	}
	proved := map[cedar.PolicyID]bool{}
	for _, q := range p.questions {
		body, err := protocol.Evaluation(q)
		if err != nil {
			return nil, err
		}
		deciders, err := reference.Deciders(set, body)
		if err != nil {
			return nil, fmt.Errorf("request %s: %w", q.Name, err)
		}
		for _, id := range deciders {
			proved[id] = true
		}
	}
	all, without := 0, []string(nil)
	for id := range set.Policies.All() {
		all++
		if !proved[id] {
			without = append(without, set.Name(id))
		}
	}
	slices.Sort(without)
	out := []string{fmt.Sprintf("%s: %s in force; %d of them decide about a request of the experiment", p.bundle,
		unit.Count(all, "policy"), all-len(without))}
	if len(without) > 0 {
		out = append(out, fmt.Sprintf("%s: %s without a proof, since no request is decided on their account; whether they "+
			"guard is not shown: %s", p.bundle, unit.Count(len(without), "policy"), strings.Join(without, ", ")))
	}
	return out, nil
}
