package identity

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"net/url"
	"reflect"
	"slices"
	"strings"

	"tare/internal/area"
	"tare/internal/design"
)

// Validate implements area.Spec.
func (s *Spec) Validate(q design.Question, treatments []design.Treatment) []area.Finding {
	var out []area.Finding
	wrong := func(path, hint string, err error) {
		out = append(out, area.Finding{Path: path, Severity: area.Error, Message: err.Error(), Hint: hint})
	}
	if cell := (Area{}).Cells()[q]; !cell.Answered {
		wrong("", "ask for capacity", fmt.Errorf("identity does not answer %q: %s", q, cell.Reason))
	}
	s.validateURL(wrong)
	s.validateSections(wrong)
	for _, name := range slices.Sorted(maps.Keys(s.Headers)) {
		if err := checkHeader(name, s.Headers[name]); err != nil {
			wrong("headers."+name, "", err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.SecretHeaders)) {
		if err := checkHeaderName(name); err != nil {
			wrong("secret_headers."+name, "", err)
		}
	}
	s.validateCallers(wrong)
	if len(out) > 0 {
		return out
	}
	if len(treatments) == 0 {
		treatments = []design.Treatment{{ID: design.ID(nil)}}
	}
	for _, t := range treatments {
		if _, err := s.plan(t); err != nil {
			f := area.Finding{Path: s.pathOf(err), Severity: area.Error, Message: err.Error()}
			if len(t.Levels) > 0 {
				f.Path, f.Message = "", fmt.Sprintf("treatment %q: %v", t.ID, err)
			}
			out = append(out, f)
		}
	}
	return out
}

// validateURL looks at the URL and at what depends on it.
func (s *Spec) validateURL(wrong func(path, hint string, err error)) {
	if s.URL == "" {
		if s.TLS != nil {
			wrong("tls", "leave it out", errors.New("tls: the embedded endpoint speaks plain HTTP"))
		}
		return
	}
	a, err := findAdapter(s.Adapter)
	if err != nil {
		return // plan says so
	}
	u, err := parseURL(s.URL, a.reach())
	if err != nil {
		wrong("url", "write the base only, such as http://169.254.169.254", err)
	}
	if s.Embedded != nil {
		wrong("embedded", "leave one of them out", errors.New("url and embedded exclude each other"))
	}
	if s.Identities > 1 && len(s.Callers) == 0 && !s.Loopback() {
		wrong("identities", "leave it out", errors.New("identities are told apart by source address, which only loopback targets let us choose"))
	}
	if s.TLS != nil && u != nil && u.Scheme != "https" {
		wrong("tls", "write https:// in the url", errors.New("tls: the url is not https"))
	}
	if err := s.TLS.Validate(); err != nil {
		field, _, _ := strings.Cut(err.Error(), ":")
		wrong("tls."+field, "", err)
	}
}

// validateSections refuses options of other adapters.
func (s *Spec) validateSections(wrong func(path, hint string, err error)) {
	a, err := findAdapter(s.Adapter)
	if err != nil {
		return
	}
	for _, other := range adapters() {
		if name := other.section(); name != "" && name != a.section() && s.has(name) {
			wrong(name, "leave it out, or name the adapter that it belongs to", fmt.Errorf("%s: these are options of %s, not of %s", name, other.name(), a.name()))
		}
	}
}

// has reports whether the section of that name is given.
func (s *Spec) has(section string) bool {
	v := reflect.ValueOf(s).Elem()
	for i := range v.NumField() {
		if name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("yaml"), ","); name == section {
			return !v.Field(i).IsZero()
		}
	}
	return false
}

func (s *Spec) validateCallers(wrong func(path, hint string, err error)) {
	if len(s.Callers) > 0 && s.Identities > 0 {
		wrong("identities", "leave one of them out", errors.New("identities and callers exclude each other: callers are as many as are listed"))
	}
	for i, c := range s.Callers {
		path := fmt.Sprintf("callers[%d]", i)
		for _, name := range slices.Sorted(maps.Keys(c.Headers)) {
			if err := checkHeader(name, c.Headers[name]); err != nil {
				wrong(path+".headers."+name, "", err)
			}
		}
		for _, name := range slices.Sorted(maps.Keys(c.SecretHeaders)) {
			if err := checkHeaderName(name); err != nil {
				wrong(path+".secret_headers."+name, "", err)
			}
		}
		if c.Address != "" {
			if _, err := netip.ParseAddr(c.Address); err != nil {
				wrong(path+".address", "", fmt.Errorf("address: %q is not an IP address", c.Address))
			}
		}
	}
}

// pathOf finds the field that an error of plan begins with.
func (s *Spec) pathOf(err error) string {
	name, _, _ := strings.Cut(err.Error(), " ")
	name = strings.TrimRight(name, ":,")
	section, _, _ := strings.Cut(name, ".")
	switch {
	case slices.Contains(callerFactors, name), name == "adapter", name == "url", name == "callers", section == "expect":
		return name
	case s.Embedded != nil && slices.Contains(knobNames(), name):
		return "embedded." + name
	}
	for _, a := range adapters() {
		if a.section() != "" && section == a.section() {
			if !s.has(section) {
				return ""
			}
			return name
		}
	}
	return ""
}

// parseURL reads the URL of an endpoint that an adapter reaches.
func parseURL(text string, r reach) (*url.URL, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "":
		return nil, errors.New("this is not a URL with a host") // the parser's error would quote it, with what it may hold
	case u.Scheme == "https" && !r.tls:
		return nil, errors.New("https: this adapter's protocol is plain HTTP")
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, fmt.Errorf("scheme %q is not http", u.Scheme)
	case u.User != nil:
		return nil, errors.New("a URL must not hold credentials")
	case u.RawQuery != "" || u.Fragment != "" || u.ForceQuery:
		return nil, errors.New("the URL must end with its host or path: a query may hold secrets, and the adapter adds its own")
	case u.Path != "" && u.Path != "/" && !r.path:
		return nil, errors.New("the URL must end with its host: the adapter adds the path")
	}
	return u, nil
}

// secretNames mark headers that usually carry secrets.
var secretNames = []string{"authorization", "cookie", "token", "secret", "key", "password", "credential"}

// checkHeader refuses headers that would break the request, disarm the protocol, or put a secret into the file.
func checkHeader(name, value string) error {
	for _, s := range secretNames {
		if strings.Contains(strings.ToLower(name), s) {
			return fmt.Errorf("header %s looks like a secret, and secrets must not stand in the file; use secret_headers: {%s: {env: NAME}}", name, name)
		}
	}
	for _, c := range value {
		if c < ' ' || c > '~' {
			return fmt.Errorf("the value of header %s has characters other than printable ASCII", name)
		}
	}
	return checkHeaderName(name)
}

// checkHeaderName refuses headers that belong to the protocol, and what is none.
func checkHeaderName(name string) error {
	switch strings.ToLower(name) {
	case "host", "connection", "content-length", "transfer-encoding", "metadata-flavor", "x-forwarded-for", "expect", "te", "upgrade":
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
