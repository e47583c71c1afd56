package identity

import (
	"net/url"
	"strings"
	"testing"

	"tare/area"
)

// TestExposedSecretsAreNoted: the report says that the experiment file allowed secrets to be sent in the clear.
func TestExposedSecretsAreNoted(t *testing.T) {
	for text, want := range map[string]string{
		"http://idp.example": "secrets were sent to idp.example over http://", "https://idp.example": "",
		"http://127.0.0.1:8080": "",
	} {
		u, err := url.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		p := &arm{plan: plan{url: u, spec: &Spec{
			ExposeSecrets: true,
			SecretHeaders: map[string]area.Secret{"X-Api-Key": {Env: "KEY"}},
		}}}
		if got := strings.Join(p.notes(), "; "); !strings.Contains(got, want) || (want == "") != (got == "") {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}
