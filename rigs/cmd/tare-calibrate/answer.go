package main

import (
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"

	"tare/internal/capacity"
	"tare/internal/limit"
	"tare/internal/report"
	"tare/internal/signature"
	"tare/rigs/servers"
)

// A mark says what an answer is worth.
type mark string

// The marks. Unknown is an answer that says too little, and nothing that is not so.
const (
	right   mark = "right"
	unknown mark = "unknown"
	wrong   mark = "wrong"
)

// off is by how much of the truth a number may be off before it is wrong.
const off = 0.05

// The budgets that each search is judged by, as shares of the truth.
const (
	below = 0.8
	above = 1.25
)

// An answer is what tare said of one server, beside the truth. What it left unsaid is absent.
type answer struct {
	Server  string          `json:"server"`
	Seed    uint64          `json:"seed"`
	Truth   float64         `json:"truth"`
	Formula string          `json:"formula"`
	Burst   *float64        `json:"burst,omitempty"`
	Rate    *float64        `json:"rate,omitempty"`
	Lo      *float64        `json:"lo,omitempty"`
	Hi      *float64        `json:"hi,omitempty"`
	AtLeast *float64        `json:"at_least,omitempty"`
	AtMost  *float64        `json:"at_most,omitempty"`
	Holds   *float64        `json:"holds,omitempty"`
	Fails   *float64        `json:"fails,omitempty"`
	Class   signature.Class `json:"class,omitempty"`
	// Limit is what sets the rate, Excluded are the alternatives that were excluded.
	Limit     limit.Kind            `json:"limit,omitempty"`
	Value     string                `json:"value,omitempty"` // its setting
	Certainty signature.Certainty   `json:"certainty,omitempty"`
	Excluded  []signature.Exclusion `json:"excluded,omitempty"`
	// Twice is what twice the limit is said to give.
	Twice *limit.Prediction `json:"twice,omitempty"`
	// Tried are the experiments that followed the search.
	Tried    []limit.Experiment     `json:"tried,omitempty"`
	Findings []capacity.FindingKind `json:"findings,omitempty"`
	Wedged   bool                   `json:"wedged,omitempty"`
	Recovery string                 `json:"recovery,omitempty"`
	Below    report.Verdict         `json:"below"` // of the budget below the truth
	Above    report.Verdict         `json:"above"` // of that above it
	Seconds  float64                `json:"seconds"`
	Reason   string                 `json:"reason,omitempty"`
	Late     float64                `json:"late"` // share of what the server did late, because of the host
	Number   mark                   `json:"number"`
	Named    mark                   `json:"named"`
	Limited  mark                   `json:"limited"` // whether what sets the rate has its right name
	Beside   mark                   `json:"beside"`  // the findings and the recovery
	Budgets  mark                   `json:"budgets"`
}

// read takes the answer about f from a report in JSON.
func read(b []byte, f servers.Fixture, seed uint64) (*answer, error) {
	var r report.Report
	if err := json.Unmarshal(b, &r); err != nil {
		return nil, err
	}
	if len(r.Capacity) != 1 {
		return nil, errors.New("the report has no capacity")
	}
	c := &r.Capacity[0]
	a := &answer{
		Server: f.Name, Seed: seed, Truth: f.Truth.Rate, Formula: f.Truth.Formula,
		Rate: c.Rate, Lo: c.Lo, Hi: c.Hi, Burst: c.Burst, AtLeast: c.AtLeast, AtMost: c.AtMost,
		Holds: c.VerifiedLow, Fails: c.VerifiedHigh, Wedged: c.Wedged, Recovery: c.Recovery,
		Below: report.NotMeasured, Above: report.NotMeasured, Seconds: r.Seconds, Reason: c.Reason,
	}
	if c.Failure != nil {
		a.Class = c.Failure.Class
	}
	if c.Limit != nil {
		a.Limit, a.Value, a.Certainty, a.Excluded = c.Limit.Kind, c.Limit.Value, c.Limit.Certainty, c.Limit.Excluded
		a.Twice = c.Limit.Prediction
	}
	for _, x := range c.Findings {
		a.Findings = append(a.Findings, capacity.FindingKind(x.Kind))
	}
	if len(r.Budgets) == 2 {
		a.Below, a.Above = r.Budgets[0].Verdict, r.Budgets[1].Verdict
	}
	a.judge(f.Truth, c.RecoverySeconds != nil)
	return a, nil
}

