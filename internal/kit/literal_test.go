package kit

import "testing"

// TestLiteralSecrets are recognized by the name before them, in everything that people paste into a file; other texts
// are accepted.
func TestLiteralSecrets(t *testing.T) {
	for text, want := range map[string]string{
		`{"role": "x", "password": "hunter2"}`:                   "password",
		`{"auth":{"client_secret":"hunter2"}}`:                   "client_secret",
		`grant_type=password&username=a&password=hunter2`:        "password",
		`grant_type=x&client%5Fid=a&client_secret=h%20x`:         "client_secret",
		`http://127.0.0.1/metrics?access_token=hunter2`:          "access_token",
		`mysql --password=hunter2 -e "select 1"`:                 "password",
		`curl -H "X-Api-Key: hunter2"`:                           "X-Api-Key",
		`{\"password\": \"hunter2\"}`:                            "password",
		`{"password": 1234}`:                                     "password",
		`{"jwt": "hunter2"}`:                                     "jwt",
		`{"password": "{password}"}`:                             "",
		`{"password": ""}`:                                       "",
		`{"password": null, "jwt": "{token}"}`:                   "",
		`sh -c 'PASSWORD=$SECRET run'`:                           "",
		`--password-file=/run/secrets/x`:                         "",
		`grant_type=password`:                                    "",
		`subject_token_type=urn:ietf:params:oauth:token-type`:    "",
		`{"type": "password", "action": "reset"}`:                "",
		`password.response.p99 <= 10ms`:                          "",
		`{"resource": {"type": "secret", "id": "client_secret"}`: "",
	} {
		if got, found := LiteralSecret(text, "jwt"); got != want || found != (want != "") {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}
