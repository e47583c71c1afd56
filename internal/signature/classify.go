package signature

import (
	"fmt"
	"math"
	"strings"

	"tare/internal/unit"
)

// classScore is one class's score with the sentences for and against it.
type classScore struct {
	score             float64
	evidence, against string
	withheld          bool // others explain what was seen as well: against does not contradict it
}

// Classify names the failure. It is a pure function of the evidence; the first class in order whose score is high
// enough for it is chosen, and without one the class is Unknown.
func Classify(e Evidence) Verdict {
	v := Verdict{Class: Unknown, Scores: map[Class]float64{}}
	f := extract(e)
	switch {
	case f == nil:
		v.Evidence = []string{"no overloaded stretch with calls was recorded, so there is nothing to judge"}
		return v
	case f.servedAll():
		v.Evidence = []string{fmt.Sprintf("at %s/s offered, %s/s succeeded: that was no overload",
			rate(f.window.Rate), rate(f.late))}
		return v
	}
	for _, d := range definitions[:len(order)] {
		if !d.refuses || f.rejected > 0 {
			f.found[d.class] = d.score(f)
		}
	}
	f.disagree()
	for _, c := range order {
		x := f.found[c]
		x.score = clamp(x.score)
		f.found[c] = x
		v.Scores[c] = math.Round(x.score*1000) / 1000
	}
	v.Likely, v.Class = choose(f.found)
	v.explain(f)
	v.Met = v.failureOf(f)
	return v
}

// choose returns the first class that wins, "" if none does, and the first whose score suffices to name it, or Unknown.
func choose(found map[Class]classScore) (likely, named Class) {
	named = Unknown
	for _, c := range order {
		score := found[c].score
		if likely == "" && score >= wins {
			likely = c
		}
		if named == Unknown && score >= c.minScore() {
			named = c
		}
	}
	return likely, named
}

// servedAll reports whether the target served all that was offered, so that how it breaks is unknown.
func (f *features) servedAll() bool {
	bad := f.n - f.good - f.left
	return f.audit.Valid && f.late > 0.97*(1-f.ErrorFloor)*f.window.Rate &&
		float64(bad) < (0.03+f.ErrorFloor)*float64(f.n) && f.slower < 3
}

func clamp(x float64) float64 {
	if math.IsNaN(x) {
		return 0
	}
	return min(1, max(0, x))
}

func (v *Verdict) explain(f *features) {
	if s := f.found[v.Class].evidence; s != "" {
		v.Evidence = append(v.Evidence, s)
	}
	best := 0.0
	for _, c := range order {
		if x := f.found[c].score; c != v.Class && x > best && x >= 0.1 {
			best, v.RunnerUp, v.Against = x, c, f.found[c].against
			switch {
			case v.Against != "":
			case x >= wins && x < c.minScore():
				v.Against = fmt.Sprintf("it scores %.2f, and other classes look like it below %.2f", x, c.minScore())
			case v.Class != Unknown:
				v.Against = fmt.Sprintf("%s scores %.2f and explains more", v.Class, v.Scores[v.Class])
			}
		}
	}
	v.Evidence = append(v.Evidence,
		fmt.Sprintf("at %s/s offered, %.1f/s succeeded%s", rate(f.window.Rate), f.late, f.rest()))
	v.Queued = f.waits() >= wins
	v.Period = map[Class]float64{FixedWindow: f.turn, CPUThrottling: f.period}[v.Method()]
	v.InFlight = map[Class]int{ConcurrencyLimit: f.level}[v.Method()]
	if least := min(f.bursts[0], f.bursts[1]); !f.burstWaits && float64(least) < f.burstSize {
		v.AtOnce = least
	}
	v.Stuck = map[Class]int{AcceptQueue: f.stuckNow()}[v.Class]
	if seen := v.Class.definition().seen; seen != nil {
		if s := seen(f.Local); s != "" {
			v.Evidence = append(v.Evidence, s)
		}
	}
}

// rest says what became of the calls that did not: "; of 904 calls, 550 were refused".
func (f *features) rest() string {
	var parts []string
	for _, x := range []struct {
		n    int
		what string
	}{
		{f.refused, "were refused"},
		{f.failed, "failed"},
		{f.timed, "timed out"},
		{f.unconnected(), "did not connect"},
		{f.left, "were still outstanding at the end"},
	} {
		if x.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", x.n, x.what))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	if f.good == 0 && f.timed > 0 {
		parts = append(parts, "and none was answered within "+short(f.Timeout.Seconds()))
	}
	return fmt.Sprintf("; of %d calls, %s", f.n, strings.Join(parts, ", "))
}

// rate prints a rate with suitable precision.
func rate(r float64) string {
	if r < 10 {
		return unit.Decimal(r, 2)
	}
	return fmt.Sprintf("%.0f", r)
}
