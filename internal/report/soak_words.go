package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"tare/internal/question"
	"tare/internal/unit"
)

// A soak in words, for every format that people read.

// treatmentSoaks are the soaks of whole treatments, as opposed to those of single operations.
func (r *Report) treatmentSoaks() []*Soak {
	var out []*Soak
	for i := range r.Soak {
		if s := &r.Soak[i]; s.Operation == "" && (s.Total != nil || s.Seconds > 0 || len(s.Drift) > 0) {
			out = append(out, s)
		}
	}
	return out
}

// soaked says whether the report is of a soak that measured something.
func (r *Report) soaked() bool {
	return question.Of(r.Question).Answer.OverTime && len(r.treatmentSoaks()) > 0
}

// soakedWholes are the wholes, if the question is that of a soak.
func (r *Report) soakedWholes() []*Soak {
	if !r.soaked() {
		return nil
	}
	return r.treatmentSoaks()
}

// judgedSoak is a soak's sentence behind the run's verdict.
func (r *Report) judgedSoak(s *Soak) string {
	text := r.subject(s.Treatment, "")
	if text != "" {
		text += ": "
	}
	text += s.Sentence()
	switch r.Verdict {
	case None, "":
		return text
	case Invalid:
		return r.Verdict.mark() + ", so nothing of this counts" + because(r.Reason) + ". What was seen: " + text
	case Pass, Fail, Inconclusive, NotMeasured:
	}
	return r.Verdict.mark() + ": " + text
}

// Sentence says how long it held, under which load, and what drifts: "held 50m with 10 workers: 146889 calls, 49.0/s in
// all, errors 0.02%; rss grows by 60 MiB/h [58, 62]: a leak?".
func (s *Soak) Sentence() string {
	first := s.held(s.load())
	if c := s.calls(); c != "" {
		first += ": " + c
	}
	parts := []string{first}
	if s.Behind > 0 {
		parts = append(parts, "for "+unit.Seconds(s.Behind)+" of it the generator sent most calls late"+
			inBrackets(s.BehindWhy))
	}
	if n := len(s.Restarts); n > 0 {
		parts = append(parts, "its process was replaced "+times(n))
	}
	parts = append(parts, s.trends()...)
	if text := s.unwatched(); text != "" {
		parts = append(parts, text)
	}
	return strings.Join(parts, "; ")
}

// unwatched says what of the target was never read, so that nobody takes "no drift" for it; "" if nothing was measured.
func (s *Soak) unwatched() string {
	var what []string
	if !slices.ContainsFunc(s.Moments, func(m Moment) bool { return m.RSS != nil || m.Heap != nil }) {
		what = append(what, "memory")
	}
	if !slices.ContainsFunc(s.Moments, func(m Moment) bool { return m.CPU != nil }) {
		what = append(what, "CPU time")
	}
	if len(what) == 0 || !slices.ContainsFunc(s.Moments, func(m Moment) bool { return !m.WarmUp && m.Good > 0 }) {
		return "" // CPU time is told for each good call
	}
	return "the target's " + listed(what) + " " + plural(len(what), "was", "were") + " not watched"
}

// mostFailing is the largest share of calls that fail, outside of outages, of what is said to have held.
const mostFailing = 0.01

