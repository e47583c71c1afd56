package sandbox

import (
	"errors"

	"tare/area"
	"tare/internal/design"
	"tare/internal/load"
)

// guardedProcessors is how many processors a lab VM has at least in which trespasses are asked: races need several.
const guardedProcessors = 2

// processors returns how many processors a machine has that run at the same time, one for each worker; 0: it counts
// instructions.
func (t *labTarget) processors(kind labKind) int {
	if !t.env.Trespasses {
		return 0
	}
	n := guardedProcessors
	for _, tr := range t.env.Treatments {
		if k, err := t.kindOf(tr); err == nil && k == kind {
			p, _ := t.spec.plan(tr) // kindOf has returned the error
			n = max(n, p.workers)
		}
	}
	return n
}

// Trespasses is area.Can.Trespass.
func (t *labTarget) Trespasses(tr design.Treatment) ([]load.Operation, error) {
	m, err := t.machine(tr)
	if err != nil {
		return nil, err
	}
	return m.target.Trespasses(inGuest(tr))
}

// Conditions is area.Can.Conditions.
func (t *labTarget) Conditions(tr design.Treatment) []area.Condition {
	m, err := t.machine(tr)
	if err != nil {
		return nil
	}
	return m.target.Conditions(inGuest(tr))
}

// checkGuarded reports what guard cannot ask of a sandbox.
func (s *Spec) checkGuarded(treatments []design.Treatment) (out []area.Finding) {
	if !s.guarded {
		return nil
	}
	fault := func(path, text, hint string) area.Finding { return area.Fault(path, errors.New(text), hint) }
	if len(s.Workloads) == 0 || len(s.Commands)+len(s.Real)+len(s.SetUp) > 0 {
		out = append(out, fault("", "guard mixes what must be refused into the calls of workloads, and into nothing else",
			"workloads: [open, syscall], without commands, real and setup"))
	}
	for _, t := range treatments {
		p, err := s.plan(t)
		switch {
		case err != nil: // Validate reports it
		case p.stack.has(enforcerNone):
			out = append(out, fault("", "refuses nothing", "leave it out, or name an enforcer").In(t))
		case p.planted.part > 0 || p.others > 0 || p.program.attached:
			out = append(out, fault("", "planted and others belong to compare and scale", "leave them out").In(t))
		}
	}
	return out
}

// createsGuarded lists the processes of guard, for the plan.
func (s *Spec) createsGuarded() []string {
	return []string{
		"a worker on each processor, or as many as the factor workers says, for one treatment at a time; each is " +
			"irrevocably confined and ends with its treatment, or under the condition " + area.Restart,
		"under the condition " + area.Starved + " two more such processes on each of their processors",
	}
}

// Can implements area.Target.
func (t *labTarget) Can() area.Can {
	return area.Can{
		Enter: t.Enter, Leave: t.Leave, Probes: t.Probes, Notes: t.Notes, Trespass: t.Trespasses,
		Conditions: t.Conditions,
	}
}
