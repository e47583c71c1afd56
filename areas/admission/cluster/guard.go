package cluster

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"unicode"

	"tare/internal/mask"
)

// mostWords bounds how much of a server's message an error quotes, in bytes.
const mostWords = 600

// A guard is the innermost round tripper. It sends requests, and with them the credentials, to the one server only,
// refuses redirects, bounds answers, and records the credentials that were sent, so that no error repeats them.
type guard struct {
	host    string
	mu      sync.Mutex
	secrets []string
}

// leastSecret is the minimum length of a credential that is removed from messages: a shorter one would occur in
// ordinary words, and protects nothing.
const leastSecret = 4

type roundTrip func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// CancelRequest exists because client-go looks for it when a request times out. It does nothing: the request's context
// has ended.
func (roundTrip) CancelRequest(*http.Request) {}

func (g *guard) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTrip(func(r *http.Request) (*http.Response, error) {
		if r.URL.Host != g.host {
			return nil, fmt.Errorf("a request for %s was not sent: the server is %s", r.URL.Host, g.host)
		}
		g.learn(r.Header.Get("Authorization"))
		r = askCountable(r)
		res, err := next.RoundTrip(r)
		if err != nil {
			return nil, err
		}
		if res.StatusCode >= 300 && res.StatusCode < 400 && res.StatusCode != http.StatusNotModified {
			err := fmt.Errorf("the server answers %d and redirects to another server, which an API server does not do",
				res.StatusCode)
			return nil, errors.Join(err, res.Body.Close())
		}
		bound(r, res)
		return res, nil
	})
}

// learn records a credential.
func (g *guard) learn(authorization string) {
	scheme, value, found := strings.Cut(authorization, " ")
	if !found {
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
		if _, password, ok := strings.Cut(string(both), ":"); ok {
			g.secrets = append(g.secrets, password)
		}
	}
}

// scrub returns err with a message that can be shown: without the credentials that were sent, without control
// characters, and of bounded length.
func (c *Cluster) scrub(err error) error {
	if err == nil {
		return nil
	}
	return &scrubbed{words: c.guard.scrub(err.Error()), err: err}
}

// Scrub returns err with a message without the credentials that were sent and without control characters. errors.Is and
// errors.As still see its causes.
func (c *Cluster) Scrub(err error) error { return c.scrub(err) }

// Mask overwrites, in place, the credentials that were sent in an answer.
func (c *Cluster) Mask(answer []byte) []byte { return c.guard.mask().Fill(answer) }

func (g *guard) scrub(words string) string {
	return clean(g.mask().Replace(words, "[credential]"))
}

// mask returns the mask of the credentials that were sent.
func (g *guard) mask() mask.Mask {
	if g == nil {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return mask.Of(leastSecret, g.secrets...)
}

// clean removes control characters, and shortens the text.
func clean(words string) string {
	words = strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' ' // a blank keeps words apart
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

// Unwrap returns the cause for errors.Is and errors.As.
func (s *scrubbed) Unwrap() error { return s.err }
