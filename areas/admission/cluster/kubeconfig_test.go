package cluster

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"tare/rigs/hosttest"
)

func TestKubeconfigsThatCannotBeUsed(t *testing.T) {
	good := kubeconfig("https://one.example:6443", nil, "token: "+token)
	more := strings.Replace(good, "contexts: [",
		"contexts: [{name: there, context: {cluster: nowhere, user: u}}, {name: who, context: {cluster: c, user: nobody}}, ",
		1)
	server := func(u string) string { return strings.Replace(good, `"https://one.example:6443"`, u, 1) }
	user := func(u string) string { return strings.Replace(good, "token: "+token, u, 1) }
	for name, c := range map[string]struct {
		text, context string
		want          []string
	}{
		"empty":    {"", "", []string{"no contexts"}},
		"not YAML": {"a: [b\n" + token + ": {", "", []string{"no kubeconfig"}},
		"a key that is cut": {
			strings.Replace(good, "token: "+token, "client-key-data: secret-%%%", 1), "",
			[]string{"no kubeconfig"},
		},
		"a list": {"- " + token, "", []string{"no kubeconfig"}},
		"another kind": {
			"apiVersion: v1\nkind: Secret\ndata: {token: " + token + "}\n", "",
			[]string{"no kubeconfig"},
		},
		"a field of other type": {strings.Replace(good, "name: u, user: {token: "+token+"}",
			"name: u, user: {token: {a: "+token+"}}", 1), "", []string{"no kubeconfig"}},
		"no such context": {more, "elsewhere", []string{`no context "elsewhere"`, "here, there, who"}},
		"no current context": {
			strings.Replace(more, "current-context: here", "", 1), "",
			[]string{"names no current context", "here, there, who"},
		},
		"no such cluster":       {more, "there", []string{`cluster "nowhere"`, "there are: c"}},
		"no such user":          {more, "who", []string{`user "nobody"`, "there are: u"}},
		"no server":             {server(`""`), "", []string{"not a URL", `context "here"`}},
		"a server without host": {server("https://"), "", []string{"not a URL"}},
		"a password in the URL": {server("https://jane:" + token + "@one.example"), "", []string{"without a user"}},
		"a bad URL":             {server("\"https://" + token + ":x:y\""), "", []string{"not a URL"}},
		"an unencrypted server": {server("http://one.example:8080"), "", []string{"no TLS"}},
		"an unverified server": {strings.Replace(good, `certificate-authority-data: ""`, "insecure-skip-tls-verify: true",
			1), "", []string{"is not verified", "expose_secrets"}},
		"unverified, by a plugin": {
			strings.Replace(user("exec: {apiVersion: client.authentication.k8s.io/v1, command: x, interactiveMode: Never}"),
				`certificate-authority-data: ""`, "insecure-skip-tls-verify: true", 1), "",
			[]string{"is not verified"},
		},
		"a proxy": {
			strings.Replace(good, "server:", "proxy-url: http://proxy.example, server:", 1), "",
			[]string{"proxy"},
		},
		"a missing authority": {strings.Replace(good, `certificate-authority-data: ""`, "certificate-authority: none.pem",
			1), "", []string{"none.pem", "no such file"}},
		"a garbled authority": {strings.Replace(good, `certificate-authority-data: ""`,
			"certificate-authority-data: c2VjcmV0", 1), "", []string{"PEM"}},
		"a missing token file": {user("tokenFile: none.txt"), "", []string{"none.txt"}},
		"a missing key":        {user("client-certificate: none.pem, client-key: none.key"), "", []string{"none.pem"}},
		"a garbled key": {
			user("client-certificate-data: c2VjcmV0, client-key-data: c2VjcmV0"), "",
			[]string{"certificates cannot be used"},
		},
		"an auth provider": {
			user("auth-provider: {name: gcp, config: {secret: " + token + "}}"), "",
			[]string{"auth-provider (gcp)"},
		},
		"token and password":     {user("token: " + token + ", username: a, password: b" + token), "", []string{"context"}},
		"exec without a version": {user("exec: {command: x, interactiveMode: Never}"), "", []string{"here"}},
	} {
		path := write(t, c.text)
		_, err := New(t.Context(), Options{Run: "run-1", Kubeconfig: path, Context: c.context})
		if err == nil {
			t.Errorf("%s: no error", name)
			continue
		}
		for _, w := range append(c.want, filepath.Base(path)) {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%s: %v\nwant it to say %q", name, err, w)
			}
		}
		if said := strings.ReplaceAll(err.Error(), "expose_secrets", ""); strings.Contains(said, token) ||
			strings.Contains(said, "secret") {
			t.Errorf("%s: the error holds a value: %v", name, err)
		}
	}
	for name, o := range map[string]Options{
		"no file":       {Run: "r", Kubeconfig: filepath.Join(t.TempDir(), "none")},
		"a folder":      {Run: "r", Kubeconfig: t.TempDir()},
		"nothing":       {Run: "r"},
		"both":          {Run: "r", Kubeconfig: "a", Server: "b"},
		"no run":        {Server: "https://127.0.0.1:1"},
		"a bad run":     {Run: "a,b=c", Server: "https://127.0.0.1:1"},
		"a long run":    {Run: strings.Repeat("a", 33), Server: "https://127.0.0.1:1"},
		"a bad server":  {Run: "r", Server: "127.0.0.1"},
		"unencrypted":   {Run: "r", Server: "http://one.example", Token: "x"},
		"bad authority": {Run: "r", Server: "https://127.0.0.1:1", CA: []byte("x")},
	} {
		if c, err := New(t.Context(), o); err == nil {
			c.Close()
			t.Errorf("%s: no error", name)
		}
	}
}

