package kit

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"tare/area"
)

// secretNames are names whose values are always secrets, in lower case and with underscores.
var secretNames = []string{
	"password", "passwd", "passphrase", "pwd", "client_secret", "client_assertion", "secret_id", "secret_key",
	"secret_access_key", "aws_secret_access_key",
	"aws_session_token", "api_key", "apikey", "x_api_key", "api_token", "access_token", "auth_token", "bearer_token",
	"refresh_token", "id_token", "subject_token",
	"actor_token", "session_token", "x_vault_token", "private_key",
}

// IsSecretName reports whether a field, a flag or a header of this name certainly holds a secret. more are further
// names, in lower case.
func IsSecretName(name string, more ...string) bool {
	name = strings.ReplaceAll(strings.ToLower(strings.TrimLeft(name, "-")), "-", "_")
	return slices.Contains(secretNames, name) || slices.Contains(more, name)
}

// before matches a name and what separates it from its value in JSON, forms, queries, headers and command lines; after
// matches the value, which may be empty.
var (
	before = regexp.MustCompile(`([A-Za-z][A-Za-z0-9_-]*)\\?["']?\s*[:=]\s*\\?["']?`)
	after  = regexp.MustCompile(`^[^\s"'&,;)}\]\\]*`)
)

// LiteralSecret finds a secret that a text holds literally, not as a placeholder ({name}, $NAME, <name>), and returns
// the name before it. more are further names of secrets in this text, in lower case.
func LiteralSecret(text string, more ...string) (name string, found bool) {
	for _, at := range before.FindAllStringSubmatchIndex(text, -1) {
		if name := text[at[2]:at[3]]; IsSecretName(name, more...) && IsLiteral(after.FindString(text[at[1]:])) {
			return name, true
		}
	}
	return "", false
}

// IsLiteral reports whether a value may itself be a secret: it is not empty, no placeholder, and no word such as null.
func IsLiteral(value string) bool {
	return value != "" && !strings.ContainsRune("{$<*[(%", rune(value[0])) &&
		!slices.Contains([]string{"true", "false", "null", "none"}, strings.ToLower(value))
}

var placeName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// CheckPlaces rejects secrets whose names cannot be placeholders ({name}), or whose placeholders no text has. taken are
// placeholders with another meaning. Errors begin with the secret's name.
func CheckPlaces(secrets map[string]area.Secret, texts []string, taken ...string) error {
	for _, name := range slices.Sorted(maps.Keys(secrets)) {
		switch {
		case !placeName.MatchString(name):
			return fmt.Errorf("%s: want a name of letters, digits and '_'", name)
		case slices.Contains(taken, name):
			return fmt.Errorf("%s: {%[1]s} has a meaning of its own: choose another name", name)
		case !slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(text, "{"+name+"}") }):
			return fmt.Errorf("%s: {%[1]s} does not stand in the body", name)
		}
	}
	return nil
}

// JSONText returns a value as the inside of a JSON string, without the quotes.
func JSONText(value string) string {
	b, err := json.Marshal(value)
	if err != nil || len(b) < 2 {
		return ""
	}
	return string(b[1 : len(b)-1])
}
