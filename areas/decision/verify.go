package decision

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"tare/areas/decision/model"
	"tare/areas/decision/protocol"
	"tare/internal/design"
)

// Verify implements area.Target: what must be refused is refused, what is measured is answered as it should be, both
// when it is asked once and when it is asked as the load asks it. Fast answers of a decision point that decides nothing
// are worth nothing.
func (t *target) Verify(ctx context.Context, tr design.Treatment) error {
	p, err := t.arms.Of(tr)
	if err != nil {
		return err
	}
	if err := p.running(ctx); err != nil {
		return err
	}
	if err := p.await(ctx); err != nil {
		return err
	}
	for _, check := range []func(context.Context) error{p.verifyRefusals, p.verifyAnswers, p.verifyCounts} {
		if err := check(ctx); err != nil {
			return err
		}
	}
	return p.rehearse(ctx, rehearsal{rehearseWorkers, rehearseCalls * len(p.questions), rehearseWithin})
}

// verifyRefusals asks what must not be permitted first: a decision point that permits everything has all other answers
// right.
func (p *arm) verifyRefusals(ctx context.Context) error {
	for _, q := range p.questions {
		if !mustBeRefused(q) {
			continue
		}
		if err := p.canary(ctx, q); err != nil {
			return err
		}
	}
	for _, q := range p.refusals {
		if err := p.canary(ctx, q); err != nil {
			return err
		}
	}
	return nil
}

// Unproved is area.Can.Unproved: a decision point may be asked for no decision at all.
func (t *target) Unproved(tr design.Treatment) string {
	p, err := t.arms.Of(tr)
	if err != nil || slices.ContainsFunc(slices.Concat(p.questions, p.refusals), mustBeRefused) {
		return ""
	}
	if p.granted {
		return "the decision point answers, and permits all that was asked, also what the baseline refuses"
	}
	return "the decision point answers as expected; nothing that must be refused was asked"
}

// mustBeRefused reports whether a question's right answer is a refusal.
func mustBeRefused(q model.Question) bool {
	return q.Want == model.Deny || q.Want == model.NotApplicable
}

func (p *arm) verifyAnswers(ctx context.Context) error {
	for _, q := range p.questions {
		if mustBeRefused(q) {
			continue
		}
		if err := p.canary(ctx, q); err != nil {
			return err
		}
	}
	return nil
}

// canary asks q, and explains an answer that is not the wanted one.
func (p *arm) canary(ctx context.Context, q model.Question) error {
	a, err := p.question(ctx, q)
	if err != nil {
		return err
	}
	if a.Outcome.Good() {
		return nil
	}
	if why := p.explainByCounts(ctx, q, a); why != "" {
		return fmt.Errorf("canary %q: %s", q.Name, why)
	}
	err = fmt.Errorf("canary %q: %s", q.Name, explain(q, a))
	if p.held != "" {
		err = fmt.Errorf("%w; %s", err, p.held)
	}
	return err
}

// explain says what is wrong with an answer, what that means, and the next step.
func explain(q model.Question, a protocol.Answer) string {
	switch {
	case q.List != nil && a.Status == http.StatusOK:
		return wrongList(q, a)
	case a.Decision == model.None:
		return explainStatus(a)
	case a.Decision == model.Indeterminate:
		return "the decision point answered with Indeterminate, which is neither yes nor no: it could not evaluate its " +
			"policies for this request. " +
			"Such an answer comes with a good status and is often fast, but it is an error's cost, not a decision's. " +
			"See that the request has the attributes, and the form, that the policies want (" + a.Text + ")"
	case q.Want == model.Permit && a.Decision == model.NotApplicable:
		return "no policy applies to this request, although one should permit it: the policies are not deployed, or the " +
			"request names something that they do not know (" + a.Text + ")"
	case q.Want == model.Permit:
		return "this request is denied, although a policy should permit it: see that the policies are those that the " +
			"experiment expects (" + a.Text + ")"
	case a.Decision == model.Permit && q.Name == absentName:
		return "the decision point permits a request that no policy is about: it says Permit where none applies, or it " +
			"permits everything. " +
			"What would be measured is not the cost of a decision (" + a.Text + ")"
	case a.Decision == model.Permit:
		return "the decision point permits a request that must be refused: it may permit everything, or the policies are " +
			"not in force. " +
			"What would be measured is not the cost of a decision (" + a.Text + ")"
	}
	return fmt.Sprintf("the decision is %s, and %s was expected: if both are right, write expect: %s (%s)",
		a.Decision, q.Want, a.Decision, a.Text)
}

