package reference

import (
	"github.com/cedar-policy/cedar-go"

	"tare/areas/decision/cedarset"
)

// Deciders are the policies for which a set permits or denies a request of AuthZEN: none where no policy is about it.
func Deciders(set *cedarset.Set, body []byte) (out []cedar.PolicyID, err error) {
	e, err := parseEvaluation(body)
	if err != nil {
		return nil, err
	}
	request, entities, err := e.cedar(set)
	if err != nil {
		return nil, err
	}
	_, why := cedar.Authorize(set.Policies, entities, request)
	for _, reason := range why.Reasons {
		out = append(out, reason.PolicyID)
	}
	return out, nil
}
