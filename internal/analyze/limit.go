package analyze

import (
	"encoding/json"

	"tare/internal/capacity"
	"tare/internal/limit"
	"tare/internal/record"
)

// rateLimitOf names what sets the rate of a target that broke.
func rateLimitOf(t *record.Trial, res *capacity.Result) *limit.Verdict {
	e := limit.Evidence{
		Rate: res.Rate, Lo: res.Lo, Hi: res.Hi, Signature: res.Signature, Idle: res.BaseP50, Experiments: experimentsOf(t),
	}
	for _, f := range res.Findings {
		switch f.Kind { //nolint:exhaustive // the others say nothing about callers
		case capacity.LimitPerCaller:
			e.Scope = "each caller"
		case capacity.LimitShared:
			e.Scope = "all callers"
		}
	}
	v := limit.Judge(e)
	return &v
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
