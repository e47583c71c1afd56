package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"tare/area"
	"tare/internal/clock"
	"tare/internal/kit"
	"tare/internal/unit"
)

const (
	// guessWithin bounds each request, with its body.
	guessWithin = 2 * time.Second
	// guessRate keeps the requests apart: a server that limits its rate should answer all of them.
	guessRate = 10.0
	// guessBody is how much of an answer is read; one that is longer tells nothing.
	guessBody = 64 << 10
	// guessBegin is how much of its text a clue may search; guessWords is how much of a refusal is quoted.
	guessBegin, guessWords = 1 << 10, 150
)

// A clue is one of an area.
type clue struct {
	area.Clue

	of area.Area
}

// clues returns those of all areas, in the order in which they are asked.
func (a *app) clues() (out []clue) {
	for _, last := range []bool{false, true} {
		for _, ar := range a.Areas {
			for _, c := range ar.Parts().Clues {
				if c.Last == last {
					out = append(out, clue{c, ar})
				}
			}
		}
	}
	return out
}

// guess asks a server which protocol it speaks. It sends no credential and follows no redirect. trust are the flags
// about TLS; nil: there are none.
func (a *app) guess(ctx context.Context, u *url.URL, f *sourceFlags, trust *kit.TLS) (spoken, error) {
	clues := a.clues()
	for _, c := range clues {
		if c.Address != nil {
			if err := c.Address(u); err != nil {
				return spoken{}, err
			}
		}
	}
	client, err := a.guessClient(u, f, trust)
	if err != nil {
		return spoken{}, err
	}
	defer client.CloseIdleConnections()
	rate := guessRate
	if most, err := unit.ParseRate(f.value("load.max_rate")); err == nil { // needsRate has seen to it where it matters
		rate = min(rate, float64(most))
	}
	if a.guesses == nil { // the next URL may be the same server
		a.guesses = a.limit(clock.System{}, rate)
	}
	client.Transport = a.guesses.Repeating(client.Transport)
	base := strings.TrimRight(u.String(), "/")
	var last heard
	var took time.Duration // by the answer that came fastest, on a connection that was open
	for k, c := range clues {
		if err := a.guesses.Wait(ctx); err != nil {
			return spoken{}, err
		}
		if last, err = listen(ctx, client, base+c.Path); err != nil {
			return spoken{}, a.unheard(u, err)
		}
		if k > 0 && c.Path == "" && (took == 0 || last.took < took) {
			took = last.took
		}
		s, err := c.Tells(u, area.Heard{
			Status: last.status, Header: last.header.Get, Body: last.body, Begin: last.begin,
		})
		if err != nil {
			return spoken{}, err
		}
		if s.Adapter != "" {
			a.tell("%-9s %s: %s\n", "adapter", s.Adapter, s.Evidence)
			return spoken{
				area: c.of.Name(), adapter: adapterOf(c.of, s.Adapter), url: s.URL, options: s.Options, took: took,
			}, nil
		}
	}
	return spoken{}, usage("nothing tells which protocol %s speaks: GET %s was answered with status %d%s; %s", u.Host, u,
		last.status, last.detail(), a.nextAfter(last, u, "name it: --adapter NAME ('tare list adapters')"+instead(clues)))
}

// nextAfter says what to do about an answer that does not tell the protocol: most such answers have a cause that no
// adapter mends. naming says how the protocol is named.
func (a *app) nextAfter(h heard, u *url.URL, naming string) string {
	refused := h.status == http.StatusUnauthorized || h.status == http.StatusForbidden
	switch {
	case u.Scheme == "http" && h.wantsTLS():
		return "the server speaks TLS at this port: write https:// instead of http://, or another port"
	case refused && a.sendsRequests():
		return "give the credential that it wants by its place: -H 'Authorization: @FILE', or " + naming
	case h.status == http.StatusNotFound:
		return "give the path of a request that it answers, or " + naming
	case h.status/100 == 2 && h.status != http.StatusOK && a.sendsRequests():
		return "give the request, whose answer is then judged: -X GET, or " + naming
	case h.status == http.StatusTooManyRequests:
		return "wait until it lets this caller in again, or " + naming
	case h.status/100 == 5:
		return "see in the server's log why it answers so, or " + naming
	case h.status/100 == 3 && h.header.Get("Location") != "":
		return "give the address that it leads to, if that is what you measure, or " + naming
	}
	return naming
}

// sendsRequests reports whether an adapter sends the request that the flags describe.
func (a *app) sendsRequests() bool {
	at, _ := a.speaker(func(x area.Adapter) bool { return x.Request != nil })
	return at.area != ""
}

// wantsTLS reports whether the answer is that of nginx, Apache or Go to plain HTTP at a port for TLS.
func (h heard) wantsTLS() bool {
	return h.status == http.StatusBadRequest &&
		(strings.Contains(h.begin, "HTTPS") || strings.Contains(h.begin, "SSL-enabled"))
}

