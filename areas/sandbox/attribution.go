package sandbox

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"tare/areas/sandbox/bpflsm"
)

// attributedCalls is how many calls of an operation are made to attribute its cost to BPF programs.
const attributedCalls = 50

// attribute makes a few calls of each micro-workload while the kernel counts the runs of BPF programs, and notes which
// of them ran how often and for how long. It is a pass of its own, before anything is timed, since counting costs time
// itself. It is made once for each treatment with BPF.
func (t *target) attribute(ctx context.Context, a *arm, s *sample) (err error) {
	if t.host.programs == nil || a.attributed || !a.plan.stack.has(enforcerBPF) {
		return nil
	}
	a.attributed = true
	counting, err := bpflsm.CountRuns()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, counting.Close()) }()
	for _, o := range t.spec.operations(a.plan) {
		if !o.micro {
			continue
		}
		before, err := t.host.programs.Stats()
		if err != nil {
			return err
		}
		if _, err := o.run(ctx, s, attributedCalls); err != nil {
			return err
		}
		after, err := t.host.programs.Stats()
		if err != nil {
			return err
		}
		if text := runsBetween(before, after); text != "" {
			t.mu.Lock()
			t.attributions = append(t.attributions, fmt.Sprintf("%s: a call of %s runs %s", a.treatment.ID, o.name, text))
			t.mu.Unlock()
		}
	}
	return nil
}

// runsBetween says which programs ran at least once in two calls, such as "file_open 1.0 times for 412 ns".
func runsBetween(before, after []bpflsm.ProgramStats) string {
	var parts []string
	for i, b := range before {
		runs := after[i].Runs - b.Runs
		if runs < attributedCalls/2 {
			continue // of other processes
		}
		parts = append(parts, fmt.Sprintf("%s %.1f times for %.0f ns", b.Hook, float64(runs)/attributedCalls,
			float64((after[i].Time-b.Time).Nanoseconds())/attributedCalls))
	}
	return strings.Join(parts, ", ")
}

// attributionNotes returns what attribute found.
func (t *target) attributionNotes() []string {
	if len(t.attributions) == 0 {
		return nil
	}
	return append([]string{fmt.Sprintf("BPF programs by the kernel's own count over %d calls, which costs time itself "+
		"and includes other processes' calls; a nanosecond of an emulated machine is an instruction", attributedCalls)},
		t.attributions...)
}
