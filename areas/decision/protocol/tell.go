package protocol

import (
	"encoding/json"

	"tare/areas/decision/model"
)

// Tell describes a question and the answer to it, both without the session's secrets. body is nil where the protocol's
// answers are not kept.
func (s *Session) Tell(q model.Question, body []byte) (request, answer string) {
	asked := []byte(q.Body) // secrets are only filled in when it is rendered
	if len(asked) == 0 {
		asked, _ = json.Marshal(evaluationOf(q)) // texts: it cannot fail
	}
	return quote(s.redact(string(asked))), quote(s.redact(string(body)))
}
