package sandbox

import (
	"errors"

	"tare/internal/area"
	"tare/internal/design"
)

// checkGuarded reports what guard cannot ask of a sandbox.
func (s *Spec) checkGuarded(treatments []design.Treatment) (out []area.Finding) {
	if !s.guarded {
		return nil
	}
	fault := func(path, text, hint string) area.Finding { return area.Fault(path, errors.New(text), hint) }
	if s.On != "" && s.On != onHost {
		out = append(out, fault("on", "guard asks workers on this host: the calls of a lab VM are made in batches",
			"leave target.on out"))
	}
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