// TestEndlessFilesOfAKubeconfig: a file that it names is refused before anybody reads it whole if the kernel shows it,
// or if it is longer than any certificate.
func TestEndlessFilesOfAKubeconfig(t *testing.T) {
	long := filepath.Join(t.TempDir(), "long")
	if err := os.WriteFile(long, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(long, 1<<40); err != nil { // it takes no room
		t.Fatal(err)
	}
	good := kubeconfig("https://one.example:6443", nil, "token: "+token)
	for path, want := range map[string]string{long: "longer than", "/proc/self/status": "the kernel shows"} {
		for field, text := range map[string]string{
			"authority":   strings.Replace(good, `certificate-authority-data: ""`, "certificate-authority: "+path, 1),
			"certificate": strings.Replace(good, "token: "+token, "client-key: none, client-certificate: "+path, 1),
			"key":         strings.Replace(good, "token: "+token, "client-certificate: none, client-key: "+path, 1),
			"token":       strings.Replace(good, "token: "+token, "tokenFile: "+path, 1),
		} {
			file := write(t, text)
			_, located := Locate(file, "")
			_, err := New(t.Context(), Options{Run: "run-1", Kubeconfig: file})
			for _, err := range []error{located, err} {
				if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path) {
					t.Errorf("%s of %s: %v, want %q", field, path, err, want)
				}
			}
		}
		if _, err := Locate(path, ""); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s as a kubeconfig: %v, want %q", path, err, want)
		}
	}
}

func TestSeveralContexts(t *testing.T) {
	text := strings.Replace(kubeconfig("https://one.example:6443/k8s/clusters/c-1", nil, ""), "contexts: [",
		"contexts: [{name: there, context: {cluster: d}}, ", 1)
	text = strings.Replace(text, "clusters: [", "clusters: [{name: d, cluster: {server: 'https://two.example'}}, ", 1)
	path := write(t, text)
	for name, want := range map[string]string{
		"":     "one.example:6443 /k8s/clusters/c-1",
		"here": "one.example:6443 /k8s/clusters/c-1", "there": "two.example ",
	} {
		c := connect(t, Options{Run: "r", Kubeconfig: path, Context: name})
		if got := c.Host() + " " + c.Prefix(); got != want {
			t.Errorf("context %q is %q, want %q", name, got, want)
		}
		place, err := Locate(path, name)
		if err != nil || place != c.Location() {
			t.Errorf("Locate says %+v, %v; want %+v", place, err, c.Location())
		}
		secure, err := c.TLS()
		if err != nil || secure.ServerName != c.url.Hostname() || secure.InsecureSkipVerify ||
			fmt.Sprint(secure.NextProtos) != "[h2 http/1.1]" {
			t.Errorf("TLS of %q: %+v, %v", name, secure, err)
		}
	}
}

// TestProxyOfTheEnvironment: tare's own requests use no proxy, since the load connects directly.
func TestProxyOfTheEnvironment(t *testing.T) {
	t.Setenv("HTTPS_PROXY", "http://127.0.0.1:1")
	c := connect(t, Options{Run: "r", Kubeconfig: write(t, kubeconfig("https://one.example", nil, ""))})
	if u, err := c.Config().Proxy(nil); u != nil || err != nil {
		t.Errorf("a proxy %v, %v", u, err)
	}
	if c.transport.Proxy != nil {
		t.Error("our own requests take a proxy")
	}
}

