package guard

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"tare/internal/load"
	"tare/rigs/hosttest"
)

var twoOperations = []Operation{{Name: "read"}, {Name: "read without right", Twin: "read"}}

// simulated returns the calls of a point: the trespasses are permitted with probability p, and a share of all calls
// ends in a timeout.
func simulated(rng *rand.Rand, rate float64, length time.Duration, share, p, lost float64) (Point, load.Calls) {
	point := Point{
		Rate: rate, Segment: load.Segment{Start: time.Second, End: time.Second + length}, Read: time.Minute + length,
	}
	var calls load.Calls
	for i := range int(rate * length.Seconds()) {
		at := point.Segment.Start + time.Duration(float64(i)/rate*1e9)
		c := load.Call{Intended: at, Sent: at, Done: at + time.Millisecond}
		if rng.Float64() < share {
			c.Operation, c.Outcome = 1, load.Denied
			if rng.Float64() < p {
				c.Outcome = load.Permitted
			}
		}
		if rng.Float64() < lost {
			c.Outcome = load.Timeout
		}
		calls = append(calls, c)
	}
	return point, calls
}

// TestShareCoversTheTruth: the interval of the permitted share holds the planted one in 93 to 99 % of 1,000 runs.
func TestShareCoversTheTruth(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 5))
	for _, p := range []float64{0.004, 0.05, 0.4} {
		held := 0
		const runs = 1000
		for range runs {
			point, calls := simulated(rng, 1000, 2*time.Second, 0.3, p, 0.1)
			s := Assess(point, twoOperations, calls)
			if e, ok := s.Trespasses.Share(); ok && e.Lo <= p && p <= e.Hi {
				held++
			}
		}
		if share := float64(held) / runs; share < 0.93 || share > 0.99 {
			t.Errorf("share %v: %.1f %% of the intervals hold it", p, 100*share)
		}
	}
}

// TestAssessCounts: each way to end is counted once, and only calls that were due in the point.
func TestAssessCounts(t *testing.T) {
	at := func(s float64) time.Duration { return time.Duration(s * 1e9) }
	call := func(op uint8, due float64, o load.Outcome) load.Call {
		return load.Call{Operation: op, Intended: at(due), Sent: at(due), Done: at(due + 0.1), Outcome: o}
	}
	calls := load.Calls{
		call(1, 0.5, load.Permitted), // before the point
		call(0, 1.1, load.OK), call(0, 1.2, load.Wrong), call(0, 1.3, load.Timeout),
		{Operation: 0, Intended: at(1.4), Done: at(1.6), Outcome: load.Timeout}, // unsent
		call(1, 1.5, load.Denied), call(1, 1.6, load.Permitted), call(1, 1.7, load.Refused),
		{Operation: 1, Intended: at(1.8), Sent: at(1.8)},                                       // outstanding
		{Operation: 1, Intended: at(1.9), Sent: at(1.9), Done: at(9), Outcome: load.Permitted}, // after the reading
		call(2, 1.95, load.Permitted),                                                          // of no operation
		call(1, 2.5, load.Permitted), call(0, 2.6, load.Failed), call(1, 3.5, load.Permitted),  /* after the point */
	}
	p := Point{Segment: load.Segment{Start: at(1), End: at(3)}, Read: at(4)}
	s := Assess(p, twoOperations, calls)
	if want := (Trespasses{Refused: 1, Permitted: 2, Undecided: 3, Errors: 1}); s.Trespasses != want {
		t.Errorf("trespasses %+v, want %+v", s.Trespasses, want)
	}
	if want := (Legitimate{Served: 1, Wrong: 1, Failed: 2, Unsent: 1}); s.Legitimate != want {
		t.Errorf("legitimate %+v, want %+v", s.Legitimate, want)
	}
	if s.FirstBreach == nil || *s.FirstBreach != at(0.7) || *s.LastBreach != at(1.6) {
		t.Errorf("breaches from %v to %v", s.FirstBreach, s.LastBreach)
	}
	p.Condition = &Condition{Begun: at(1.2), Ended: at(1.5)}
	s = Assess(p, twoOperations, calls)
	if s.Recovery == nil || *s.Recovery != at(1.1) || s.Recovered || *s.FirstBreach != at(0.5) {
		t.Errorf("recovery %v (%v), first breach %v", s.Recovery, s.Recovered, s.FirstBreach)
	}
}

// TestNothingDecided: a control that answers nothing has no share.
func TestNothingDecided(t *testing.T) {
	point, calls := simulated(rand.New(rand.NewPCG(1, 1)), 100, time.Second, 0.5, 1, 1)
	if e, ok := Assess(point, twoOperations, calls).Trespasses.Share(); ok {
		t.Errorf("nothing was decided, and the share is %+v", e)
	}
}