// mostRequests is how many requests a guess makes: "6 GET requests".
func (a *app) mostRequests() string { return unit.Count(len(a.clues()), "GET request") }

// instead says what else the user could give.
func instead(clues []clue) (text string) {
	for _, c := range clues {
		if c.Instead != "" {
			text += ", or " + c.Instead
		}
	}
	return text
}

// A heard is the answer to one GET request.
type heard struct {
	status int
	header http.Header
	body   map[string]any // the JSON object in the body; nil if it is not one or is too long
	begin  string         // the beginning of the body, as it is
	took   time.Duration  // from the request to the last byte
}

// adapterOf returns an area's adapter of that name.
func adapterOf(ar area.Area, name string) area.Adapter {
	for _, x := range ar.Parts().Adapters {
		if x.Name == name {
			return x
		}
	}
	return area.Adapter{Name: name}
}

// unheard says why a server was not asked, or gave no answer.
func (a *app) unheard(u *url.URL, err error) error {
	if f, ok := kit.ExplainDial(u.Host, err); ok {
		return usage("%s; %s", f.Message, f.Hint)
	}
	if f, ok := kit.ExplainTLS(err); ok {
		return usage("%s: %s; %s", u.Host, f.Message, asFlags.Replace(f.Hint))
	}
	next := "name it: --adapter NAME ('tare list adapters')"
	if late, ok := errors.AsType[net.Error](err); ok && late.Timeout() {
		err = fmt.Errorf("no answer within %v", guessWithin)
		if a.sendsRequests() {
			next = "give the request, which has more time: -X GET, or " + next
		}
	}
	return usage("%s cannot be asked for its protocol: %w; %s", u.Host, err, next)
}

// asFlags replaces fields of a file, in hints about connections, by the flags of a command line.
var asFlags = strings.NewReplacer(
	"name the authority instead: tls: {ca: file.pem}", "name the authority instead: --cacert file.pem",
	"say so in the file: expose_secrets: true", "say so: --set target.expose_secrets=true",
	"tls: {ca: file.pem}", "--cacert file.pem; or verify nothing: -k",
	"name what the certificate says: tls: {server_name: …}",
	"name what the certificate says: --set target.tls.server_name=NAME",
	"use that name in the URL", "use that name in the URL, or verify nothing: -k",
	"tls: {server_name: …}", "--set target.tls.server_name=NAME",
	"tls: {cert: client.pem, key: {file: client.key}}", "--cert client.pem --key client.key",
)

// detail says where a redirect leads, or why the server refuses, in its own words.
func (h heard) detail() string {
	to, words := h.header.Get("Location"), strings.TrimSpace(h.begin)
	switch refuses := h.status == 400 || h.status == 401 || h.status == 403; {
	case h.status/100 == 3 && to != "":
		return fmt.Sprintf(", a redirect to %.200q, and tare follows none", to)
	case refuses && words != "" && len(words) <= guessWords && !strings.HasPrefix(words, "<"):
		return fmt.Sprintf(" and the words %q", words)
	}
	return ""
}

// guessClient returns a client for the server at u. It trusts whom the flags say, and shows the certificate of --cert.
func (a *app) guessClient(u *url.URL, f *sourceFlags, trust *kit.TLS) (*http.Client, error) {
	if u.Scheme != "http" && u.Scheme != "https" {
		return nil, usage("%s: the server can be asked for its protocol over http and https only; name it: --adapter %s",
			u.Scheme, strings.Join(a.speaking(u.Scheme), " or "))
	}
	var t kit.TLS
	if trust != nil {
		t = *trust
	}
	t.CA, t.ServerName = cmp.Or(f.value("target.tls.ca"), t.CA), f.value("target.tls.server_name")
	t.Insecure = t.Insecure || f.value("target.tls.insecure") == "true"
	config, err := t.Config(u.Hostname(), nil)
	if err != nil {
		return nil, usage("%w", err)
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

// speaking returns the adapters whose addresses have a scheme.
func (a *app) speaking(scheme string) (names []string) {
	for _, ar := range a.Areas {
		for _, x := range ar.Parts().Adapters {
			if slices.Contains(x.Schemes, scheme) {
				names = append(names, x.Name)
			}
		}
	}
	return names
}

// listen makes one GET request. It fails if no answer comes in time.
func listen(ctx context.Context, client *http.Client, address string) (h heard, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return h, err
	}
	req.Header.Set("User-Agent", "tare")
	req.Header.Set("Accept", "application/json, */*;q=0.5")
	sent := clock.System{}.Now()
	got, err := client.Do(req)
	if err != nil {
		return h, err
	}
	defer got.Body.Close() //nolint:errcheck // it has been read as far as it matters
	h = heard{status: got.StatusCode, header: got.Header}
	body, err := io.ReadAll(io.LimitReader(got.Body, guessBody+1))
	h.took = clock.System{}.Now().Sub(sent)
	h.begin = string(body[:min(len(body), guessBegin)])
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
