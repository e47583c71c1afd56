package protocol

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"tare/areas/decision/model"
	"tare/internal/jsonscan"
)

// xacml returns the adapter for the JSON profile of XACML 3.0 over REST (OASIS, JSON Profile of XACML 3.0 Version 1.1;
// REST Profile of XACML v3.0 Version 1.1).
//
//	request   POST <path> {"Request":{"Category":[{"CategoryId","Attribute":[{"AttributeId","DataType","Value"}]}]}},
//	          application/xacml+json. The shorthands AccessSubject, Action, Resource are not used: there are engines that
//	          answer them with 200 and Indeterminate.
//	answer    200 {"Response":[{"Decision":"Permit","Status":{…}}]}; some engines give one object instead of the array
//	refusals  400 the request · 401, 403 the caller. What could not be evaluated is 200 with Indeterminate, and a Status
//	          that says why.
//	no policy NotApplicable; below a PolicySet with deny-unless-permit: Deny.
//
// The REST profile leaves the path to the server: the default is /services/pdp.
func xacml() Adapter {
	return Adapter{
		Name: "xacml", Help: "XACML 3.0, REST and JSON profiles",
		Schemes: webSchemes(), Path: true, title: "XACML",
		decisions: []model.Decision{model.Permit, model.Deny, model.NotApplicable}, call: askXACML,
		Plain: func(permit bool) string {
			if permit {
				return `{"Response":[{"Decision":"Permit"}]}`
			}
			return `{"Response":[{"Decision":"Deny"}]}`
		},
	}
}

// xacmlMedia is the media type of request and answer (JSON profile, section 8).
const xacmlMedia = "application/xacml+json"

func askXACML(s *Session, q model.Question) (call, error) {
	r, err := posted(below(s.Options.Path, "/services/pdp"), xacmlMedia, q.Body, xacmlRequest(q))
	return call{
		request: r, expect: "200 with Decision " + decisionNames[q.Want], judge: wants(q.Want, readXACML), more: statusOf,
	}, err
}

type xacmlCategory struct {
	CategoryID string           `json:"CategoryId"`
	Attribute  []xacmlAttribute `json:"Attribute"`
}

type xacmlAttribute struct {
	AttributeID string `json:"AttributeId"`
	DataType    string `json:"DataType"`
	Value       string `json:"Value"`
}

// xacmlRequest returns a question in the profile's words. The subject's and the resource's properties, and the context,
// become attributes whose identifiers are model.XACMLAttribute of their names.
func xacmlRequest(q model.Question) any {
	var doc struct {
		Request struct {
			Category []xacmlCategory `json:"Category"`
		} `json:"Request"`
	}
	add := func(category, id, value string, properties map[string]string) {
		c := xacmlCategory{CategoryID: category, Attribute: []xacmlAttribute{}}
		if id != "" {
			c.Attribute = append(c.Attribute, xacmlAttribute{id, model.XACMLString, value})
		}
		for _, name := range slices.Sorted(maps.Keys(properties)) {
			c.Attribute = append(c.Attribute, xacmlAttribute{model.XACMLAttribute(name), model.XACMLString, properties[name]})
		}
		doc.Request.Category = append(doc.Request.Category, c)
	}
	add(model.XACMLSubject, model.XACMLSubjectID, q.Subject.ID, q.Subject.Properties)
	add(model.XACMLAction, model.XACMLActionID, q.Action, nil)
	add(model.XACMLResource, model.XACMLResourceID, q.Resource.ID, q.Resource.Properties)
	if len(q.Context) > 0 {
		add(model.XACMLEnvironment, "", "", q.Context)
	}
	return doc
}

// xacmlResult returns the one result of an answer.
func xacmlResult(body []byte) ([]byte, Verdict) {
	var f [1][]byte
	if !jsonscan.Pick(body, f[:], "Response") {
		return nil, malformed(body)
	}
	switch {
	case f[0] == nil:
		return nil, NoDecision
	case f[0][0] != '[':
		return f[0], Fine
	}
	w := jsonscan.Array(f[0])
	var result []byte
	n := 0
	for {
		_, element, more := w.Next()
		if !more {
			break
		}
		result = element
		n++
	}
	switch {
	case !w.Whole():
		return nil, NotJSON
	case n == 0:
		return nil, NoDecision
	case n > 1:
		return nil, WrongBatch
	}
	return result, Fine
}

// readXACML reads the answer to one question.
func readXACML(body []byte) (model.Decision, Verdict) {
	result, v := xacmlResult(body)
	if v != Fine {
		return model.None, v
	}
	var f [1][]byte
	if !jsonscan.Pick(result, f[:], "Decision") {
		return model.None, NotJSON
	}
	if f[0] == nil {
		return model.None, NoDecision
	}
	return xacmlDecision(f[0])
}

// xacmlDecision reads a decision. Indeterminate{D}, {P} and {DP} are the extended ones (XACML 3.0 core, section 7.10).
func xacmlDecision(raw []byte) (model.Decision, Verdict) {
	switch {
	case jsonscan.Is(raw, "Permit"):
		return model.Permit, Fine
	case jsonscan.Is(raw, "Deny"):
		return model.Deny, Fine
	case jsonscan.Is(raw, "NotApplicable"):
		return model.NotApplicable, Fine
	case jsonscan.Is(raw, "Indeterminate"), bytes.HasPrefix(raw, []byte(`"Indeterminate{`)):
		return model.Indeterminate, Fine
	}
	return model.None, NotJSON
}

// statusOf returns what an answer says besides its decision, such as "status
// urn:oasis:names:tc:xacml:1.0:status:processing-error: …".
func statusOf(body []byte) string {
	result, v := xacmlResult(body)
	if v != Fine {
		return ""
	}
	var r struct {
		Status *struct {
			StatusMessage string
			StatusCode    *struct{ Value string }
		}
	}
	if json.Unmarshal(result, &r) != nil || r.Status == nil {
		return ""
	}
	var said []string
	if c := r.Status.StatusCode; c != nil && c.Value != "" {
		said = append(said, "status "+c.Value)
	}
	if m := r.Status.StatusMessage; m != "" {
		said = append(said, m)
	}
	return strings.Join(said, ": ")
}
