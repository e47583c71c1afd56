package reference

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/cedar-policy/cedar-go"
	"github.com/cedar-policy/cedar-go/types"
)

// maxDepth bounds the nesting of properties and contexts, and so the recursion that reads them.
const maxDepth = 32

var errTooDeep = fmt.Errorf("nested deeper than %d", maxDepth)

// cedarRecord reads a JSON object. Absent and null are the empty record.
func cedarRecord(raw json.RawMessage) (cedar.Record, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return cedar.Record{}, nil
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var object map[string]any
	if err := dec.Decode(&object); err != nil {
		return cedar.Record{}, errors.New("not a JSON object")
	}
	return cedarObject(object, 0)
}

func cedarObject(object map[string]any, depth int) (cedar.Record, error) {
	if depth > maxDepth {
		return cedar.Record{}, errTooDeep
	}
	out := make(cedar.RecordMap, len(object))
	for name, v := range object {
		if v == nil {
			continue // Cedar has no null: a policy asks with "has"
		}
		value, err := cedarValue(v, depth)
		if err != nil {
			return cedar.Record{}, fmt.Errorf("%q: %w", name, err)
		}
		out[cedar.String(name)] = value
	}
	return cedar.NewRecord(out), nil
}

// cedarValue reads what encoding/json made with UseNumber.
func cedarValue(v any, depth int) (cedar.Value, error) {
	switch v := v.(type) {
	case string:
		return cedar.String(v), nil
	case bool:
		return cedar.Boolean(v), nil
	case json.Number:
		n, err := v.Int64()
		if err != nil {
			return nil, fmt.Errorf("%s is no whole number of 64 bits, the only numbers that Cedar has", v)
		}
		return cedar.Long(n), nil
	case map[string]any:
		if special := cedarSpecial(v); special != nil {
			return special, nil
		}
		return cedarObject(v, depth+1)
	case []any:
		return cedarSet(v, depth+1)
	default:
		return nil, errors.New("null in a set, which Cedar does not have")
	}
}

// cedarSpecial is the entity or the value of a further type that Cedar writes as {"__entity": …} or {"__extn": …}; nil:
// the object is neither.
func cedarSpecial(object map[string]any) cedar.Value {
	if len(object) != 1 || object["__entity"] == nil && object["__extn"] == nil {
		return nil
	}
	text, err := json.Marshal(object)
	if err != nil {
		return nil
	}
	var out cedar.Value
	if types.UnmarshalJSON(text, &out) != nil {
		return nil
	}
	return out
}

func cedarSet(list []any, depth int) (cedar.Value, error) {
	if depth > maxDepth {
		return nil, errTooDeep
	}
	out := make([]cedar.Value, len(list))
	for i, v := range list {
		var err error
		if out[i], err = cedarValue(v, depth); err != nil {
			return nil, err
		}
	}
	return cedar.NewSet(out...), nil
}
