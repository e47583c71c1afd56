package decision

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"tare/areas/decision/engine"
	"tare/areas/decision/protocol"
	"tare/rigs/hosttest"
)

// asking are policies that ask another server whom to permit.
const asking = `package a
import rego.v1
default allow := false
allow if http.send({"method": "GET", "url": input.url, "enable_redirect": input.follow}).status_code == 200
allow if http.send(input.send).status_code == 200
allow if count(net.lookup_ip_addr(input.name)) > 0
allow if json.verify_schema(input.schema)[0]
allow if json.match_schema({}, input.schema)[0]
`

// keyed is a question whose policy shows a server a certificate of this host.
const keyed = `{"input": {"send": {"method": "GET", "url": "%s/private", "tls_insecure_skip_verify": true,
	"tls_client_cert_file": %q, "tls_client_key_file": %q}}}`

// serveOwners serves, on loopback, those who have a certificate. It returns the address, and a file with one.
func serveOwners(t *testing.T, answer http.Handler) (url, file string) {
	t.Helper()
	s := httptest.NewUnstartedServer(answer)
	s.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert, MinVersion: tls.VersionTLS12}
	s.StartTLS()
	t.Cleanup(s.Close)
	key, err := x509.MarshalPKCS8PrivateKey(s.TLS.Certificates[0].PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	pair := append(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})...)
	return s.URL, filepath.Join(written(t, map[string]string{"own.pem": string(pair)}), "own.pem")
}

// TestPoliciesStayOnLoopback: the policies of a bundle, which may be a stranger's, reach no server beyond loopback, no
// socket in the file system, and none that a redirect names, and take no key of this host to one, unless the experiment
// lets them.
func TestPoliciesStayOnLoopback(t *testing.T) {
	hosttest.SkipIfShort(t)
	env := testEnv(t)
	env.Getenv = os.LookupEnv
	requireEngine(t, engine.OPA, env)
	var mu sync.Mutex
	asked := map[string]bool{}
	answer := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		asked[r.URL.Path] = true
		mu.Unlock()
		if r.URL.Path == "/redirect" {
			http.Redirect(w, r, "/redirected", http.StatusFound)
		}
	})
	everywhere, err := net.Listen("tcp", ":0") //nolint:gosec // the test asks it on another address than loopback
	if err != nil {
		t.Fatal(err)
	}
	socket, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range []net.Listener{everywhere, socket} {
		s := &httptest.Server{Listener: l, Config: &http.Server{Handler: answer}} //nolint:gosec // of a test
		s.Start()
		t.Cleanup(s.Close)
	}
	private, keys := serveOwners(t, answer)
	_, port, _ := net.SplitHostPort(everywhere.Addr().String())
	other := ""
	addrs, _ := net.InterfaceAddrs()
	for _, a := range addrs {
		if ip, ok := a.(*net.IPNet); ok && !ip.IP.IsLoopback() && ip.IP.To4() != nil {
			other = net.JoinHostPort(ip.IP.String(), port)
		}
	}
	schema := filepath.Join(written(t, map[string]string{"schema.json": "{}"}), "schema.json")
	request := func(name, url, expect string) Request {
		return Request{
			Name: name, Expect: expect,
			Body: fmt.Sprintf(`{"input": {"url": %q, "follow": %t, "name": ""}}`, url, name == "redirect"),
		}
	}
	requests := []Request{
		request("loopback", "http://127.0.0.1:"+port+"/loopback", "permit"),
		request("socket", "unix://localhost/socket?socket="+socket.Addr().String(), "deny"),
		request("redirect", "http://127.0.0.1:"+port+"/redirect", "deny"),
		{Name: "lookup", Expect: "deny", Body: `{"input": {"url": "", "follow": false, "name": "localhost"}}`},
		{Name: "private-key", Expect: "deny", Body: fmt.Sprintf(keyed, private, keys, keys)},
		{Name: "authority", Expect: "deny", Body: fmt.Sprintf(
			`{"input": {"send": {"method": "GET", "url": "http://127.0.0.1:%s/authority", "tls_ca_cert_file": %q}}}`, port, keys,
		)},
		{Name: "own-parts", Expect: "permit", Body: `{"input": {"schema": {"$ref": "#/a", "a": {"type": "object"}}}}`},
		{Name: "file", Expect: "deny", Body: `{"input": {"schema": {"$ref": "file://` + schema + `"}}}`},
		{Name: "file-in-text", Expect: "deny", Body: `{"input": {"schema": "{\"items\": [{\"$\u0072ef\": \"file://` + schema + `\"}]}"}}`},
		{Name: "file-by-name", Expect: "deny", Body: `{"input": {"schema": {"$id": "file://` + schema + `", "$ref": "#"}}}`},
		{Name: "named", Expect: "permit", Body: `{"input": {"schema": {"$id": "http://a.example.com/a", "type": "object"}}}`},
		{Name: "server", Expect: "deny", Body: `{"input": {"schema": {"$ref": "http://127.0.0.1:` + port + `/schema"}}}`},
	}
	open := []Request{
		request("lost", "http://127.0.0.1:1/", "deny"), requests[0],
		{Name: "private-key", Expect: "permit", Body: fmt.Sprintf(keyed, private, keys, keys)},
		{Name: "file", Expect: "permit", Body: `{"input": {"schema": {"$ref": "file://` + schema + `"}}}`},
	}
	if other != "" {
		requests = append(requests, request("beyond", "http://"+other+"/beyond", "deny"))
		open = append(open, request("beyond", "http://"+other+"/beyond", "permit"))
	}
	bundle := written(t, map[string]string{"a.rego": asking})
	verify := func(requests []Request, network bool) (notes string) {
		t.Helper()
		s := &Spec{
			Embedded: &Embedded{Engine: engine.OPA, Bundle: bundle, Network: network}, OPA: &protocol.OPA{Path: "a/allow"},
			Requests: requests,
		}
		tg, j := opened(t, s, env)
		if err := tg.Prepare(t.Context(), standard, j); err != nil {
			t.Fatal(err)
		}
		if err := tg.Verify(t.Context(), standard); err != nil {
			t.Errorf("network %t: %v", network, err)
		}
		return strings.Join(tg.Notes(), "\n")
	}
	const held = "its rules call http.send and net.lookup_ip_addr, which"
	if notes := verify(requests, false); !strings.Contains(notes, held) {
		t.Errorf("notes lack %q:\n%s", held, notes)
	}
	mu.Lock()
	if len(asked) != 1 || !asked["/loopback"] {
		t.Errorf("asked were %v, not /loopback alone", asked)
	}
	mu.Unlock()
	if notes := verify(open, true); strings.Contains(notes, held) {
		t.Errorf("notes have %q:\n%s", held, notes)
	}
	mu.Lock()
	defer mu.Unlock()
	if asked["/beyond"] != (other != "") || !asked["/private"] {
		t.Errorf("asked were %v", asked)
	}
}
