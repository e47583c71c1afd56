package record

import "slices"

// addSlice keeps a slice small in memory, since a long run has thousands: it trims the lists' capacity, and shares
// names with the previous slice.
func (t *Trial) addSlice(x Slice) {
	var before Slice
	if n := len(t.Slices); n > 0 {
		before = t.Slices[n-1]
	}
	shareName(&x.Treatment, before.Treatment)
	x.Operations, x.Samples = exact(x.Operations), exact(x.Samples)
	for i := range x.Operations {
		o := &x.Operations[i]
		if i < len(before.Operations) {
			shareName(&o.Operation, before.Operations[i].Operation)
		}
		o.Outcomes = exact(o.Outcomes)
		for k := range o.Outcomes {
			o.Outcomes[k].Causes = exact(o.Outcomes[k].Causes)
		}
	}
	for i := range x.Samples {
		if i < len(before.Samples) {
			s, b := &x.Samples[i], &before.Samples[i]
			shareName(&s.Subject, b.Subject)
			shareName(&s.Metric, b.Metric)
			shareName(&s.Part, b.Part)
		}
	}
	t.Slices = append(t.Slices, x)
}

// shareName makes equal names share their storage.
func shareName(s *string, kept string) {
	if *s == kept {
		*s = kept
	}
}

// exact returns s, or a copy of it without spare capacity.
func exact[T any](s []T) []T {
	if len(s) == cap(s) {
		return s
	}
	return slices.Clip(append(make([]T, 0, len(s)), s...))
}
