package decision

import (
	"context"
	"errors"
	"fmt"

	"tare/area"
	"tare/areas/bundle"
	"tare/areas/decision/engine"
	"tare/areas/decision/reference"
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
		return errors.New("requests: name questions about the policies of the bundle, with their right answers: at least " +
			"one must be refused")
	case p.spec.Policies > 0 || p.spec.Position != "":
		return errors.New("policies: a bundle has as many as it has; leave out policies and position")
	}
	return nil
}

// compileBundle reports what is wrong in the user's own policies, as far as tare can compile them itself.
func (p *plan) compileBundle() error {
	if p.bundle == "" || p.kind != engine.Cedar {
		return nil
	}
	if _, err := reference.ReadCedar(p.bundle); err != nil {
		return fmt.Errorf("bundle: %w", err)
	}
	return nil
}
