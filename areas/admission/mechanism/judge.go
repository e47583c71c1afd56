package mechanism

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// answer is an API server's answer to a pod: the pod, or a Status.
type answer struct {
	Kind     string `json:"kind"`
	Message  string `json:"message"`
	Metadata struct {
		Annotations map[string]string `json:"annotations"`
	} `json:"metadata"`
}

// Judge returns an error unless the answer to the dry run, of this status and body, is the expected one.
func (p Probe) Judge(status int, body []byte) error {
	var a answer
	if err := json.Unmarshal(body, &a); err != nil {
		return fmt.Errorf("%s: status %d, and the answer is not JSON: %w", p.Name, status, err)
	}
	if status == http.StatusCreated && a.Kind == cmp.Or(p.Kind, "Pod") {
		return cmp.Or(p.judgeAdmitted(a), p.judgeMark(body))
	}
	what := "neither admitted nor denied by a policy"
	switch RulingOf(status, body) {
	case PolicyDenied:
		return p.judgeDenied(a)
	case PolicyFailed:
		what = "a policy or webhook failed and decided nothing"
	case AccessDenied:
		what = "the caller has no right to create it, and no policy has seen it"
	case NoRuling:
	}
	return fmt.Errorf("%s: %s: status %d, %s: %s", p.Name, what, status, a.Kind, excerpt(a.Message))
}

func (p Probe) judgeAdmitted(a answer) error {
	if p.Want == Denied {
		return fmt.Errorf("%s was admitted, and must be denied: %s", p.Name, p.Why)
	}
	for key, want := range p.Annotations {
		if got, there := a.Metadata.Annotations[key]; !there || got != want {
			return fmt.Errorf("%s was admitted with annotation %s %q, want %q: %s", p.Name, key, got, want, p.Why)
		}
	}
	for _, key := range p.Absent {
		if _, there := a.Metadata.Annotations[key]; there {
			return fmt.Errorf("%s was admitted with annotation %s, which must not be there: %s", p.Name, key, p.Why)
		}
	}
	return nil
}

func (p Probe) judgeMark(body []byte) (err error) {
	switch {
	case p.Mark == nil:
		return nil
	case p.Unmarked:
		err = p.Mark.Absent(body)
	default:
		err = p.Mark.There(body)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", p.Name, err)
	}
	return nil
}

func (p Probe) judgeDenied(a answer) error {
	if p.Want == Admitted {
		return fmt.Errorf("%s was denied, and must be admitted (%s): %s", p.Name, p.Why, excerpt(a.Message))
	}
	for _, part := range p.Says {
		if !strings.Contains(a.Message, part) {
			return fmt.Errorf("%s was denied, and not for the reason wanted (%q, %s): %s", p.Name, part, p.Why,
				excerpt(a.Message))
		}
	}
	if len(p.By) > 0 && !quotesOne(a.Message, p.By) {
		return fmt.Errorf("%s was denied, and not by %s (%s): %s", p.Name, summary(p.By), p.Why, excerpt(a.Message))
	}
	if len(p.ByWords) > 0 && !slices.ContainsFunc(p.ByWords, func(w string) bool {
		return strings.Contains(a.Message, w)
	}) {
		return fmt.Errorf("%s was denied, and not by these policies (%s): %s", p.Name, p.Why, excerpt(a.Message))
	}
	return nil
}

// quotesOne reports whether text has one of names in single or double quotes.
func quotesOne(text string, names []string) bool {
	wanted := make(map[string]bool, len(names))
	for _, n := range names {
		wanted[n] = true
	}
	for _, part := range strings.FieldsFunc(text, func(r rune) bool { return r == '\'' || r == '"' }) {
		if wanted[part] {
			return true
		}
	}
	return false
}

// summary returns "a", or "one of 100 (a … z)".
func summary(names []string) string {
	if len(names) == 1 {
		return names[0]
	}
	return fmt.Sprintf("one of %d (%s … %s)", len(names), names[0], names[len(names)-1])
}

// mostMessage bounds the part of an answer that is quoted, in bytes.
const mostMessage = 400

func excerpt(message string) string {
	if len(message) <= mostMessage {
		return message
	}
	return message[:mostMessage] + "…"
}
