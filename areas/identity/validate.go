package identity

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"tare/area"
	"tare/internal/design"
	"tare/internal/kit"
)

// Validate implements area.Spec.
func (s *Spec) Validate(q area.Asked, treatments []design.Treatment) []area.Finding {
	var out []area.Finding
	places := slices.ContainsFunc(treatments, func(t design.Treatment) bool { return t.Levels["url"] != "" })
	if places && s.URL != "" {
		out = append(out, kit.FaultVaried("url", "url"))
	}
	if !places { // else each treatment's own is looked at
		out = append(out, s.judgePlace()...)
	}
	if out = append(out, s.judgeCallers()...); len(out) > 0 {
		return out
	}
	var plans []planned
	for _, t := range kit.AtLeastOne(treatments) {
		p, findings := s.judge(t)
		if q.Trespasses && len(findings) == 0 {
			findings = p.judgeGuard(t)
		}
		out = append(out, findings...)
		plans = append(plans, planned{t, p})
	}
	if len(out) == 0 {
		out = judgeTogether(q, plans)
	}
	return out
}

// judge looks at what one treatment makes of the section. Findings name the treatment.
func (s *Spec) judge(t design.Treatment) (plan, []area.Finding) {
	var out []area.Finding
	u, err := s.under(t.Levels)
	if err == nil {
		out = append(u.judgePlace(), u.judgeCallers()...)
	}
	var p plan
	if len(out) == 0 {
		if p, err = s.plan(t); err != nil {
			f := area.Fault(s.pathOf(err), err, "")
			f.Secret = f.Path == "http.body" || f.Path == "http.path"
			out = append(out, f)
		}
	}
	if len(t.Levels) > 0 {
		for i := range out {
			out[i] = out[i].In(t)
		}
	}
	return p, out
}

// judgePlace looks at the URL and at what depends on it.
func (s *Spec) judgePlace() (out []area.Finding) {
	if s.URL == "" {
		if s.TLS != nil {
			out = append(out, area.Fault("tls", errors.New("tls: the embedded endpoint speaks plain HTTP"), "leave it out"))
		}
		return out
	}
	a, err := findAdapter(string(s.Adapter))
	if err != nil {
		return nil // plan says so
	}
	u, err := parseURL(s.URL, a.reach)
	if err != nil {
		out = append(out, area.Fault("url", err, baseOf(s.URL, a.reach)))
	}
	if s.Embedded != nil {
		out = append(out, area.Fault("embedded", errors.New("url and embedded exclude each other"), "leave one of them out"))
	}
	if s.Identities > 1 && len(s.Callers) == 0 && !s.Says().Loopback {
		out = append(out, area.Fault("identities",
			errors.New("identities are distinguished by source address, which can be chosen for loopback targets only"),
			"leave it out"))
	}
	if s.TLS != nil && u != nil && u.Scheme != "https" {
		out = append(out, area.Fault("tls", errors.New("tls: the url is not https"), "write https:// in the url"))
	}
	if u != nil {
		if err := kit.CheckExposure(u, s.TLS, s, s.ExposeSecrets); err != nil {
			out = append(out, area.Fault("url", err, ""))
		}
	}
	if err := s.TLS.Validate(); err != nil {
		field, _, _ := strings.Cut(err.Error(), ":")
		out = append(out, area.Fault("tls."+field, err, ""))
	}
	return out
}

// judgeSections refuses options of other adapters.
func (s *Spec) judgeSections() (out []area.Finding) {
	a, err := findAdapter(string(s.Adapter))
	if err != nil {
		return nil // plan says so
	}
	for _, other := range adapters() {
		if name := other.section; name != "" && name != a.section && kit.HasSection(s, name) {
			err := fmt.Errorf("%s: these are options of %s, not of %s", name, other.name, a.name)
			out = append(out, area.Fault(name, err, "leave it out, or name the adapter that it belongs to"))
		}
	}
	return out
}

// ownHeaders are those of the protocols, and those that say who asks.
var ownHeaders = []string{"metadata-flavor", "x-forwarded-for"}

// judgeCallers looks at who asks: sections, headers and callers.
func (s *Spec) judgeCallers() []area.Finding {
	out := append(s.judgeSections(), kit.CheckHeaders("", s.Headers, s.SecretHeaders, ownHeaders...)...)
	out = append(out, s.judgeTrespasses()...)
	if len(s.Callers) > 0 && s.Identities > 0 {
		out = append(out, area.Fault("identities",
			errors.New("identities and callers exclude each other: callers are as many as are listed"), "leave one of them out"))
	}
	for i, c := range s.Callers {
		path := fmt.Sprintf("callers[%d].", i)
		out = append(out, kit.CheckHeaders(path, c.Headers, c.SecretHeaders, ownHeaders...)...)
		if c.Address != "" {
			if _, err := netip.ParseAddr(c.Address); err != nil {
				out = append(out, area.Fault(path+"address", fmt.Errorf("address: %q is not an IP address", c.Address), ""))
			}
		}
	}
	return out
}

// pathOf finds the field that an error of plan begins with.
func (s *Spec) pathOf(err error) string {
	name, _, _ := strings.Cut(err.Error(), " ")
	name = strings.TrimRight(name, ":,")
	section, _, _ := strings.Cut(name, ".")
	switch {
	case slices.Contains(placeFactors, name), name == "adapter", name == "callers", section == "expect":
		return name
	case s.Embedded != nil && slices.Contains(knobNames(), name):
		return "embedded." + name
	}
	for _, a := range adapters() {
		if a.section != "" && section == a.section {
			if !kit.HasSection(s, section) {
				return ""
			}
			return name
		}
	}
	return ""
}

// baseOf returns the hint for a URL that says too much or too little: what it would be without that.
func baseOf(text string, r reach) string {
	base := url.URL{Scheme: "http", Host: "169.254.169.254"}
	if !r.node {
		base = url.URL{Scheme: "https", Host: "login.example.com"}
	}
	if u, err := url.Parse(text); err == nil && u.Host != "" && u.User == nil {
		base = url.URL{Scheme: u.Scheme, Host: u.Host}
		if r.path {
			base.Path, base.RawPath = u.Path, u.RawPath
		}
	}
	if !r.tls || base.Scheme != "https" {
		base.Scheme = "http"
	}
	return "write the base only, such as " + base.String()
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
		return nil, errors.New("the URL must end with its host or path: what stands after it may be secret, and tare " +
			"sends only the query that the protocol has")
	case u.Path != "" && u.Path != "/" && !r.path:
		return nil, errors.New("the URL must end with its host: the adapter adds the path")
	}
	return u, kit.CheckPort(u)
}
