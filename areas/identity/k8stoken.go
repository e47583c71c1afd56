package identity

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"tare/internal/jsonscan"
	"tare/internal/load"
)

// k8sTokenRequest asks the API server for a service account's token, by plain HTTPS: a client library's own limit of 5
// requests/s would be what is measured
// (https://kubernetes.io/docs/reference/kubernetes-api/authentication-resources/token-request-v1/).
//
//	identity selector  the caller's bearer token or client certificate, and the service account in the path
//	cache key          none: every request signs a token, and no object is stored. kubelets and client libraries cache
//	cold path          every call is cold
//	success            201 and a signed JWT that has not expired, with sub system:serviceaccount:<namespace>:<account>
//	                   and the audience asked for
//	error classes      429 Refused (priority and fairness; Retry-After says when to come back) · 503 Refused · 5xx Failed
//	                   · 401, 403 Wrong (the caller's credential or its rights) · 404 Wrong (no such account) · 400, 422
//	                   Wrong (the request)
//
// The API server looks the account up in its cache or in etcd; a token that is bound to an object costs one more look.
func k8sTokenRequest() adapter {
	return adapter{
		name: "k8s-tokenrequest", help: "the API server of Kubernetes: POST …/serviceaccounts/<account>/token signs a token",
		section: "k8s", reach: reach{tls: true, path: true},
		operations: []operation{{
			name: opToken, expect: "201 and a signed JWT of the service account for the audience that was asked for, that " +
				"has not expired",
			request: func(s session, key int) []byte {
				token := s.token(key, k8sOptions(s.spec).Token)
				return tokenRequest(s, key, uniqueAll(s, k8sAudiences(s, key)), k8sHeaders(token)...)
			},
			status: http.StatusCreated, reader: tokenRequestReader,
		}},
		validate: func(s *Spec, _ string) error { return validateK8s(k8sOptions(s), s) }, canaries: tokenRequestCanaries,
		refused: k8sRefusal,
	}
}

const (
	k8sAuth     = "authentication.k8s.io/v1"
	k8sSubject  = "system:serviceaccount:"
	k8sJSON     = "Content-Type: application/json"
	k8sAccept   = "Accept: application/json"
	k8sDefault  = "default"
	k8sLife     = time.Hour
	k8sMinLife  = 10 * time.Minute
	k8sUnsigned = "eyJhbGciOiJub25lIn0.eyJzdWIiOiJ0YXJlIn0." // alg none, sub tare
)

func k8sOptions(s *Spec) K8s { return optionsOf(s, func(s *Spec) *K8s { return s.K8s }) }

// life returns the lifetime that is asked for.
func (o K8s) life() time.Duration { return cmp.Or(time.Duration(o.Expiration), k8sLife) }

// validateK8s checks the options that both adapters share.
func validateK8s(o K8s, s *Spec) error {
	switch life := time.Duration(o.Expiration); {
	case o.Namespace != "" && !dnsName(o.Namespace):
		return fmt.Errorf("k8s.namespace: %q is not the name of a namespace", o.Namespace)
	case o.ServiceAccount != "" && !dnsName(o.ServiceAccount):
		return fmt.Errorf("k8s.service_account: %q is not the name of a service account", o.ServiceAccount)
	case life != 0 && (life < k8sMinLife || life >= 1<<32*time.Second || life%time.Second != 0):
		return fmt.Errorf("k8s.expiration: %v is not 10m or more, in whole seconds", life)
	}
	for i, a := range o.Audiences {
		if a == "" || strings.ContainsFunc(a, func(r rune) bool { return r < ' ' || r == 0x7f }) {
			return fmt.Errorf("k8s.audiences: number %d is empty or has control characters", i+1)
		}
	}
	if s != nil {
		for i, c := range s.Callers {
			if ns, sa := splitAccount(c.Name); c.Name != "" && (!dnsName(sa) || (ns != "" && !dnsName(ns))) {
				return fmt.Errorf("callers: name %d, %q, is neither a service account nor namespace/account", i+1, c.Name)
			}
		}
	}
	return nil
}

// dnsName reports whether s can be the name of a namespace or service account (RFC 1123, with dots).
func dnsName(s string) bool {
	for _, c := range s {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' && c != '.' {
			return false
		}
	}
	return s != "" && len(s) <= 253 && s[0] != '-' && s[0] != '.'
}

// splitAccount splits "namespace/account" or "account".
func splitAccount(name string) (namespace, account string) {
	if ns, sa, ok := strings.Cut(name, "/"); ok {
		return ns, sa
	}
	return "", name
}

// k8sAccount returns the service account of an identity.
func k8sAccount(s session, key int) (namespace, account string) {
	o := k8sOptions(s.spec)
	ns, sa := splitAccount(s.caller(key).Name)
	return cmp.Or(ns, o.Namespace, k8sDefault), cmp.Or(sa, o.ServiceAccount, k8sDefault)
}

// k8sOwner returns the subject of that account's tokens.
func k8sOwner(s session, key int) string {
	namespace, account := k8sAccount(s, key)
	return k8sSubject + namespace + ":" + account
}

// k8sAudiences returns the audiences that an identity asks for, with {n} not yet replaced.
func k8sAudiences(s session, key int) []string {
	if a := s.caller(key).Audience; a != "" {
		return []string{a}
	}
	return k8sOptions(s.spec).Audiences
}

