package model

import "fmt"

// The vocabulary of ONAP's decision API: what the reference decision point holds, and what is asked by default. Names
// and numbers are those of the policies that the published test and the tests of ONAP's guard application use.
const (
	// MonitoringID is the policy of the published test.
	MonitoringID = "onap.restart.tca"
	// MonitoringType is its type. All types of monitoring policies begin with the first three words.
	MonitoringType = "onap.policies.monitoring.tcagen2"
	// MinMaxType and FrequencyType are guard policies.
	MinMaxType    = "onap.policies.controlloop.guard.common.MinMax"
	FrequencyType = "onap.policies.controlloop.guard.common.FrequencyLimiter"

	// GuardLoop is the control loop (clname) and GuardTarget the target of guard requests.
	GuardLoop   = "ControlLoop-vDNS-6f37f56d-a87d-4b85-b6a9-cc953cf779b3"
	GuardTarget = "vf-module-id-1"

	// MinMaxActor and MinMaxOperation have a min/max policy: from MinMaxLeast to MinMaxMost instances.
	MinMaxActor     = "SO"
	MinMaxOperation = "VF Module Create"
	MinMaxLeast     = 1
	MinMaxMost      = 5

	// FrequencyActor has two frequency limiters of FrequencyLimit operations each. FrequencyWithin is an operation that
	// was done less often, and FrequencyOver one that was done more often.
	FrequencyActor  = "APPC"
	FrequencyWithin = "Restart"
	FrequencyOver   = "Rebuild"
	FrequencyLimit  = 3
)

// The kinds of ONAP's policies, as Question.Policy.
const (
	MonitoringKind = "monitoring"
	MinMaxKind     = "guard-minmax"
	FrequencyKind  = "guard-frequency"
)

// Monitoring returns the ID and the type of monitoring policy i of the reference decision point. Each has a type of its
// own: a request that names ID and type is answered with all policies that have one or the other.
func Monitoring(i int) (id, policyType string) {
	if i == 0 {
		return MonitoringID, MonitoringType
	}
	return fmt.Sprintf("%s.%d", MonitoringID, i), fmt.Sprintf("%s.%d", MonitoringType, i)
}

// Index returns the number of the policy at p; at Absent, a number that no policy has.
func (s Set) Index(p Position) int { return s.index(p) }
