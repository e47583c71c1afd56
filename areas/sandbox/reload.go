package sandbox

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"tare/area"
	"tare/areas/sandbox/apparmor"
	"tare/areas/sandbox/bpflsm"
	"tare/internal/design"
)

// reloadPause is how long a policy holds before it is replaced again.
const reloadPause = 10 * time.Millisecond

// A replacer is an Enforcer whose policy can be replaced while it confines processes.
type replacer interface {
	// Replacement returns what replaces the policy of the workers: by the one that was installed or, if further is set, by
	// one that also refuses something that no workload does.
	Replacement(ctx context.Context, a *arm, h *host) (replacement, error)
}

// A replacement replaces a policy. What the policy refuses must be refused meanwhile too.
type replacement func(further bool) error

var (
	_ replacer = appArmor{}
	_ replacer = bpfRules{}
)

// replaceable returns the enforcers of the stack whose policy can be replaced.
func (s stack) replaceable() (names []string) {
	for _, e := range s {
		if _, ok := e.(replacer); ok {
			names = append(names, e.Name())
		}
	}
	return names
}

// WhyNot is area.Says.WhyNot: not every enforcer's policy can be replaced.
func (s *Spec) WhyNot(name string, treatments []design.Treatment) string {
	if name != area.Reload {
		return ""
	}
	for _, t := range treatments {
		if p, err := s.plan(t); err == nil && len(p.stack.replaceable()) == 0 {
			return fmt.Sprintf("treatment %q: a seccomp filter and a Landlock ruleset hold until the process ends, and tare "+
				"does not replace SELinux's policy; only profiles of apparmor and rules of bpf are replaced", t.ID)
		}
	}
	return ""
}

// further returns the policy with one further rule of each kind, which no workload meets.
func (p Policy) further() Policy {
	p.Rules++
	return p
}

// Replacement implements replacer. A profile of the user's is replaced by itself only.
func (appArmor) Replacement(ctx context.Context, a *arm, _ *host) (replacement, error) {
	p := a.plan.policy
	own := apparmor.Loaded{Label: *p.AppArmor, Compiled: p.compiled}
	changed := own
	if p.AppFile == nil {
		var err error
		if changed, err = own.Changed(ctx, p.further().appArmorModel()); err != nil {
			return nil, err
		}
	}
	return func(further bool) error {
		if further {
			return changed.Replace()
		}
		return own.Replace()
	}, nil
}

// Replacement implements replacer: the rules are written where no profile names them, and then all workers are moved to
// them. So each program reads one set of rules.
func (bpfRules) Replacement(_ context.Context, a *arm, h *host) (replacement, error) {
	p := a.plan.policy
	if p.BPF == nil {
		return nil, errors.New("an unconfined process has no rules to replace")
	}
	if a.spare == nil {
		slot := h.slots
		if slot >= bpflsm.Slots {
			return nil, area.WithHint(fmt.Errorf("all %d sets of BPF rules are in use, and a replacement needs one more",
				bpflsm.Slots), "guard fewer treatments with bpf in one file")
		}
		h.slots++
		a.spare = &slot
	}
	return func(further bool) error {
		slot, model := p.BPF.Slot, p.bpfModel()
		if further {
			slot, model = *a.spare, p.further().bpfModel()
		}
		errs := []error{h.programs.SetRules(slot, model)}
		for _, s := range append([]*sample{a.sample}, a.sample.peers...) {
			errs = append(errs, s.worker.profile.Move(slot))
		}
		return errors.Join(append(errs, bpflsm.Settle())...)
	}, nil
}

// reloading is the condition that the policies of an arm are replaced, if they can be.
func (t *target) reloading(a *arm) []area.Condition {
	names := a.plan.stack.replaceable()
	if len(names) == 0 {
		return nil
	}
	does := fmt.Sprintf("the policy of %s is replaced by one with further rules, and back, at most every %v",
		strings.Join(names, " and "), reloadPause)
	if a.plan.policy.AppFile != nil {
		does = "the profile of apparmor is loaded again, at most every " + reloadPause.String()
	}
	return []area.Condition{{Name: area.Reload, Does: does, Impose: func(ctx context.Context) (func(context.Context) error,
		error,
	) {
		var all []replacement
		for _, e := range a.plan.stack {
			r, ok := e.(replacer)
			if !ok {
				continue
			}
			replace, err := r.Replacement(ctx, a, t.host)
			if err != nil {
				return nil, fmt.Errorf("prepare another policy of %s: %w", e.Name(), err)
			}
			all = append(all, replace)
		}
		return a.reload(ctx, all...)
	}}}
}

// reload replaces the policies of an arm again and again, until lift is called, which puts back what was installed.
func (a *arm) reload(ctx context.Context, all ...replacement) (lift func(context.Context) error, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	replace := func(further bool) error {
		var errs []error
		for _, one := range all {
			errs = append(errs, one(further))
		}
		return errors.Join(errs...)
	}
	stop, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		pause := time.NewTicker(reloadPause)
		defer pause.Stop()
		for further := true; ; further = !further {
			if err := replace(further); err != nil {
				ended <- err
				return
			}
			a.reloaded.Add(1)
			select {
			case <-pause.C:
			case <-stop:
				ended <- nil
				return
			}
		}
	}()
	return func(context.Context) error {
		close(stop)
		return errors.Join(<-ended, replace(false))
	}, nil
}

// reloadNotes says how often policies were replaced.
func (t *target) reloadNotes() (notes []string) {
	for _, a := range t.order {
		if n := a.reloaded.Load(); n > 0 {
			notes = append(notes, fmt.Sprintf("%s: its policy was replaced %d times under load", a.treatment.ID, n))
		}
	}
	return notes
}
