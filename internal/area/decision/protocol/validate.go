package protocol

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"tare/internal/area/decision/model"
)

// validPath says what is wrong with a path that stands in a request's first line.
func validPath(option, path string) error {
	for _, r := range path {
		if r <= ' ' || r >= 0x7f || r == '#' || r == '?' { // a query may hold secrets
			return fmt.Errorf("%s: %q holds %q, which has no place in a path", option, path, r)
		}
	}
	if strings.Contains(path, "://") {
		return fmt.Errorf("%s: %q is a URL: it belongs into url; %s is what comes below it", option, path, option)
	}
	return nil
}

// validQuestions says what is wrong with questions for a protocol whose decisions are can.
func validQuestions(protocol string, questions []model.Question, can ...model.Decision) error {
	for _, q := range questions {
		if !slices.Contains(can, q.Want) {
			return fmt.Errorf("requests: %q expects %s, which %s cannot say", q.Name, q.Want, protocol)
		}
		if len(q.Body) == 0 {
			continue
		}
		var object map[string]json.RawMessage
		if err := json.Unmarshal(q.Body, &object); err != nil || object == nil {
			return fmt.Errorf("requests: the body of %q is no JSON object", q.Name)
		}
	}
	return nil
}