// TestExposedCredentialsAreReported where the file allows them, and nothing is reported where nothing is exposed.
func TestExposedCredentialsAreReported(t *testing.T) {
	insecure := func(text string) string {
		return strings.Replace(text, `certificate-authority-data: ""`, "insecure-skip-tls-verify: true", 1)
	}
	for name, c := range map[string]struct {
		text   string
		expose bool
		says   string
	}{
		"unverified": {
			insecure(kubeconfig("https://one.example", nil, "token: "+token)), true,
			"to one.example to whoever answers",
		},
		"verified":              {kubeconfig("https://one.example", nil, "token: "+token), true, ""},
		"nothing to give away":  {insecure(kubeconfig("https://one.example", nil, "")), false, ""},
		"unverified, but local": {insecure(kubeconfig("https://127.0.0.1:1", nil, "token: "+token)), false, ""},
	} {
		k := connect(t, Options{Run: "r", Kubeconfig: write(t, c.text), ExposeSecrets: c.expose})
		said := strings.Join(k.Notes(), "; ")
		if exposed := strings.Contains(said, "credentials of the kubeconfig were sent"); exposed != (c.says != "") ||
			!strings.Contains(said, c.says) {
			t.Errorf("%s: notes %q, want %q", name, said, c.says)
		}
	}
}

// TestKubeconfigsThatOthersCanWrite are rejected: they could name a plugin, which tare would start.
func TestKubeconfigsThatOthersCanWrite(t *testing.T) {
	path := write(t, kubeconfig("https://one.example", nil, "token: "+token))
	if err := os.Chmod(path, 0o666); err != nil {
		t.Fatal(err)
	}
	_, err := New(t.Context(), Options{Run: "r", Kubeconfig: path})
	wantError(t, err, "other users can write", "chmod 600 "+path)
}

// TestFilesOfKubeconfigsThatOthersCanWrite are rejected if they hold the key or token of the context's user, or the
// authority that is trusted; files of other users are not checked.
func TestFilesOfKubeconfigsThatOthersCanWrite(t *testing.T) {
	for _, field := range []string{"tokenFile", "client-key"} {
		secret := filepath.Join(t.TempDir(), "secret")
		path := write(t, kubeconfig("https://one.example", nil, field+": "+secret))
		if err := os.WriteFile(secret, []byte("hunter2"), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := SecretFiles(path, ""); !slices.Equal(got, []string{path, secret}) {
			t.Errorf("%s: files with secrets: %q", field, got)
		}
		if err := os.Chmod(secret, 0o622); err != nil {
			t.Fatal(err)
		}
		_, err := New(t.Context(), Options{Run: "r", Kubeconfig: path})
		wantError(t, err, "other users can write "+secret, "chmod 600 "+secret)
	}
	path := write(t, strings.Replace(kubeconfig("https://one.example", nil, "token: "+token),
		`certificate-authority-data: ""`, "certificate-authority: ca.pem", 1))
	dir := filepath.Dir(path)
	cert, _ := certificate(t)
	writeFile(t, dir, "ca.pem", cert, 0o644)
	connect(t, Options{Run: "r", Kubeconfig: path})
	ca := filepath.Join(dir, "ca.pem")
	if err := os.Chmod(ca, 0o666); err != nil {
		t.Fatal(err)
	}
	_, err := New(t.Context(), Options{Run: "r", Kubeconfig: path})
	wantError(t, err, "other users can write "+ca, "chmod go-w "+ca)
}

// TestKubeconfigsOfOthersReachNothing: a kubeconfig that another user owns or can replace may name a server, but no
// plugin, and no file that would be sent there.
func TestKubeconfigsOfOthersReachNothing(t *testing.T) {
	hosttest.NeedsRoot(t)
	const other = 65534
	for name, c := range map[string]struct {
		user         string
		file, folder int // owners
		sudo         string
		want         string // in the error
	}{
		"own":                         {pluginUser("counts"), 0, 0, "", ""},
		"another user's":              {pluginUser("counts"), other, 0, "", "belongs to another user (uid 65534)"},
		"in another user's folder":    {pluginUser("counts"), 0, other, "", "who can replace the file"},
		"the user's who called sudo":  {pluginUser("counts"), other, other, "65534", ""},
		"neither root's nor caller's": {pluginUser("counts"), other, other, "65533", "belongs to another user (uid 65534)"},
		"another user's, no plugin":   {"token: " + token, other, other, "", ""},
		"a token file":                {"tokenFile: token", 0, 0, "", ""},
		"of another user's":           {"tokenFile: token", other, 0, "", "has a tokenFile, which tare would send"},
		"in another's folder":         {"tokenFile: token", 0, other, "", "who can replace the file"},
		"another's, with a key":       {"client-certificate: c, client-key: k", other, 0, "", "a certificate or its key"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("SUDO_UID", c.sudo)
			path := write(t, kubeconfig("https://one.example", nil, c.user))
			dir := filepath.Dir(path)
			writePlugins(t, dir, nil, nil)
			writeFile(t, dir, "token", []byte(token), 0o600)
			if err := errors.Join(os.Chown(path, c.file, c.file), os.Chown(dir, c.folder, c.folder)); err != nil {
				t.Fatal(err)
			}
			if k, err := New(t.Context(), Options{Run: "r", Kubeconfig: path}); c.want == "" {
				if err != nil {
					t.Fatal(err)
				}
				k.Close()
			} else {
				wantError(t, err, `user "u" of `+path, c.want)
				_, err = Locate(path, "")
				wantError(t, err, c.want)
			}
			if _, err := os.Stat(filepath.Join(dir, "count")); err == nil && c.want != "" {
				t.Error("the plugin ran")
			}
		})
	}
}

