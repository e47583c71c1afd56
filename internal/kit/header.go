package kit

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"tare/area"
)

// headerSecrets are parts of the names of headers that usually carry secrets.
var headerSecrets = []string{"authorization", "cookie", "token", "secret", "key", "password", "credential"}

// CheckHeaders returns what is wrong with the user's headers in the section at path. own are the headers that the
// protocol sets itself, in lower case.
func CheckHeaders(path string, headers map[string]string, secret map[string]area.Secret,
	own ...string,
) (out []area.Finding) {
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		if err := checkHeader(name, headers[name], own); err != nil {
			f := area.Fault(path+"headers."+name, err, "")
			f.Secret = true
			out = append(out, f)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(secret)) {
		if err := checkHeaderName(name, own); err != nil {
			out = append(out, area.Fault(path+"secret_headers."+name, err, ""))
		}
	}
	return out
}

// checkHeader rejects headers that would break the request, disarm the protocol, or put a secret into the file.
func checkHeader(name, value string, own []string) error {
	if IsSecretHeader(name) {
		return fmt.Errorf("header %s looks like a secret, and secrets must not stand in the file; "+
			"use secret_headers: {%s: {env: NAME}}", name, name)
	}
	if !IsHeaderValue(value) {
		return fmt.Errorf("the value of header %s has characters other than printable ASCII", name)
	}
	return checkHeaderName(name, own)
}

// IsSecretHeader reports whether a header of this name usually carries a secret.
func IsSecretHeader(name string) bool {
	name = strings.ToLower(name)
	return slices.ContainsFunc(headerSecrets, func(part string) bool { return strings.Contains(name, part) })
}

// IsHeaderValue reports whether value may be the value of a header: it is printable ASCII.
func IsHeaderValue(value string) bool {
	return !strings.ContainsFunc(value, func(c rune) bool { return c < ' ' || c > '~' })
}

// checkHeaderName rejects invalid names, the headers that HTTP itself needs, and those that the protocol sets itself.
func checkHeaderName(name string, own []string) error {
	lower := strings.ToLower(name)
	switch lower {
	case "host", "connection", "content-length", "transfer-encoding", "expect", "te", "upgrade":
		return fmt.Errorf("header %s belongs to the protocol", name)
	}
	if slices.Contains(own, lower) {
		return fmt.Errorf("header %s belongs to the protocol", name)
	}
	for _, c := range name {
		if (c|0x20 < 'a' || c|0x20 > 'z') && (c < '0' || c > '9') && c != '-' && c != '_' {
			return fmt.Errorf("%q is not a header name", name)
		}
	}
	if name == "" {
		return errors.New("a header needs a name")
	}
	return nil
}
