package cli

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// speakers are servers that answer as their protocol prescribes, by name; {url} is their own address.
var speakers = map[string]map[string]string{
	"oidc":   {"/realms/a/.well-known/openid-configuration": `{"issuer":"{url}/realms/a","token_endpoint":"{url}/realms/a/token"}`},
	"vault":  {"/v1/sys/health": `{"initialized":true,"sealed":false,"standby":false,"version":"1.21.4"}`},
	"sealed": {"/v1/sys/health": `{"initialized":true,"sealed":true,"standby":true,"version":"1.21.4"}`},
	"authzen": {
		"/.well-known/authzen-configuration": `{"policy_decision_point":"{url}","access_evaluation_endpoint":"{url}/access/v1/evaluation"}`,
	},
	"stores": {
		"/.well-known/authzen-configuration": `{"policy_decision_point":"{url}","access_evaluation_endpoint":"{url}/stores/7/evaluation"}`,
	},
	"opa": {"/v1/data/system/version": `{"result":{"build_commit":"abc","version":"1.22.0"}}`},
	"keycloak": {
		"/realms/master": `{"realm":"master","public_key":"x","token-service":"{url}/realms/master/protocol/openid-connect"}`,
		"/":              "<p>Welcome to Keycloak</p>",
	},
	"plain":     {"/": "<p>hello</p>"},
	"elsewhere": {"/.well-known/openid-configuration": `{"issuer":"{url}","token_endpoint":"http://192.0.2.1/token"}`},
	"authority": {"/.well-known/openid-configuration": `{"issuer":"{url}","token_endpoint":"{url}@192.0.2.1/token"}`},
	"garbage":   {"/.well-known/openid-configuration": `{"issuer":"x","token_endpoint":`, "/v1/sys/health": "[1]", "/v1/data/system/version": `{"result":"1"}`},
	"types":     {"/.well-known/openid-configuration": `{"issuer":1,"token_endpoint":{}}`, "/v1/sys/health": `{"initialized":"yes","sealed":0,"version":[]}`},
	"nothing":   {},
}

// speak starts a server of speakers. seen is told of every request.
func speak(name string, seen func(*http.Request)) *httptest.Server {
	var s *httptest.Server
	s = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen(r)
		text, ok := speakers[name][r.URL.Path]
		if !ok {
			w.WriteHeader(http.StatusNotFound)
		}
		_, _ = io.WriteString(w, strings.ReplaceAll(text, "{url}", s.URL))
	}))
	return s
}

// guarded starts a server that refuses whoever has no X-Key, unless the file open exists.
func guarded(open string) *httptest.Server {
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := os.Stat(open); err != nil && r.Header.Get("X-Key") == "" {
			w.WriteHeader(http.StatusForbidden)
		}
	}))
}

// startServer is a command of scripts: "serve NAME VARIABLE" starts a server of speakers and sets its address.
func startServer(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 2 || speakers[args[0]] == nil && args[0] != "guarded" {
		ts.Fatalf("serve: want the name of a server and of a variable, got %q", args)
	}
	var s *httptest.Server
	if args[0] == "guarded" {
		s = guarded(ts.MkAbs("open"))
	} else {
		s = speak(args[0], func(*http.Request) {})
	}
	ts.Defer(s.Close)
	ts.Setenv(args[1], s.URL)
}

// guessed asks a server for its protocol, and returns what is said on stderr too.
func guessed(t *testing.T, address string, f *sourceFlags) (s spoken, said string, err error) {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	a := &app{Env: Env{Stdout: io.Discard, Stderr: &stderr, Areas: every}}
	s, err = a.guess(t.Context(), u, f)
	return s, stderr.String(), err
}

