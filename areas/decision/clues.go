package decision

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"

	"tare/area"
	"tare/internal/kit"
)

// clues are members that the protocol requires and that no other answer has by chance.
func clues() []area.Clue {
	return []area.Clue{
		{Path: "/.well-known/authzen-configuration", Tells: tellsAuthZEN},
		{Path: "/v1/data/system/version", Tells: tellsOPA},
	}
}

// tellsAuthZEN knows the metadata of AuthZEN 1.0: policy_decision_point and access_evaluation_endpoint.
func tellsAuthZEN(u *url.URL, h area.Heard) (s area.Spoken, err error) {
	endpoint := h.Text("access_evaluation_endpoint")
	if h.Status != http.StatusOK || h.Text("policy_decision_point") == "" || endpoint == "" {
		return s, nil
	}
	if err := kit.SameServer(u, endpoint, "authzen"); err != nil {
		return s, err
	}
	s = area.Spoken{Adapter: "authzen", URL: u.Scheme + "://" + u.Host}
	if at, _ := url.Parse(endpoint); at.Path != "/access/v1/evaluation" { // SameServer has parsed it
		path, _ := json.Marshal(at.Path) // a string can be encoded
		s.Options = "  path: " + string(path) + "\n"
	}
	s.Evidence = fmt.Sprintf("%s answers AuthZEN's discovery, and names this endpoint: %s", u, endpoint)
	return s, nil
}

// tellsOPA knows the build that Open Policy Agent keeps in its own data.
func tellsOPA(u *url.URL, h area.Heard) (s area.Spoken, err error) {
	result, _ := h.Body["result"].(map[string]any)
	_, built := result["build_commit"].(string) // empty in a build from source
	if h.Status != http.StatusOK || !built || h.Text("result.version") == "" {
		return s, nil
	}
	return area.Spoken{Adapter: "opa", URL: u.String(), Evidence: fmt.Sprintf(
		"%s answers /v1/data/system/version as Open Policy Agent does, version %.40s", u, h.Text("result.version"))}, nil
}

// listed is area.Parts.Adapters.
func listed() (out []area.Adapter) {
	for _, x := range kit.Adapters(Area{}.Adapters()) {
		switch x.Name {
		case "opa":
			x.Needs = "opa needs policies: --set target.load=true puts tare's own there for the run and takes them out again; " +
				"to ask about those that are there, set target.opa.path and target.requests"
		case "authzen", "ext-authz", "k8s-sar", "xacml", "openfga":
			x.Needs = x.Name + " needs questions with known answers: set target.requests"
		}
		if x.Name == "ext-authz" {
			x.Schemes = []string{"grpc", "grpcs"}
		}
		out = append(out, x)
	}
	return out
}
