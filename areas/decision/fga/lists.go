package fga

import (
	"encoding/json"
	"strings"

	"go.yaml.in/yaml/v4"
)

// A listing is a kind of a test's questions for lists.
type listing struct {
	name, what string
	fields     []string
	// ask makes the part of a request that is the same for all relations, and of the question's name what comes before and
	// after the relation.
	ask func(of item, f map[string]item) (body map[string]any, before, after string, err error)
	// right reads the right list.
	right func(is item) ([]string, error)
	// tuples are relationships of the test's own, as the request has them.
	tuples func(keys []json.RawMessage) any
}

func listings() []listing {
	return []listing{
		{
			"list_objects", "a list of objects",
			[]string{"user", "type", "context", "assertions"},
			askObjects,
			func(is item) ([]string, error) { return is.texts("objects") },
			func(keys []json.RawMessage) any { return map[string]any{"tuple_keys": keys} },
		},
		{
			"list_users", "a list of users",
			[]string{"object", "user_filter", "context", "assertions"},
			askUsers, rightUsers,
			func(keys []json.RawMessage) any { return keys },
		},
	}
}

// readLists reads a test's questions for lists, one for each relation that is asserted.
func (r *reader) readLists(test map[string]item, own []Tuple) error {
	for _, l := range listings() {
		items, err := test[l.name].list(l.name)
		if err != nil {
			return err
		}
		for _, of := range items {
			if err := r.readList(l, of, own); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *reader) readList(l listing, of item, own []Tuple) error {
	f, err := of.fields(l.what, l.fields...)
	if err != nil {
		return err
	}
	body, before, after, err := l.ask(of, f)
	if err != nil {
		return err
	}
	context, err := contextOf(f)
	if err != nil {
		return err
	}
	if len(own) > 0 {
		body["contextual_tuples"] = l.tuples(keysOf(own))
	}
	return asserted(of, f, func(relation string, is item) error {
		list, err := l.right(is)
		if err != nil {
			return err
		}
		body["relation"] = relation
		text, err := withContext(body, context)
		if err != nil {
			return of.errorf("%w", err)
		}
		name := strings.TrimSpace(strings.Join([]string{before, "lists", relation, after}, " "))
		r.add(Check{Name: name, Body: text, Want: true, List: &list})
		return nil
	})
}

// askObjects asks which objects of a type a user has a relation to.
func askObjects(of item, f map[string]item) (body map[string]any, before, after string, err error) {
	user, err := wanted(of, f, "user")
	if err != nil {
		return nil, "", "", err
	}
	kind, err := wanted(of, f, "type")
	return map[string]any{"type": kind, "user": user}, user, kind, err
}

// askUsers asks which users have a relation to an object.
func askUsers(of item, f map[string]item) (body map[string]any, before, after string, err error) {
	object, err := wanted(of, f, "object")
	if err != nil {
		return nil, "", "", err
	}
	kind, id, ok := strings.Cut(object, ":")
	if !ok {
		return nil, "", "", f["object"].errorf("want an object such as doc:plan")
	}
	at := f["user_filter"]
	if at.Node == nil || at.Kind != yaml.SequenceNode || len(at.Content) == 0 {
		return nil, "", "", of.errorf("want user_filter: a list of types, such as [{type: user}]")
	}
	filters, err := at.value()
	return map[string]any{
		"object": map[string]string{"type": kind, "id": id}, "user_filters": filters,
	}, object, "", err
}

// rightUsers reads the right list of users.
func rightUsers(is item) ([]string, error) {
	has, err := is.fields("what is asserted of users", "users", "excluded_users")
	if err != nil {
		return nil, err
	}
	return has["users"].texts("users")
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