// wrongList says in what a list is not the right one.
func wrongList(q model.Question, a protocol.Answer) string {
	const next = "see that the policies and their data are those that the experiment expects; or, if the list is right, " +
		"mend what the request, or the test of the store, expects"
	if a.Listed == nil {
		return fmt.Sprintf("the list is not the right one, of %d: %s (%s)", len(q.List.Has), next, a.Text)
	}
	var says []string
	for what, names := range map[string][]string{
		"holds what does not belong into it: ": without(a.Listed, q.List.Has), "lacks ": without(q.List.Has, a.Listed),
	} {
		if len(names) > 0 {
			says = append(says, what+some(names))
		}
	}
	slices.Sort(says)
	return fmt.Sprintf("the list %s: %s", strings.Join(says, ", and "), next)
}

// without are the members of one list that are not in another.
func without(list, other []string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(name string) bool { return slices.Contains(other, name) })
}

// explainStatus returns the status of an answer without a decision, and what to do about it.
func explainStatus(a protocol.Answer) string {
	next := "look at the decision point's log"
	switch a.Status {
	case http.StatusUnauthorized:
		next = "check username, password or token: what the file's places hold is not what the decision point wants"
	case http.StatusForbidden:
		next = "the caller is known and may not ask: give it the right to, or use other credentials"
	case http.StatusNotFound, http.StatusMethodNotAllowed:
		next = "check the url and its path, the adapter, and the names of policies or stores"
	case http.StatusBadRequest, http.StatusUnprocessableEntity, http.StatusUnsupportedMediaType:
		next = "check the adapter, and the request's fields or body: the decision point does not understand them"
	case http.StatusConflict, http.StatusServiceUnavailable:
		next = "it is not ready: wait until its policies are deployed"
	case http.StatusMovedPermanently, http.StatusFound, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		next = "redirects are not followed: name the address that answers itself"
	}
	return "there is no decision in the answer: " + a.Text + "; next: " + next
}

// verifyCounts compares each Permit with the decision point's own counts: one that counts NotApplicable and answers
// Permit has no policy about the request, and what would be measured is not the cost of a decision.
func (p *arm) verifyCounts(ctx context.Context) error {
	if p.adapter.CheckCounts == nil {
		return nil
	}
	for _, q := range p.questions {
		if q.Want != model.Permit {
			continue
		}
		found, err := p.adapter.CheckCounts(ctx, p.session, q)
		if err != nil {
			return fmt.Errorf("canary %q: hold the answers against the decision point's own counts: %w", q.Name, err)
		}
		if found.Counted != model.None && found.Counted != model.Permit {
			return fmt.Errorf("canary %q: %s", q.Name, notApplicableAsPermit(found))
		}
	}
	return nil
}

// explainByCounts explains a Permit that should have been a refusal, if the decision point itself did not count a
// Permit; otherwise it returns nothing.
func (p *arm) explainByCounts(ctx context.Context, q model.Question, a protocol.Answer) string {
	if p.adapter.CheckCounts == nil || a.Decision != model.Permit || q.Want == model.Permit {
		return ""
	}
	found, err := p.adapter.CheckCounts(ctx, p.session, q)
	if err != nil || found.Counted == model.None || found.Counted == model.Permit {
		return "" // explain has its own words
	}
	return notApplicableAsPermit(found)
}

// notApplicableAsPermit reports a Permit that no policy granted.
func notApplicableAsPermit(found protocol.CountCheck) string {
	return found.Text + ". Deploy a policy about it, or name what a deployed policy is about: what would be measured " +
		"is not the cost of a decision"
}
