package decision

import (
	"context"
	"errors"
	"slices"

	"tare/areas/decision/model"
	"tare/internal/design"
	"tare/internal/load"
)

// errNothingPermitted explains why there are no trespasses.
var errNothingPermitted = errors.New("nothing that is asked is permitted, and trespasses stand among requests that " +
	"are: ask a question with the answer permit, too (position first or last, or a request with expect: permit)")

// Asks is area.Says.Asks: healthcheck and statistics of pdpx want no decision.
func (s *Spec) Asks(treatments []design.Treatment, mix []string) bool {
	return slices.ContainsFunc(treatments, func(t design.Treatment) bool {
		p, err := s.plan(t)
		return err == nil && slices.ContainsFunc(p.questions, func(q model.Question) bool {
			return q.Want != model.None && (len(mix) == 0 || slices.Contains(mix, q.Name))
		})
	})
}

// Trespasses is area.Can.Trespass: every question whose right answer is no, whatever the mix leaves out. Where
// nothing is permitted, each is its own twin.
func (t *target) Trespasses(tr design.Treatment) ([]load.Operation, error) {
	p, err := t.arms.Of(tr)
	if err != nil {
		return nil, err
	}
	permitted := p.permitted(t.env.Operations)
	var out []load.Operation
	for _, q := range slices.Concat(p.questions, p.refusals) {
		if q.Want != model.Deny && q.Want != model.NotApplicable {
			continue
		}
		op, err := p.trespass(q)
		if err != nil {
			return nil, err
		}
		if op.Twin = q.Name; len(permitted) > 0 {
			op.Twin = twinOf(q, permitted)
		}
		out = append(out, op)
	}
	return out, nil
}

// permitted returns the questions of the mix whose right answer is yes; an empty mix is all of them.
func (p *plan) permitted(mix []string) (out []model.Question) {
	for _, q := range p.questions {
		if q.Want == model.Permit && q.List == nil && (len(mix) == 0 || slices.Contains(mix, q.Name)) {
			out = append(out, q)
		}
	}
	return out
}

// twinOf returns the name of the permitted question that is most like q: about the same kind of policy, of the same
// subject, and of about the same size.
func twinOf(q model.Question, permitted []model.Question) string {
	const otherPolicy, otherSubject = 1 << 40, 1 << 30
	distance := func(p model.Question) int {
		d := len(p.Body) - len(q.Body)
		d = max(d, -d)
		if p.Policy != q.Policy {
			d += otherPolicy
		}
		if p.Subject.Type != q.Subject.Type || p.Subject.ID != q.Subject.ID {
			d += otherSubject
		}
		return d
	}
	return slices.MinFunc(permitted, func(a, b model.Question) int { return distance(a) - distance(b) }).Name
}

// trespass returns the timed call of a question that must be refused.
func (p *arm) trespass(q model.Question) (load.Operation, error) {
	op, err := p.adapter.Operation(p.session, q, p.batch)
	if err != nil {
		return op, err
	}
	meaning := meaning{op.CauseAnswers, p.loose}
	if w, ok := op.Wire.(explained); ok {
		op.Wire = &trespassWire{w, meaning}
	}
	if call := op.Call; call != nil {
		op.Call = func(ctx context.Context, i uint64) load.Result {
			r := call(ctx, i)
			if r.Outcome == load.Wrong && r.Cause >= load.OwnCauses {
				r.Outcome = meaning.of(int(r.Cause - load.OwnCauses))
			}
			return r
		}
	}
	op.Describe = func(_ uint64, _ int, body []byte) (string, string) { return p.session.Tell(q, body) }
	return op, nil
}

// A meaning says what answers to a trespass mean that the adapter calls wrong.
type meaning struct {
	answers []string // the decisions that they hold, by the adapter's number of the cause
	loose   bool     // a policy that does not apply refuses as well as one that denies
}

// of returns Permitted for a permit, whatever else is wrong with it; Denied for a no other than the expected one; and
// Wrong for an answer that decides nothing.
func (m meaning) of(cause int) load.Outcome {
	if cause < 0 || cause >= len(m.answers) {
		return load.Wrong
	}
	switch m.answers[cause] {
	case model.Permit.String():
		return load.Permitted
	case model.Deny.String():
		return load.Denied
	case model.NotApplicable.String():
		if m.loose {
			return load.Denied
		}
	}
	return load.Wrong
}

// explained is a wire that says why an answer is wrong.
type explained interface {
	load.Wire
	load.Wire
}

// A trespassWire is a wire whose requests must be refused.
type trespassWire struct {
	explained
	meaning meaning
}

// Check implements load.Wire.
func (w *trespassWire) Check(i uint64, status int, body []byte) load.Outcome {
	o := w.explained.Check(i, status, body)
	if o != load.Wrong {
		return o
	}
	return w.meaning.of(w.Explain(i, status, body))
}
