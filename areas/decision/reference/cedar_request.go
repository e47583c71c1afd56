package reference

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/cedar-policy/cedar-go"

	"tare/areas/decision/cedarset"
)

// maxEvaluations bounds a batch.
const maxEvaluations = 1000

// The words of options.evaluations_semantic.
const (
	executeAll        = "execute_all"
	denyOnFirstDeny   = "deny_on_first_deny"
	permitOnFirstTrue = "permit_on_first_permit"
)

// An evaluation is AuthZEN's request for a decision, before its parts are checked: in a batch, parts may come from the
// defaults.
type evaluation struct {
	Subject  *authzenEntity  `json:"subject"`
	Action   *authzenAction  `json:"action"`
	Resource *authzenEntity  `json:"resource"`
	Context  json.RawMessage `json:"context"`
}

type authzenEntity struct {
	Type       string          `json:"type"`
	ID         string          `json:"id"`
	Properties json.RawMessage `json:"properties"`
}

type authzenAction struct {
	Name       string          `json:"name"`
	Properties json.RawMessage `json:"properties"`
}

// evaluations is the request of the batch endpoint. Nil Evaluations: it is one evaluation, as the specification says.
type evaluations struct {
	evaluation
	Evaluations []evaluation `json:"evaluations"`
	Options     struct {
		Semantic string `json:"evaluations_semantic"`
	} `json:"options"`
}

// parseEvaluation reads exactly one JSON object. Unknown members are ignored, as AuthZEN wants.
func parseEvaluation(body []byte) (evaluation, error) {
	var e evaluation
	return e, decodeObject(body, &e)
}

// parseEvaluations reads a batch and gives every evaluation in it the parts that it lacks.
func parseEvaluations(body []byte) (evaluations, error) {
	var b evaluations
	if err := decodeObject(body, &b); err != nil {
		return b, err
	}
	switch b.Options.Semantic {
	case "":
		b.Options.Semantic = executeAll
	case executeAll, denyOnFirstDeny, permitOnFirstTrue:
	default:
		return b, fmt.Errorf("options.evaluations_semantic %q is not one of %s, %s, %s", b.Options.Semantic, executeAll,
			denyOnFirstDeny, permitOnFirstTrue)
	}
	if len(b.Evaluations) > maxEvaluations {
		return b, fmt.Errorf("%d evaluations: at most %d are taken", len(b.Evaluations), maxEvaluations)
	}
	for i := range b.Evaluations {
		b.Evaluations[i].complete(b.evaluation)
	}
	return b, nil
}

// complete takes what is missing from the defaults: whole parts, never members of parts.
func (e *evaluation) complete(defaults evaluation) {
	if e.Subject == nil {
		e.Subject = defaults.Subject
	}
	if e.Action == nil {
		e.Action = defaults.Action
	}
	if e.Resource == nil {
		e.Resource = defaults.Resource
	}
	if e.Context == nil {
		e.Context = defaults.Context
	}
}

func decodeObject(body []byte, into any) error {
	dec := json.NewDecoder(bytes.NewReader(body))
	if err := dec.Decode(into); err != nil {
		return fmt.Errorf("the request is no JSON object of AuthZEN: %w", err)
	}
	if first := bytes.TrimLeft(body, " \t\r\n"); first[0] != '{' {
		return errors.New("the request is no JSON object of AuthZEN")
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errors.New("the request holds more than one JSON value")
	}
	return nil
}

// A view is the entities that a request names, over those that the decision point has.
type view struct{ named, all cedar.EntityMap }

// Get implements types.EntityGetter.
func (v view) Get(uid cedar.EntityUID) (cedar.Entity, bool) {
	if e, ok := v.named[uid]; ok {
		return e, true
	}
	e, ok := v.all[uid]
	return e, ok
}

// cedar makes Cedar's request and entities of it: Type::"id" with the properties as attributes, Action::"name", and the
// context.
func (e evaluation) cedar(set *cedarset.Set) (cedar.Request, view, error) {
	var none cedar.Request
	named := view{cedar.EntityMap{}, set.Entities}
	switch {
	case e.Subject == nil || e.Subject.Type == "" || e.Subject.ID == "":
		return none, named, errors.New("subject: type and id are needed")
	case e.Action == nil || e.Action.Name == "":
		return none, named, errors.New("action: name is needed")
	case e.Resource == nil || e.Resource.Type == "" || e.Resource.ID == "":
		return none, named, errors.New("resource: type and id are needed")
	}
	out := cedar.Request{Action: cedarset.Action(e.Action.Name)}
	var err error
	if out.Principal, err = named.add(e.Subject.uid(), e.Subject.Properties, set); err != nil {
		return none, named, fmt.Errorf("subject: %w", err)
	}
	if out.Resource, err = named.add(e.Resource.uid(), e.Resource.Properties, set); err != nil {
		return none, named, fmt.Errorf("resource: %w", err)
	}
	if _, err = named.add(out.Action, e.Action.Properties, set); err != nil {
		return none, named, fmt.Errorf("action: %w", err)
	}
	if out.Context, err = cedarRecord(e.Context); err == nil {
		out.Context, err = set.Context(out.Action, out.Context)
	}
	if err != nil {
		return none, named, fmt.Errorf("context: %w", err)
	}
	return out, named, nil
}

func (e authzenEntity) uid() cedar.EntityUID {
	return cedar.NewEntityUID(cedar.EntityType(e.Type), cedar.String(e.ID))
}

// add adds an entity of a request. Properties are attributes in place of those that the decision point has of it.
func (v view) add(uid cedar.EntityUID, properties json.RawMessage, set *cedarset.Set) (cedar.EntityUID, error) {
	given, err := cedarRecord(properties)
	if err == nil {
		given, err = set.Attributes(uid.Type, given)
	}
	if err != nil {
		return uid, fmt.Errorf("properties: %w", err)
	}
	is, known := v.all[uid]
	switch {
	case !known:
		v.named[uid] = cedar.Entity{UID: uid, Attributes: given, Parents: roles(given)}
	case given.Len() > 0:
		attributes := cedar.RecordMap{}
		maps.Copy(attributes, is.Attributes.Map())
		maps.Copy(attributes, given.Map())
		is.Attributes = cedar.NewRecord(attributes)
		is.Parents = cedar.NewEntityUIDSet(slices.AppendSeq(slices.Collect(is.Parents.All()), roles(given).All())...)
		v.named[uid] = is
	}
	return uid, nil
}

// roles returns the groups that the property "role" puts an entity into: AuthZEN has properties, Cedar's roles are
// parents.
func roles(attributes cedar.Record) cedar.EntityUIDSet {
	role, ok := attributes.Get("role")
	if !ok {
		return cedar.EntityUIDSet{}
	}
	switch v := role.(type) {
	case cedar.String:
		return cedar.NewEntityUIDSet(cedar.NewEntityUID("Role", v))
	case cedar.Set:
		var uids []cedar.EntityUID
		for one := range v.All() {
			if s, ok := one.(cedar.String); ok {
				uids = append(uids, cedar.NewEntityUID("Role", s))
			}
		}
		return cedar.NewEntityUIDSet(uids...)
	default:
		return cedar.EntityUIDSet{}
	}
}
