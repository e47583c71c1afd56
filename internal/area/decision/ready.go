package decision

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"tare/internal/area"
	"tare/internal/area/decision/model"
	"tare/internal/area/decision/protocol"
	"tare/internal/load"
)

// question asks once, outside of the load. The adapter bounds how long that may take.
func (p *arm) question(ctx context.Context, q model.Question) (protocol.Answer, error) {
	a, err := p.adapter.Ask(ctx, p.session, q)
	if err == nil {
		return a, nil
	}
	if f, ok := area.ExplainTLS(err); ok {
		return a, fmt.Errorf("%s: %s (%w)", f.Message, f.Hint, err)
	}
	return a, fmt.Errorf("ask %s: %w", p.session.Host, err)
}

// await waits until the decision point answers every question: a slow start shows as refused connections, 409 or 503.
// In some only decisions have to wait, and the rest answers at once.
func (p *arm) await(ctx context.Context) error {
	within, cancel := context.WithTimeout(ctx, p.patience)
	defer cancel()
	for _, q := range p.questions {
		last := p.awaitOne(within, q)
		switch {
		case last == nil:
		case ctx.Err() != nil:
			return ctx.Err()
		case within.Err() == nil:
			return last
		default:
			return fmt.Errorf("the decision point at %s was not ready within %v; last: %w; next: look at its log, and start "+
				"tare when it is up: "+
				"409 usually means that its policies have not been deployed yet", p.session.Host, p.patience, last)
		}
	}
	return nil
}

// awaitOne returns what came last when ctx ends before there is an answer.
func (p *arm) awaitOne(ctx context.Context, q model.Question) error {
	var last error
	for {
		a, err := p.question(ctx, q)
		switch {
		case err == nil && !mayBeStarting(a):
			return nil
		case err == nil:
			last = errors.New(a.Text)
		case wrongTLS(err):
			return err // time does not mend it
		case last == nil || ctx.Err() == nil: // what our own deadline cuts short says nothing
			last = err
		}
		if p.env.Clock.Sleep(ctx, pause) != nil {
			return last
		}
	}
}

func wrongTLS(err error) bool {
	_, ok := area.ExplainTLS(err)
	return ok
}

// mayBeStarting reports an answer that a decision point gives while it starts.
func mayBeStarting(a protocol.Answer) bool {
	return a.Decision == model.None && (a.Status == http.StatusConflict || a.Status == http.StatusServiceUnavailable ||
		a.Outcome == load.Refused || a.Outcome == load.ConnFailed)
}

// learnRefusals finds out how the decision point says no to questions of the model. In some languages a policy whose
// condition does not hold is a Deny, in others it does not apply, and either is a refusal. What a file expects is not
// touched.
func (p *arm) learnRefusals(ctx context.Context) error {
	if !p.loose {
		return nil
	}
	p.questions, p.refusals = slices.Clone(p.questions), slices.Clone(p.refusals)
	for _, list := range [][]model.Question{p.questions, p.refusals} {
		for i := range list {
			if list[i].Want == model.Permit {
				continue
			}
			a, err := p.question(ctx, list[i])
			if err != nil {
				return err
			}
			if a.Decision == model.Deny || a.Decision == model.NotApplicable {
				list[i].Want = a.Decision
			}
		}
	}
	return nil
}
