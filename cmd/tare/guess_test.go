package main

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"tare/internal/cli"
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
	"metadata":  {"/": "Missing Metadata-Flavor:Google header."},
}

// speak starts a server of speakers. seen is told of every request.
func speak(name string, seen func(*http.Request)) *httptest.Server {
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen(r)
		text, ok := speakers[name][r.URL.Path]
		switch {
		case name == "metadata":
			w.WriteHeader(http.StatusForbidden)
		case !ok:
			w.WriteHeader(http.StatusNotFound)
		}
		_, _ = io.WriteString(w, strings.ReplaceAll(text, "{url}", "http://"+r.Host))
	}))
}

// guarded starts a server that refuses whoever has no X-Key, unless the file open exists.
func guarded(open string) *httptest.Server {
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := os.Stat(open); err != nil && r.Header.Get("X-Key") == "" {
			w.WriteHeader(http.StatusForbidden)
		}
	}))
}

// dying starts a server that answers so many requests and is gone then.
func dying(requests int64) *httptest.Server {
	var s *httptest.Server
	var seen atomic.Int64
	s = httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		if seen.Add(1) == requests {
			go func() {
				_ = s.Listener.Close()
				s.CloseClientConnections()
			}()
		}
	}))
	return s
}

// requested starts a server behind TLS that answers one request only, and refuses whoever lacks its credentials.
func requested() *httptest.Server {
	return httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		switch {
		case r.Header.Get("Authorization") != "Bearer hunter2-token" || r.Header.Get("X-Api-Key") != "hunter2-key":
			w.WriteHeader(http.StatusUnauthorized)
		case r.Method != http.MethodPut || r.Header.Get("Accept") != "text/x" || string(body) != "a=1&{b}" ||
			r.Header.Get("Content-Type") != "application/x-www-form-urlencoded":
			w.WriteHeader(http.StatusBadRequest)
		}
	}))
}

// certified starts a server that talks only to clients with a certificate.
func certified() *httptest.Server {
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	s.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert, MinVersion: tls.VersionTLS12}
	s.StartTLS()
	return s
}

// writeCertificate writes the certificate of a server to NAME.pem, and its key to NAME.key.
func writeCertificate(ts *testscript.TestScript, s *httptest.Server, name string) {
	key, err := x509.MarshalPKCS8PrivateKey(s.TLS.Certificates[0].PrivateKey)
	ts.Check(err)
	for file, block := range map[string]*pem.Block{
		name + ".pem": {Type: "CERTIFICATE", Bytes: s.Certificate().Raw},
		name + ".key": {Type: "PRIVATE KEY", Bytes: key},
	} {
		ts.Check(os.WriteFile(ts.MkAbs(file), pem.EncodeToMemory(block), 0o600))
	}
}

// startServer is a command of scripts: "serve NAME VARIABLE" starts a server of speakers and sets its address. Of a
// server behind TLS it writes certificate and key to VARIABLE.pem and VARIABLE.key.
func startServer(ts *testscript.TestScript, _ bool, args []string) {
	own := []string{"guarded", "dying", "requested", "certified", "created"}
	if len(args) != 2 || speakers[args[0]] == nil && !slices.Contains(own, args[0]) {
		ts.Fatalf("serve: want the name of a server and of a variable, got %q", args)
	}
	var s *httptest.Server
	switch args[0] {
	case "guarded":
		s = guarded(ts.MkAbs("open"))
	case "dying":
		s = dying(1000)
	case "requested":
		s = requested()
	case "created":
		s = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusCreated)
		}))
	case "certified":
		s = certified()
	default:
		s = speak(args[0], func(*http.Request) {})
	}
	ts.Defer(s.Close)
	if s.TLS != nil {
		writeCertificate(ts, s, args[1])
	}
	ts.Setenv(args[1], s.URL)
	ts.Setenv(args[1]+"_HOST", strings.TrimPrefix(s.URL, "http://"))
}

// TestAnswersHaveTheirNextStep: what is wrong with an address or a request is mended by no adapter.
func TestAnswersHaveTheirNextStep(t *testing.T) {
	t.Parallel()
	needsAreas(t, "identity")
	const credential, overTLS = "-H 'Authorization: @FILE'", "write https:// instead of http://"
	speaks := func(status int, text string) string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "/elsewhere")
			w.WriteHeader(status)
			_, _ = io.WriteString(w, text)
		}))
		t.Cleanup(s.Close)
		return s.URL
	}
	secure := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(secure.Close)
	alerts, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = alerts.Close() })
	go func() {
		for {
			c, err := alerts.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(c, "\x15\x03\x01\x00\x02\x02\x16") // unexpected message
			_ = c.Close()
		}
	}()
	plain := speaks(http.StatusNotFound, "")
	silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	t.Cleanup(silent.Close)
	for address, want := range map[string]string{
		speaks(http.StatusUnauthorized, ""):        credential,
		speaks(http.StatusForbidden, ""):           credential,
		plain:                                      "give the path of a request that it answers",
		speaks(http.StatusFound, ""):               `a redirect to "/elsewhere", and tare follows none; give the address that it leads to`,
		speaks(http.StatusNoContent, ""):           "give the request, whose answer is then judged: -X GET",
		speaks(http.StatusTooManyRequests, ""):     "wait until it lets this caller in again",
		speaks(http.StatusInternalServerError, ""): "see in the server's log",
		silent.URL: "no answer within 2s; give the request, which has more time: -X GET",
		speaks(http.StatusBadRequest, "<p>You're speaking plain HTTP to an SSL-enabled server port."): overTLS,
		speaks(http.StatusBadRequest, "<p>The plain HTTP request was sent to HTTPS port"):             overTLS,
		strings.Replace(secure.URL, "https:", "http:", 1):                                             overTLS,
		"http://" + alerts.Addr().String():                                                            overTLS,

		strings.Replace(plain, "http:", "https:", 1): "write http:// instead of https://",
		"http://127.0.0.1:99999":                     "ports are numbers from 1 to 65535",

		"http://me:hunter2@127.0.0.1": credential,
	} {
		said, code := runTare(t, "capacity", address, "--dry-run")
		_, next, _ := strings.Cut(said, "; ")
		if code != cli.ExitUsage || !strings.Contains(said, want) || strings.Contains(said, "hunter2") ||
			strings.HasPrefix(next, "name it") {
			t.Errorf("%s: exit %d, %s; want %q", address, code, said, want)
		}
	}
}

