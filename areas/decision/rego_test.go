package decision

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"tare/area"
	"tare/areas/decision/engine"
	"tare/areas/decision/protocol"
	"tare/rigs/hosttest"
)

// TestRegoIsCompiled: before a run begins, what OPA would not load is shown with its place in the user's file.
func TestRegoIsCompiled(t *testing.T) {
	env, launch := requireEngine(t, engine.OPA)
	env.Treatments = []area.Treatment{standard}
	if filepath.Base(launch.Path) == filepath.Base(env.Self) {
		hosttest.Missing(t, "OPA is one of PATH, which compiles nothing before it starts", "take it out of PATH")
	}
	at := func(text string) string { return written(t, tree{"authz/policy.rego": text}) }
	const head = "package httpapi.authz\n\nimport rego.v1\n\n"
	for name, c := range map[string]struct {
		bundle string
		v0     bool
		want   []string // in the finding; empty: no finding is wanted
	}{
		"fine":            {bundle: at(salaries)},
		"an archive":      {bundle: archived(t, tree{"policy.rego": salaries, "data.json": managers})},
		"Rego before 1.0": {bundle: at("package httpapi.authz\nallow { input.user == \"bob\" }\n"), v0: true},
		"not said to be of before 1.0": {
			bundle: at("package httpapi.authz\nallow { input.user == \"bob\" }\n"),
			want:   []string{"policy.rego:2:1: rego_parse_error: `if` keyword is required", "    2 | allow { input.user"},
		},
		"a mistake": {bundle: at(head + "allow if {\n\tinput.x = = 1\n}\n"), want: []string{
			"policy.rego:6:12: rego_parse_error: ", "    6 | \tinput.x = = 1\n        \t          ^",
		}},
		"a variable that nothing binds": {bundle: at(head + "allow if { x }\n"), want: []string{
			"policy.rego:5:12: rego_unsafe_var_error: var x is unsafe", "    5 | allow if { x }\n                   ^",
		}},
		"a function that there is not": {
			bundle: at(head + "allow if { startwith(input.a, \"b\") }\n"),
			want:   []string{"policy.rego:5:12: rego_type_error: undefined function startwith"},
		},
		"two mistakes": {bundle: at(head + "allow if { x }\ndeny if { y }\n"), want: []string{
			"policy.rego:5:12: rego_unsafe_var_error", "policy.rego:6:11: rego_unsafe_var_error",
		}},
		"in an archive": {
			bundle: archived(t, tree{"policy.rego": head + "allow if { x }\n"}),
			want:   []string{"policy.rego:5:12: rego_unsafe_var_error"},
		},
		"data that is no JSON": {
			bundle: written(t, tree{"policy.rego": salaries, "data.json": "{"}),
			want:   []string{"data.json"},
		},
		"no archive": {bundle: filepath.Join(written(t, tree{"b.tar.gz": "x"}), "b.tar.gz"), want: []string{
			"b.tar.gz",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			spec := ownSpec(engine.OPA, c.bundle)
			spec.Embedded.RegoV0 = c.v0
			text := ""
			for _, f := range (Area{}).Preflight(t.Context(), spec, env) {
				text += f.Message + "\n"
			}
			if (text != "") != (len(c.want) > 0) {
				t.Fatal(text)
			}
			for _, want := range c.want {
				if !strings.Contains(text, want) {
					t.Errorf("%s\nlacks %q", text, want)
				}
			}
		})
	}
}

// TestRegoThatIsRefusedHasAHint: where it is known what to do about Rego that OPA does not compile, that is said: of
// before 1.0, and of tests that only another program compiles.
func TestRegoThatIsRefusedHasAHint(t *testing.T) {
	env, launch := requireEngine(t, engine.OPA)
	env.Treatments = []area.Treatment{standard}
	if filepath.Base(launch.Path) == filepath.Base(env.Self) {
		hosttest.Missing(t, "OPA is one of PATH, which compiles nothing before it starts", "take it out of PATH")
	}
	const conftest = "package httpapi.authz\n\nimport rego.v1\n\ntest_deny if parse_config(\"hcl2\", \"a\")\n"
	const alone, old = "are tests, which decide nothing unless", "rego_v0: true"
	for name, c := range map[string]struct {
		files tree
		want  string
	}{
		"of before 1.0":      {tree{"p.rego": "package httpapi.authz\nallow { input.user == \"bob\" }\n"}, old},
		"a test of another":  {tree{"p.rego": salaries, "p_test.rego": conftest, "data.json": managers}, alone},
		"a test and a rule":  {tree{"p.rego": salaries + "\nno if startwith(\"a\", \"b\")\n", "p_test.rego": conftest}, ""},
		"a mistake of today": {tree{"p.rego": salaries + "\nno if { x }\n"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			found := Area{}.Preflight(t.Context(), ownSpec(engine.OPA, written(t, c.files)), env)
			if len(found) != 1 || (found[0].Hint == "") != (c.want == "") || !strings.Contains(found[0].Hint, c.want) {
				t.Errorf("%+v, want the hint %q", found, c.want)
			}
		})
	}
}

