package protocol

import (
	"cmp"
	"encoding/json"
	"strconv"

	"tare/internal/area/decision/model"
)

// The operations of pdpx, as the published test mixes them, and with them what must be refused.
const (
	pdpxMonitoring     = "monitoring"
	pdpxMinMax         = "guard-minmax"
	pdpxFrequency      = "guard-frequency"
	pdpxAbsent         = "monitoring-absent"
	pdpxMinMaxDeny     = "guard-minmax-deny"
	pdpxFrequencyDeny  = "guard-frequency-deny"
	pdpxNative         = "xacml"
	pdpxNativeKind     = "native"
	undeployedPolicyID = "tare.no.such.policy"
)

// Questions are what is asked with these options where the file names no requests: PDPXQuestions of the first policy.
func (pdpx) Questions(o Options) []model.Question {
	return PDPXQuestions(o.PDPX, model.Set{}, model.First)
}

// PDPXQuestions are healthcheck and statistics, which want no decision (model.None), then the questions of the published test (monitoring,
// guard-minmax, guard-frequency), and a known deny for each kind of policy: monitoring-absent asks for a policy that is not deployed, and wants
// NotApplicable; guard-minmax-deny has a vfCount beyond the maximum; guard-frequency-deny an operation that is over its limit. There is none
// of the last where the options name a frequency limiter of their own and no operation that is over: it cannot be known.
//
// Empty options have the values of the reference decision point, of whose set.N monitoring policies position selects the one that is asked for;
// at model.Absent there is none, and monitoring wants NotApplicable.
func PDPXQuestions(o PDPX, set model.Set, position model.Position) []model.Question {
	id, kind, want := o.PolicyID, o.PolicyType, model.Permit
	if id == "" && kind == "" {
		id, kind = model.Monitoring(set.Index(position))
		if position == model.Absent {
			id, kind, want = undeployedPolicyID, "", model.NotApplicable
		}
	}
	out := []model.Question{
		{Name: pdpxHealthcheck},
		{Name: pdpxStatistics},
		o.monitoring(pdpxMonitoring, id, kind, want),
		o.minMax(pdpxMinMax, cmp.Or(o.Permits, model.MinMaxLeast), model.Permit),
	}
	usual := model.Permit
	if o.FrequencyWant == model.Deny.String() {
		usual = model.Deny
	}
	within, over := o.Frequency, o.FrequencyOver
	if within == "" {
		within, over = model.FrequencyWithin, cmp.Or(over, model.FrequencyOver)
		if usual == model.Deny {
			within = over
		}
	}
	out = append(out,
		o.frequency(pdpxFrequency, within, usual),
		o.monitoring(pdpxAbsent, undeployedPolicyID, "", model.NotApplicable),
		o.minMax(pdpxMinMaxDeny, cmp.Or(o.Denies, model.MinMaxMost+1), model.Deny),
	)
	if over != "" {
		out = append(out, o.frequency(pdpxFrequencyDeny, over, model.Deny))
	}
	if o.XACML {
		out = append(out, nativeQuestion())
	}
	return out
}

// pdpxBody is a request for a decision.
type pdpxBody struct {
	ONAPName      string         `json:"ONAPName"`
	ONAPComponent string         `json:"ONAPComponent"`
	ONAPInstance  string         `json:"ONAPInstance"`
	RequestID     string         `json:"requestId,omitempty"`
	Action        string         `json:"action"`
	Resource      map[string]any `json:"resource"`
}

func (b pdpxBody) question(name, kind string, want model.Decision) model.Question {
	raw, err := json.Marshal(b)
	if err != nil {
		raw = nil // it cannot be: these are texts. Validate refuses a question without a body.
	}
	return model.Question{Name: name, Body: raw, Want: want, Policy: kind}
}

// monitoring asks for a policy by ID, by type, or both. The published test has DCAE ask.
func (o PDPX) monitoring(name, id, kind string, want model.Decision) model.Question {
	resource := map[string]any{}
	if id != "" {
		resource["policy-id"] = id
	}
	if kind != "" {
		resource["policy-type"] = kind
	}
	return pdpxBody{
		ONAPName: "DCAE", ONAPComponent: "PolicyHandler", ONAPInstance: "622431a4-9dea-4eae-b443-3b2164639c64", Action: "configure",
		Resource: resource,
	}.question(name, model.MonitoringKind, want)
}

func (o PDPX) minMax(name string, instances int, want model.Decision) model.Question {
	g := guardRequest{
		Actor: cmp.Or(o.Actor, model.MinMaxActor), Operation: cmp.Or(o.Operation, model.MinMaxOperation), VFCount: strconv.Itoa(instances),
	}
	return o.guard(name, model.MinMaxKind, g, want)
}

func (o PDPX) frequency(name, operation string, want model.Decision) model.Question {
	g := guardRequest{Actor: cmp.Or(o.Actor, model.FrequencyActor), Operation: operation, VFCount: "1"}
	if o.Frequency == "" && o.FrequencyOver == "" {
		g.Actor = model.FrequencyActor // the reference's: an actor that the file names is that of its own min/max policy
	}
	return o.guard(name, model.FrequencyKind, g, want)
}

// guard asks as drools does before it acts.
func (o PDPX) guard(name, kind string, g guardRequest, want model.Decision) model.Question {
	g.Loop, g.Target = model.GuardLoop, cmp.Or(o.Target, model.GuardTarget)
	if o.Recipe {
		g.Operation, g.Recipe = "", g.Operation
	}
	return pdpxBody{
		ONAPName: cmp.Or(o.ONAPName, "Policy"), ONAPComponent: cmp.Or(o.ONAPComponent, "drools-pdp"),
		ONAPInstance: cmp.Or(o.ONAPInstance, "usecase-template"), RequestID: "tare-" + placeholder, Action: "guard",
		Resource: map[string]any{"guard": g},
	}.question(name, kind, want)
}

// nativeQuestion asks in XACML's own words for something that no policy is about.
func nativeQuestion() model.Question {
	raw, err := json.Marshal(xacmlRequest(model.Question{
		Subject: model.Entity{ID: model.Subject}, Action: model.Action, Resource: model.Entity{ID: undeployedPolicyID},
	}))
	if err != nil {
		raw = nil // see question
	}
	return model.Question{Name: pdpxNative, Body: raw, Want: model.NotApplicable, Policy: pdpxNativeKind}
}
