package cluster

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"unicode"
)

// mostAnswer bounds what is read of one answer, in bytes: a page of 500 objects, or all metrics of a large server, are a tenth of it.
const mostAnswer = 64 << 20

// mostWords bounds how much of a server's words an error repeats, in bytes.
const mostWords = 600

// A guard stands next to the wire: it keeps requests, and with them the credentials, at the one server, refuses to be sent elsewhere, bounds
// answers, and knows the credentials that were sent, so that no error repeats them.
type guard struct {
	host    string
	mu      sync.Mutex
	secrets []string
}

// leastSecret is how long a credential must be for its letters to be taken out of words: a shorter one would take words apart, and guards nothing.
const leastSecret = 4

type roundTrip func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// CancelRequest is what client-go looks for when a request's time is up. There is nothing to do: the request's context has ended.
func (roundTrip) CancelRequest(*http.Request) {}

func (g *guard) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTrip(func(r *http.Request) (*http.Response, error) {
		if r.URL.Host != g.host {
			return nil, fmt.Errorf("a request for %s was not sent: the server is %s", r.URL.Host, g.host)
		}
		g.learn(r.Header.Get("Authorization"))
		res, err := next.RoundTrip(r)
		if err != nil {
			return nil, err
		}
		if res.StatusCode >= 300 && res.StatusCode < 400 && res.StatusCode != http.StatusNotModified {
			err := fmt.Errorf("the server answers %d and wants to send us to another place; an API server does not", res.StatusCode)
			return nil, errors.Join(err, res.Body.Close())
		}
		if r.URL.Query().Get("watch") == "" && res.Body != nil {
			res.Body = &bounded{ReadCloser: res.Body, left: mostAnswer}
		}
		return res, nil
	})
}

// learn remembers what must not be repeated.
func (g *guard) learn(authorization string) {
	scheme, value, found := strings.Cut(authorization, " ")
	if !found || len(value) < leastSecret {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if slices.Contains(g.secrets, value) {
		return
	}
	g.secrets = append(g.secrets, value)
	if !strings.EqualFold(scheme, "basic") {
		return
	}
	if both, err := base64.StdEncoding.DecodeString(value); err == nil {
		if _, password, ok := strings.Cut(string(both), ":"); ok && len(password) >= leastSecret {
			g.secrets = append(g.secrets, password)
		}
	}
}

// scrub is err with words that can be shown: no credential that was sent, no control characters, not endless.
func (c *Cluster) scrub(err error) error {
	if err == nil {
		return nil
	}
	return &scrubbed{words: c.guard.scrub(err.Error()), err: err}
}

// Scrub is err without the credentials that were sent, and without what a terminal would act on. errors.Is and errors.As still see its causes.
func (c *Cluster) Scrub(err error) error { return c.scrub(err) }

func (g *guard) scrub(words string) string {
	if g != nil {
		g.mu.Lock()
		defer g.mu.Unlock()
		for _, s := range g.secrets {
			words = strings.ReplaceAll(words, s, "[credential]")
		}
	}
	return clean(words)
}

// clean takes out what a terminal would act on, and shortens.
func clean(words string) string {
	words = strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' ' // not nothing: what was apart must not become one
	}, strings.ToValidUTF8(words, "?"))
	if len(words) > mostWords {
		words = strings.ToValidUTF8(words[:mostWords], "") + "…"
	}
	return words
}

type scrubbed struct {
	words string
	err   error
}

// Error implements error.
func (s *scrubbed) Error() string { return s.words }

// Unwrap gives the causes to errors.Is and errors.As.
func (s *scrubbed) Unwrap() error { return s.err }

// bounded ends an answer that does not end.
type bounded struct {
	io.ReadCloser
	left int64
}

// Read implements io.Reader.
func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, fmt.Errorf("the server's answer is longer than %d MiB", mostAnswer>>20)
	}
	n, err := b.ReadCloser.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}
