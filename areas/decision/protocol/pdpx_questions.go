package protocol

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"tare/areas/decision/model"
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

// publishedWeights are those of the published test's mix. What it did not ask is there to be chosen, and to be refused.
var publishedWeights = map[string]int{
	pdpxHealthcheck: 25, pdpxStatistics: 23, pdpxMonitoring: 17, pdpxMinMax: 17, pdpxFrequency: 17,
}

// pdpxMix returns PDPXQuestions without those that the options leave out, and the known refusals of what is left.
func pdpxMix(o Options, set model.Set, position model.Position) (mix, refusals []model.Question, err error) {
	x, _ := sectionOf[PDPX](o)
	all := PDPXQuestions(x, set, position)
	if len(x.Operations) == 0 {
		return all, nil, nil
	}
	kinds := map[string]bool{}
	var names []string
	for _, q := range all {
		names = append(names, q.Name)
		if q.Policy != "" && slices.Contains(x.Operations, q.Name) {
			kinds[q.Policy] = true
		}
	}
	for _, name := range x.Operations {
		if !slices.Contains(names, name) {
			return nil, nil, fmt.Errorf("pdpx.operations: %q is not one of %s", name, strings.Join(names, ", "))
		}
	}
	for _, q := range all {
		switch {
		case slices.Contains(x.Operations, q.Name):
			mix = append(mix, q)
		case kinds[q.Policy] && q.Want != model.Permit && q.Want != model.None:
			refusals = append(refusals, q)
		}
	}
	return mix, refusals, nil
}

// PDPXQuestions returns healthcheck and statistics, which want no decision (model.None), then the questions of the
// published test (monitoring, guard-minmax, guard-frequency), and a known deny for each kind of policy:
// monitoring-absent asks for a policy that is not deployed, and wants NotApplicable; guard-minmax-deny has a vfCount
// beyond the maximum; guard-frequency-deny an operation, or a target, that is over its limit. The last is left out
// where the options name a frequency limiter of their own that denies throughout: guard-frequency is the known deny.
//
// Empty options have the values of the reference decision point, of whose set.N monitoring policies position selects
// the one that is asked for. At model.Absent no policy is asked for, and the right answer is NotApplicable.
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
		o.minMax(pdpxMinMax, o.permits(), model.Permit),
	}
	usual := model.Permit
	if o.FrequencyWant == model.Deny.String() {
		usual = model.Deny
	}
	within, over := o.limited()
	if o.Frequency == "" && usual == model.Deny {
		within = over
	}
	out = append(out,
		o.frequency(pdpxFrequency, within, usual),
		o.monitoring(pdpxAbsent, undeployedPolicyID, "", model.NotApplicable),
		o.minMax(pdpxMinMaxDeny, o.denies(), model.Deny),
	)
	if over != (limited{}) {
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
		ONAPName: "DCAE", ONAPComponent: "PolicyHandler", ONAPInstance: "622431a4-9dea-4eae-b443-3b2164639c64",
		Action:   "configure",
		Resource: resource,
	}.question(name, model.MonitoringKind, want)
}

func (o PDPX) minMax(name string, instances int, want model.Decision) model.Question {
	g := guardRequest{
		Actor: cmp.Or(o.Actor, model.MinMaxActor), Operation: cmp.Or(o.Operation, model.MinMaxOperation),
		VFCount: strconv.Itoa(instances),
	}
	return o.guard(name, model.MinMaxKind, g, want)
}

// frequency asks with a vfCount that a min/max policy about the same operation permits: a Deny is the limiter's own.
func (o PDPX) frequency(name string, on limited, want model.Decision) model.Question {
	g := guardRequest{
		Actor: cmp.Or(o.Actor, model.FrequencyActor), Operation: on.operation, Target: on.target,
		VFCount: strconv.Itoa(o.permits()),
	}
	if o.Frequency == "" && o.FrequencyOver == "" && o.OverTarget == "" {
		g.Actor = model.FrequencyActor // the reference's: an actor that the file names is that of its own min/max policy
	}
	return o.guard(name, model.FrequencyKind, g, want)
}

// guard asks as drools does before it acts.
func (o PDPX) guard(name, kind string, g guardRequest, want model.Decision) model.Question {
	g.Loop, g.Target = cmp.Or(o.ControlLoop, model.GuardLoop), cmp.Or(g.Target, o.Target, model.GuardTarget)
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
