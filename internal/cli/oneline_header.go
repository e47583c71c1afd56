package cli

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strings"

	"tare/area"
	"tare/internal/kit"
)

// has reports whether a header is given.
func (r *sentRequest) has(name string) bool {
	is := func(other string) bool { return strings.EqualFold(name, other) }
	return slices.ContainsFunc(slices.Collect(maps.Keys(r.headers)), is) ||
		slices.ContainsFunc(slices.Collect(maps.Keys(r.secrets)), is) ||
		is("Authorization") && !r.Bearer.IsZero()
}

var (
	headerName  = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)
	secretPlace = regexp.MustCompile(`^(?:@(.+)|env:([A-Za-z_][A-Za-z0-9_]*)|\$([A-Za-z_][A-Za-z0-9_]*)|` +
		`\$\{([A-Za-z_][A-Za-z0-9_]*)\})$`)
	authScheme = regexp.MustCompile(`(?i)^(bearer|basic|digest|negotiate|token)(?: +|$)`)
)

// addHeader reads a header: its value, or the place of its value.
func (r *sentRequest) addHeader(text string) error {
	name, value, ok := strings.Cut(text, ":")
	value = strings.TrimSpace(value)
	if !ok || !headerName.MatchString(name) {
		return usage("-H: want 'NAME: VALUE', such as -H 'Accept: application/json'")
	}
	scheme := strings.TrimSpace(authScheme.FindString(value))
	place, isPlace := placeOf(value)
	after, isPlaceAfter := placeOf(strings.TrimSpace(value[len(scheme):]))
	switch {
	case r.has(name):
		return usage("-H %s: the header is given twice", name)
	case value == "":
		return usage("-H %s: the value is empty; leave the header out", name)
	case value == "@" || value == "@-":
		return usage("-H %s: name the file that holds the value: -H '%[1]s: @FILE'", name)
	case isPlace:
		r.secrets[name] = place
	case isPlaceAfter && strings.EqualFold(name, "Authorization") && strings.EqualFold(scheme, "bearer"):
		r.Bearer = after
	case scheme != "" && isPlaceAfter:
		return usage("-H %s: the place must stand for the whole value: let the file or the variable hold %q, too", name,
			scheme)
	case strings.EqualFold(name, "Authorization") && strings.EqualFold(scheme, "bearer"):
		return usage("-H %s: a credential on the command line would be copied into the record; name its place: "+
			"-H '%[1]s: Bearer @FILE', or -H '%[1]s: Bearer env:VARIABLE'", name)
	case kit.IsSecretHeader(name), scheme != "":
		return usage("-H %s: the value looks like a credential, which would be copied into the record; name its place: "+
			"-H '%[1]s: @FILE', or -H '%[1]s: env:VARIABLE'", name)
	default:
		r.headers[name] = value
	}
	for _, f := range kit.CheckHeaders("", r.headers, r.secrets) {
		return usage("-H: %s", f.Message)
	}
	return nil
}

// placeOf reads the place of a secret: @FILE, env:VARIABLE, $VARIABLE or ${VARIABLE}.
func placeOf(value string) (s area.Secret, ok bool) {
	m := secretPlace.FindStringSubmatch(value)
	if m == nil {
		return s, false
	}
	return area.Secret{File: m[1], Env: cmp.Or(m[2], m[3], m[4])}, true
}
