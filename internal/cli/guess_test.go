package cli

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tare/rigs/hosttest"
	"tare/rigs/toy"
)

// guessed asks a server for its protocol, and returns what is said on stderr too.
func guessed(t *testing.T, address string, f *sourceFlags) (s spoken, said string, err error) {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	a := &app{Env: Env{Stdout: io.Discard, Stderr: &stderr, Areas: toy.Areas()}}
	s, err = a.guess(t.Context(), u, f, nil)
	return s, stderr.String(), err
}

// TestGuess asks servers which of the toy's clues they give: one that proves it, one that any good answer is.
func TestGuess(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, path, body, adapter, options, want string }{
		{"toy", "/toy", `{"toy":"7"}`, "toy-http", "", "is answered by a toy, version 7"},
		{"any", "/", "hello", "toy-http", "  key: {env: TOY_KEY}\n", "it answers"},
		{
			"nothing", "/elsewhere", "hello", "", "",
			"with status 404; give the path of a request that it answers, or name it: --adapter NAME ('tare list adapters'), " +
				"or look whether it is a toy",
		},
		{"garbage", "/toy", `{"toy":`, "", "", "nothing tells which protocol"},
		{"types", "/toy", `{"toy":{}}`, "", "", "nothing tells which protocol"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var requests atomic.Int64
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				requests.Add(1)
				if r.Method != http.MethodGet || r.Header.Get("Authorization")+r.Header.Get("Cookie")+r.URL.RawQuery != "" {
					t.Errorf("%s %s %v is not a harmless request", r.Method, r.URL, r.Header)
				}
				if r.URL.Path != c.path {
					w.WriteHeader(http.StatusNotFound)
				}
				_, _ = io.WriteString(w, c.body)
			}))
			defer server.Close()
			began := time.Now()
			s, said, err := guessed(t, server.URL, &sourceFlags{maxRate: "5/s"})
			took := time.Since(began)
			if err != nil {
				said += err.Error()
			}
			if (err == nil) != (c.adapter != "") || s.adapter.Name != c.adapter || s.options != c.options ||
				!strings.Contains(said, c.want) {
				t.Errorf("%q, options %q, %v, said %q; want %q and %q", s.adapter.Name, s.options, err, said, c.adapter, c.want)
			}
			if (s.took > 0) != (c.name == "any") || s.took > took {
				t.Errorf("an answer took %v of %v; only that at the address itself is timed, on a connection that was open", s.took,
					took)
			}
			if n := int(requests.Load()); n > clueCount || took < time.Duration(n-1)*190*time.Millisecond {
				t.Errorf("%d requests in %v, at most 5/s are allowed", n, took)
			}
		})
	}
}

// TestGuessQuotesRefusals: a short refusal often says what is missing. Pages and long texts do not help.
func TestGuessQuotesRefusals(t *testing.T) {
	t.Parallel()
	const words = "Missing X-Toy header"
	for _, c := range []struct {
		status int
		body   string
		quoted bool
	}{
		{403, words + "\n", true},
		{401, words, true},
		{404, words, false},
		{403, "<p>" + words + "</p>", false},
		{403, words + strings.Repeat(".", guessWords), false},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(c.status)
			_, _ = io.WriteString(w, c.body)
		}))
		_, _, err := guessed(t, server.URL, &sourceFlags{})
		server.Close()
		if want := `and the words "` + words + `"; `; err == nil ||
			strings.Contains(err.Error(), want) != c.quoted || !c.quoted && strings.Contains(err.Error(), words) {
			t.Errorf("status %d and %.40q: %v", c.status, c.body, err)
		}
	}
}