// TestRulesAreProved: a rule of a bundle for OPA is true for a request, or in a test of the bundle's own, or is named.
func TestRulesAreProved(t *testing.T) {
	env, launch := requireEngine(t, engine.OPA)
	if !launch.CanProve() {
		hosttest.Missing(t, "OPA is one of PATH, which is not asked", "take it out of PATH")
	}
	const more = `
allow if is_boss
is_boss if input.user in data.bosses
else if { input.user == "root" }
calls if http.send({"method": "GET", "url": "http://127.0.0.1:1/"}).status_code == 200
allow if {
	data.absent
	always
}
always if true
`
	const tests = `package httpapi.authz_test
import rego.v1
import data.httpapi.authz
test_boss if authz.allow with input as {"user": "eve"}
test_wrong if not authz.allow with input as {"user": "eve"}
test_calls if authz.calls
helper if authz.calls
todo_test_later if false
`
	dir := map[string]string{
		"a/policy.rego": salaries + more, "a/policy_test.rego": tests,
		"data.json": strings.Replace(managers, "{", `{"bosses": ["eve"], `, 1),
	}
	for name, bundle := range map[string]string{"a folder": written(t, dir), "an archive": archived(t, dir)} {
		t.Run(name, func(t *testing.T) {
			tg, _ := preparedIn(t, ownSpec(engine.OPA, bundle), env)
			server, _ := tg.arm(standard.ID).latest()
			var most unix.Rlimit
			if err := unix.Prlimit(server.PID, unix.RLIMIT_DATA, nil, &most); err != nil || most.Max < engine.ServeWith ||
				most.Max > engine.ServeWith+1<<20 {
				t.Errorf("the server may take %d bytes of memory: %v", most.Max, err)
			}
			notes := strings.ReplaceAll(strings.Join(append(tg.Warnings(), tg.Notes()...), "\n"), bundle, "BUNDLE")
			for _, want := range []string{
				"BUNDLE: of 7 rules, defaults aside, 1 was seen to be true for a request of the experiment",
				"BUNDLE: 2 rules were seen to be true for no request, but in one of the bundle's own tests, so that what they " +
					"cost where they are true is not in these numbers: httpapi.authz.allow (a/policy.rego:13), " +
					"httpapi.authz.is_boss (a/policy.rego:14)",
				"BUNDLE: 4 rules without a proof: they were seen to be true for no request, nor in a test of the bundle's " +
					"own, since they are not, or since the decision does not come to them; whether they guard is not shown: " +
					"httpapi.authz.is_boss (a/policy.rego:15), httpapi.authz.calls (a/policy.rego:16), " +
					"httpapi.authz.allow (a/policy.rego:17), httpapi.authz.always (a/policy.rego:21)",
				"BUNDLE: of 3 tests of its own, run without a network, 2 failed: httpapi.authz_test.test_wrong " +
					"(a/policy_test.rego:5), httpapi.authz_test.test_calls (a/policy_test.rego:6)",
			} {
				if !strings.Contains(notes, want) {
					t.Errorf("notes lack %q:\n%s", want, notes)
				}
			}
		})
	}
}

// TestHungryRegoIsBounded: a few rules, or a test of a bundle's own, may not take what memory this host has. The test
// asks for 10 GB at once: OPA ends it after 5 s, in which a slow host may not have filled what is allowed.
func TestHungryRegoIsBounded(t *testing.T) {
	_, launch := requireEngine(t, engine.OPA)
	if !launch.CanProve() {
		hosttest.Missing(t, "OPA is one of PATH, which is not asked", "take it out of PATH")
	}
	const hungry = ` if {
	a := "aaaaaaaaaa"
	b := replace(a, "a", a)
	c := replace(b, "a", b)
	d := replace(c, "a", b)
	contains(replace(d, "a", c), "b")
}
`
	for name, files := range map[string]map[string]string{
		"a rule": {"policy.rego": salaries + "allow" + hungry},
		"a test": {
			"policy.rego":      salaries,
			"policy_test.rego": "package t\nimport rego.v1\ntest_a if bits.lsh(1, 80000000000) > 0\n",
		},
	} {
		c := engine.Config{File: written(t, files), Own: true, Path: "/v1/data/httpapi/authz/allow"}
		_, err := launch.Prove(t.Context(), c, []json.RawMessage{[]byte(`{"input": {}}`)})
		const want = "its rules or tests take more than 1024 MiB of memory"
		if err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
}

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
	return s.URL, filepath.Join(written(t, tree{"own.pem": string(pair)}), "own.pem")
}

// TestPoliciesStayOnLoopback: the policies of a bundle, which may be a stranger's, reach no server beyond loopback, no
// socket in the file system, and none that a redirect names, and take no key of this host to one, unless the experiment
// lets them.
func TestPoliciesStayOnLoopback(t *testing.T) {
	env, _ := requireEngine(t, engine.OPA)
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
	schema := filepath.Join(written(t, tree{"schema.json": "{}"}), "schema.json")
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
	bundle := written(t, tree{"a.rego": asking})
	verify := func(requests []Request, network bool) (notes string) {
		t.Helper()
		s := &Spec{
			Embedded: &Embedded{Engine: engine.OPA, Bundle: bundle, Network: network}, OPA: &protocol.OPA{Path: "a/allow"},
			Requests: requests,
		}
		tg, _ := preparedIn(t, s, env)
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
