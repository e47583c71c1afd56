package analyze

import (
	"encoding/json"

	"tare/internal/capacity"
	"tare/internal/limit"
	"tare/internal/load"
	"tare/internal/record"
	"tare/internal/signature"
)

// namesOf names what sets the rate of a target that broke, and how it fails above it.
func namesOf(t *record.Trial, res *capacity.Result, trace *capacity.Trace) (*limit.Verdict, *signature.Failure) {
	e := limit.EvidenceOf(res, trace, t.Operations, experimentsOf(t))
	e.Accepted = accepted(res, trace)
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
