package fga

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

const (
	// mostOfTest is how many relationships of its own a test may have: OpenFGA takes as many beside a check.
	mostOfTest = 100
	// mostChecks and mostBodies bound the checks that are read, by number and by the bytes of their requests: a few lines
	// can stand for more than any memory.
	mostChecks = 10_000
	mostBodies = 64 << 20
)

// readTest reads the checks of a test.
func (r *reader) readTest(test item) error {
	f, err := test.fields("a test", "name", "description", "tuples", "tuple_file", "tuple_files", "check", "list_objects",
		"list_users")
	if err != nil {
		return err
	}
	own, err := r.tuples(f)
	if err != nil {
		return err
	}
	checks, err := f["check"].list("checks")
	if err != nil {
		return err
	}
	if len(own) > mostOfTest && len(checks) > 0 {
		return test.errorf("its checks have %d relationships of their own, and OpenFGA takes %d: put them into the store",
			len(own), mostOfTest)
	}
	for _, c := range checks {
		if r.store.More {
			break
		}
		if err := r.readCheck(c, own); err != nil {
			return err
		}
	}
	for _, list := range []string{"list_objects", "list_users"} {
		items, err := f[list].list(list)
		if err != nil {
			return err
		}
		r.store.Lists += len(items)
	}
	return nil
}

// readCheck reads what one check asserts: of each of its users and objects, each relation.
func (r *reader) readCheck(c item, own []Tuple) error {
	f, err := c.fields("a check", "user", "users", "object", "objects", "context", "assertions")
	if err != nil {
		return err
	}
	users, err := either(c, f, "user", "users")
	if err != nil {
		return err
	}
	objects, err := either(c, f, "object", "objects")
	if err != nil {
		return err
	}
	var context json.RawMessage
	if at := f["context"]; at.Node != nil && at.Tag != "!!null" {
		if context, err = at.value(); err != nil {
			return err
		}
	}
	var asserts map[string]bool
	at := f["assertions"]
	if at.Node == nil || at.Kind != yaml.MappingNode || at.Decode(&asserts) != nil || len(asserts) == 0 {
		return c.errorf("want assertions: relations, each true or false")
	}
	relations := slices.Sorted(maps.Keys(asserts))
	for _, user := range users {
		for _, object := range objects {
			for _, relation := range relations {
				body, err := bodyOf(user, relation, object, context, own)
				if err != nil {
					return c.errorf("%w", err)
				}
				if r.bodies += len(body); len(r.store.Checks) == mostChecks || r.bodies > mostBodies {
					r.store.More = true
					return nil
				}
				r.store.Checks = append(r.store.Checks, Check{
					Name: strings.Join([]string{user, relation, object}, " "), Body: body, Want: asserts[relation],
				})
			}
		}
	}
	return nil
}

// either is the value of one field or those of another.
func either(c item, f map[string]item, one, several string) ([]string, error) {
	list, err := f[several].texts(several)
	if err != nil {
		return nil, err
	}
	text, err := f[one].text(one)
	switch {
	case err != nil:
		return nil, err
	case (text != "") == (len(list) > 0):
		return nil, c.errorf("want %s or %s", one, several)
	case text != "":
		list = []string{text}
	}
	return list, nil
}

// bodyOf is the body of the request that asks.
func bodyOf(user, relation, object string, context json.RawMessage, own []Tuple) (json.RawMessage, error) {
	body := map[string]any{"tuple_key": map[string]string{"user": user, "relation": relation, "object": object}}
	if context != nil {
		body["context"] = context
	}
	if len(own) > 0 {
		var keys []json.RawMessage
		for _, t := range own {
			keys = append(keys, t.Key)
		}
		body["contextual_tuples"] = map[string]any{"tuple_keys": keys}
	}
	return json.Marshal(body)
}