func TestGuess(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ server, path, adapter, url, options, want string }{
		{"oidc", "/realms/a", "oidc-token", "/realms/a/token", "", "answers OIDC discovery"},
		{"oidc", "/realms/a/", "oidc-token", "/realms/a/token", "", "answers OIDC discovery"},
		{"vault", "", "vault-login", "", "", "as Vault and OpenBao do, version 1.21.4"},
		{"authzen", "", "authzen", "", "", "answers AuthZEN's discovery"},
		{"stores", "", "authzen", "", "  path: \"/stores/7/evaluation\"\n", "answers AuthZEN's discovery"},
		{"opa", "", "opa", "", "", "as Open Policy Agent does, version 1.22.0"},
		{"plain", "/", "http-token", "/", "status_only", "judged by their status alone"},
		{"keycloak", "", "", "", "", "is a Keycloak; give the address of a realm, its issuer: http://127.0.0.1"},
		{"keycloak", "/realms/a/protocol/openid-connect/token", "", "", "", "/realms/a"},
		{"nothing", "/realms/a/protocol/openid-connect/", "", "", "", "give the address of its issuer: http://127.0.0.1"},
		{"sealed", "", "", "", "", "sealed or not initialized"},
		{"elsewhere", "", "", "", "", `names an endpoint on another address: "http://192.0.2.1/token"`},
		{"authority", "", "", "", "", "names an endpoint on another address"},
		{"garbage", "", "", "", "", "was answered with status 404; name it: --adapter NAME"},
		{"types", "", "", "", "", "nothing tells which protocol"},
		{"nothing", "", "", "", "", "nothing tells which protocol"},
	} {
		t.Run(c.server+c.path, func(t *testing.T) {
			t.Parallel()
			var mu sync.Mutex
			requests := 0
			server := speak(c.server, func(r *http.Request) {
				mu.Lock()
				defer mu.Unlock()
				requests++
				if r.Method != http.MethodGet || r.Header.Get("Authorization")+r.Header.Get("Cookie")+r.URL.RawQuery != "" {
					t.Errorf("%s %s %v is not a harmless request", r.Method, r.URL, r.Header)
				}
			})
			defer server.Close()
			began := time.Now()
			s, said, err := guessed(t, server.URL+c.path, &sourceFlags{maxRate: "20/s"})
			took := time.Since(began)
			if err != nil {
				said += err.Error()
			}
			if (err == nil) != (c.adapter != "") || s.adapter.Name != c.adapter || !strings.Contains(said, c.want) {
				t.Errorf("%q, %v, said %q; want %q and %q", s.adapter.Name, err, said, c.adapter, c.want)
			}
			if err == nil && (s.url != server.URL+c.url || !strings.Contains(s.options, c.options)) {
				t.Errorf("url %s, options %q", s.url, s.options)
			}
			mu.Lock()
			defer mu.Unlock()
			if least := time.Duration(requests-1) * 45 * time.Millisecond; requests > clueCount || took < least {
				t.Errorf("%d requests in %v, at most 20/s are allowed", requests, took)
			}
		})
	}
}

// TestGuessHostile: no answer makes a guess hang, follow, claim, or read without end.
func TestGuessHostile(t *testing.T) {
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
			w.WriteHeader(http.StatusAccepted)
			begin := `{"issuer":"x","token_endpoint":"http://` + r.Host + `/token","x":"`
			for _, err := io.WriteString(w, begin); err == nil; _, err = w.Write(bytes.Repeat([]byte("x"), 1<<16)) {
			}
		}},
		"huge": {"nothing tells which protocol", func(w http.ResponseWriter, r *http.Request) {
			status := http.StatusOK
			if r.URL.Path == "/" {
				status = http.StatusForbidden
			}
			w.WriteHeader(status)
			_, _ = fmt.Fprintf(w, `{"issuer":"x","token_endpoint":"http://%s/token","x":"%s"}`, r.Host, strings.Repeat("x", guessBody))
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
			server := httptest.NewServer(c.serve)
			began := time.Now()
			s, said, err := guessed(t, server.URL, &sourceFlags{})
			if took := time.Since(began); took > time.Duration(clueCount)*guessWithin+time.Second {
				t.Errorf("it took %v", took)
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
var clueCount = len((&app{Env: Env{Areas: every}}).clues())
