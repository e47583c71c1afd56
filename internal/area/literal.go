package area

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// secretNames are names whose values are secrets wherever they stand, in lower case and with underscores.
var secretNames = []string{
	"password", "passwd", "passphrase", "pwd", "client_secret", "client_assertion", "secret_id", "secret_key",
	"secret_access_key", "aws_secret_access_key",
	"aws_session_token", "api_key", "apikey", "x_api_key", "api_token", "access_token", "auth_token", "bearer_token",
	"refresh_token", "id_token", "subject_token",
	"actor_token", "session_token", "x_vault_token", "private_key",
}

// IsSecretName reports whether a field, a flag or a header of this name holds a secret, without doubt. more are further
// names, in lower case.
func IsSecretName(name string, more ...string) bool {
	name = strings.ReplaceAll(strings.ToLower(strings.TrimLeft(name, "-")), "-", "_")
	return slices.Contains(secretNames, name) || slices.Contains(more, name)
}

// before is a name and what comes between it and its value in JSON, forms, queries, headers and command lines; after is
// the value, empty where there is none.
var (
	before = regexp.MustCompile(`([A-Za-z][A-Za-z0-9_-]*)\\?["']?\s*[:=]\s*\\?["']?`)
	after  = regexp.MustCompile(`^[^\s"'&,;)}\]\\]*`)
)

// LiteralSecret finds a secret that stands in a text as it is, and not as a place for one ({name}, $NAME, <name>): the
// name before it. more are further names that mean a secret in this text, in lower case.
func LiteralSecret(text string, more ...string) (name string, found bool) {
	for _, at := range before.FindAllStringSubmatchIndex(text, -1) {
		if name := text[at[2]:at[3]]; IsSecretName(name, more...) && IsLiteral(after.FindString(text[at[1]:])) {
			return name, true
		}
	}
	return "", false
}

// IsLiteral reports whether a value could be a secret itself: it is there, and is neither a placeholder nor a word for
// nothing.
func IsLiteral(value string) bool {
	return value != "" && !strings.ContainsRune("{$<*[(%", rune(value[0])) &&
		!slices.Contains([]string{"true", "false", "null", "none"}, strings.ToLower(value))
}

var placeName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// CheckPlaces refuses secrets whose names cannot stand in a text as {name}, or that do not stand in any. taken are
// names that mean something else there. Errors begin with the secret's name.
func CheckPlaces(secrets map[string]Secret, texts []string, taken ...string) error {
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

// JSONText is a value as it stands between the quotes of a JSON string.
func JSONText(value string) string {
	b, err := json.Marshal(value)
	if err != nil || len(b) < 2 {
		return ""
	}
	return string(b[1 : len(b)-1])
}
