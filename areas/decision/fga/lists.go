package fga

import (
	"encoding/json"
	"strings"

	"go.yaml.in/yaml/v4"
)

// A listing is a test's question for lists, and what reads it.
type listing struct {
	item
	read func(r *reader, of item, own []Tuple) error
}

// listsOf are the questions for lists of a test.
func listsOf(f map[string]item) (out []listing, err error) {
	for _, list := range []struct {
		name string
		read func(r *reader, of item, own []Tuple) error
	}{{"list_objects", (*reader).readListObjects}, {"list_users", (*reader).readListUsers}} {
		items, err := f[list.name].list(list.name)
		if err != nil {
			return nil, err
		}
		for _, i := range items {
			out = append(out, listing{i, list.read})
		}
	}
	return out, nil
}

// readListObjects reads which objects of a type a user must have a relation to, for each relation that is asserted.
func (r *reader) readListObjects(of item, own []Tuple) error {
	f, err := of.fields("a list of objects", "user", "type", "context", "assertions")
	if err != nil {
		return err
	}
	user, err := wanted(of, f, "user")
	if err != nil {
		return err
	}
	kind, err := wanted(of, f, "type")
	if err != nil {
		return err
	}
	context, err := contextOf(f)
	if err != nil {
		return err
	}
	return asserted(of, f, func(relation string, right item) error {
		list, err := right.texts("objects")
		if err != nil {
			return err
		}
		body := map[string]any{"type": kind, "relation": relation, "user": user}
		if len(own) > 0 {
			body["contextual_tuples"] = map[string]any{"tuple_keys": keysOf(own)}
		}
		text, err := withContext(body, context)
		if err != nil {
			return of.errorf("%w", err)
		}
		r.add(Check{Name: strings.Join([]string{user, "lists", relation, kind}, " "), Body: text, Want: true, List: &list})
		return nil
	})
}

// readListUsers reads which users must have a relation to an object, for each relation that is asserted.
func (r *reader) readListUsers(of item, own []Tuple) error {
	f, err := of.fields("a list of users", "object", "user_filter", "context", "assertions")
	if err != nil {
		return err
	}
	object, err := wanted(of, f, "object")
	if err != nil {
		return err
	}
	kind, id, ok := strings.Cut(object, ":")
	if !ok {
		return f["object"].errorf("want an object such as doc:plan")
	}
	at := f["user_filter"]
	if at.Node == nil || at.Kind != yaml.SequenceNode || len(at.Content) == 0 {
		return of.errorf("want user_filter: a list of types, such as [{type: user}]")
	}
	filters, err := at.value()
	if err != nil {
		return err
	}
	context, err := contextOf(f)
	if err != nil {
		return err
	}
	return asserted(of, f, func(relation string, right item) error {
		has, err := right.fields("what is asserted of users", "users", "excluded_users")
		if err != nil {
			return err
		}
		list, err := has["users"].texts("users")
		if err != nil {
			return err
		}
		body := map[string]any{
			"object": map[string]string{"type": kind, "id": id}, "relation": relation, "user_filters": filters,
		}
		if len(own) > 0 {
			body["contextual_tuples"] = keysOf(own)
		}
		text, err := withContext(body, context)
		if err != nil {
			return of.errorf("%w", err)
		}
		r.add(Check{Name: strings.Join([]string{object, "lists", relation}, " "), Body: text, Want: true, List: &list})
		return nil
	})
}

// wanted is the text of a field that must be there.
func wanted(of item, f map[string]item, name string) (string, error) {
	text, err := f[name].text(name)
	if err == nil && text == "" {
		err = of.errorf("want %s", name)
	}
	return text, err
}

// asserted reads what is asserted of each relation, in the order of the file.
func asserted(of item, f map[string]item, read func(relation string, right item) error) error {
	at := f["assertions"]
	if at.Node == nil || at.Kind != yaml.MappingNode {
		return of.errorf("want assertions: relations, each with its list")
	}
	for i := 0; i+1 < len(at.Content); i += 2 {
		if err := read(at.Content[i].Value, item{at.Content[i+1], at.file}); err != nil {
			return err
		}
	}
	return nil
}

// Proof is the body of a check that asks for the relation which the body of a question for a list names; any other body
// is returned as it is.
func Proof(body json.RawMessage) json.RawMessage {
	var list struct {
		Relation, Type string
		Object         json.RawMessage
	}
	if json.Unmarshal(body, &list) != nil || list.Relation == "" {
		return body
	}
	if list.Type == "" {
		var object struct{ Type string }
		if json.Unmarshal(list.Object, &object) != nil {
			return body
		}
		list.Type = object.Type
	}
	out, err := json.Marshal(map[string]any{
		"tuple_key": map[string]string{"relation": list.Relation, "object": list.Type + ":any"},
	})
	if err != nil {
		return body
	}
	return out
}
