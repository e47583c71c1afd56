package cli

import (
	"context"
	"fmt"
	"slices"

	"tare/area"
	"tare/internal/config"
	"tare/internal/design"
	"tare/internal/question"
	"tare/internal/record"
)

// trim leaves out the treatments that this host does not support, and reports them on the terminal and in left for the
// record. It fails if nothing is left to compare.
func (a *app) trim(ctx context.Context, ar area.Area, e *config.Experiment, look bool) (kept *config.Experiment,
	left []string, err error,
) {
	trim := ar.Parts().Trim
	if trim == nil {
		return e, nil, nil
	}
	env, err := a.areaEnv(".")
	if err != nil {
		return nil, nil, err
	}
	env.Look = look
	all := e.Treatments()
	treatments, findings := trim(ctx, e.Target, all, env)
	if len(treatments) == len(all) {
		return e, nil, nil // Preflight reports other findings
	}
	for _, f := range findings {
		a.tellFinding(f)
		left = append(left, f.Message)
	}
	if why := unanswerable(e, treatments); why != "" {
		return nil, nil, &exit{code: ExitError, cause: fmt.Errorf("this host cannot run the experiment: %s", why)}
	}
	return e.Keeping(treatments), left, nil
}

// unanswerable says why an experiment has no answer with only these treatments; "" if it has one.
func unanswerable(e *config.Experiment, treatments []design.Treatment) string {
	switch {
	case len(treatments) == 0:
		return "none of its treatments is available"
	case e.Baseline != nil && !slices.ContainsFunc(treatments, func(t design.Treatment) bool { return t.Baseline }):
		return "its baseline is not available"
	case len(treatments) < question.Of(e.Question).LeastTreatments:
		return "only its baseline is available"
	}
	return ""
}

// asPlanned keeps the treatments that a record was planned with: a continued run does not change them, even if others
// are available by now.
func asPlanned(e *config.Experiment, rec *record.Record) *config.Experiment {
	var kept []design.Treatment
	for _, t := range e.Treatments() {
		if slices.ContainsFunc(rec.Plan.Treatments, func(p design.Treatment) bool { return p.ID == t.ID }) {
			kept = append(kept, t)
		}
	}
	out := e.Keeping(kept)
	if rec.Plan.Load.Turns == nil { // a record holds blocks of one kind
		out.Load.Turns = config.TurnsOff
	}
	return out
}