// k8sHeaders returns the protocol's own headers. A caller without a token is identified by its client certificate.
func k8sHeaders(token string) []string {
	if token == "" {
		return []string{k8sJSON, k8sAccept}
	}
	return []string{"Authorization: Bearer " + token, k8sJSON, k8sAccept}
}

// tokenRequest renders the request for one identity; audiences go in as they are.
func tokenRequest(s session, key int, audiences []string, headers ...string) []byte {
	life := k8sOptions(s.spec).life()
	type spec struct {
		Audiences         []string `json:"audiences,omitempty"`
		ExpirationSeconds int64    `json:"expirationSeconds"`
	}
	body, err := json.Marshal(struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Spec       spec   `json:"spec"`
	}{k8sAuth, "TokenRequest", spec{audiences, int64(life / time.Second)}})
	if err != nil {
		return nil // strings and numbers only
	}
	namespace, account := k8sAccount(s, key)
	path := s.base + "/api/v1/namespaces/" + url.PathEscape(namespace) + "/serviceaccounts/" + url.PathEscape(account) +
		"/token"
	return s.request(key, http.MethodPost, path, body, headers...)
}

// uniqueAll returns texts with {n} replaced, so that each call is unique.
func uniqueAll(s session, texts []string) []string {
	out := make([]string, 0, len(texts))
	for _, t := range texts {
		out = append(out, s.unique(t))
	}
	return out
}

// tokenRequestCanaries returns requests without a credential and with an unsigned one, which the API server must
// reject. With a client certificate it checks no token; the canary then asks for an account that does not exist.
func tokenRequestCanaries(s session) []canary {
	if s.hasToken(k8sOptions(s.spec).Token) {
		bearer := func(key int) string { return s.token(key, k8sOptions(s.spec).Token) }
		return k8sStrangers(bearer, func(key int, headers ...string) []byte {
			return tokenRequest(s, key, uniqueAll(s, k8sAudiences(s, key)), headers...)
		})
	}
	return []canary{{
		name: "a token for a service account that is not there", statuses: []int{http.StatusNotFound, http.StatusForbidden},
		request: func(key int) []byte {
			namespace, _ := k8sAccount(s, key)
			path := s.base + "/api/v1/namespaces/" + namespace + "/serviceaccounts/tare-" + strings.ToLower(s.nonce) + "/token"
			return s.request(key, http.MethodPost, path, []byte("{}"), k8sHeaders("")...)
		},
	}}
}

// k8sStrangers returns requests of callers that the API server must reject, with 401 or 403 depending on its anonymous
// access.
func k8sStrangers(bearer func(key int) string, request func(key int, headers ...string) []byte) []canary {
	statuses := []int{http.StatusUnauthorized, http.StatusForbidden}
	return []canary{
		{
			name: "a request without a credential", statuses: statuses,
			request: func(key int) []byte { return request(key, k8sHeaders("")...) },
		},
		{
			name: "a request with an unsigned token", statuses: statuses,
			request: func(key int) []byte { return request(key, k8sHeaders(k8sUnsigned)...) },
		},
		{
			name: "a request with a token of an invalid signature", statuses: statuses,
			request: func(key int) []byte { return request(key, k8sHeaders(forgedFrom(bearer(key)))...) },
		},
	}
}

func tokenRequestReader(s session) reader {
	j, x := newJudge(s), newExpected(s)
	for key := range x.subjects {
		x.subjects[key] = cmp.Or(x.subjects[key], k8sOwner(s, key))
		if audiences := k8sAudiences(s, key); len(audiences) > 0 {
			x.audiences[key] = load.NewTemplate([]byte(s.unique(audiences[0])))
		}
	}
	return func(i uint64, key int, body []byte) verdict {
		want := x.of(i, key)
		want.signed = true
		token, v := readTokenRequest(body, want.now)
		if v != noCause {
			return v
		}
		return j.token(key, token, want, false)
	}
}

// k8sRefusal is what a status other than a good one means here.
var k8sRefusal = refusing(map[int]verdict{
	http.StatusUnprocessableEntity: requestRefused, http.StatusUnsupportedMediaType: requestRefused,
	http.StatusNotFound: notActive,
})

// readTokenRequest returns the token of an answer, and what is wrong with the answer. It does not allocate.
func readTokenRequest(body []byte, now int64) (token []byte, v verdict) {
	status, v := k8sStatus(body, "TokenRequest")
	if v != noCause {
		return nil, v
	}
	var f [2][]byte
	if !jsonscan.Pick(status, f[:], "token", "expirationTimestamp") {
		return nil, notJSON
	}
	token = jsonscan.Text(f[0])
	expires, dated := timestamp(jsonscan.Text(f[1]))
	switch {
	case len(token) == 0:
		return nil, noToken
	case !dated:
		return nil, noLifetime
	case expires <= now:
		return nil, hasExpired
	}
	return token, noCause
}

// k8sStatus returns the member status of an object of that kind.
func k8sStatus(body []byte, kind string) (status []byte, v verdict) {
	var f [2][]byte
	if !jsonscan.Pick(body, f[:], "kind", "status") {
		return nil, malformed(body)
	}
	got, status := jsonscan.Text(f[0]), f[1]
	switch {
	case string(got) != kind && len(got) > 0:
		return nil, notJSON
	case len(status) == 0 || bytes.Equal(status, []byte("null")):
		return nil, noToken
	}
	return status, noCause
}

// errNoToken reports an answer without a token. It does not quote the answer, which may be a secret.
var errNoToken = errors.New("the answer holds no good token")
