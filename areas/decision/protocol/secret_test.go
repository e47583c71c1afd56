package protocol

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"tare/areas/decision/model"
)

// TestSecretsInRequests replace their names on the wire and nowhere else: an answer that sends them back is quoted
// without them.
func TestSecretsInRequests(t *testing.T) {
	const secret = `hun"ter2{b}`
	s := &Session{Host: "pdp", Secrets: map[string]string{"a": secret, "b": "other"}}
	for name, q := range map[string]model.Question{
		"body":    {Body: json.RawMessage(`{"input": {"token": "{a}", "x": "{b}{c}"}}`)},
		"context": {Context: map[string]string{"token": "{a}", "x": "{b}{c}"}},
	} {
		r, err := opa().call(s, q)
		if err != nil {
			t.Fatal(err)
		}
		sent := string(r.render(s))
		_, body, _ := strings.Cut(sent, "\r\n\r\n")
		var got struct{ Input map[string]any }
		if err := json.Unmarshal([]byte(body), &got); err != nil {
			t.Fatalf("%s: request is not JSON: %v: %s", name, err, body)
		}
		at := got.Input
		if c, ok := at["context"].(map[string]any); ok {
			at = c
		}
		if at["token"] != secret || at["x"] != "other{c}" {
			t.Errorf("%s: sent %s", name, body)
		}
		if !strings.Contains(sent, "Content-Length: "+strconv.Itoa(len(body))+"\r\n") {
			t.Errorf("%s: another length than %d: %s", name, len(body), sent)
		}
		for _, answer := range []string{body, secret} {
			if said := s.describe(500, NotJSON, model.None, "", []byte(answer)); strings.Contains(said, "hun") ||
				strings.Contains(said, "other") {
				t.Errorf("%s: the description contains a secret: %s", name, said)
			}
		}
	}
}

// TestAnswersThatRepeatSecrets are quoted without them: also where one secret begins with another, and where the server
// escapes what it repeats in a way of its own.
func TestAnswersThatRepeatSecrets(t *testing.T) {
	s := &Session{
		Token: "team-key", Username: "jane", Password: "pass/word",
		Headers: map[string]string{"X-My-Key": "team-key-SECRETTAIL77qzz", "X-Odd": `p"w\secr<et>77`},
	}
	for answer, want := range map[string]string{
		"token team-key, X-My-Key team-key-SECRETTAIL77qzz":           "token …, X-My-Key …",
		`{"error": "no p\"w\\secr<et>77"}`:                            `{"error": "no …"}`,
		`{"error": "no p\"w\\secr\u003cet\u003E77"}`:                  `{"error": "no …"}`,
		`{"error": "no Basic amFuZTpwYXNzL3dvcmQ\u003d, pass\/word"}`: `{"error": "no Basic …, …"}`,
	} {
		if said := s.describe(500, NotJSON, model.None, "", []byte(answer)); !strings.HasSuffix(said, "it says: "+want) {
			t.Errorf("%s, want it to end with %s", said, want)
		}
	}
}