// TestOnsetIsFound: a control that permits everything above a rate is found to begin there within 5 %, wherever the
// rate is.
func TestOnsetIsFound(t *testing.T) {
	hosttest.SkipIfShort(t)
	rng := rand.New(rand.NewPCG(9, 9))
	for range 200 {
		capacity := math.Exp(rng.Float64()*5) * 20
		truth := capacity * (0.26 + 3.7*rng.Float64())
		var seen []Seen
		offer := func(rate float64) {
			p := 0.0
			if rate >= truth {
				p = 0.2
			}
			point, calls := simulated(rng, rate, Length(UsualPoint, rate, 0.2), 0.2, p, 0)
			seen = append(seen, Assess(point, twoOperations, calls))
		}
		for _, f := range Factors() {
			offer(f * capacity)
		}
		refined := 0
		for range MostRefined {
			o, ok := OnsetOf(seen)
			if !ok {
				t.Fatal("breaches were not seen")
			}
			rate, more := o.Next()
			if !more {
				break
			}
			refined++
			offer(rate)
		}
		o, _ := OnsetOf(seen)
		if o.Above >= truth || o.Below < truth || o.Below/o.Above > narrow+1e-9 || o.Later || !o.Clear || !o.Sharp {
			t.Errorf("onset %+v after %d more points, truth %.1f/s", o, refined, truth)
		}
	}
}

func TestOnsetOfOthers(t *testing.T) {
	at := func(rate float64, permitted uint64) Seen {
		return Seen{
			Point: Point{Rate: rate}, Trespasses: Trespasses{Refused: 100, Permitted: permitted}, Slices: 10,
			Struck: min(10, int(permitted)),
		}
	}
	if _, ok := OnsetOf([]Seen{at(10, 0), at(20, 0)}); ok {
		t.Error("a sound control has an onset")
	}
	o, ok := OnsetOf([]Seen{at(20, 1), at(10, 3)})
	if _, more := o.Next(); !ok || o.Above != 0 || o.Below != 10 || more {
		t.Errorf("breaches at every rate: %+v, %v", o, ok)
	}
	if o, _ := OnsetOf([]Seen{at(10, 0), at(20, 60), at(40, 0)}); !o.Later {
		t.Errorf("breaches do not follow the rate: %+v", o)
	}
	if o, _ := OnsetOf([]Seen{at(10, 0), at(20, 60), at(30, 1), at(40, 90)}); !o.Later {
		t.Errorf("far less is permitted at a higher rate: %+v", o)
	}
	if o, _ := OnsetOf([]Seen{at(10, 0), at(20, 60), at(40, 40)}); !o.Clear || o.Later {
		t.Errorf("breaches begin clearly: %+v", o)
	}
	if o, _ := OnsetOf([]Seen{at(10, 0), at(20, 1), at(40, 2)}); o.Clear || o.Later {
		t.Errorf("a few breaches begin clearly: %+v", o)
	}
	if o, _ := OnsetOf([]Seen{at(10, 0), at(20, 2), at(40, 90)}); !o.Clear || o.Sharp {
		t.Errorf("breaches that are rare at first have a sharp onset, or none: %+v", o)
	}
	under := at(10, 5)
	under.Condition = &Condition{Name: "restart"}
	if _, ok := OnsetOf([]Seen{under, at(10, 0)}); ok {
		t.Error("a breach under a condition is none of the rate")
	}
}

// TestLengths: every point has enough trespasses, or as many as the longest point allows.
func TestLengths(t *testing.T) {
	for _, capacity := range []float64{0.5, 4, 37, 150, 2000, 50_000} {
		lowest := capacity * Factors()[0]
		share := Share(0.02, lowest)
		if share < 0.02 || share > 0.5 {
			t.Errorf("capacity %v: share %v", capacity, share)
		}
		for _, f := range Factors() {
			d := Length(UsualPoint, f*capacity, share)
			n := f * capacity * share * d.Seconds()
			if d < UsualPoint || d > LongestPoint || n < LeastTrespasses*0.99 && d < LongestPoint {
				t.Errorf("capacity %v, %v×: %v with %.0f trespasses", capacity, f, d, n)
			}
		}
	}
	if d := Length(time.Minute, 1, 0.02); d != time.Minute {
		t.Errorf("a file's duration of 1m becomes %v", d)
	}
}

func TestDamagedPoints(t *testing.T) {
	for name, p := range map[string]Point{
		"before the start": {Segment: load.Segment{Start: -1}},
		"backwards":        {Segment: load.Segment{Start: 5, End: 4}},
		"rate":             {Rate: math.NaN()},
		"factor":           {Factor: math.Inf(1)},
		"condition":        {Condition: &Condition{Ended: math.MaxInt64}},
	} {
		if p.Check() == nil {
			t.Errorf("%s: the point passes", name)
		}
	}
	if err := (&Point{Rate: 5, Segment: load.Segment{End: 1}}).Check(); err != nil {
		t.Error(err)
	}
}

// TestConstantShareHasNoClearOnset: a control that permits the same small share at every rate is said to begin at one
// in few of 1,000 runs.
func TestConstantShareHasNoClearOnset(t *testing.T) {
	rng := rand.New(rand.NewPCG(21, 4))
	for _, p := range []float64{0.002, 0.01, 0.03} {
		wrong := 0
		const runs = 1000
		for range runs {
			var seen []Seen
			for _, f := range Factors() {
				s := Seen{Point: Point{Rate: 100 * f}, Slices: 20}
				for range s.Slices {
					before := s.Trespasses.Permitted
					for range 20 {
						if rng.Float64() < p {
							s.Trespasses.Permitted++
						} else {
							s.Trespasses.Refused++
						}
					}
					if s.Trespasses.Permitted > before {
						s.Struck++
					}
				}
				seen = append(seen, s)
			}
			if o, ok := OnsetOf(seen); ok && (o.Clear || o.Later) {
				wrong++
			}
		}
		if wrong > runs/20 {
			t.Errorf("share %v: %d of %d runs claim that it follows the rate, or does not", p, wrong, runs)
		}
	}
}
