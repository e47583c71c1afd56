package protocol

import (
	"encoding/json"
	"fmt"
	"strings"

	"tare/areas/decision/model"
	"tare/internal/load"
)

// pdpx returns the adapter for the API of ONAP's policy decision point (onap/policy-xacml-pdp, openapi.yaml: "Policy
// Xacml PDP"), below /policy/pdpx/v1.
//
//	requests  GET healthcheck, GET statistics, POST decision
//	          {"ONAPName","ONAPComponent","ONAPInstance","requestId","action","resource"}; with option xacml, POST xacml
//	          in the JSON profile of XACML
//	answers   action configure (monitoring): 200 {"policies":{ID:{"type",…},…}}, all policies that have one of the IDs or
//	          one of the types; without any {"policies":{}}, to which releases since 2021 add "status":"error":
//	          NotApplicable, and with a "message" besides Indeterminate
//	          action guard: 200 {"status":"Permit"|"Deny"}; {"status":"error","message":…}: request not understood
//	refusals  400 {"code":"BAD_REQUEST","error":…,"details":[…]}, and of a body that is no JSON {"errorDetails":…} · 409
//	          while the policies are being loaded · 401, 415, 500 from the servlet container, 500 also for an empty body
//	no policy a guard request that no policy is about, or whose policies could not be evaluated, is answered
//	          {"status":"Permit"}, and counted as NotApplicable or Indeterminate: see CheckCounts
//	no data   a frequency limiter whose database is down counts −1 operations, permits, and counts Permit: only a request
//	          over its limit shows that
//
// {n} in a request's body becomes 16 hexadecimal digits that are new in each call.
func pdpx() Adapter {
	return Adapter{
		Name: "pdpx", Help: "ONAP's decision API: healthcheck, statistics, monitoring and guard decisions", Section: "pdpx",
		Schemes: webSchemes(), title: "pdpx", decisions: []model.Decision{model.Permit, model.Deny, model.NotApplicable},
		statuses: []string{pdpxHealthcheck, pdpxStatistics}, options: validPDPX,
		body: func(raw []byte) error {
			_, err := readPDPXRequest(raw)
			return err
		},
		call: callPDPX, Questions: pdpxMix, Counted: countedPDPX, CheckCounts: checkPDPXCounts,
	}
}

// pdpxBase is where the API is, if the URL does not end with it.
const pdpxBase = "/policy/pdpx/v1"

// The operations that ask for no decision.
const (
	pdpxHealthcheck = "healthcheck"
	pdpxStatistics  = "statistics"
)

func callPDPX(s *Session, q model.Question) (call, error) {
	base := pdpxBase
	if strings.HasSuffix(s.Base, pdpxBase) {
		base = ""
	}
	c := call{weight: publishedWeights[q.Name], numbered: true}
	if pdpx().isStatus(q) {
		c.request, c.judge, c.expect = request{method: "GET", path: base + "/" + q.Name}, judgeHealth, "200 with healthy true"
		if q.Name == pdpxStatistics {
			c.judge, c.expect = judgeStatistics, "200 with the counts of decisions"
		}
		return c, nil
	}
	asked, err := readPDPXRequest(q.Body)
	if err != nil {
		return call{}, fmt.Errorf("requests: the body of %q %w", q.Name, err)
	}
	body := []byte(strings.ReplaceAll(string(q.Body), placeholder, load.CallMark))
	c.request = request{method: "POST", path: base + "/decision", body: body}
	switch {
	case len(asked.Request) > 0:
		c.path, c.media = base+"/xacml", xacmlMedia
		c.judge, c.expect, c.more = wants(q.Want, readXACML), "200 with Decision "+decisionNames[q.Want], statusOf
	case asked.Action == "guard":
		c.judge, c.expect, c.more = wants(q.Want, readGuard), "200 with status "+decisionNames[q.Want], asked.about
	default:
		c.judge, c.expect, c.more = asked.judge(q.Want), "200 with the policy "+asked.policyID(), asked.about
		if q.Want == model.NotApplicable {
			c.expect = "200 without policies"
		}
	}
	return c, nil
}

// pdpxRequest is what the adapter wants to know of a request for a decision.
type pdpxRequest struct {
	Action   string          `json:"action"`
	Request  json.RawMessage `json:"Request"` // of the XACML JSON profile
	Resource struct {
		PolicyID   json.RawMessage `json:"policy-id"`
		PolicyType json.RawMessage `json:"policy-type"`
		Guard      guardRequest    `json:"guard"`
	} `json:"resource"`
}

type guardRequest struct {
	Actor     string `json:"actor,omitempty"`
	Operation string `json:"operation,omitempty"`
	Recipe    string `json:"recipe,omitempty"`
	Loop      string `json:"clname,omitempty"`
	Target    string `json:"target,omitempty"`
	VFCount   string `json:"vfCount,omitempty"`
}

// readPDPXRequest reads a request for a decision as the file or Questions have it; the error goes on with "the body of
// …".
func readPDPXRequest(body json.RawMessage) (pdpxRequest, error) {
	var r pdpxRequest
	if len(body) == 0 {
		return r, fmt.Errorf(`is missing: pdpx needs the whole request, such as {"action":"guard","resource":{…}}`)
	}
	// What is only told to people may have any form.
	var named struct {
		Action  *string         `json:"action"`
		Request json.RawMessage `json:"Request"`
	}
	if err := json.Unmarshal(body, &named); err != nil {
		return r, fmt.Errorf("is no request for a decision: %w", err)
	}
	if named.Action == nil && len(named.Request) == 0 {
		return r, fmt.Errorf("has neither action nor Request")
	}
	_ = json.Unmarshal(body, &r) // as far as it goes
	return r, nil
}

// policyID returns the first policy ID that is asked for; empty: none.
func (r pdpxRequest) policyID() string { return firstText(r.Resource.PolicyID) }

// about says in words what a request is about.
func (r pdpxRequest) about([]byte) string {
	g := r.Resource.Guard
	if g == (guardRequest{}) {
		named := strings.Join(strings.Fields(r.policyID()+" "+firstText(r.Resource.PolicyType)), " of type ")
		if named == "" {
			return "this request"
		}
		return "policy " + named
	}
	text := fmt.Sprintf("actor %q, operation %q, target %q", g.Actor, g.Operation+g.Recipe, g.Target)
	if g.VFCount != "" {
		text += ", vfCount " + g.VFCount
	}
	return text
}

// firstText returns a string, or the first of a list of strings.
func firstText(raw json.RawMessage) string {
	var one string
	if len(raw) == 0 || json.Unmarshal(raw, &one) == nil {
		return one
	}
	var many []string
	if json.Unmarshal(raw, &many) == nil && len(many) > 0 {
		return many[0]
	}
	return ""
}
