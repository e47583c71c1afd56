package limit

import "tare/internal/capacity"

// EvidenceOf is what a search and the experiments after it say of the limit; operations are the names of those that the
// search called. How many connections were served, and which calls hung, is not counted.
func EvidenceOf(
	res *capacity.Result, trace *capacity.Trace, operations []string, made []Experiment,
) Evidence {
	e := Evidence{
		Rate: res.Rate, Lo: res.Lo, Hi: res.Hi, AtLeast: res.AtLeast, AtMost: res.AtMost,
		Signature: res.Signature, Idle: res.BaseP50,
		Experiments: made, Local: trace.Local, Callers: trace.Callers, Overload: trace.OverloadUse(),
		Answered: answeredBy(trace, operations),
		Crowded:  trace.Crowded(),
	}
	for _, f := range res.Findings {
		switch f.Kind { //nolint:exhaustive // the others say nothing about callers
		case capacity.LimitPerCaller:
			e.Scope, e.ScopeSeen = EachCaller, f.Sentence
		case capacity.LimitShared:
			e.Scope, e.ScopeSeen = AllCallers, f.Sentence
		}
	}
	return e
}
