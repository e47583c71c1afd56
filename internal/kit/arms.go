package kit

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
	// Ready reports whether Target.Prepare has succeeded.
	Ready() bool
	// Close removes what Prepare has made, even if Prepare failed.
	Close(ctx context.Context) error
}

// Arms holds the arms of a target. The zero value is empty. Several goroutines may use it.
type Arms[A Arm] struct {
	mu          sync.Mutex
	byTreatment map[string]A
}

// Add makes the arm of a treatment, with an index from 0 that is unique within the target. Close will close it.
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

// Of returns the arm of a treatment. It fails unless the treatment has been prepared.
func (s *Arms[A]) Of(t design.Treatment) (a A, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if found, ok := s.byTreatment[t.ID]; ok && found.Ready() {
		return found, nil
	}
	return a, fmt.Errorf("treatment %q is not prepared", t.ID)
}

// Ready returns the prepared arms, in the order of their treatments' IDs.
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

// Close closes and removes all arms, concurrently.
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
