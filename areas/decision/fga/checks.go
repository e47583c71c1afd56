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
	checks, err := f["check"].list("checks")
	if err != nil || len(checks) == 0 && f["list_objects"].Node == nil && f["list_users"].Node == nil {
		return err // one that asks nothing needs no relationships, of which a file can have many
	}
	own, err := r.tuples(f)
	if err != nil {
		return err
	}
	if len(own) > mostOfTest {
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
	return r.readLists(f, own)
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
	context, err := contextOf(f)
	if err != nil {
		return err
	}
	asserts := map[string]bool{}
	at := f["assertions"]
	if at.Node == nil || at.Kind != yaml.MappingNode || len(at.Content) == 0 {
		return c.errorf("want assertions: relations, each true or false")
	}
	for k := 0; k+1 < len(at.Content); k += 2 { // not decoded as a map, which takes the square of its length
		key, value := item{at.Content[k], c.file}, at.Content[k+1]
		var want bool
		if _, there := asserts[key.Value]; there || key.Kind != yaml.ScalarNode || value.Decode(&want) != nil {
			return key.errorf("want assertions: relations, each once, true or false")
		}
		asserts[key.Value] = want
	}
	relations := slices.Sorted(maps.Keys(asserts))
	for _, user := range users {
		for _, object := range objects {
			for _, relation := range relations {
				body, err := bodyOf(user, relation, object, context, own)
				if err != nil {
					return c.errorf("%w", err)
				}
				if !r.add(Check{
					Name: strings.Join([]string{user, relation, object}, " "), Body: body, Want: asserts[relation],
				}) {
					return nil
				}
			}
		}
	}
	return nil
}

// add keeps a check, and reports whether there is room for more.
func (r *reader) add(c Check) bool {
	if c.List != nil {
		for _, one := range *c.List {
			r.bodies += len(one)
		}
	}
	if r.bodies += len(c.Body); len(r.store.Checks) == mostChecks || r.bodies > mostBodies {
		r.store.More = true
		return false
	}
	r.store.Checks = append(r.store.Checks, c)
	return true
}

// contextOf is the context of a question; nil: it has none.
func contextOf(f map[string]item) (json.RawMessage, error) {
	if at := f["context"]; at.Node != nil && at.Tag != "!!null" {
		return at.value()
	}
	return nil, nil
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
	if len(own) > 0 {
		body["contextual_tuples"] = map[string]any{"tuple_keys": keysOf(own)}
	}
	return withContext(body, context)
}

// withContext is a body with the context of its question, if that has one.
func withContext(body map[string]any, context json.RawMessage) (json.RawMessage, error) {
	if context != nil {
		body["context"] = context
	}
	return json.Marshal(body)
}

func keysOf(tuples []Tuple) (keys []json.RawMessage) {
	for _, t := range tuples {
		keys = append(keys, t.Key)
	}
	return keys
}
