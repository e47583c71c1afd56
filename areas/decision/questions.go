package decision

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"tare/areas/decision/model"
)

// absentName is the name of the model's question that no policy is about.
const absentName = "absent"

// chooseQuestions decides what is asked, and what must be refused.
func (p *plan) chooseQuestions() error {
	var err error
	switch set, position := p.set, p.position; {
	case len(p.spec.Requests) > 0:
		if p.questions, err = p.spec.questions(); err != nil {
			return err
		}
		return knownDeny(p.questions)
	case p.adapter.Questions != nil:
		if p.url != nil { // its policies are not ours
			set, position = model.Set{}, model.First
		}
		p.questions, p.refusals, err = p.adapter.Questions(p.options, set, position)
		return err
	}
	p.loose = true
	p.questions = []model.Question{p.set.Ask(p.position)}
	if p.position == model.Absent { // a policy that is not there cannot be one that does not hold
		p.refusals = []model.Question{p.set.Forbidden(model.Last)}
		return nil
	}
	p.questions = append(p.questions, p.set.Forbidden(p.position))
	p.refusals = []model.Question{p.set.Ask(model.Absent)}
	return nil
}

// questions returns the file's own questions.
func (s *Spec) questions() ([]model.Question, error) {
	var out []model.Question
	for i, r := range s.Requests {
		at := fmt.Sprintf("requests[%d]", i)
		if slices.ContainsFunc(out, func(q model.Question) bool { return q.Name == r.Name }) {
			return nil, fmt.Errorf("%s.name: %q is there twice", at, r.Name)
		}
		want, err := model.ParseDecision(r.Expect)
		if err != nil {
			return nil, fmt.Errorf("%s.expect: %w", at, err)
		}
		q := model.Question{
			Name: r.Name, Subject: model.Entity(r.Subject), Action: r.Action, Resource: model.Entity(r.Resource),
			Context: r.Context,
			Want:    want, Policy: r.Policy,
		}
		if r.Body != "" {
			if !json.Valid([]byte(r.Body)) {
				return nil, fmt.Errorf("%s.body: this is no JSON", at)
			}
			q.Body = json.RawMessage(r.Body)
		}
		out = append(out, q)
	}
	return out, nil
}

// knownDeny wants a request that is refused for each kind of policy: a decision point that permits everything would
// pass all others.
func knownDeny(questions []model.Question) error {
	refused := map[string]bool{}
	for _, q := range questions {
		refused[q.Policy] = refused[q.Policy] || q.Want != model.Permit
	}
	var without []string
	for _, q := range questions {
		if !refused[q.Policy] && !slices.Contains(without, q.Policy) {
			without = append(without, q.Policy)
		}
	}
	switch {
	case len(without) == 0:
		return nil
	case len(refused) == 1:
		return errors.New("requests: none of them is expected to be denied, so that a decision point that permits " +
			"everything would not be found out: add one with expect: deny")
	}
	return fmt.Errorf("requests: of policy %s none is expected to be denied, so that one that permits everything would "+
		"not be found out: add a request with expect: deny for each policy",
		strings.Join(without, ", "))
}
