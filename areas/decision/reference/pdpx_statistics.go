package reference

import "sync/atomic"

// appCounts are the decisions of one application.
type appCounts struct {
	permit, deny, indeterminate, notApplicable atomic.Int64
}

func (c *appCounts) count(d xacmlDecision) {
	switch d {
	case permits:
		c.permit.Add(1)
	case denies:
		c.deny.Add(1)
	case notApplicable:
		c.notApplicable.Add(1)
	case indeterminateP, indeterminateD, indeterminateDP:
		c.indeterminate.Add(1)
	}
}

// The names of an application's counts.
const (
	permitCount        = "permit_decisions_count"
	denyCount          = "deny_decisions_count"
	indeterminateCount = "indeterminant_decisions_count"
	notApplicableCount = "not_applicable_decisions_count"
)

// supportedTypes is how many policy types the applications of ONAP's PDP 4.1.2 support, whatever is deployed: 5 of
// guards, 9 of optimization, 2 of native, 1 each of monitoring, naming and match.
const supportedTypes = 19

// metrics returns the counts by ONAP's names; those of what never happened are not there.
func (c *appCounts) metrics() map[string]int64 {
	all := map[string]int64{
		permitCount: c.permit.Load(), denyCount: c.deny.Load(), indeterminateCount: c.indeterminate.Load(),
		notApplicableCount: c.notApplicable.Load(),
	}
	for name, n := range all {
		if n == 0 {
			delete(all, name)
		}
	}
	return all
}

// pdpxCounts is what the decision point counts since its start. A decision is counted before its answer is sent:
// whoever has the answer finds it counted.
type pdpxCounts struct {
	monitoring, guard, native appCounts
	errors                    atomic.Int64
}

// statistics is ONAP's statistics report.
type statistics struct {
	Code                        int                         `json:"code"`
	TotalPolicyTypesCount       int                         `json:"totalPolicyTypesCount"`
	TotalPoliciesCount          int                         `json:"totalPoliciesCount"`
	TotalErrorCount             int64                       `json:"totalErrorCount"`
	PermitDecisionsCount        int64                       `json:"permitDecisionsCount"`
	DenyDecisionsCount          int64                       `json:"denyDecisionsCount"`
	DeploySuccessCount          int                         `json:"deploySuccessCount"`
	DeployFailureCount          int                         `json:"deployFailureCount"`
	UndeploySuccessCount        int                         `json:"undeploySuccessCount"`
	UndeployFailureCount        int                         `json:"undeployFailureCount"`
	IndeterminantDecisionsCount int64                       `json:"indeterminantDecisionsCount"`
	NotApplicableDecisionsCount int64                       `json:"notApplicableDecisionsCount"`
	ApplicationMetrics          map[string]map[string]int64 `json:"applicationMetrics"`
}

// statistics reads the counts. The totals are the sums of what stands in ApplicationMetrics, whatever is counted
// meanwhile.
func (p *pdpx) statistics() statistics {
	policies := p.policies()
	s := statistics{
		Code: 200, TotalPolicyTypesCount: supportedTypes, TotalPoliciesCount: policies, DeploySuccessCount: policies,
		TotalErrorCount: p.counts.errors.Load(), ApplicationMetrics: map[string]map[string]int64{},
	}
	s.add(p.monitoring.name, &p.counts.monitoring)
	s.add(p.guard.name, &p.counts.guard)
	s.add("native", &p.counts.native)
	return s
}

func (s *statistics) add(app string, c *appCounts) {
	m := c.metrics()
	if len(m) > 0 {
		s.ApplicationMetrics[app] = m
	}
	s.PermitDecisionsCount += m[permitCount]
	s.DenyDecisionsCount += m[denyCount]
	s.IndeterminantDecisionsCount += m[indeterminateCount]
	s.NotApplicableDecisionsCount += m[notApplicableCount]
}
