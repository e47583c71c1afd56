package report

import (
	"math"
	"strings"

	"tare/internal/unit"
)

// moreTime is by how much longer a comparison by turns could have lasted, in seconds: what that would show is said.
const moreTime = 120

// serversConclusion compares the median responses of servers that took turns, where nothing else decides: a sentence
// for each. It is empty for other runs.
func (r *Report) serversConclusion() string {
	all := tallyOf(r).all
	if r.Design == nil || r.Design.Turn == 0 || len(all) == 0 || len(all) > maxNamed {
		return ""
	}
	var s []string
	for _, e := range all {
		if e.Metric != "response" || e.Quantile != "p50" || !isRatio(e) || e.Verdict == NotJudged || !hasInterval(e) {
			return ""
		}
		s = append(s, r.serverSentence(e))
	}
	return strings.Join(s, " ")
}

// serverSentence says by how much one server is slower than its baseline, or how small a difference was not seen.
func (r *Report) serverSentence(e *Effect) string {
	name, base := r.short(e.Treatment), r.short(e.Baseline)
	medians := r.medians(e)
	switch {
	case e.Lo > 0 || e.Hi < 0:
		seen, than := *e, " slower than "
		if e.Hi < 0 {
			seen.Estimate, seen.Lo, seen.Hi, than = -e.Estimate, -e.Hi, -e.Lo, " faster than "
		}
		return name + " is " + strings.TrimPrefix(seen.size(), "+") + than + base + " " + seen.interval() + medians + "." +
			beyondMargin(e) + r.ofProcesses(e)
	case e.Verdict == Equivalent:
		return name + " is neither slower nor faster than " + base + " by more than the margin of " + axisShare(*e.Margin) +
			": " + e.Change() + medians + "."
	}
	text := "No difference between " + name + " and " + base + " is shown: " + e.Change() + medians + "."
	if e.Reason != "" {
		return text + " " + capital(e.Reason) + "."
	}
	if e.MDE == nil || *e.MDE <= 0 || r.Seconds <= 0 {
		return text
	}
	longer := *e.MDE * math.Sqrt(r.Seconds/(r.Seconds+moreTime))
	return text + " One of " + share(*e.MDE) + " would have been seen, and one of about " + share(longer) + " in " +
		unit.Seconds(moreTime) + " more."
}

// medians are the median responses of both: " (p50 345 µs → 354 µs)". The second follows from the effect, since the
// median of all blocks of one arm alone is also of what the host did in them.
func (r *Report) medians(e *Effect) string {
	for i := range r.Treatments {
		for k := range r.Treatments[i].Metrics {
			m := r.Treatments[i].Metrics[k]
			if r.Treatments[i].ID == e.Baseline && m.Name == e.Metric && m.Quantile == e.Quantile && m.Operation == e.Operation {
				treated := m
				treated.Value *= 1 + e.Estimate
				return " (p50 " + measured(&m) + " → " + measured(&treated) + ")"
			}
		}
	}
	return ""
}

// smallDifference is an effect up to which the difference may be one of two processes of the same program.
const smallDifference = 0.05

// ofProcesses says that a small difference may not be one of the programs. It is empty where tare started them afresh
// for the blocks, so that the interval includes what differs from process to process.
func (r *Report) ofProcesses(e *Effect) string {
	if r.Design.Renewed > 0 || math.Abs(e.Estimate) > smallDifference {
		return ""
	}
	return " Two processes of one program can differ by as much for as long as they live: if these are two, start them " +
		"again to see whether it stays."
}

// beyondMargin says how a difference that was seen lies to the margin.
func beyondMargin(e *Effect) string {
	lies := "may be within"
	switch {
	case e.Margin == nil:
		return ""
	case e.Verdict == Regressed, e.Verdict == Improved:
		lies = "is beyond"
	case e.Verdict == Equivalent:
		lies = "is within"
	}
	return " That " + lies + " the margin of " + axisShare(*e.Margin) + "."
}
