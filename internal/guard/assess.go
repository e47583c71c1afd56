package guard

import (
	"slices"
	"time"

	"tare/internal/load"
	"tare/internal/stat"
)

// Level is the level of all intervals.
const Level = 0.95

// An Operation is what calls are of: an operation that the control must allow, or with Twin a trespass. Breaches are
// those of its causes that break the control although it must allow the call.
type Operation struct {
	Name, Twin string
	Breaches   []int
}

// breaks reports whether a call that must be allowed was answered with what is somebody else's.
func (o *Operation) breaks(c *load.Call) bool {
	return c.Outcome == load.Wrong && c.Cause >= load.OwnCauses &&
		slices.Contains(o.Breaches, int(c.Cause-load.OwnCauses))
}

// Trespasses counts those of a point by how they ended. Unsent ones never reached the control.
type Trespasses struct {
	Refused, Permitted, Undecided, Unsent uint64
}

// Decided is how many the control decided.
func (t Trespasses) Decided() uint64 { return t.Refused + t.Permitted }

// Share is the share of the decided trespasses that were permitted, with its exact interval; ok is false if none was
// decided.
func (t Trespasses) Share() (e stat.Estimate, ok bool) {
	return stat.BinomialInterval(t.Permitted, t.Decided(), Level)
}

// Add adds the counts of another point.
func (t *Trespasses) Add(o Trespasses) {
	t.Refused += o.Refused
	t.Permitted += o.Permitted
	t.Undecided += o.Undecided
	t.Unsent += o.Unsent
}

// Legitimate counts the calls of a point that the control must allow. Wrong ones got an answer other than the expected
// one: the control refused what it must allow, or answered somebody else. Foreign are those of the wrong ones that got
// what is somebody else's: breaches.
type Legitimate struct {
	Served, Wrong, Failed, Unsent uint64
	Foreign                       uint64
}

// Due is how many were offered.
func (l Legitimate) Due() uint64 { return l.Served + l.Wrong + l.Failed + l.Unsent }

// Share is the share of the offered calls that were served, with its exact interval.
func (l Legitimate) Share() (e stat.Estimate, ok bool) {
	return stat.BinomialInterval(l.Served, l.Due(), Level)
}

// A Seen is what the calls of a point show.
type Seen struct {
	Point
	Trespasses  Trespasses
	ByOperation map[string]Trespasses // by trespass
	Legitimate  Legitimate
	// FirstBreach and LastBreach are when the first and the last trespass was permitted, since the condition was begun or
	// the point began; nil: none was.
	FirstBreach, LastBreach *time.Duration
	// Recovery is how long after the condition had ended legitimate calls still failed; nil: there was no condition, or it
	// did not end. If they failed up to the end of the point, Recovered is false.
	Recovery  *time.Duration
	Recovered bool
}

// settling is how long before its end a point must have served all legitimate calls to count as recovered.
const settling = time.Second

// Assess computes what the calls show that were due during a point.
func Assess(p Point, ops []Operation, calls load.Log) Seen {
	s := Seen{Point: p, ByOperation: map[string]Trespasses{}}
	origin, lastFailure := p.Segment.Start, time.Duration(-1)
	if p.Condition != nil {
		origin = p.Condition.Begun
	}
	for c := range calls.Due(p.Segment.Start, p.Segment.End) {
		if int(c.Operation) >= len(ops) {
			continue // of a damaged record
		}
		if op := ops[c.Operation]; op.Twin != "" {
			t := s.ByOperation[op.Name]
			t.count(c, p.Read)
			s.ByOperation[op.Name] = t
			if c.Outcome == load.Permitted && !c.Outstanding(p.Read) {
				s.breach(c, origin)
			}
		} else if !s.Legitimate.count(c, p.Read) {
			lastFailure = max(lastFailure, c.Intended)
			if op.breaks(c) && !c.Outstanding(p.Read) {
				s.Legitimate.Foreign++
				s.breach(c, origin)
			}
		}
	}
	for _, t := range s.ByOperation {
		s.Trespasses.Add(t)
	}
	if c := p.Condition; c != nil && c.Ended > 0 {
		s.Recovery = new(max(0, lastFailure-c.Ended))
		s.Recovered = lastFailure < p.Segment.End-settling
	}
	return s
}

func (t *Trespasses) count(c *load.Call, read time.Duration) {
	switch {
	case c.Sent == 0:
		t.Unsent++
	case c.Outstanding(read):
		t.Undecided++
	case c.Outcome == load.Denied:
		t.Refused++
	case c.Outcome == load.Permitted:
		t.Permitted++
	default:
		t.Undecided++
	}
}

// count reports whether the call was served.
func (l *Legitimate) count(c *load.Call, read time.Duration) bool {
	switch {
	case c.Sent == 0:
		l.Unsent++
	case c.Outstanding(read):
		l.Failed++
	case c.Outcome.Good():
		l.Served++
		return true
	case c.Outcome == load.Wrong:
		l.Wrong++
	default:
		l.Failed++
	}
	return false
}

// breach records when there was one.
func (s *Seen) breach(c *load.Call, origin time.Duration) {
	at := c.Done - origin
	if s.FirstBreach == nil || at < *s.FirstBreach {
		s.FirstBreach = new(at)
	}
	if s.LastBreach == nil || at > *s.LastBreach {
		s.LastBreach = new(at)
	}
}
