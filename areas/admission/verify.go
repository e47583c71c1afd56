package admission

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"tare/areas/admission/mechanism"
	"tare/areas/admission/webhook"
	"tare/internal/kit"
	"tare/internal/load"
)

// verify proves the treatment: its policies deny what they must deny and admit what they must admit, with their
// mutations; all of them and no others are evaluated; and each measured operation is answered as expected. Fast answers
// of a control plane that enforces nothing would be meaningless. A webhook that may miss its time-out answers at once
// meanwhile.
func (p *arm) verify(ctx context.Context) error {
	if err := p.failed(); err != nil {
		return err
	}
	unsteady := p.webhook != nil && p.unsteady()
	if unsteady {
		if err := p.setLatency(ctx, webhook.Latency{}); err != nil {
			return err
		}
	}
	err := p.prove(ctx, p.nextProof())
	if err == nil {
		err = p.rehearse(ctx)
	}
	if err == nil {
		err = p.rehearseTrespasses(ctx)
	}
	if err == nil && unsteady {
		err = p.setLatency(ctx, p.latency)
	}
	if err != nil {
		return errors.Join(p.failed(), err) // a process that has ended explains the failure
	}
	return nil
}

// prove tries a proof once.
func (p *arm) prove(ctx context.Context, proof mechanism.Proof) error {
	return p.proveObjections(ctx, proof, func(ctx context.Context) error { return p.proveEach(ctx, proof) })
}

func (p *arm) proveEach(ctx context.Context, proof mechanism.Proof) error {
	for _, probe := range proof.Bad {
		if err := p.try(ctx, probe); err != nil {
			return p.explain(err, probe)
		}
	}
	if err := p.try(ctx, proof.Good); err != nil {
		return fmt.Errorf("the pod that is measured: %w", err)
	}
	if proof.Count == nil {
		return nil
	}
	return p.count(ctx, *proof.Count)
}

// try sends a probe as a dry run, as the caller, and judges the answer.
func (p *arm) try(ctx context.Context, probe mechanism.Probe) error {
	a, err := p.ask(ctx, probe)
	if err != nil {
		return err
	}
	return probe.Judge(a.status, a.body)
}

// ask sends a probe as a dry run: a pod as the caller, and other objects as who sets up, since the caller may not.
func (p *arm) ask(ctx context.Context, probe mechanism.Probe) (answer, error) {
	if probe.Path != "" {
		return p.setter.do(ctx, http.MethodPost, p.prefix+probe.Path+dryRunQuery, jsonType, probe.Pod)
	}
	path := p.prefix + resources()[0].path(p.namespace) + dryRunQuery
	return p.asker.do(ctx, http.MethodPost, path, jsonType, probe.Pod)
}

// explain says what a failed proof means.
func (p *arm) explain(err error, probe mechanism.Probe) error {
	switch {
	case p.kind == mechanism.None && probe.Want == mechanism.Admitted:
		return fmt.Errorf("the baseline is none: something else denies pods here, and would be measured as if nothing "+
			"did: %w", err)
	case probe.Want == mechanism.Denied:
		return fmt.Errorf("the policies are not in force, or not these alone: what would be measured is not their cost: %w",
			err)
	}
	return err
}

// count proves that exactly the relevant policies are evaluated, by the evaluation counters around one request. Other
// clients' requests can only add to them, so it may try up to three times.
func (p *arm) count(ctx context.Context, c mechanism.Count) error {
	const tries = 3
	var err error
	for range tries {
		switch {
		case len(c.Policies) > 0:
			err = p.countChecks(ctx, c)
		case p.webhook != nil:
			err = p.countReviews(ctx, c)
		}
		if err == nil || ctx.Err() != nil {
			return err
		}
	}
	return err
}

// countChecks counts by the API server's metrics. If these cannot be read, the proof rests on its samples.
func (p *arm) countChecks(ctx context.Context, c mechanism.Count) error {
	if p.metricsDenied != "" {
		return nil
	}
	before, err := p.checks(ctx)
	if err != nil {
		return err
	}
	if err := p.try(ctx, c.Probe); err != nil {
		return p.explain(err, c.Probe)
	}
	after, err := p.checks(ctx)
	if err != nil {
		return err
	}
	return compareCounts("the API server's counts of denials", difference(before, after, c.Prefix), c.Policies, c.Bindings)
}

