package analyze

import (
	"encoding/json"
	"math"

	"tare/internal/capacity"
	"tare/internal/limit"
	"tare/internal/load"
	"tare/internal/record"
	"tare/internal/signature"
	"tare/internal/stat"
)

// namesOf names what sets the rate of a target that broke, and how it fails above it.
func namesOf(t *record.Trial, res *capacity.Result, trace *capacity.Trace) (*limit.Verdict, *signature.Failure) {
	e := limit.EvidenceOf(res, trace, t.Operations, experimentsOf(t))
	e.Accepted, e.Hung = accepted(res, trace), hung(trace)
	v, f := limit.Judge(e), e.Failure()
	return &v, &f
}

// experimentsOf are the experiments that followed the search of a trial.
func experimentsOf(t *record.Trial) (out []limit.Experiment) {
	for _, s := range t.Steps {
		var x limit.Experiment
		if s.Name == limit.Step && json.Unmarshal(s.Payload, &x) == nil {
			out = append(out, x)
		}
	}
	return out
}

// accepted counts the connections that carried an answer under the last overload, of a target that left others in its
// listen queue for good; 0 for others.
func accepted(res *capacity.Result, trace *capacity.Trace) int {
	if res.Signature.Stuck == 0 {
		return 0
	}
	var last load.Segment
	for i := range trace.Steps {
		if s := &trace.Steps[i]; s.Role == capacity.RoleOverload || s.Role == capacity.RoleFill {
			last = s.Segment
		}
	}
	served := map[uint32]bool{}
	for c := range trace.Calls.Due(last.Start, last.End) {
		if c.Conn != 0 && c.FirstByte != 0 {
			served[c.Conn] = true
		}
	}
	return len(served)
}

// manyHung is how many calls must have got no answer at a rate, so that it says something of them all.
const manyHung = 30

// hung is what became of the calls at the lowest rate above the capacity at which many got no answer.
func hung(trace *capacity.Trace) (out limit.Hung) {
	served := map[uint32]bool{} // connections that carried an answer
	for c := range trace.Calls.Due(0, math.MaxInt64) {
		if c.FirstByte != 0 {
			served[c.Conn] = true
		}
	}
	for i := range trace.Steps {
		s := &trace.Steps[i]
		above := s.Role == capacity.RoleOverload || s.Role == capacity.RoleFill || s.Role == capacity.RoleConfirmHigh
		if !above || out.Rate > 0 && s.Rate >= out.Rate {
			continue
		}
		if h := hungIn(trace, s, served); h.Calls >= manyHung {
			out = h
		}
	}
	return out
}

func hungIn(trace *capacity.Trace, s *capacity.Step, served map[uint32]bool) limit.Hung {
	h := limit.Hung{Rate: s.Rate}
	var took []float64
	for c := range trace.Calls.Due(s.Segment.Start, s.Segment.End) {
		switch {
		case c.Outcome == load.Timeout:
			h.Calls++
			if c.Sent != 0 && !served[c.Conn] {
				h.Unserved++
			}
		case c.Done != 0 && c.Outcome.Good():
			took = append(took, c.Service().Seconds())
		}
	}
	if len(took) > 0 {
		h.Service = stat.Quantile(took, 0.5)
	}
	return h
}
