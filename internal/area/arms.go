package area

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"tare/internal/design"
)

// An Arm is what a target has set up for one treatment.
type Arm interface {
	// Ready reports whether Target.Prepare has gone through.
	Ready() bool
	// Close takes back what Prepare has made, also if it has not gone through.
	Close(ctx context.Context) error
}

// Arms are the arms of a target, side by side. The zero Arms are none. Several goroutines may use them.
type Arms[A Arm] struct {
	mu          sync.Mutex
	byTreatment map[string]A
}

// Add makes the arm of a treatment with a number that is unique within the target, from 0. From now on Close finds it.
func (s *Arms[A]) Add(t design.Treatment, create func(index int) A) (a A, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, twice := s.byTreatment[t.ID]; twice {
		return a, fmt.Errorf("treatment %q is prepared already", t.ID)
	}
	if s.byTreatment == nil {
		s.byTreatment = map[string]A{}
	}
	a = create(len(s.byTreatment))
	s.byTreatment[t.ID] = a
	return a, nil
}

// Of is the arm of a treatment that has been prepared.
func (s *Arms[A]) Of(t design.Treatment) (a A, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if found, ok := s.byTreatment[t.ID]; ok && found.Ready() {
		return found, nil
	}
	return a, fmt.Errorf("treatment %q is not prepared", t.ID)
}

// Ready are the arms that have been prepared, in the order of their treatments' IDs.
func (s *Arms[A]) Ready() (out []A) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range slices.Sorted(maps.Keys(s.byTreatment)) {
		if a := s.byTreatment[id]; a.Ready() {
			out = append(out, a)
		}
	}
	return out
}

// Close closes all arms at the same time, and forgets them.
func (s *Arms[A]) Close(ctx context.Context) error {
	s.mu.Lock()
	arms := slices.Collect(maps.Values(s.byTreatment))
	s.byTreatment = nil
	s.mu.Unlock()
	errs := make([]error, len(arms))
	var wg sync.WaitGroup
	for i, a := range arms {
		wg.Go(func() { errs[i] = a.Close(ctx) })
	}
	wg.Wait()
	return errors.Join(errs...)
}
