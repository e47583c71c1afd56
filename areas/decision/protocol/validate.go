package protocol

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"tare/areas/decision/model"
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

// CheckPath says what is wrong with the path that the file gives; the error begins with "path".
func (a Adapter) CheckPath(path string) error {
	switch {
	case a.Path:
		return validPath("path", path)
	case path == "":
		return nil
	case a.Section == "opa":
		return fmt.Errorf("path: opa names its rule in a section of its own; write opa: {path: %s}", path)
	}
	return fmt.Errorf("path: %s has no path to choose: leave it out", a.Name)
}

// Validate says what is wrong with the options for these questions; the error begins with the option's name.
func (a Adapter) Validate(o Options, questions []model.Question) error {
	if err := a.CheckPath(o.Path); err != nil {
		return err
	}
	if a.options != nil {
		if err := a.options(o); err != nil {
			return err
		}
	}
	questions = slices.DeleteFunc(slices.Clone(questions), a.isStatus)
	if err := a.validQuestions(questions); err != nil || a.body == nil {
		return err
	}
	for _, q := range questions {
		if err := a.body(q.Body); err != nil {
			return fmt.Errorf("requests: the body of %q %w", q.Name, err)
		}
	}
	return nil
}

// isStatus reports whether q asks for no decision.
func (a Adapter) isStatus(q model.Question) bool {
	return len(q.Body) == 0 && q.Want == model.None && slices.Contains(a.statuses, q.Name)
}

// validQuestions says what is wrong with questions that ask for a decision.
func (a Adapter) validQuestions(questions []model.Question) error {
	for _, q := range questions {
		if q.List != nil {
			if a.list == nil {
				return fmt.Errorf("requests: %q expects a list, which %s does not give", q.Name, a.title)
			}
			if err := a.list(q); err != nil {
				return fmt.Errorf("requests: the body of %q %w", q.Name, err)
			}
		}
		if !slices.Contains(a.decisions, q.Want) {
			return fmt.Errorf("requests: %q expects %s, which %s cannot say", q.Name, q.Want, a.title)
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
