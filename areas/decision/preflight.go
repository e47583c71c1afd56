package decision

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"

	"tare/area"
	"tare/areas/decision/engine"
	"tare/internal/kit"
	"tare/internal/kit/oneshot"
)

// Preflight implements area.Area: it reads secrets, connects once to each decision point behind a URL, and finds
// embedded ones, which may build them unless this is only a look. It asks no question.
func (Area) Preflight(ctx context.Context, s area.Spec, env area.Env) []area.Finding {
	spec, err := area.SpecOf[*Spec](s)
	if err != nil {
		return []area.Finding{area.Fault("", err, "")}
	}
	var out []area.Finding
	tried := map[string]bool{}
	for _, t := range kit.AtLeastOne(env.Treatments) {
		p, err := spec.plan(t)
		if err != nil {
			out = append(out, area.Fault("", err, ""))
			continue
		}
		key := string(p.kind)
		if p.url != nil {
			key = p.url.String()
		}
		if tried[key] {
			continue
		}
		tried[key] = true
		if p.url == nil {
			out = append(out, findEngine(ctx, p.kind, env)...)
		} else {
			out = append(out, p.preflight(ctx, env)...)
		}
	}
	refused := compileBundles(ctx, spec, env)
	if out = append(out, refused...); env.Look && len(refused) == 0 {
		out = append(out, spec.findDifferences(env.Treatments)...)
	}
	return out
}

// compileBundles has the engines compile the bundles that only they can, if they are there, and reports what they would
// not load.
func compileBundles(ctx context.Context, spec *Spec, env area.Env) (out []area.Finding) {
	compiled := map[string]bool{}
	for _, t := range env.Treatments {
		p, err := spec.plan(t)
		if err != nil || p.url != nil || p.kind != engine.OPA && p.kind != engine.OpenFGA || p.bundle == "" ||
			compiled[p.bundle] {
			continue
		}
		compiled[p.bundle] = true
		if there, err := engine.Seek(ctx, p.kind, host(env)); !there || err != nil {
			return out // it has been reported
		}
		launch, err := engine.Find(ctx, p.kind, host(env))
		if err == nil {
			err = launch.Check(ctx, p.bundle, p.spec.Embedded != nil && p.spec.Embedded.RegoV0)
		}
		if err != nil {
			fault := kit.FaultIn(t, "bundle", fmt.Errorf("bundle: %w", err))
			fault.Hint = cmp.Or(hintOf(err), fault.Hint)
			out = append(out, fault)
		}
	}
	return out
}

// hintOf is what to do about a bundle that OPA does not compile; empty: tare does not know.
func hintOf(err error) string {
	var rejected *engine.Rejection
	if !errors.As(err, &rejected) || len(rejected.Problems) == 0 {
		return ""
	}
	if !slices.ContainsFunc(rejected.Problems, func(says string) bool {
		place, _, _ := strings.Cut(says, ": ")
		return !strings.Contains(place, "_test.rego")
	}) {
		return "these files are tests, which decide nothing unless a rule reads them, and OPA loads them with the " +
			"policies: name a copy of the folder without them"
	}
	if slices.ContainsFunc(rejected.Problems, func(says string) bool {
		return strings.Contains(says, "`if` keyword is required") || strings.Contains(says, "`contains` keyword is required")
	}) {
		return "if it was written for OPA before 1.0: embedded: {engine: opa, rego_v0: true}"
	}
	return ""
}

// findEngine reports an engine that this host does not support and, for a look, one that a run would build.
func findEngine(ctx context.Context, k engine.Kind, env area.Env) []area.Finding {
	there, err := find(ctx, k, env)
	switch {
	case err != nil:
		return []area.Finding{findingOf(err)}
	case !there:
		return []area.Finding{{
			Path: "embedded.engine", Severity: area.Info,
			Message: fmt.Sprintf("engine %s is not there yet: a run builds it, once, which takes up to a few minutes", k),
		}}
	}
	return nil
}

// find finds an engine, and builds it if necessary. For a look it builds nothing, and there reports whether it is
// built.
func find(ctx context.Context, k engine.Kind, env area.Env) (there bool, err error) {
	if env.Look {
		return engine.Seek(ctx, k, host(env))
	}
	_, err = engine.Find(ctx, k, host(env))
	return err == nil, err
}

// preflight reads what calls will need, and connects once.
func (p *plan) preflight(ctx context.Context, env area.Env) (out []area.Finding) {
	if t := p.spec.TLS; t != nil && t.Insecure {
		out = append(out, kit.WarnInsecure())
	}
	s, err := p.open(ctx, env.Getenv)
	if err != nil {
		return append(out, area.Fault("", err,
			"set the variable or write the file, see that tare may read it, and that the host's name is right"))
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	conn, err := oneshot.Client{Addr: s.Addr}.Dial(ctx) // TCP only: what TLS says comes with the first question
	if err == nil {
		err = conn.Close()
	}
	if errors.Is(err, syscall.ECONNREFUSED) {
		return append(out, area.Finding{
			Path: "url", Severity: area.Warning, Message: fmt.Sprintf("nobody listens at %s yet", p.url.Host),
			Hint: fmt.Sprintf("a run waits for it, up to %v: start it, or see that the url has its port", readyWithin),
		})
	}
	if err != nil {
		if f, ok := kit.ExplainTLS(err); ok {
			return append(out, f)
		}
		if f, ok := kit.ExplainDial(p.url.Host, err); ok {
			return append(out, f)
		}
		return append(out, area.Fault("url", fmt.Errorf("cannot connect to %s: %w", p.url.Host, err),
			"see that the decision point runs, and that this host can reach it"))
	}
	return append(out, kit.Reached(p.url.Host, s.Addr, env)...)
}
