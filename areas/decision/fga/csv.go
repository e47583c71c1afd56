package fga

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
)

// The columns of relationships in CSV: those that must be there, and those that may.
var (
	required = []string{"user_type", "user_id", "relation", "object_type", "object_id"}
	optional = []string{"user_relation", "condition_name", "condition_context"}
)

// tuplesOfCSV reads relationships as OpenFGA's command line does: with a line of names first.
func tuplesOfCSV(file string, text []byte) (out []Tuple, err error) {
	r := csv.NewReader(bytes.NewReader(text))
	names, err := r.Read()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	for _, want := range required {
		if !slices.Contains(names, want) {
			return nil, fmt.Errorf("%s: its first line names no %s", file, want)
		}
	}
	for i, name := range names {
		if slices.Contains(names[:i], name) {
			return nil, fmt.Errorf("%s: its first line names %s twice", file, name)
		}
		if !slices.Contains(required, name) && !slices.Contains(optional, name) {
			return nil, fmt.Errorf("%s: its first line names %q, which relationships do not have", file, name)
		}
	}
	for {
		row, err := r.Read()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		line, _ := r.FieldPos(0)
		value := map[string]string{}
		for i, name := range names {
			value[name] = row[i]
		}
		key, err := keyOf(value)
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", file, line, err)
		}
		out = append(out, Tuple{key, file, line})
	}
}

// keyOf is a relationship in the API's form.
func keyOf(value map[string]string) (json.RawMessage, error) {
	user := value["user_type"] + ":" + value["user_id"]
	if r := value["user_relation"]; r != "" {
		user += "#" + r
	}
	key := map[string]any{
		"user": user, "relation": value["relation"], "object": value["object_type"] + ":" + value["object_id"],
	}
	if name := value["condition_name"]; name != "" {
		condition := map[string]any{"name": name}
		if text := value["condition_context"]; text != "" {
			if !json.Valid([]byte(text)) {
				return nil, errors.New("its condition_context is no JSON")
			}
			condition["context"] = json.RawMessage(text)
		}
		key["condition"] = condition
	}
	return json.Marshal(key)
}
