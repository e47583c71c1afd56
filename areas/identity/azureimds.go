package identity

import (
	"bytes"
	"cmp"
	"fmt"
	"net/http"
	"net/url"

	"tare/internal/jsonscan"
	"tare/internal/load"
)

// azureIMDS speaks the managed-identity part of Azure's instance metadata protocol
// (https://learn.microsoft.com/entra/identity/managed-identities-azure-resources/how-to-use-vm-token; parameters:
// azure-rest-api-specs, Microsoft.InstanceMetadataService, imds.json).
//
//	identity selector  the machine, and the client_id of an identity that is assigned to it. Through a proxy for pods,
//	                   source address
//	cache key          identity and resource; a resource is known to the directory, so that a made-up one is refused
//	cold path          operation fresh: bypass_cache=true. The guide above does not name it; imds.json does: "the token
//	                   must be retrieved from Azure AD and cannot be retrieved from an internal cache". Expect a much
//	                   lower quota
//	success            200, a token of type Bearer for the resource that was asked for, expires_in above 0 as a text or a
//	                   number
//	error classes      429 Refused · 404, 410 Failed (the service is being updated, up to 70 s) · 503 Refused · 5xx
//	                   Failed · 400 Wrong (the request, or no such identity) · 401, 403 Wrong (the credential)
//
// The documented limit is 20 requests/s and 5 at a time for one machine, which is where a search should end.
func azureIMDS() adapter {
	const expect = "200, a token of type Bearer for the resource that was asked for, that has not expired"
	return adapter{
		name: "azure-imds", help: "the metadata service of Azure: GET /metadata/identity/oauth2/token, also past its cache",
		section: "azure", reach: reach{tls: true, node: true},
		operations: []operation{
			{name: opToken, expect: expect, request: azureRequest, reader: azureReader, subject: azureSubject},
			{name: opFresh, expect: expect, request: azureRequest, reader: azureReader, subject: azureSubject},
		},
		validate: azureValidate, canaries: azureCanaries, refused: azureRefusal,
	}
}

// opFresh asks for a token past the endpoint's cache.
const opFresh = "fresh"

const (
	azurePath     = "/metadata/identity/oauth2/token?api-version=2018-02-01&resource="
	azureResource = "https://management.azure.com/"
	azureHeader   = "Metadata: true"
)

func azureValidate(s *Spec, _ string) error {
	o := azureOptions(s)
	for _, x := range []struct{ path, text string }{{"azure.resource", o.Resource}, {"azure.client_id", o.ClientID}} {
		if x.text != "" && !visible([]byte(x.text)) {
			return fmt.Errorf("%s: %q has blanks or characters other than ASCII", x.path, x.text)
		}
	}
	return nil
}

func azureOptions(s *Spec) Azure { return optionsOf(s, func(s *Spec) *Azure { return s.Azure }) }

// azureAudience returns what the token of an identity is for.
func azureAudience(s session, key int) string {
	return s.unique(cmp.Or(s.caller(key).Audience, azureOptions(s.spec).Resource, azureResource))
}

func azureURL(s session, key int) string {
	p := s.base + azurePath + url.QueryEscape(azureAudience(s, key))
	if id := cmp.Or(s.caller(key).Name, azureOptions(s.spec).ClientID); id != "" {
		p += "&client_id=" + url.QueryEscape(id)
	}
	if s.operation == opFresh {
		p += "&bypass_cache=true"
	}
	return p
}

// azureCanaries: the header proves that a program asks on purpose.
func azureCanaries(s session) []canary {
	return []canary{{
		name: "a request without the header Metadata", statuses: []int{http.StatusBadRequest},
		request: func(key int) []byte { return s.request(key, http.MethodGet, azureURL(s, key), nil) },
	}}
}

func azureRequest(s session, key int) []byte {
	return s.request(key, http.MethodGet, azureURL(s, key), nil, azureHeader)
}

func azureReader(s session) reader {
	j, x := newJudge(s), newExpected(s)
	resources := make([]*load.Template, s.identities())
	for key := range resources {
		resources[key] = load.NewTemplate([]byte(azureAudience(s, key)))
	}
	return func(i uint64, key int, body []byte) verdict {
		var buf [512]byte
		want := x.of(i, key)
		token, v := readAzure(body, resources[key].AppendTo(buf[:0], i), want.now)
		if v != noCause {
			return v
		}
		return j.token(key, token, want, true)
	}
}

// azureRefusal returns what a status other than 200 means here. 404 and 410 are the service's own absence, which
// passes.
func azureRefusal(status int, body []byte) (load.Outcome, verdict) {
	switch {
	case status == http.StatusNotFound || status == http.StatusGone:
		return load.Failed, temporarilyUnavailable
	case status == http.StatusBadRequest && bytes.Contains(body, []byte("Identity not found")):
		return load.Wrong, notActive
	}
	return refusalOrBusy(status)
}

// readAzure returns the token of an answer, and what is wrong with it. It does not allocate.
func readAzure(body, resource []byte, now int64) (token []byte, v verdict) {
	var f [5][]byte
	if !jsonscan.Pick(body, f[:], "access_token", "token_type", "resource", "expires_in", "expires_on") {
		return nil, malformed(body)
	}
	token = jsonscan.Text(f[0])
	lives, dated := eitherNumber(f[3])
	ends, ending := eitherNumber(f[4])
	switch {
	case len(token) == 0:
		return nil, noToken
	case !dated, f[4] != nil && !ending:
		return nil, noLifetime
	case lives <= 0, f[4] != nil && ends <= now:
		return nil, hasExpired
	case !bytes.EqualFold(jsonscan.Text(f[1]), []byte("Bearer")):
		return nil, notBearer
	case !jsonscan.Is(f[2], resource):
		return nil, otherAudience
	case unsigned(token):
		return nil, notSigned
	}
	return token, noCause
}

// azureSubject returns whose token a good answer holds.
func azureSubject(body []byte) string {
	token, _ := jsonscan.Member(body, "access_token")
	return subjectOf(jsonscan.Text(token))
}

// eitherNumber returns the seconds of a number, or of a text of one: the service writes texts, some emulators numbers.
func eitherNumber(value []byte) (int64, bool) {
	if t := jsonscan.Text(value); t != nil {
		return seconds(t)
	}
	return seconds(value)
}

// unsigned reports whether token is a JWT that says of itself that nobody has signed it (RFC 8725, section 3.2). A
// token that is no JWT is opaque.
func unsigned(token []byte) bool {
	head, _, ok := bytes.Cut(token, []byte("."))
	if !ok {
		return false
	}
	var buf [1 << 10]byte
	header, ok := decode(buf[:], head)
	if !ok {
		return false
	}
	alg, _ := jsonscan.Member(header, "alg")
	return bytes.EqualFold(jsonscan.Text(alg), []byte("none"))
}