var (
	ruleKind = schema.GroupVersionKind{Group: "x.example", Version: "v1", Kind: "Rules"}
	rules    = schema.GroupVersionResource{Group: "x.example", Version: "v1", Resource: "rules"}
)

// serveRulesWhile makes a server define Rules while on says so, as an engine's kinds come and go.
func serveRulesWhile(s *fakeServer, on func() bool) {
	s.first = func(w http.ResponseWriter, r *http.Request) bool {
		switch there := on(); {
		case r.URL.Path == "/apis/x.example/v1" && there:
			reply(w, 200, map[string]any{
				"kind": "APIResourceList", "groupVersion": "x.example/v1",
				"resources": []any{resourceOf("rules", "Rules", false)},
			})
			return true
		case strings.HasPrefix(r.URL.Path, "/apis/x.example/") && !there:
			status(w, 404, "NotFound", "the server could not find the requested resource")
			return true
		}
		return false
	}
}

// TestKindsDefinedLaterAreAwaited: Apply waits for a kind that appears some time after the object before it; without
// such an object it does not wait.
func TestKindsDefinedLaterAreAwaited(t *testing.T) {
	hosttest.SkipIfShortUnlessRaced(t)
	s := startFakeServer(t)
	c := connect(t, s.options(t, 0))
	var asked atomic.Int64
	serveRulesWhile(s, func() bool { return asked.Add(1) > 3 })
	rule := object("x.example/v1", "Rules", "", "r")
	wantError(t, c.Apply(t.Context(), []*unstructured.Unstructured{rule}, 1), "x.example/v1 Rules",
		"does not have this kind")
	asked.Store(0)
	objects := []*unstructured.Unstructured{object("v1", "ConfigMap", "n", "template"), rule}
	if err := c.Apply(t.Context(), objects, 1); err != nil {
		t.Fatal(err)
	}
	serveRulesWhile(s, func() bool { return false })
	c.patience = time.Second
	wantError(t, c.Apply(t.Context(), []*unstructured.Unstructured{objects[0], object("x.example/v2", "Rules", "", "r")},
		1), "Rules", "1s after", "engine")
}