// TestQueryIsSentAsAdvised: what is said of an address with a query composes an experiment that sends it, and takes any
// answer with status 200.
func TestQueryIsSentAsAdvised(t *testing.T) {
	needsAreas(t, "identity")
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	said, code := runTare(t, "soak", server.URL+"/q?x=1", "--for", "20s", "--dry-run")
	_, advice, _ := strings.Cut(strings.TrimSpace(said), "; where it holds none, use ")
	if code != cli.ExitUsage || !strings.Contains(advice, "/path?query") || strings.Contains(said, "x=1") {
		t.Fatalf("exit %d, said %q", code, said)
	}
	options := strings.Fields(strings.NewReplacer("/path?query", "/q?x=1", "'", "").Replace(advice))
	file := filepath.Join(t.TempDir(), "x.yaml")
	usual := []string{"soak", server.URL + "/q", "--for", "20s", "--rate", "5/s", "--dry-run", "--write", file}
	said, _ = runTare(t, append(usual, options...)...)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%q: %v, said %q", options, err, said)
	}
	for _, want := range []string{"/q?x=1", "status_only: true", `method: "GET"`} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the experiment lacks %q:\n%s", want, text)
		}
	}
}

// TestNeedsAreSaidOfTheTarget: what a protocol needs says nothing about what is wrong with a budget, a rate or a path.
func TestNeedsAreSaidOfTheTarget(t *testing.T) {
	t.Parallel()
	needsAreas(t, "identity")
	plain := speak("plain", func(*http.Request) {})
	t.Cleanup(plain.Close)
	oidc := speak("oidc", func(*http.Request) {})
	t.Cleanup(oidc.Close)
	for _, c := range []struct {
		args  []string
		want  string
		needs bool
	}{
		{[]string{"soak", plain.URL, "--for", "30s", "--budget", "p99 <= 20"}, "needs a unit", false},
		{[]string{"soak", plain.URL, "--for", "30s", "--budget", "capacity >= 5/s"}, "budget", false},
		{[]string{"guard", plain.URL, "--forbidden", "nope"}, "want a path", false},
		{
			[]string{"guard", plain.URL, "--forbidden", "/a", "--rates", "100/s", "--max-rate", "50/s"},
			"max_rate", false,
		},
		{[]string{"guard", plain.URL}, "say what it must refuse: --without-header", true},
		{[]string{"soak", oidc.URL + "/realms/a", "--for", "30s"}, "oidc-token needs a client", true},
		{
			[]string{"soak", oidc.URL + "/realms/a", "--for", "30s", "--budget", "p99 <= 20"},
			"oidc-token needs a client", true,
		},
	} {
		said, code := runTare(t, append(c.args, "--dry-run")...)
		hints := strings.Contains(said, "or write the file with --write FILE")
		if code != cli.ExitUsage || !strings.Contains(said, c.want) || hints != c.needs ||
			strings.Contains(said, "expects a token") {
			t.Errorf("%q: exit %d, %s", c.args, code, said)
		}
	}
}

// TestGuess asks servers of real protocols which one they speak.
func TestGuess(t *testing.T) {
	t.Parallel()
	needsAreas(t, "identity", "decision")
	clues := 0
	for _, a := range areas() {
		clues += len(a.Parts().Clues)
	}
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
		{"garbage", "", "", "", "", "was answered with status 404; give the path of a request that it answers, or name it: "},
		{"types", "", "", "", "", "nothing tells which protocol"},
		{"nothing", "", "", "", "", "nothing tells which protocol"},
		{"metadata", "", "gce-metadata", "", "", "asks for the header Metadata-Flavor: Google"},
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
			file := filepath.Join(t.TempDir(), "x.yaml")
			began := time.Now()
			said, code := runTare(t, "capacity", server.URL+c.path, "--dry-run", "--write", file)
			took := time.Since(began)
			text, err := os.ReadFile(file)
			if (err == nil) != (c.adapter != "") || c.adapter == "" && code != cli.ExitUsage || !strings.Contains(said, c.want) {
				t.Errorf("exit %d, %v, said %q; want %q", code, err, said, c.want)
			}
			for _, want := range []string{
				"  adapter: " + c.adapter + "\n", "  url: \"" + server.URL + c.url + "\"\n",
				c.options,
			} {
				if err == nil && !strings.Contains(string(text), want) {
					t.Errorf("the experiment lacks %q:\n%s", want, text)
				}
			}
			mu.Lock()
			defer mu.Unlock()
			if least := time.Duration(requests-1) * 95 * time.Millisecond; requests > clues || took < least {
				t.Errorf("%d requests in %v, at most 10/s are allowed", requests, took)
			}
		})
	}
}