// held says for how much of the measured time there were good answers under a load, or what share of the calls had one.
func (s *Soak) held(load string) string {
	long := unit.Seconds(s.Seconds)
	if s.Seconds < 0.99*s.Planned {
		long += " of " + unit.Seconds(s.Planned) + " that were planned"
	}
	long += load
	out, outside := 0.0, 0.0 // calls that failed outside of outages
	if s.Total != nil {
		outside = float64(s.Total.Outcomes.Ended() - s.Total.Outcomes.Good())
	}
	for _, o := range s.Outages {
		out += s.measured(o)
		outside -= float64(o.Calls)
	}
	last := s.endedInOutage()
	none := s.Total != nil && s.Total.Outcomes.Ended() > 0 && s.Total.Outcomes.Good() == 0
	switch {
	case s.Seconds <= 0:
		return "nothing was measured: the run ended in its warm-up"
	case none || s.Total == nil && out >= s.Seconds:
		return "did not answer well once in " + long
	case last != nil:
		text := "answered until " + unit.Seconds(last.Start) +
			" after the load began, and no call was answered well in the last " +
			unit.Seconds(s.measured(*last)) + " of " + long
		if before := out - s.measured(*last); before > 0 {
			text += "; before that it did not answer for " + unit.Seconds(before) + " in " +
				unit.Count(len(s.Outages)-1, "outage")
		}
		return text
	case s.Total != nil && outside > mostFailing*float64(s.Total.Outcomes.Ended()):
		n := s.Total.Outcomes
		text := "answered " + unit.Share(float64(n.Good())/float64(n.Ended())) + " of the calls well in " + long
		if out > 0 {
			text += ", and none for " + unit.Seconds(out) + " in " + unit.Count(len(s.Outages), "outage")
		}
		return text
	case out > 0:
		return "held " + long + ", but for " + unit.Seconds(out) + " in " + unit.Count(len(s.Outages), "outage") + s.stalled()
	}
	return "held " + long + s.stalled()
}

// stalled counts the stalls, for the end of a sentence; "": there were none.
func (s *Soak) stalled() string {
	longest := 0.0
	for _, x := range s.Stalls {
		longest = max(longest, x.Seconds)
	}
	if longest == 0 {
		return ""
	}
	return ", and with " + unit.Count(len(s.Stalls), "stall") + " of up to " + unit.Seconds(longest)
}

// endedInOutage returns the outage that lasted to the end, if it was not a short one; else nil.
func (s *Soak) endedInOutage() *Outage {
	const least = 0.05 // of what was measured
	if len(s.Outages) == 0 {
		return nil
	}
	o := &s.Outages[len(s.Outages)-1]
	if o.End < s.WarmUpSeconds+s.Seconds-s.WindowSeconds/2 || s.measured(*o) < least*s.Seconds {
		return nil
	}
	return o
}

// measured is how much of an outage lies after the warm-up, in seconds.
func (s *Soak) measured(o Outage) float64 { return max(0, o.End-max(o.Start, s.WarmUpSeconds)) }

func (s *Soak) load() string {
	switch {
	case s.Workers > 0:
		return " with " + unit.Count(s.Workers, "worker")
	case s.Rate > 0:
		return " with " + unit.PerSecond(s.Rate) + " offered"
	}
	return ""
}

// calls are the whole's count, rate and share of errors.
func (s *Soak) calls() string {
	if s.Total == nil {
		return ""
	}
	n := s.Total.Outcomes
	parts := []string{counted(n.Ended(), "call")}
	if v := s.throughput(&s.Total.Operation); v != nil {
		parts = append(parts, Rate(*v)+"/s in all")
	}
	if e := errorShare(n); e != nil {
		errors := "errors " + unit.Share(*e) + s.mostFailed()
		if s.Disputed > 0 {
			errors += " by its callers' count, from which the target's differs by " + counted(uint64(s.Disputed), "answer")
		}
		parts = append(parts, errors)
		if text := s.Total.Response.tail(); text != "" && *e < 0.01 {
			parts = append(parts, text)
		}
	}
	return strings.Join(parts, ", ")
}

// mostFailed names the cause of most failed calls.
func (s *Soak) mostFailed() string {
	switch c := s.Total.Causes; len(c) {
	case 0:
		return ""
	case 1:
		return inBrackets(c[0].Cause)
	default:
		return inBrackets("most: " + c[0].Cause)
	}
}

// tail is the 99th percentile in words, with how much of it can be the generator's own.
func (d *Distribution) tail() string {
	if d == nil || d.P99 == nil {
		return ""
	}
	text := "p99 " + unit.Seconds(*d.P99)
	if own := d.ownTail(); own != "" {
		text += ", of which " + own + " is the generator's own delay"
	}
	return text
}

