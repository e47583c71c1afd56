package identity

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"tare/area"
	"tare/internal/kit"
)

// maxBodyFile bounds a file in a body, in bytes.
const maxBodyFile = 1 << 20

// bodySecret finds a secret that a body holds literally, and returns the name before it.
func bodySecret(body string) (name string, found bool) {
	return kit.LiteralSecret(body, "token", "secret", "jwt", "assertion", "code")
}

// checkBodyFiles rejects files whose names cannot be placeholders, or whose placeholders the body does not have.
func checkBodyFiles(o HTTP) error {
	names := map[string]area.Secret{}
	for name, path := range o.Files {
		if path == "" {
			return fmt.Errorf("%s: want the path of a file", name)
		}
		names[name] = area.Secret{File: path}
	}
	return kit.CheckPlaces(names, []string{o.Body}, append(slices.Collect(maps.Keys(o.Secrets)), "n", "token")...)
}

// readBodyFiles returns the contents of the body's files by name, without line ends. Its errors quote no content.
func (s *Spec) readBodyFiles() (map[string]string, error) {
	o := httpOptions(s)
	out := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(o.Files)) {
		path, err := kit.ExpandHome(o.Files[name])
		if err != nil {
			return nil, fmt.Errorf("http.files.%s: %w", name, err)
		}
		text, err := kit.ReadText(path, maxBodyFile)
		if err != nil {
			return nil, fmt.Errorf("http.files.%s: %w", name, err)
		}
		out[name] = strings.NewReplacer("\r", "", "\n", "").Replace(string(text))
	}
	return out, nil
}

// checkBodyExposure returns an error if a file in the body seems to hold a secret that others could get on its way to
// u, unless the experiment allows that.
func (s *Spec) checkBodyExposure(u *url.URL, files map[string]string) error {
	how := kit.Exposure(u, s.TLS)
	if how == "" || s.ExposeSecrets {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if field, found := bodySecret(files[name]); found {
			return fmt.Errorf("http.files.%s: the value of %q looks like a secret, which would go to %s %s", name, field,
				u.Host, how)
		}
	}
	return nil
}

// noteBodyExposure is the note that others could read a secret in a file of the body; empty if they could not.
func (s *Spec) noteBodyExposure(u *url.URL, files map[string]string) string {
	closed := *s
	closed.ExposeSecrets = false
	if closed.checkBodyExposure(u, files) == nil {
		return ""
	}
	return fmt.Sprintf("what looks like a secret in the body was sent to %s %s (expose_secrets)", u.Host,
		kit.Exposure(u, s.TLS))
}

// filePlaces lists the placeholders of files with their contents, for a strings.Replacer.
func (s session) filePlaces(o HTTP) (places []string) {
	for _, name := range slices.Sorted(maps.Keys(o.Files)) {
		places = append(places, "{"+name+"}", s.files[name])
	}
	return places
}
