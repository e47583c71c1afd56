package protocol

import "tare/areas/decision/model"

// Verdict says why an answer is not the expected one, as an index of Causes. Records contain the numbers, so they are
// append-only.
type Verdict int

// The verdicts. Fine: outcome and status say it all.
const (
	Fine Verdict = iota - 1
	NotJSON
	NoDecision
	SaysPermit
	SaysDeny
	SaysNotApplicable
	SaysIndeterminate
	WrongCredentials
	NotAllowed
	NotReady
	SchemaError
	NoSuchPolicy
	WrongBatch
	NotHealthy
	NoStatistics
	Unavailable
	DeadlineExceeded
	Exhausted
	Unimplemented
	InternalError
	OtherStatus
	OtherPolicies
	NotProto
	ListHasMore
	ListLacks
	TooLong
)

// Causes returns the verdicts in words, by number: the Operation.Causes of every adapter.
func Causes() []string {
	return []string{
		NotJSON:           "the answer is no JSON, or has not the form that the protocol promises",
		NoDecision:        "a good status without a decision",
		SaysPermit:        "the decision is Permit, which it should not be",
		SaysDeny:          "the decision is Deny, which it should not be",
		SaysNotApplicable: "the decision is NotApplicable: no policy is about this request",
		SaysIndeterminate: "the decision is Indeterminate: the policies could not be evaluated",
		WrongCredentials:  "the credentials were refused (401): check username, password or token",
		NotAllowed:        "the caller may not ask this decision point (403)",
		NotReady:          "the decision point is not ready (409)",
		SchemaError:       "the request was refused as invalid",
		NoSuchPolicy:      "there is no such policy, store or path (404)",
		WrongBatch:        "the batch's answer holds another number of decisions than was asked for",
		NotHealthy:        "the decision point says that it is not healthy",
		NoStatistics:      "the statistics have not the form that the protocol promises",
		Unavailable:       "gRPC status UNAVAILABLE",
		DeadlineExceeded:  "gRPC status DEADLINE_EXCEEDED",
		Exhausted:         "gRPC status RESOURCE_EXHAUSTED",
		Unimplemented:     "gRPC status UNIMPLEMENTED: no such service at this port",
		InternalError:     "gRPC status INTERNAL or UNKNOWN",
		OtherStatus:       "another gRPC status",
		OtherPolicies:     "the answer holds policies, but not the one that was asked for",
		NotProto:          "the answer is no CheckResponse",
		ListHasMore:       "the list holds what does not belong into it",
		ListLacks:         "the list lacks what belongs into it",
		TooLong:           "the answer is longer than 1 MiB, or its headers or trailers than 64 KiB",
	}
}

// CauseAnswers returns the decisions that answers with these causes held.
func CauseAnswers() []string {
	out := make([]string, len(Causes()))
	out[SaysPermit] = model.Permit.String()
	out[OtherPolicies] = model.Permit.String()
	out[SaysDeny] = model.Deny.String()
	out[SaysNotApplicable] = model.NotApplicable.String()
	out[SaysIndeterminate] = model.Indeterminate.String()
	return out
}

// Says returns the verdict on a decision that was not the wanted one.
func Says(got model.Decision) Verdict {
	switch got {
	case model.Permit:
		return SaysPermit
	case model.Deny:
		return SaysDeny
	case model.NotApplicable:
		return SaysNotApplicable
	case model.Indeterminate:
		return SaysIndeterminate
	case model.None:
	}
	return NoDecision
}
