package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"tare/internal/area"
	"tare/internal/clock"
	"tare/internal/ratelimit"
	"tare/internal/unit"
)

const (
	// guessWithin bounds each request, with its body.
	guessWithin = 2 * time.Second
	// guessRate keeps the requests apart: a server that limits its rate should answer all of them.
	guessRate = 10.0
	// guessBody is how much of an answer is read; one that is longer tells nothing.
	guessBody = 64 << 10
)

// A heard is the answer to one GET request.
type heard struct {
	status int
	header http.Header
	body   map[string]any // the JSON object in the body; nil if it is not one or is too long
}

// text returns a member of the answer's body that is a text; names are joined by dots.
func (h heard) text(path string) string {
	at, names := h.body, strings.Split(path, ".")
	for _, n := range names[:len(names)-1] {
		at, _ = at[n].(map[string]any)
	}
	s, _ := at[names[len(names)-1]].(string)
	return s
}

// A clue is a request that tells a protocol.
type clue struct {
	path string // below the address
	// tells returns what the answer proves; its adapter is empty if that is nothing.
	tells func(u *url.URL, h heard) (s spoken, evidence string, err error)
}

// clues are asked in this order; the last one is the address itself.
var clues = []clue{
	{"/.well-known/openid-configuration", tellsOIDC},
	{"/v1/sys/health", tellsVault},
	{"/.well-known/authzen-configuration", tellsAuthZEN},
	{"/v1/data/system/version", tellsOPA},
	{"/realms/master", tellsKeycloak},
	{"", tellsHTTP},
}

// guess asks a server which protocol it speaks. It sends no credential and follows no redirect.
func (a *app) guess(ctx context.Context, u *url.URL, f *sourceFlags) (spoken, error) {
	if realm, ok := keycloakRealm(u); ok {
		return spoken{}, usage("%s is an endpoint of a Keycloak realm; give the address of its issuer: %s", u, realm)
	}
	client, err := guessClient(u, f)
	if err != nil {
		return spoken{}, err
	}
	defer client.CloseIdleConnections()
	rate := guessRate
	if most, err := unit.ParseRate(f.value("load.max_rate")); err == nil { // needsRate has seen to it where it matters
		rate = min(rate, float64(most))
	}
	limit := ratelimit.New(clock.System{}, rate)
	base := strings.TrimRight(u.String(), "/")
	var last heard
	for _, c := range clues {
		if err := limit.Wait(ctx); err != nil {
			return spoken{}, err
		}
		if last, err = listen(ctx, client, base+c.path); err != nil {
			return spoken{}, unheard(u, err)
		}
		s, evidence, err := c.tells(u, last)
		if err != nil {
			return spoken{}, err
		}
		if s.adapter != "" {
			s.needs = needsOf(s.adapter)
			a.tell("%-9s %s: %s\n", "adapter", s.adapter, evidence)
			return s, nil
		}
	}
	return spoken{}, usage("nothing tells which protocol %s speaks: GET %s was answered with status %d%s; name it: "+
		"--adapter NAME ('tare list adapters'), or give an OIDC server by the address of its issuer", u.Host, u,
		last.status, redirected(last))
}

// unheard says why a server was not asked, or gave no answer.
func unheard(u *url.URL, err error) error {
	if f, ok := area.ExplainDial(u.Host, err); ok {
		return usage("%s; %s", f.Message, f.Hint)
	}
	if f, ok := area.ExplainTLS(err); ok {
		return usage("%s: %s; %s", u.Host, f.Message, f.Hint)
	}
	return usage("%s cannot be asked for its protocol: %w; name it: --adapter NAME ('tare list adapters')", u.Host, err)
}

// redirected says where a redirect leads.
func redirected(h heard) string {
	if to := h.header.Get("Location"); h.status/100 == 3 && to != "" {
		return fmt.Sprintf(", a redirect to %.200q, and tare follows none", to)
	}
	return ""
}

// guessClient returns a client for the server at u. It trusts whom the flags say, and shows no certificate.
func guessClient(u *url.URL, f *sourceFlags) (*http.Client, error) {
	if u.Scheme != "http" && u.Scheme != "https" {
		return nil, usage("%s: the server can be asked for its protocol over http and https only; name it: --adapter "+
			"ext-authz", u.Scheme)
	}
	trust := &area.TLS{
		CA: f.value("target.tls.ca"), ServerName: f.value("target.tls.server_name"),
		Insecure: f.value("target.tls.insecure") == "true",
	}
	config, err := trust.Config(u.Hostname(), nil)
	if err != nil {
		return nil, usage("--set: %w", err)
	}
	return &http.Client{
		Timeout: guessWithin,
		Transport: &http.Transport{
			TLSClientConfig: config, DisableCompression: true, MaxResponseHeaderBytes: guessBody,
			MaxConnsPerHost: 1,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}, nil
}

// listen makes one GET request. It fails if no answer comes in time.
func listen(ctx context.Context, client *http.Client, address string) (h heard, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return h, err
	}
	req.Header.Set("User-Agent", "tare")
	req.Header.Set("Accept", "application/json, */*;q=0.5")
	got, err := client.Do(req)
	if err != nil {
		return h, err
	}
	defer got.Body.Close() //nolint:errcheck // it has been read as far as it matters
	h = heard{status: got.StatusCode, header: got.Header}
	body, err := io.ReadAll(io.LimitReader(got.Body, guessBody+1))
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return h, nil // a body that was cut short tells nothing; the status does
	case err != nil:
		return h, fmt.Errorf("read the answer of %s: %w", address, err)
	case len(body) <= guessBody && json.Unmarshal(body, &h.body) != nil:
		h.body = nil
	}
	return h, nil
}
