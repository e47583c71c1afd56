package admission

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"time"

	"tare/area"
	"tare/areas/admission/cluster"
	"tare/areas/admission/own"
)

const (
	// shortestTimeout is the shortest time-out that a webhook can have: what is admitted sooner, no webhook was too late
	// for.
	shortestTimeout = time.Second
	// askings bounds how often a request is asked for, until an answer shows what the policies decide.
	askings = 3
	// confirmations is how often what treatments decide differently is asked for again, with the same answer each time.
	confirmations = 2
)

// askFor asks for a request of the catalogue until an answer shows what the policies decide; sure is false if none
// does.
func (p *arm) askFor(ctx context.Context, r own.Request) (a answer, sure bool, err error) {
	for range askings {
		if a, err = p.ask(ctx, p.probe(r)); err != nil || p.shows(a) {
			return a, err == nil, err
		}
	}
	return a, false, nil
}

// shows reports whether an answer shows what the policies decide. It does not where the API server failed, or waited in
// vain for an engine that may be ignored.
func (p *arm) shows(a answer) bool {
	if a.status == http.StatusCreated {
		return a.took < shortestTimeout || !slices.ContainsFunc(p.policies.own.Policies, (*own.Policy).FailsOpen)
	}
	return a.status < http.StatusInternalServerError && a.status != http.StatusTooManyRequests
}

// askAll asks for several requests.
func (p *arm) askAll(ctx context.Context, requests []own.Request) (answers []answer, sure []bool, err error) {
	answers, sure = make([]answer, len(requests)), make([]bool, len(requests))
	return answers, sure, cluster.Each(ctx, len(requests), askAbreast, func(ctx context.Context, i int) (err error) {
		answers[i], sure[i], err = p.askFor(ctx, requests[i])
		return err
	})
}

// decision is what the policies decide about the i-th request of the catalogue, as an answer says; known is false if it
// does not say it.
func (p *arm) decision(f *finding, i int, a answer) (refused, known bool) {
	refused = len(p.denier(a))+len(p.failures(f, i, a)) > 0 || p.refusedOnOurs(a)
	return refused, refused || a.status == http.StatusCreated
}

// Rulings is area.Can.Rulings. What treatments decide differently is asked for again under each of them: one answer may
// be due to a moment in which an engine did not answer.
func (t *target) Rulings(ctx context.Context) (map[string]area.Rulings, error) {
	compared := slices.DeleteFunc(t.arms.Ready(), func(p *arm) bool {
		return p.policies.own == nil || p.treatment.Control != area.Ordinary
	})
	first, differ := map[string]area.Ruling{}, map[string]bool{}
	for _, p := range compared {
		for _, r := range p.rulings() {
			if is, known := first[r.Request]; known && !reflect.DeepEqual(is, r) {
				differ[r.Request] = true
			} else if !known {
				first[r.Request] = r
			}
		}
	}
	for _, p := range compared {
		if err := p.settle(ctx, differ); err != nil {
			return nil, fmt.Errorf("ask %s again for what treatments decide differently: %w", p.spec.Bundle, err)
		}
		if p.env.Trespasses {
			if err := p.whileInForce(ctx, p.chooseTrespasses); err != nil {
				return nil, err
			}
		}
	}
	unasked := differences(compared)
	out := map[string]area.Rulings{}
	for _, p := range compared {
		out[p.treatment.ID] = area.Rulings{Of: p.rulings(), Unasked: append(unasked[p.treatment.ID], p.untried()...)}
	}
	return out, nil
}

// differences says, by treatment, in what its policies differ from those of the baseline, if that is among the arms.
func differences(among []*arm) map[string][]string {
	i := slices.IndexFunc(among, func(p *arm) bool { return p.treatment.Baseline })
	if i < 0 {
		return nil
	}
	base, out := among[i], map[string][]string{}
	for _, p := range among {
		if !p.treatment.Baseline {
			out[p.treatment.ID] = p.policies.filed.Unasked(base.policies.filed)
		}
	}
	return out
}

// rulings are what the policies decided about the requests that all treatments are asked.
func (p *arm) rulings() []area.Ruling { return p.policies.finding.rulings(p.mutating()) }

// settle asks again for some requests, by their names. What is not answered as before each time is undecided, and an
// object that does not come back as before is not compared.
func (p *arm) settle(ctx context.Context, names map[string]bool) error {
	f := &p.policies.finding
	var on []int
	var requests []own.Request
	for i, r := range f.requests {
		if _, known := f.refused[i]; known && names[r.Name] {
			on, requests = append(on, i), append(requests, r)
		}
	}
	if len(on) == 0 {
		return nil
	}
	return p.whileInForce(ctx, func(ctx context.Context) error {
		for range confirmations {
			answers, sure, err := p.askAll(ctx, requests)
			if err != nil {
				return err
			}
			for n, i := range on {
				if err := p.confirm(f, i, answers[n], sure[n]); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// whileInForce does something while the policies are in force, which some are for trials only.
func (p *arm) whileInForce(ctx context.Context, do func(context.Context) error) (err error) {
	if p.visiting() {
		defer func() { err = errors.Join(err, p.removePolicies(ctx)) }()
		if err := p.applyPolicies(ctx); err != nil {
			return err
		}
	}
	return do(ctx)
}

// confirm compares another answer to the i-th request of the catalogue with what is known of it.
func (p *arm) confirm(f *finding, i int, a answer, sure bool) error {
	refused, known := p.decision(f, i, a)
	if !sure || !known || refused != f.refused[i] {
		f.undecided[i] = true
	}
	changes, known, err := p.changesOf(f.requests[i], a)
	if err != nil {
		return fmt.Errorf("%s: %w", f.requests[i].Name, err)
	}
	if !known || !slices.Equal(changes.Lines(), f.changes[i].Lines()) {
		delete(f.changes, i)
	}
	return nil
}
