package protocol

import (
	"encoding/base64"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"tare/areas/decision/model"
	"tare/internal/mask"
)

// maxQuote is how many characters of an answer's body a text may hold.
const maxQuote = 300

// decisionNames are decisions as people say them.
var decisionNames = map[model.Decision]string{
	model.Permit: "Permit", model.Deny: "Deny", model.NotApplicable: "NotApplicable", model.Indeterminate: "Indeterminate",
}

// describe says in words what came: the decision with what the protocol says about it, or the status, what it means,
// and a bit of the body.
func (s *Session) describe(status int, v Verdict, d model.Decision, detail string, body []byte) string {
	if d != model.None {
		text := "the PDP answered " + decisionNames[d]
		if detail != "" {
			text += " (" + quote(s.redact(detail)) + ")"
		}
		return text
	}
	text := fmt.Sprintf("status %d", status)
	if name := http.StatusText(status); name != "" && status != http.StatusOK {
		text += " " + name
	}
	if v != Fine {
		text += ": " + Causes()[v]
	}
	if q := quote(s.redact(string(body))); q != "" {
		text += ", it says: " + q
	} else {
		text += ", with an empty body"
	}
	if detail != "" {
		text += " (" + quote(s.redact(detail)) + ")"
	}
	return text
}

// describeStatus says in words what came where another status was expected.
func (s *Session) describeStatus(status int, body []byte) string {
	_, v := refusal(status)
	return s.describe(status, v, model.None, "", body)
}

// quote makes one line of at most maxQuote characters of a text that somebody else wrote.
func quote(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	text = strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return ' '
		}
		if !unicode.IsPrint(r) {
			return '\uFFFD'
		}
		return r
	}, text)
	text = strings.Join(strings.Fields(text), " ")
	if utf8.RuneCountInString(text) > maxQuote {
		text = string([]rune(text)[:maxQuote]) + "…"
	}
	return text
}

// redact takes the session's secrets out of a text: a decision point may send back what it was sent.
func (s *Session) redact(text string) string {
	secrets := []string{s.Token, s.Password}
	if s.Password != "" {
		secrets = append(secrets, base64.StdEncoding.EncodeToString([]byte(s.Username+":"+s.Password)))
	}
	secrets = slices.AppendSeq(secrets, maps.Values(s.Headers))
	secrets = slices.AppendSeq(secrets, maps.Values(s.Secrets))
	return mask.Of(4, secrets...).Replace(text, "…") // a shorter one would only make holes
}