// TestAddressWithoutScheme: on loopback it is http, elsewhere the user must say which; what may be a credential is not
// repeated.
func TestAddressWithoutScheme(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ address, url, says string }{
		{
			"localhost:19101", "http://localhost:19101",
			"address   http://localhost:19101: http, since the address has no scheme\n",
		},
		{"127.0.0.1:80/a", "http://127.0.0.1:80/a", "has no scheme"},
		{"[::1]:80", "http://[::1]:80", "has no scheme"},
		{"http://localhost:80", "http://localhost:80", ""},
		{"example.com:80", "", "example.com:80 has no scheme; write http://example.com:80 or https://example.com:80"},
		{"localhost", "", "not a URL with a host"},
		{"me:hunter2@localhost:80", "", "not a URL with a host"},
		{"localhost:80?token=hunter2", "", "not a URL with a host"},
		{"localhost:hunter2", "", "not a URL with a host"},
	} {
		var stderr bytes.Buffer
		a := &app{Env: Env{Stdout: io.Discard, Stderr: &stderr, Areas: toy.Areas()}}
		u, err := a.parseAddress(c.address)
		got, said := "", stderr.String()
		if err != nil {
			said += err.Error()
		} else {
			got = u.String()
		}
		if got != c.url || !strings.Contains(said, c.says) || c.says == "" && said != "" ||
			strings.Contains(said, "hunter2") {
			t.Errorf("%s: %q, said %q; want %q and %q", c.address, got, said, c.url, c.says)
		}
	}
}

// goodForToy is the status of a server whose answer would prove a toy if it were read, and is not good otherwise.
func goodForToy(r *http.Request) int {
	if r.URL.Path == "/toy" {
		return http.StatusOK
	}
	return http.StatusForbidden
}

// TestGuessHostile: no answer makes a guess hang, follow, claim, or read without end.
func TestGuessHostile(t *testing.T) {
	hosttest.SkipIfShort(t)
	t.Parallel()
	var hits sync.Map
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		hits.Store(r.URL.Path, true)
	}))
	t.Cleanup(other.Close) // after the subtests
	release := make(chan struct{})
	for name, c := range map[string]struct {
		want  string
		serve http.HandlerFunc
	}{
		"redirect": {"a redirect to", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, other.URL+r.URL.Path, http.StatusTemporaryRedirect)
		}},
		"stall": {"cannot be asked for its protocol", func(http.ResponseWriter, *http.Request) { <-release }},
		"trickle": {"cannot be asked for its protocol", func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				_, _ = io.WriteString(w, " ")
				_ = http.NewResponseController(w).Flush()
				time.Sleep(10 * time.Millisecond)
			}
		}},
		"endless": {"nothing tells which protocol", func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(goodForToy(r))
			begin := `{"toy":"1","x":"`
			for _, err := io.WriteString(w, begin); err == nil; _, err = w.Write(bytes.Repeat([]byte("x"), 1<<16)) {
			}
		}},
		"huge": {"nothing tells which protocol", func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(goodForToy(r))
			_, _ = fmt.Fprintf(w, `{"toy":"1","x":"%s"}`, strings.Repeat("x", guessBody))
		}},
		"cut short": {"nothing tells which protocol", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000")
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, "{")
		}},
		"header without end": {"cannot be asked for its protocol", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Long", strings.Repeat("x", 1<<20))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var requests atomic.Int64 // each of which has guessWithin
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				requests.Add(1)
				c.serve(w, r)
			}))
			s, said, err := guessed(t, server.URL, &sourceFlags{})
			if n := int(requests.Load()); n > clueCount {
				t.Errorf("%d requests were made, at most %d are needed", n, clueCount)
			}
			if err == nil || s.adapter.Name != "" || said != "" || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%q, said %q, error %v; want %q", s.adapter.Name, said, err, c.want)
			}
			if name == "stall" {
				close(release)
			}
			server.CloseClientConnections()
			server.Close()
		})
	}
	t.Cleanup(func() {
		hits.Range(func(path, _ any) bool {
			t.Errorf("%v was asked of the server that a redirect names", path)
			return true
		})
	})
}

// TestGuessOtherProtocol: a server that speaks no HTTP tells nothing.
func TestGuessOtherProtocol(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(c, "SSH-2.0-nobody\r\n")
			_ = c.Close()
		}
	}()
	_, said, err := guessed(t, "http://"+l.Addr().String(), &sourceFlags{})
	if err == nil || said != "" || !strings.Contains(err.Error(), "cannot be asked") {
		t.Errorf("said %q, error %v", said, err)
	}
}

// clueCount is the number of requests that a guess makes at most.
var clueCount = len((&app{Env: Env{Areas: toy.Areas()}}).clues())
