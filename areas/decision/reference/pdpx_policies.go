package reference

import (
	"encoding/json"
	"fmt"
	"strconv"

	"tare/areas/decision/model"
)

// A document is a policy as monitoring answers hold it, encoded ahead.
type document struct {
	key  string // its ID as a JSON text
	head []byte // the whole of it up to its properties, which all policies share: there may be a million
	abbr []byte // abbreviated
}

// appendTo appends `ID: policy`.
func (d *document) appendTo(dst []byte, abbreviated bool) []byte {
	dst = append(append(dst, d.key...), ':')
	if abbreviated {
		return append(dst, d.abbr...)
	}
	return append(append(append(append(dst, d.head...), `,"properties":`...), thresholds...), '}')
}

// tosca is a policy in ONAP's form, without its properties.
type tosca struct {
	Type        string         `json:"type"`
	TypeVersion string         `json:"type_version,omitempty"`
	Name        string         `json:"name,omitempty"`
	Version     string         `json:"version,omitempty"`
	Metadata    map[string]any `json:"metadata"`
}

// toscaVersion is the version of all policies and types of the reference.
const toscaVersion = "1.0.0"

// thresholds are the properties of the published test's policy: when a control loop is told to act.
const thresholds = `{"tca_policy":{"domain":"measurementsForVfScaling","metricsPerEventName":[{"eventName":"Measurement_vGMUX",` +
	`"controlLoopSchemaType":"VNF","policyScope":"DCAE","policyName":"DCAE.Config_tca-hi-lo","policyVersion":"v0.0.1","thresholds":[` +
	`{"closedLoopControlName":"ControlLoop-vCPE-48f0c2c3-a172-4192-9ae3-052274181b6e","version":"1.0.2",` +
	`"fieldPath":"$.event.measurementsForVfScalingFields.additionalMeasurements[*].arrayOfFields[0].value",` +
	`"thresholdValue":0,"direction":"EQUAL","severity":"MAJOR","closedLoopEventStatus":"ABATED"},` +
	`{"closedLoopControlName":"ControlLoop-vCPE-48f0c2c3-a172-4192-9ae3-052274181b6e","version":"1.0.2",` +
	`"fieldPath":"$.event.measurementsForVfScalingFields.additionalMeasurements[*].arrayOfFields[0].value",` +
	`"thresholdValue":0,"direction":"GREATER","severity":"CRITICAL","closedLoopEventStatus":"ONSET"}]}]}}`

// newDocument encodes a policy. The abbreviated form lacks type_version, properties, name and version, as ONAP's has
// it.
func newDocument(id, kind string) (*document, error) {
	metadata := map[string]any{"policy-id": id, "policy-version": 1}
	whole, err := json.Marshal(tosca{
		Type: kind, TypeVersion: toscaVersion, Name: id, Version: toscaVersion,
		Metadata: metadata,
	})
	if err != nil {
		return nil, fmt.Errorf("encode policy %s: %w", id, err)
	}
	abbr, err := json.Marshal(tosca{Type: kind, Metadata: metadata})
	if err != nil {
		return nil, fmt.Errorf("encode policy %s: %w", id, err)
	}
	key, err := json.Marshal(id)
	return &document{string(key), whole[:len(whole)-1], abbr}, err
}

// newMonitoring makes the application of action "configure" with n policies. Their target is that of ONAP's translator:
// the policy's ID, or its type, or its type with the version.
func newMonitoring(n int) (*application, error) {
	a := &application{name: "monitoring", combine: permitOverrides}
	for i := range n {
		p, err := newMonitoringPolicy(model.Monitoring(i))
		if err != nil {
			return nil, err
		}
		a.policies = append(a.policies, p)
	}
	return a, nil
}

func newMonitoringPolicy(id, kind string) (*policy, error) {
	d, err := newDocument(id, kind)
	if err != nil {
		return nil, err
	}
	return &policy{
		id: id, kind: kind, target: target{{{attrPolicyID, id}}, {{attrPolicyType, kind}}},
		rules: []rule{{effect: permits}}, combine: firstApplicable, obligation: d,
	}, nil
}

// newGuard makes the application of action "guard". Without policies it is the one of the published test: every request
// is NotApplicable.
func newGuard(h *history, deployed bool) *application {
	a := &application{name: "guard", combine: denyOverrides}
	if deployed {
		a.policies = []*policy{
			minMax("guard.minmax.scaleout", model.MinMaxActor, model.MinMaxOperation, model.GuardTarget, model.MinMaxLeast,
				model.MinMaxMost),
			frequencyLimiter("guard.frequency.restart", h, model.FrequencyActor, model.FrequencyWithin, model.FrequencyLimit),
			frequencyLimiter("guard.frequency.rebuild", h, model.FrequencyActor, model.FrequencyOver, model.FrequencyLimit),
		}
	}
	return a
}

// minMax has the two rules of ONAP's translator: it permits while vfCount < least, and while vfCount < most. So it
// permits below the minimum too, and denies at the maximum.
func minMax(id, actor, name, on string, least, most int) *policy {
	below := func(b *bags) (bool, error) {
		if len(b[attrVFCount]) == 0 {
			return false, nil // the rules' targets match nothing
		}
		n, err := strconv.Atoi(b[attrVFCount][0])
		return err == nil && (n < least || n < most), err
	}
	return &policy{
		id: id, kind: model.MinMaxType, target: target{{{attrActor, actor}, {attrOperation, name}, {attrTarget, on}}},
		rules: []rule{{effect: permits, condition: below}}, combine: denyUnlessPermit,
	}
}

// frequencyLimiter permits an operation while the history holds fewer than limit of it within the window.
func frequencyLimiter(id string, h *history, actor, name string, limit int) *policy {
	below := func(b *bags) (bool, error) {
		n, err := h.count(b, frequencyWindow)
		return err == nil && n < limit, err
	}
	return &policy{
		id: id, kind: model.FrequencyType, target: target{{{attrActor, actor}, {attrOperation, name}}},
		rules: []rule{{effect: permits, condition: below}}, combine: denyUnlessPermit,
	}
}