// judge holds the answer against the truth. recovered is whether the report says when the server came back.
func (a *answer) judge(t servers.Truth, recovered bool) {
	a.Number, a.Named, a.Beside, a.Budgets = a.number(t), unknown, a.beside(t, recovered), a.limits(t)
	a.Limited = unknown
	switch {
	case a.excludesAll(t.Limits), a.miscounts(t.Slots):
		a.Limited = wrong
	case slices.Contains(t.Limits, a.Limit):
		a.Limited = right
	case a.Limit != "" && a.Limit != limit.Unknown:
		a.Limited = wrong
	}
	switch {
	case slices.Contains(t.Classes, a.Class):
		a.Named = right
	case a.Class != "" && a.Class != signature.Unknown && a.Class != signature.Client: // these name nothing
		a.Named = wrong
	}
}

// miscounts reports whether another number of calls at a time was named than n, if that is known.
func (a *answer) miscounts(n float64) bool {
	if n == 0 || a.Limit != limit.Slots && a.Limit != limit.Connections {
		return false
	}
	first, _, _ := strings.Cut(strings.TrimPrefix(a.Value, "about "), " ")
	said, err := strconv.ParseFloat(first, 64)
	return err == nil && math.Abs(said-n) > 0.2*n
}

// predicted judges what twice a limit, which has its right name, is said to give.
func (a *answer) predicted(t servers.Truth) mark {
	switch {
	case a.Limited != right || a.Twice == nil || t.AtMost:
		return unknown
	case a.Twice.Lo > 2*t.Rate*(1+off) || a.Twice.Hi < 2*t.Rate*(1-off):
		return wrong
	}
	return right
}

// alternatives are the words of tare for limits that it excludes. Without a word, an exclusion cannot be judged.
var alternatives = map[limit.Kind]string{
	limit.Connections: "a limit on connections", limit.CPUQuota: "a CPU quota", limit.Processors: "the processors",
	limit.Collector: "garbage collection",
}

// excludesAll reports whether each right name of the limit was excluded.
func (a *answer) excludesAll(names []limit.Kind) bool {
	for _, k := range names {
		what, ok := alternatives[k]
		if !ok || !slices.ContainsFunc(a.Excluded, func(x signature.Exclusion) bool { return x.What == what }) {
			return false
		}
	}
	return len(names) > 0
}

// decided reports whether experiments were made, and excluded an alternative or went with a limit that was named.
func (a *answer) decided() bool {
	return len(a.Tried) > 0 && (len(a.Excluded) > 0 || a.Limit != "" && a.Limit != limit.Unknown)
}

// number judges the interval, the bounds, and what was verified.
func (a *answer) number(t servers.Truth) mark {
	over := func(x *float64) bool { return x != nil && *x > t.Rate*(1+off) }
	lower := func(x *float64) bool { return x != nil && *x < t.Rate*(1-off) }
	under := func(x *float64) bool { return lower(x) && !t.AtMost }
	interval := a.Rate != nil && a.Lo != nil && a.Hi != nil
	switch {
	case over(a.AtLeast), under(a.AtMost), over(a.Holds), under(a.Fails), interval && (over(a.Lo) || under(a.Hi)):
		return wrong
	case interval && !lower(a.Hi):
		return right
	}
	return unknown
}

// beside judges the findings. That a server was still down when the search ended is as good as the finding that it
// stays down.
func (a *answer) beside(t servers.Truth, recovered bool) mark {
	for _, k := range a.Findings {
		if !slices.Contains(t.Findings, k) {
			return wrong
		}
	}
	if t.StaysDown() && recovered {
		return wrong
	}
	for _, k := range t.Findings {
		if !slices.Contains(a.Findings, k) && (k != capacity.StaysDown || !a.Wedged) {
			return unknown
		}
	}
	return right
}

// limits judges the verdicts of both budgets.
func (a *answer) limits(t servers.Truth) mark {
	switch {
	case a.Below == report.Fail && !t.AtMost, a.Above == report.Pass:
		return wrong
	case a.Below == report.Pass && a.Above == report.Fail:
		return right
	}
	return unknown
}
