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

// columns are those of relationships in CSV, of which the first and those after the fifth may be missing or empty.
var columns = []string{
	"user_relation", "user_type", "user_id", "relation", "object_type", "object_id", "condition_name", "condition_context",
}

// tuplesOfCSV reads relationships as OpenFGA's command line does: with a line of names first.
func tuplesOfCSV(file string, text []byte) (out []Tuple, err error) {
	r := csv.NewReader(bytes.NewReader(text))
	names, err := r.Read()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	for _, want := range columns[1:6] {
		if !slices.Contains(names, want) {
			return nil, fmt.Errorf("%s: its first line names no %s", file, want)
		}
	}
	for _, name := range names {
		if !slices.Contains(columns, name) {
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
