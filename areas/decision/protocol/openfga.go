package protocol

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"

	"tare/areas/decision/model"
	"tare/internal/jsonscan"
	"tare/internal/load"
)

// openFGA returns the adapter for the check of OpenFGA (https://openfga.dev/api/service#/Relationship%20Queries/Check).
//
//	request   POST /stores/{store}/check
//	          {"tuple_key":{"user":"User:alice","relation":"read","object":"Doc:doc0"},"authorization_model_id",
//	          "context":{…}}: the context holds the subject's properties and the question's context, which conditions can
//	          look at
//	answer    200 {"allowed":true|false,…}
//	refusals  400 the request, among them a relation that the model does not have and a condition without its parameter;
//	          also a store or model that is not there, which code tells · 401, 403 the caller · 404 · 429 · 5xx
//	no policy there is no such answer: false. A question cannot want not-applicable.
//	lists     POST /stores/{store}/list-objects {"type","relation","user",…}, 200 {"objects":["Doc:doc0",…]}, and
//	          /stores/{store}/list-users {"object":{"type","id"},"relation","user_filters":[{"type"}],…}, 200
//	          {"users":[{"object":{"type","id"}}|{"userset":{"type","id","relation"}}|{"wildcard":{"type"}},…]}
//	counts    none: what OpenFGA counts in /metrics is requests by status, whatever was decided
func openFGA() Adapter {
	return Adapter{
		Name: "openfga", Help: "OpenFGA: POST /stores/ID/check", Section: "openfga",
		Schemes: webSchemes(), title: "OpenFGA", decisions: []model.Decision{model.Permit, model.Deny},
		options: validOpenFGA, call: checkOpenFGA, list: validList, Load: loadOpenFGA, Unload: unloadOpenFGA,
	}
}

// OpenFGA are the options of openfga.
type OpenFGA struct {
	Store    string `yaml:"store,omitempty" json:"store,omitempty" jsonschema_description:"ID of the store. Default with load: a store of the run's own."`
	Model    string `yaml:"model,omitempty" json:"model,omitempty" jsonschema_description:"ID of the authorization model. Default: the store's latest."`
	Relation string `yaml:"relation,omitempty" json:"relation,omitempty" jsonschema_description:"Relation to ask for. Default: the request's action."`
}

// validOpenFGA says what is wrong with the options. That a store is named, or made by Load, shows later.
func validOpenFGA(o Options) error {
	x, _ := sectionOf[OpenFGA](o)
	return cmp.Or(validID("openfga.store", x.Store), validID("openfga.model", x.Model))
}

// validID says what is wrong with the ID of a store or model, which is a ULID (https://github.com/ulid/spec). An empty
// ID means none is given.
func validID(option, id string) error {
	if id != "" && len(id) != 26 {
		return fmt.Errorf("%s: %q is no ID: one has 26 capital letters and digits, and is not the name", option, id)
	}
	for _, r := range id {
		if (r < '0' || r > '9') && (r < 'A' || r > 'Z') {
			return fmt.Errorf("%s: %q holds %q: an ID has only capital letters and digits", option, id, r)
		}
	}
	return nil
}

func checkOpenFGA(s *Session, q model.Question) (call, error) {
	o, _ := sectionOf[OpenFGA](s.Options)
	if o.Store == "" {
		return call{}, fmt.Errorf("openfga.store: name the store to ask, or set load: true")
	}
	if q.List != nil {
		return listOpenFGA(o, q)
	}
	r, err := posted("/stores/"+url.PathEscape(o.Store)+"/check", jsonMedia, q.Body, o.check(q))
	return call{
		request: r, expect: "200 with allowed " + fmt.Sprint(q.Want == model.Permit), judge: wantsCheck(q.Want),
	}, err
}

// A check is the body of a question that has none of its own.
type check struct {
	Key   model.Tuple       `json:"tuple_key"`
	Model string            `json:"authorization_model_id,omitempty"`
	Facts map[string]string `json:"context,omitempty"`
}

func (o OpenFGA) check(q model.Question) check {
	facts := map[string]string{}
	maps.Copy(facts, q.Subject.Properties)
	maps.Copy(facts, q.Context)
	key := model.Tuple{
		User: q.Subject.Type + ":" + q.Subject.ID, Relation: cmp.Or(o.Relation, q.Action),
		Object: q.Resource.Type + ":" + q.Resource.ID,
	}
	return check{key, o.Model, facts}
}

// OpenFGACheck is the body of the request that asks a question.
func OpenFGACheck(of Options, q model.Question) (json.RawMessage, error) {
	if q.Body != nil {
		return q.Body, nil
	}
	o, _ := sectionOf[OpenFGA](of)
	return json.Marshal(o.check(q))
}

// wantsCheck judges answers to a check.
func wantsCheck(want model.Decision) judge {
	return ofOpenFGA(func(body []byte) (load.Outcome, Verdict, model.Decision) { return judgeBody(want, readCheck, body) })
}

// ofOpenFGA judges answers with a good status by their bodies, and knows OpenFGA's own way to say that something is not
// there.
func ofOpenFGA(good func(body []byte) (load.Outcome, Verdict, model.Decision)) judge {
	return func(status int, body []byte) (load.Outcome, Verdict, model.Decision) {
		switch {
		case status == 200:
			return good(body)
		case status == 400 && isMissing(body):
			return load.Wrong, NoSuchPolicy, model.None
		}
		o, v := refusal(status)
		return o, v, model.None
	}
}

// readCheck reads the answer to one question.
func readCheck(body []byte) (model.Decision, Verdict) {
	var f [1][]byte
	if !jsonscan.Pick(body, f[:], "allowed") {
		return model.None, malformed(body)
	}
	return readBool(f[0])
}

// isMissing reports whether a refusal says that there is no such store or model.
func isMissing(body []byte) bool {
	var f [1][]byte
	if !jsonscan.Pick(body, f[:], "code") {
		return false
	}
	return jsonscan.Is(f[0], "authorization_model_not_found") ||
		jsonscan.Is(f[0], "latest_authorization_model_not_found") ||
		jsonscan.Is(f[0], "store_id_not_found")
}
