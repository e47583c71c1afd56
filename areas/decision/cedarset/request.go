package cedarset

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/cedar-policy/cedar-go"
)

// actionType is the last name of the type that all actions have.
const actionType = "Action"

// AuthZEN makes a request of AuthZEN of one in the form that Cedar's command line reads: {principal, action, resource,
// context}.
func AuthZEN(text []byte) (json.RawMessage, error) {
	var r request
	if err := decode(text, &r); err != nil {
		return nil, fmt.Errorf("a request is {principal, action, resource, context}: %w", err)
	}
	if err := r.check(); err != nil {
		return nil, err
	}
	body := map[string]any{
		"subject":  map[string]any{"type": r.Principal.Type, "id": r.Principal.ID},
		"action":   map[string]any{"name": actionName(cedar.EntityUID(r.Action))},
		"resource": map[string]any{"type": r.Resource.Type, "id": r.Resource.ID},
	}
	if len(r.Context) > 0 {
		body["context"] = r.Context
	}
	return json.Marshal(body)
}

// A request is one as Cedar's command line reads it.
type request struct {
	Principal uid             `json:"principal"`
	Action    uid             `json:"action"`
	Resource  uid             `json:"resource"`
	Context   json.RawMessage `json:"context"`
}

// isRequest reports whether a file is one request.
func isRequest(text []byte) bool {
	var keys map[string]json.RawMessage
	return json.Unmarshal(text, &keys) == nil && keys["principal"] != nil && keys["action"] != nil &&
		keys["resource"] != nil
}

func (r request) check() error {
	for _, x := range []struct {
		name string
		is   uid
	}{{"principal", r.Principal}, {"action", r.Action}, {"resource", r.Resource}} {
		if x.is.Type == "" || x.is.ID == "" {
			return fmt.Errorf("%s: an entity with a name is needed", x.name)
		}
	}
	return nil
}

// actionName is the name of an action in AuthZEN, which Action reads.
func actionName(action cedar.EntityUID) string {
	if name := string(action.ID); Action(name) == action {
		return name
	}
	return string(action.MarshalCedar())
}

// Action is the action of a name: Action::"name", or the one that the name is as Cedar writes it, such as
// Shop::Action::"buy".
func Action(name string) cedar.EntityUID {
	var is cedar.EntityUID
	if !strings.HasSuffix(name, `"`) || is.UnmarshalCedar([]byte(name)) != nil ||
		is.Type != actionType && !strings.HasSuffix(string(is.Type), "::"+actionType) {
		return cedar.NewEntityUID(actionType, cedar.String(name))
	}
	return is
}

// A uid is an entity's name, as Cedar writes it or as JSON.
type uid cedar.EntityUID

// UnmarshalJSON implements json.Unmarshaler.
func (u *uid) UnmarshalJSON(text []byte) error {
	is := (*cedar.EntityUID)(u)
	if len(text) == 0 || text[0] != '"' {
		return is.UnmarshalJSON(text)
	}
	var name string
	if err := json.Unmarshal(text, &name); err != nil {
		return err
	}
	if err := is.UnmarshalCedar([]byte(name)); err != nil {
		return errors.Join(fmt.Errorf("%q is no entity such as User::\"alice\"", name), err)
	}
	return nil
}