// ownTail says how much of the 99th percentile can be the generator's own delay, "at most 1.7 ms"; "" where that is too
// little to matter, or not known.
func (d *Distribution) ownTail() string {
	const matters = 0.05
	if d == nil || d.P99 == nil || d.OwnAtMost["p99"] < matters**d.P99 {
		return ""
	}
	return "at most " + unit.Seconds(d.OwnAtMost["p99"])
}

// throughput is what JMeter calls so: all calls that ended, per second of what was measured. In 1/s.
func (s *Soak) throughput(o *Operation) *float64 {
	if !(s.Seconds > 0) {
		return o.Achieved
	}
	return new(float64(o.Outcomes.Ended()) / s.Seconds)
}

// errorShare is the share of calls that did not end well; nil if none ended.
func errorShare(n Outcomes) *float64 {
	if n.Ended() == 0 {
		return nil
	}
	return new(float64(n.Ended()-n.Good()) / float64(n.Ended()))
}

// counted is a number of things of which there may be very many.
func counted(n uint64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return whole(n) + " " + what + "s"
}

func times(n int) string {
	switch n {
	case 1:
		return "once"
	case 2:
		return "twice"
	}
	return fmt.Sprintf("%d times", n)
}

// remarks are what must be said about a soak below its sentence: outages, restarts, and Little's law.
func (s *Soak) remarks() []remark {
	var out []remark
	for _, o := range s.Outages[:min(len(s.Outages), maxOutages)] {
		out = append(out, remark{Word: "outage", Text: "at " + unit.Seconds(o.Start) + " for " + unit.Seconds(o.End-o.Start) +
			": no good answer, " + counted(o.Calls, "call") + " ended badly"})
	}
	if n := len(s.Outages) - maxOutages; n > 0 {
		out = append(out, remark{Word: "outages", Text: fmt.Sprintf("and %d more", n)})
	}
	for _, x := range s.Stalls[:min(len(s.Stalls), maxOutages)] {
		out = append(out, remark{Word: "stall", Text: "calls that were answered from " + unit.Seconds(x.Ended) +
			" on had waited up to " + unit.Seconds(x.Seconds) + ", nearly all that came due meanwhile"})
	}
	if n := len(s.Restarts); n > 0 {
		var at []string
		for _, t := range s.Restarts[:min(n, maxOutages)] {
			at = append(at, unit.Seconds(t))
		}
		if n > maxOutages {
			at = append(at, fmt.Sprintf("%d more", n-maxOutages))
		}
		out = append(out, remark{Word: "restart", Text: "the target's process was replaced at " + listed(at)})
	}
	if s.Total != nil && s.Total.Little != nil {
		out = append(out, remark{Word: "Little", Text: s.Total.Little.law()})
	}
	return out
}

// maxOutages bounds how many outages and restarts are named one by one.
const maxOutages = 6

// law is Little's law in words.
func (l *Little) law() string {
	s := "rate × mean response = " + unit.Number(l.Observed) + " calls in progress, expected " + unit.Number(l.Expected)
	if l.Expected > 0 {
		off := l.Observed/l.Expected - 1
		s += " (" + signed(math.Round(off*1000)/1000, share) + ")"
		if math.Abs(off) > 0.1 {
			s += ": they do not agree"
		}
	}
	return s
}

// soakProperties are what a test report says of a soak beyond its budgets.
func (r *Report) soakProperties() []junitProperty {
	var out []junitProperty
	for _, s := range r.soakedWholes() {
		name := strings.TrimSpace("soak " + s.Treatment)
		if len(r.Treatments) < 2 {
			name = "soak"
		}
		out = append(out, junitProperty{name, s.Sentence()})
	}
	for i := range r.Soak {
		s := &r.Soak[i]
		for _, name := range driftNames(s.Drift) {
			d := s.Drift[name]
			out = append(out, junitProperty{
				"drift of " + r.subject(s.Treatment, Measured(s.Operation, name, "")),
				d.Slope() + ": " + d.says(),
			})
		}
	}
	for _, l := range r.disagreements() {
		out = append(out, junitProperty{"counts disagree", l})
	}
	return out
}
