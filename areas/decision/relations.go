package decision

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"tare/areas/decision/engine"
	"tare/areas/decision/fga"
	"tare/areas/decision/protocol"
	"tare/internal/design"
	"tare/internal/unit"
)

// askChecks has a store of the user's own asked what its own tests ask, if the experiment names no requests. Stores
// that are compared are asked the same, so that requests must be named.
func (p *plan) askChecks(t design.Treatment) error {
	e := p.spec.Embedded
	if p.kind != engine.OpenFGA || e == nil || e.Bundle == "" || len(p.spec.Requests) > 0 {
		return nil
	}
	if t.Levels["bundle"] != "" {
		return errors.New("stores that are compared are asked the same: name requests, or request_files: the file of one " +
			"store, whose checks are then asked of all")
	}
	var err error
	p.spec.Requests, err = checksOf(e.Bundle)
	return err
}

// checksOf are the checks of a store as requests.
func checksOf(from string) (out []Request, err error) {
	s, err := fga.Read(from)
	if err != nil {
		return nil, err
	}
	switch n := len(s.Checks); {
	case s.More:
		return nil, fmt.Errorf("the tests of %s have more than %d checks, or very long ones: name requests", from, n)
	case n == 0:
		return nil, fmt.Errorf("%s has no test with a check: name requests", from)
	case n > mostRequests:
		return nil, fmt.Errorf("the tests of %s have %d checks, more than %d: name requests", from, n, mostRequests)
	}
	for _, c := range s.Checks {
		r := Request{Name: nameOf(c.Name, "", out), Body: string(c.Body), Expect: "deny"}
		switch {
		case c.List != nil:
			r.Expect, r.List = expectList, *c.List
		case c.Want:
			r.Expect = "permit"
		}
		out = append(out, r)
	}
	return out, nil
}

// relationNotes say which relations of a model the requests ask for, and for which they do not.
func (p *arm) relationNotes(ctx context.Context) ([]string, error) {
	var bodies []json.RawMessage
	for _, q := range p.questions {
		body, err := protocol.OpenFGACheck(p.options, q)
		if err != nil {
			return nil, err
		}
		bodies = append(bodies, fga.Proof(body))
	}
	proofs, err := p.launch.ProveRelations(ctx, p.config, bodies)
	if err != nil {
		return []string{fmt.Sprintf("%s: which of its relations the requests ask for is not known: %v", p.bundle, err)}, nil
	}
	var behind, without []string
	asked := 0
	for _, r := range proofs {
		switch {
		case r.Asked:
			asked++
		case r.Reached:
			behind = append(behind, r.Says)
		default:
			without = append(without, r.Says)
		}
	}
	out := []string{fmt.Sprintf("%s: of %s, %s asked for by a request of the experiment", p.bundle,
		unit.Count(len(proofs), "relation"), are(strconv.Itoa(asked), asked))}
	if len(behind) > 0 {
		out = append(out, fmt.Sprintf("%s: %s in the definitions of those that are; whether each of them decides is not "+
			"shown: %s", p.bundle, agree(unit.Count(len(behind), "relation"), len(behind), "is not asked for, but stands",
			"are not asked for, but stand"), some(behind)))
	}
	if len(without) > 0 {
		out = append(out, fmt.Sprintf("%s: %s without a proof, since no request asks for them or for what is defined by "+
			"them; whether they guard is not shown: %s", p.bundle, are(unit.Count(len(without), "relation"), len(without)),
			some(without)))
	}
	return out, nil
}

func are(what string, n int) string { return agree(what, n, "is", "are") }
