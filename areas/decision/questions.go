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
		want, list, err := r.wants()
		if err != nil {
			return nil, fmt.Errorf("%s.%w", at, err)
		}
		q := model.Question{
			Name: r.Name, Subject: model.Entity(r.Subject), Action: r.Action, Resource: model.Entity(r.Resource),
			Context: r.Context,
			Want:    want, List: list, Policy: r.Policy,
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

// expectList is the word of a request whose right answer is a list.
const expectList = "list"

// wants is the right answer. The error begins with the field's name.
func (r Request) wants() (model.Decision, *model.List, error) {
	switch {
	case r.Expect != expectList && len(r.List) > 0:
		return model.None, nil, errors.New("list: it is for a request with expect: list")
	case r.Expect == expectList && r.Body == "":
		return model.None, nil, errors.New("body: a list is asked for by a body, such as {\"type\": \"doc\", \"relation\": " +
			"\"reader\", \"user\": \"user:ann\"}")
	case r.Expect == expectList:
		return model.Permit, &model.List{Has: r.List}, nil
	}
	want, err := model.ParseDecision(r.Expect)
	if err != nil {
		err = fmt.Errorf("expect: %w", err)
	}
	return want, nil, err
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