// TestUnsettledAnswers: errors of a kind that comes or goes, or of a webhook that starts, are retried; other errors are
// not.
func TestUnsettledAnswers(t *testing.T) {
	hosttest.SkipIfShortUnlessRaced(t)
	for name, c := range map[string]struct {
		code            int
		reason, message string
		details         map[string]any
		again           bool
	}{
		"not served yet": {404, "NotFound", "the server could not find the requested resource", nil, true},
		"on its way out": {
			405, "MethodNotAllowed",
			"create not allowed while custom resource definition is terminating", nil, true,
		},
		"webhook not up yet": {
			500, "InternalError",
			`Internal error occurred: failed calling webhook "a": connection refused`, nil, true,
		},
		"kind of a parameter not found yet": {
			403, "Forbidden", `configmaps "a" is forbidden: ValidatingAdmissionPolicy 'b' denied request: failed to configure ` +
				`policy: failed to find resource referenced by paramKind: 'rules.example.com/v1, Kind=Limit'`, nil, true,
		},
		"no such namespace": {
			404, "NotFound", `namespaces "n" not found`,
			map[string]any{"kind": "namespaces", "name": "n"},
			false,
		},
		"webhook that says no":    {403, "Forbidden", `admission webhook "a" denied the request`, nil, false},
		"server that is not well": {500, "InternalError", "Internal error occurred: etcd", nil, false},
	} {
		s := startFakeServer(t)
		cl := connect(t, s.options(t, 0))
		var tries atomic.Int64
		s.first = func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method != http.MethodPost || tries.Add(1) > 3 {
				return false
			}
			reply(w, c.code, map[string]any{
				"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": c.reason, "message": c.message, "code": c.code,
				"details": c.details,
			})
			return true
		}
		err := cl.Apply(t.Context(), []*unstructured.Unstructured{object("v1", "ConfigMap", "n", "a")}, 1)
		if c.again && (err != nil || tries.Load() != 4) || !c.again && (err == nil || tries.Load() != 1) {
			t.Errorf("%s: %d tries, %v", name, tries.Load(), err)
		}
	}
}

// TestKindsThatGoAreRemoved: objects of a kind that was defined later are removed by the resource that the server
// names, after the policies and before everything else, from a journal that knows only the kind. At the end the kind is
// gone, or named in an error.
func TestKindsThatGoAreRemoved(t *testing.T) {
	hosttest.SkipIfShortUnlessRaced(t)
	s := startFakeServer(t)
	o := s.options(t, 0)
	o.Run = "run-1"
	c := connect(t, o)
	serveRulesWhile(s, func() bool { return false })
	standing, coming, err := c.Lookup(t.Context(),
		[]schema.GroupVersionKind{ruleKind, {Version: "v1", Kind: "ConfigMap"}, ruleKind})
	if err != nil || !cmp.Equal(coming, []schema.GroupVersionKind{ruleKind}) ||
		!cmp.Equal(standing, []schema.GroupVersionResource{configMaps}) {
		t.Fatalf("standing %v, coming %v, %v", standing, coming, err)
	}
	change, err := c.Change("admission", "policies-1", append(standing, vapBindings), coming...)
	if err != nil {
		t.Fatal(err)
	}
	var there atomic.Bool
	there.Store(true)
	serveRulesWhile(s, there.Load)
	objects := []*unstructured.Unstructured{
		object("v1", "ConfigMap", "n", "template"),
		object("x.example/v1", "Rules", "", "r"), binding(t, "b", "n"),
	}
	if err := c.Apply(t.Context(), objects, 1); err != nil {
		t.Fatal(err)
	}
	j, err := parseChange(change.Data)
	if err != nil {
		t.Fatal(err)
	}
	other := connect(t, o) // a new process
	other.patience = time.Second
	if err := other.RemoveAll(t.Context(), j.resources, j.coming...); err != nil {
		t.Fatal(err)
	}
	got := slices.Collect(func(yield func(string) bool) {
		for _, a := range s.asked {
			if path, ok := strings.CutPrefix(a, "DELETE "); ok && !yield(path[strings.LastIndex(path, "/")+1:]) {
				return
			}
		}
	})
	if d := cmp.Diff([]string{"b", "r", "template"}, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	wantError(t, other.AwaitGone(t.Context(), j.coming), "still has Rules (x.example/v1)", "CustomResourceDefinition")
	there.Store(false)
	for range 2 { // the first time discovery is remembered from before
		if err := c.RemoveAll(t.Context(), []schema.GroupVersionResource{rules}, j.coming...); err != nil {
			t.Error(err)
		}
		if err := c.AwaitGone(t.Context(), j.coming); err != nil {
			t.Error(err)
		}
	}
}

// TestRememberedKinds: DeleteAll takes a kind whose definition is gone to have no objects.
func TestRememberedKinds(t *testing.T) {
	s := startFakeServer(t)
	c := connect(t, s.options(t, 0))
	var there atomic.Bool
	there.Store(true)
	serveRulesWhile(s, there.Load)
	if has, err := c.Has(t.Context(), rules); !has || err != nil {
		t.Fatalf("has: %v, %v", has, err)
	}
	there.Store(false)
	if err := c.DeleteAll(t.Context(), "", rules); err != nil {
		t.Errorf("it has gone: %v", err)
	}
}