// countReviews counts by the reference webhook.
func (p *arm) countReviews(ctx context.Context, c mechanism.Count) error {
	before, err := p.reviewer.counts(ctx)
	if err != nil {
		return err
	}
	if err := p.try(ctx, c.Probe); err != nil {
		return p.explain(err, c.Probe)
	}
	after, err := p.reviewer.counts(ctx)
	if err != nil {
		return err
	}
	was, is := map[string]uint64{}, map[string]uint64{}
	for path, n := range before.Paths {
		was[path] = uint64(max(0, n)) //nolint:gosec // a count
	}
	for path, n := range after.Paths {
		is[path] = uint64(max(0, n)) //nolint:gosec // a count
	}
	return compareCounts("the webhook's counts of reviews", difference(was, is, ""), c.Paths, 1)
}

// checks returns the API server's counts by policy, with those of an engine.
func (p *arm) checks(ctx context.Context) (map[string]uint64, error) {
	out, err := p.apiChecks(ctx)
	if err != nil {
		return nil, err
	}
	return out, p.engineChecks(ctx, out)
}

// apiCounts reads counts from the API server's metrics.
func (p *arm) apiCounts(ctx context.Context, read func(text []byte) (map[string]uint64, error)) (map[string]uint64,
	error,
) {
	text, err := p.admin.Metrics(ctx)
	if err != nil {
		return nil, err
	}
	return read(text)
}

// difference returns by how much counts with a prefix have grown.
func difference(before, after map[string]uint64, prefix string) map[string]uint64 {
	out := map[string]uint64{}
	for name, n := range after {
		if d := n - before[name]; n > before[name] && strings.HasPrefix(name, prefix) {
			out[name] = d
		}
	}
	return out
}

// compareCounts returns an error that names the wanted ones that were not evaluated so many times, and others that were
// evaluated.
func compareCounts(whose string, got map[string]uint64, want []string, times int) error {
	var missing, twice, partly []string
	for _, name := range want {
		switch n := got[name]; {
		case n == 0:
			missing = append(missing, name)
		case n < uint64(times): //nolint:gosec // a count
			partly = append(partly, name)
		case n > uint64(times): //nolint:gosec // a count
			twice = append(twice, name)
		}
		delete(got, name)
	}
	others := slices.Sorted(maps.Keys(got))
	switch {
	case len(missing) > 0:
		return fmt.Errorf("%s say that %d of %d policies were not evaluated: %s: the cost of fewer policies would be "+
			"measured", whose, len(missing), len(want), kit.FirstOf(missing))
	case len(partly) > 0:
		return fmt.Errorf("%s say that %d of %d policies were evaluated fewer times than their %d bindings: %s", whose,
			len(partly), len(want), times, kit.FirstOf(partly))
	case len(twice) > 0 && times > 1:
		return fmt.Errorf("%s say that %d of %d policies were evaluated more often than their %d bindings: %s", whose,
			len(twice), len(want), times, kit.FirstOf(twice))
	case len(twice) > 0:
		return fmt.Errorf("%s say that %d of %d policies were evaluated more than once: %s", whose, len(twice),
			len(want), kit.FirstOf(twice))
	case len(others) > 0:
		return fmt.Errorf("%s say that %d policies were evaluated that should not be: %s", whose, len(others),
			kit.FirstOf(others))
	}
	return nil
}

// rehearse makes one call of each operation outside the load, writing ones as a dry run, and judges it as the load's
// calls are judged.
func (p *arm) rehearse(ctx context.Context) error {
	for _, o := range p.operations {
		if o.startup() {
			continue // its request is that of create-pod, which the proof has made
		}
		if err := p.rehearseOne(ctx, o); err != nil {
			return fmt.Errorf("operation %s: %w", o.name, err)
		}
	}
	return nil
}

func (p *arm) rehearseOne(ctx context.Context, o operation) error {
	w, err := p.wire(o, fmt.Sprintf("t%dr%d", p.index, p.epoch))
	if err != nil {
		return err
	}
	a, err := p.asker.send(ctx, w.Render(nil, 0), writes(o.verb))
	if err != nil {
		return err
	}
	outcome, why := w.judge.answer(a.status, a.body)
	if outcome == load.OK {
		return nil
	}
	if why != fine {
		return fmt.Errorf("%s: %s", causes(p.rightless())[why], a.message())
	}
	return errors.New(a.message())
}
