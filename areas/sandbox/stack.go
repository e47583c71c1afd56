package sandbox

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"tare/internal/design"
)

// stack is the enforcers that confine a process together, in the order in which it applies them: seccomp last, since a
// filter may refuse the calls that apply the others.
type stack []Enforcer

// findStack returns the enforcers of a level of the factor "enforcer".
func findStack(level string) (stack, error) {
	var s stack
	for name := range strings.SplitSeq(level, design.LevelMark) {
		e, err := findEnforcer(name)
		if err != nil {
			return nil, err
		}
		if s.has(name) {
			return nil, fmt.Errorf("enforcer: %s is named twice in %q", name, level)
		}
		s = append(s, e)
	}
	if len(s) > 1 && s.has(enforcerNone) {
		return nil, fmt.Errorf("enforcer: %q: %s cannot be combined with others", level, enforcerNone)
	}
	if s.has(enforcerSELinux) && s.has(enforcerAppArmor) {
		return nil, fmt.Errorf("enforcer: %q: a kernel runs SELinux or AppArmor, not both", level)
	}
	slices.SortStableFunc(s, func(a, b Enforcer) int { return last(a) - last(b) })
	return s, nil
}

func last(e Enforcer) int {
	if e.Name() == enforcerSeccomp {
		return 1
	}
	return 0
}

func (s stack) has(name string) bool {
	return slices.ContainsFunc(s, func(e Enforcer) bool { return e.Name() == name })
}

// express returns an error if one of the enforcers cannot express the policy.
func (s stack) express(p Policy) error {
	for _, e := range s {
		if err := e.Express(p); err != nil {
			return err
		}
	}
	return nil
}

// install makes what the enforcers need outside the confined process. It may complete the policy.
func (s stack) install(ctx context.Context, p *Policy, h *host) error {
	for _, e := range s {
		if err := e.Install(ctx, p, h); err != nil {
			return fmt.Errorf("prepare %s: %w", e.Name(), err)
		}
	}
	return nil
}

// confine puts the calling thread under all enforcers.
func (s stack) confine(p Policy) error {
	for _, e := range s {
		if err := e.Confine(p); err != nil {
			return fmt.Errorf("confine by %s: %w", e.Name(), err)
		}
	}
	return nil
}

// prove proves in a confined process that these enforcers are in force and no others. A profile of the user's may
// itself refuse what would show that another enforcer is absent: then only its own refusals are proved.
func (s stack) prove(ctx context.Context, p Policy, w Attempts) error {
	x := &proof{ctx: ctx, w: w}
	filters := 0
	if s.has(enforcerSeccomp) {
		filters = 1
	}
	x.wantFilters(filters)
	for _, e := range s {
		e.Prove(x, p)
	}
	for _, e := range enforcers() {
		if !p.ownProfile() && !s.has(e.Name()) {
			e.Absent(x, p)
		}
	}
	return x.end()
}

// inert reports whether none of the enforcers can affect a workload.
func (s stack) inert(p Policy, workload string) bool {
	return !slices.ContainsFunc(s, func(e Enforcer) bool {
		if u, ok := e.(policyInert); ok {
			return !u.InertUnder(p, workload)
		}
		return !e.Inert(workload)
	})
}

// describe describes the policy in force, for the report.
func (s stack) describe(p Policy) string {
	texts := make([]string, len(s))
	for i, e := range s {
		texts[i] = e.Describe(p)
	}
	return strings.Join(texts, "; and ")
}
