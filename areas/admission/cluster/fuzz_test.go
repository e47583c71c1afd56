package cluster

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/clientcmd/api"

	"tare/area"
	"tare/internal/clock"
	"tare/internal/ratelimit"
	"tare/rigs/memtest"
)

// secretWord stands in the seeds where a credential would.
const secretWord = "5ecretW0rd"

func FuzzKubeconfig(f *testing.F) {
	f.Add([]byte(kubeconfig("https://one.example", []byte("x"), "token: "+secretWord)), "here")
	f.Add([]byte("apiVersion: v1\nkind: Config\ncontexts: [{name: a}]\n"), "")
	f.Add([]byte(`{"kind": "Config", "apiVersion": "v1", "users": [{"name": "u", "user": {"token": {"`+secretWord+`": 1}}}]}`), "a")
	f.Add([]byte("contexts: [{name: a, context: null}]\nclusters: [null]\nusers: [{user: {exec: null}}]\n"), "a")
	f.Add([]byte("a: [b\n"+secretWord+": {"), "")
	f.Fuzz(func(t *testing.T, text []byte, name string) {
		defer memtest.Bound(t, len(text)+len(name))()
		c, err := parseKubeconfig(text)
		if err != nil {
			noSecret(t, err)
			return
		}
		chosen, err := chooseContext(c, "file", name)
		if err != nil {
			return // it names contexts, clusters and users, which are no secrets
		}
		user := c.AuthInfos[c.Contexts[chosen].AuthInfo]
		if user != nil && (user.Exec != nil || user.TokenFile != "" || user.ClientCertificate != "" || user.ClientKey != "") {
			return // these look at files and start programs
		}
		if x := c.Clusters[c.Contexts[chosen].Cluster]; x.CertificateAuthority != "" {
			return
		}
		config, plugin, err := configOf(t.Context(), c, chosen, Options{})
		if err != nil {
			if nameHoldsSecret(c) {
				return
			}
			noSecret(t, err)
			return
		}
		if plugin != nil || config.Host == "" || config.QPS != -1 || config.Proxy == nil {
			t.Errorf("an accepted kubeconfig gives an unsafe configuration %v", config)
		}
	})
}

// nameHoldsSecret reports whether a name that an error may contain holds the secret itself.
func nameHoldsSecret(c *api.Config) bool {
	for _, x := range c.Clusters {
		if strings.Contains(x.Server+x.TLSServerName, secretWord) {
			return true
		}
	}
	for _, u := range c.AuthInfos {
		if u.AuthProvider != nil || strings.Contains(u.Impersonate+u.ImpersonateUID+strings.Join(u.ImpersonateGroups,
			""), secretWord) {
			return true
		}
	}
	return false
}

func noSecret(t *testing.T, err error) {
	t.Helper()
	if strings.Contains(err.Error(), secretWord) {
		t.Errorf("the error holds a credential: %v", err)
	}
}

func FuzzCredential(f *testing.F) {
	const version = "client.authentication.k8s.io/v1"
	head := `{"apiVersion": "` + version + `", "kind": "ExecCredential", "status": {`
	f.Add([]byte(head + `"token": "` + secretWord + `"}}`))
	f.Add([]byte(head + `"token": "` + secretWord + `", "expirationTimestamp": "2030-01-01T00:00:00Z"}}`))
	f.Add([]byte(head + `"clientCertificateData": "` + secretWord + `", "clientKeyData": "` + secretWord + `"}}`))
	f.Add([]byte(head + `"token": {"` + secretWord + `": 1}}}`))
	f.Add([]byte(secretWord))
	f.Fuzz(func(t *testing.T, text []byte) {
		defer memtest.Bound(t, len(text))()
		c, err := parseCredential(text, version)
		switch {
		case err != nil:
			noSecret(t, err)
		case c.token == "" && c.pair == nil:
			t.Error("neither an error nor a credential")
		case c.pair != nil && len(c.pair.Certificate) == 0:
			t.Error("a certificate without contents")
		}
	})
}

func FuzzChange(f *testing.F) {
	c := &Cluster{
		run: "run-1", limit: ratelimit.New(clock.System{}, 2.5),
		location: Location{Kubeconfig: "/k", Context: "c", Server: "https://s", CA: "00"},
	}
	good, err := c.Change("admission", "objects-1", []schema.GroupVersionResource{pods, vaps, deploys})
	if err != nil {
		f.Fatal(err)
	}
	coming, err := c.Change("admission", "objects-2", nil,
		schema.GroupVersionKind{Group: "x.example", Version: "v1", Kind: "Rule"})
	if err != nil {
		f.Fatal(err)
	}
	for _, change := range []area.Change{
		good, coming,
		{Data: map[string]string{}},
		{Data: map[string]string{"resources": "a/b", "run": "a,b", "max_rate": "NaN"}},
	} {
		text, err := json.Marshal(change.Data)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		defer memtest.Bound(t, len(text))()
		var data map[string]string
		if json.Unmarshal(text, &data) != nil {
			return
		}
		j, err := parseChange(data)
		if err != nil {
			return
		}
		again, err := (&Cluster{
			run: j.run, limit: ratelimit.New(clock.System{}, j.rate),
			location: j.location,
		}).Change("admission", "x", j.resources, j.coming...)
		if err != nil {
			t.Fatal(err)
		}
		k, err := parseChange(again.Data)
		if err != nil || !cmp.Equal(j, k, cmp.AllowUnexported(journaled{})) {
			t.Errorf("%v read back as %+v, %v", data, k, err)
		}
	})
}

func FuzzKinds(f *testing.F) {
	f.Add([]byte(`{"kind": "APIResourceList", "groupVersion": "apps/v1", "resources": [{"name": "deployments", "kind": "Deployment", "namespaced": true}, {"name": "deployments/scale", "kind": "Scale"}]}`))
	f.Add([]byte(`{"kind": "APIResourceList", "groupVersion": "apps/v1", "resources": [null, {"name": ""}]}`))
	f.Add([]byte(`<html>`))
	f.Fuzz(func(t *testing.T, text []byte) {
		defer memtest.Bound(t, len(text))()
		kinds, err := parseKinds(text, schema.GroupVersion{Group: "apps", Version: "v1"})
		for _, k := range kinds {
			if err != nil || k.Resource == "" || k.Kind == "" || k.Group != "apps" || strings.Contains(k.Resource, "/") {
				t.Errorf("got kind %+v, %v; want one of group apps with its resource", k, err)
			}
		}
	})
}

func FuzzScrub(f *testing.F) {
	f.Add("no Bearer "+secretWord+" \x1b[2J\r\n", secretWord)
	f.Add(strings.Repeat("é", 500), "é")
	f.Add("5ec\x00retW0rd", secretWord)
	f.Fuzz(func(t *testing.T, words, secret string) {
		defer memtest.Bound(t, len(words)+len(secret))()
		g := &guard{}
		g.learn("Bearer " + secret)
		got := g.scrub(words)
		if !utf8.ValidString(got) || strings.ContainsAny(got, "\x1b\r\n\a\b\x00") || len(got) > mostWords+len("…") {
			t.Errorf("scrubbed text is not printable, or too long: %q", got)
		}
		const replaced = "[credential]"
		if len(secret) >= leastSecret && strings.Contains(got, secret) && !strings.ContainsAny(secret, "[] ?…") &&
			!strings.Contains(replaced, secret) {
			t.Errorf("%q still holds %q", got, secret)
		}
	})
}
