package guard

import (
	"slices"
	"time"

	"tare/internal/hist"
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

// Trespasses counts those of a point by how they ended. Unsent ones never reached the control. Unclear are those of the
// undecided ones whose answer was no error, and neither a permit nor a refusal; Errors those that were answered with an
// error, and so were not permitted. Unanswered are those that were sent and got no answer where RefusesSooner: they may
// have been permitted.
type Trespasses struct {
	Refused, Permitted, Undecided, Unsent uint64
	Unclear, Errors, Unanswered           uint64
}

// Unclear reports whether the answer to a trespass was no error, and neither a permit nor a refusal: what its reader
// takes it for decides whether it was a breach.
func Unclear(o load.Outcome, status uint16) bool {
	return o == load.Wrong && (status == 0 || status/100 == 2)
}

// Decided is how many the control decided.
func (t Trespasses) Decided() uint64 { return t.Refused + t.Permitted }

// RefusesSooner reports whether calls that the control must allow go unanswered at least twice as often as trespasses,
// of both of which so many got no answer: then permits take longer than refusals, and a trespass without an answer may
// have been permitted. Where both wait for nearly the same, a missing answer tells nothing.
func RefusesSooner(unanswered, trespasses, legitimate, of uint64) bool {
	few, ok := stat.BinomialInterval(unanswered, trespasses, Level)
	many, known := stat.BinomialInterval(legitimate, of, Level)
	return ok && known && many.Lo > 2*few.Hi
}

// Share is the share of the decided trespasses that were permitted, with its exact interval, whose upper end takes the
// unanswered ones as permitted; ok is false if none was decided.
func (t Trespasses) Share() (e stat.Estimate, ok bool) {
	e, ok = stat.BinomialInterval(t.Permitted, t.Decided(), Level)
	if t.Unanswered > 0 {
		most, _ := stat.BinomialInterval(t.Permitted+t.Unanswered, t.Decided()+t.Unanswered, Level)
		e.Hi = most.Hi
	}
	return e, ok
}

// Add adds the counts of another point.
func (t *Trespasses) Add(o Trespasses) {
	t.Refused += o.Refused
	t.Permitted += o.Permitted
	t.Undecided += o.Undecided
	t.Unsent += o.Unsent
	t.Unclear += o.Unclear
	t.Errors += o.Errors
	t.Unanswered += o.Unanswered
}

// Legitimate counts the calls of a point that the control must allow. Wrong ones got an answer other than the expected
// one: the control refused what it must allow, or answered somebody else. Foreign are those of the wrong ones that got
// what is somebody else's: breaches. TurnedAway are those of the failed ones that were refused as too many.
type Legitimate struct {
	Served, Wrong, Failed, Unsent uint64
	Foreign, TurnedAway           uint64
}

// Due is how many were offered.
func (l Legitimate) Due() uint64 { return l.Served + l.Wrong + l.Failed + l.Unsent }

// answered are the same calls, with those served that got a wrong answer, or were turned away.
func (l Legitimate) answered() Legitimate {
	l.Served, l.Failed = l.Served+l.Wrong+l.TurnedAway, l.Failed-l.TurnedAway
	l.Wrong, l.TurnedAway = 0, 0
	return l
}

// add adds the counts of another point.
func (l *Legitimate) add(o Legitimate) {
	l.Served += o.Served
	l.Wrong += o.Wrong
	l.Failed += o.Failed
	l.Unsent += o.Unsent
	l.Foreign += o.Foreign
	l.TurnedAway += o.TurnedAway
}

// Share is the share of the offered calls that were served, with its exact interval.
func (l Legitimate) Share() (e stat.Estimate, ok bool) {
	return stat.BinomialInterval(l.Served, l.Due(), Level)
}

// A Seen is what the calls of a point show.
type Seen struct {
	Point
	Trespasses  Trespasses
	ByOperation map[string]Trespasses // by trespass
	// Slices is in how many half seconds trespasses were decided, and Struck in how many of them some were permitted.
	Slices, Struck int
	Legitimate     Legitimate
	// Unanswered are the failed ones of Legitimate that got no answer at all.
	Unanswered uint64
	// Median is the median response of the legitimate calls that were served, without the generator's own delay of each;
	// 0: none was served.
	Median time.Duration
	// Late says that the generator could not keep up with the rate, so that what the target did there shows nothing of it.
	// The caller sets it from the audit of the calls.
	Late bool
	// FirstBreach and LastBreach are when the first and the last trespass was permitted, since the condition was begun or
	// the point began; nil: none was.
	FirstBreach, LastBreach *time.Duration
	// During are the trespasses that were under way while the condition was in force, decided if they were by its end;
	// none of a condition that was over in a moment. Afterwards are those that were due or decided after its end.
	During, Afterwards Trespasses
	// Recovery is how long after the condition had ended legitimate calls still failed; nil: there was no condition, or it
	// did not end. If they failed up to the end of the point, Recovered is false.
	Recovery  *time.Duration
	Recovered bool
}

// slice is how long a slice of time is: breaches within one may have one reason, such as a pause or a reload.
const slice = time.Second / 2

// settling is how long before its end a point must have served all legitimate calls to count as recovered.
const settling = time.Second

// moment is how long a condition must be in force for trespasses to be under it. One that is held for less has ended by
// itself: as soon as it was in force.
const moment = 100 * time.Millisecond

// Assess computes what the calls show that were due during a point.
func Assess(p Point, ops []Operation, calls load.Log) Seen {
	s := Seen{Point: p, ByOperation: map[string]Trespasses{}}
	lastFailure := time.Duration(-1)
	decided, struck := map[time.Duration]bool{}, map[time.Duration]bool{}
	var response hist.Sorter
	for c := range calls.Due(p.Segment.Start, p.Segment.End) {
		if int(c.Operation) >= len(ops) {
			continue // of a damaged record
		}
		if op := ops[c.Operation]; op.Twin != "" {
			var one Trespasses
			one.count(c, p.Read)
			t, at := s.ByOperation[op.Name], (c.Intended-p.Segment.Start)/slice
			t.Add(one)
			s.ByOperation[op.Name] = t
			s.under(c, one)
			if one.Decided() > 0 {
				decided[at] = true
			}
			if one.Permitted > 0 {
				struck[at] = true
				s.breach(c)
			}
		} else if s.Legitimate.count(c, p.Read) {
			response.Add(int64(max(0, c.Response()-c.Lateness())))
		} else {
			lastFailure = max(lastFailure, c.Intended)
			if c.Sent != 0 && (c.Outstanding(p.Read) || c.Outcome == load.Timeout || c.Outcome == load.ConnFailed) {
				s.Unanswered++
			}
			if op.breaks(c) && !c.Outstanding(p.Read) {
				s.Legitimate.Foreign++
				s.breach(c)
			}
		}
	}
	for _, t := range s.ByOperation {
		s.Trespasses.Add(t)
	}
	if t := &s.Trespasses; !RefusesSooner(t.Unanswered, t.Decided()+t.Undecided, s.Unanswered,
		s.Legitimate.Due()-s.Legitimate.Unsent) {
		for name, n := range s.ByOperation {
			n.Unanswered = 0
			s.ByOperation[name] = n
		}
		t.Unanswered, s.During.Unanswered, s.Afterwards.Unanswered = 0, 0, 0
	}
	s.Slices, s.Struck = len(decided), len(struck)
	if all := response.Sorted(); all.Len() > 0 {
		s.Median = time.Duration(all.At(stat.NearestRank(all.Len(), 0.5) - 1))
	}
	s.recovered(lastFailure)
	return s
}

// under counts a trespass that was under way while a condition was in force, or after its end. What was answered after
// the end was not decided under the condition: a target that is stopped answers when it goes on.
func (s *Seen) under(c *load.Call, one Trespasses) {
	k := s.Condition
	if k == nil || k.Ended == 0 {
		return
	}
	from, answered := k.Imposed, s.Read
	if k.Ended-from < moment {
		from = k.Begun
	}
	if !c.Outstanding(s.Read) {
		answered = c.Done
	}
	late := one.Decided() > 0 && answered > k.Ended
	if late || c.Intended > k.Ended {
		s.Afterwards.Add(one)
	}
	switch {
	case k.Ended-from < moment || c.Intended > k.Ended || answered < from:
	case late:
		s.During.Undecided++
	default:
		s.During.Add(one)
	}
}

// recovered records how long after a condition calls still failed that must be allowed.
func (s *Seen) recovered(lastFailure time.Duration) {
	if c := s.Condition; c != nil && c.Ended > 0 {
		s.Recovery = new(max(0, lastFailure-c.Ended))
		s.Recovered = lastFailure < s.Segment.End-settling
	}
}

func (t *Trespasses) count(c *load.Call, read time.Duration) {
	switch {
	case c.Sent == 0:
		t.Unsent++
	case c.Outstanding(read):
		t.Undecided++
		t.Unanswered++
	case c.Outcome == load.Denied:
		t.Refused++
	case c.Outcome == load.Permitted:
		t.Permitted++
	default:
		t.Undecided++
		switch {
		case Unclear(c.Outcome, c.Status):
			t.Unclear++
		case c.Outcome != load.Timeout && c.Outcome != load.ConnFailed:
			t.Errors++
		default:
			t.Unanswered++
		}
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
		if c.Outcome == load.Refused {
			l.TurnedAway++
		}
	}
	return false
}

// breach records when there was one.
func (s *Seen) breach(c *load.Call) {
	at := c.Done - s.Segment.Start
	if s.Condition != nil {
		at = c.Done - s.Condition.Begun
	}
	if s.FirstBreach == nil || at < *s.FirstBreach {
		s.FirstBreach = new(at)
	}
	if s.LastBreach == nil || at > *s.LastBreach {
		s.LastBreach = new(at)
	}
}
