package sandbox

import (
	"context"
	"errors"
	"slices"

	"tare/area"
	"tare/areas/sandbox/bpflsm"
)

// host is what the enforcers of a run keep in the kernel, outside of confined processes.
type host struct {
	run     string // names what is made
	journal area.Journal
	undo    []func(context.Context) error

	programs   *bpflsm.Programs // nil: not loaded
	slots      uint32           // that have rules
	namespaces []string         // AppArmor's that are journaled
	planted    bool             // a program with a known cost is attached
}

// onTrialHost installs the policy for a trial before a run, does something, and removes what was installed.
func onTrialHost(ctx context.Context, s stack, p *Policy, do func(*host) error) error {
	h := &host{run: trialRun(), journal: trialJournal{}}
	err := s.install(ctx, p, h)
	if err == nil {
		err = do(h)
	}
	return errors.Join(err, h.close(context.WithoutCancel(ctx)))
}

// onClose registers what close does, the latest first.
func (h *host) onClose(do func(context.Context) error) { h.undo = append(h.undo, do) }

// close removes what the enforcers made. What failed is tried again by the next call.
func (h *host) close(ctx context.Context) error {
	var errs []error
	var failed []func(context.Context) error
	for _, do := range slices.Backward(h.undo) {
		if err := do(ctx); err != nil {
			errs = append(errs, err)
			failed = append(failed, do)
		}
	}
	slices.Reverse(failed)
	h.undo = failed
	return errors.Join(errs...)
}
