package identity

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"tare/area"
	"tare/internal/kit"
)

// Every clue is a member that the protocol requires and that no other answer has by chance. What a server says of
// itself is believed as far as the adapter goes, but never to send the load to another server.
func clues() []area.Clue {
	return []area.Clue{
		{
			Path: "/.well-known/openid-configuration", Tells: tellsOIDC, Address: issuerOnly,
			Instead: "give an OIDC server by the address of its issuer",
		},
		{Path: "/v1/sys/health", Tells: tellsVault},
		{Path: "/realms/master", Tells: tellsKeycloak},
		{Last: true, Tells: tellsHTTP},
	}
}

// tellsOIDC knows OpenID Connect Discovery 1.0, section 3: issuer and token_endpoint.
func tellsOIDC(u *url.URL, h area.Heard) (area.Spoken, error) {
	endpoint := h.Text("token_endpoint")
	if h.Status != http.StatusOK || h.Text("issuer") == "" || endpoint == "" {
		return area.Spoken{}, nil
	}
	if err := kit.SameServer(u, endpoint, "oidc-token"); err != nil {
		return area.Spoken{}, err
	}
	return area.Spoken{Adapter: "oidc-token", URL: endpoint, Evidence: fmt.Sprintf(
		"%s answers OIDC discovery, and names this token endpoint: %s", u, endpoint)}, nil
}

// issuerOnly refuses the address of an endpoint of a Keycloak realm, whose discovery stands below the realm only.
func issuerOnly(u *url.URL) error {
	before, _, ok := strings.Cut(u.Path, "/protocol/openid-connect")
	if !ok || !strings.Contains(before, "/realms/") {
		return nil
	}
	realm := *u
	realm.Path, realm.RawPath = before, ""
	return area.Usage("%s is an endpoint of a Keycloak realm; give the address of its issuer: %s", u, realm.String())
}

// tellsKeycloak knows the description of the realm that every Keycloak has. A server has an issuer for each realm, and
// which one is meant cannot be told.
func tellsKeycloak(u *url.URL, h area.Heard) (area.Spoken, error) {
	if h.Status != http.StatusOK || h.Text("realm") != "master" || h.Text("token-service") == "" {
		return area.Spoken{}, nil
	}
	return area.Spoken{}, area.Usage("%s is a Keycloak; give the address of a realm, its issuer: %s/realms/NAME", u.Host,
		strings.TrimRight(u.String(), "/"))
}

// tellsVault knows the health of Vault and OpenBao, which standby and sealed servers tell too, by other statuses.
func tellsVault(u *url.URL, h area.Heard) (area.Spoken, error) {
	started, ok := h.Body["initialized"].(bool)
	sealed, has := h.Body["sealed"].(bool)
	if !ok || !has || h.Text("version") == "" {
		return area.Spoken{}, nil
	}
	evidence := fmt.Sprintf("%s answers /v1/sys/health as Vault and OpenBao do, version %.40s", u, h.Text("version"))
	if sealed || !started {
		return area.Spoken{}, area.Usage("%s, and says that it is sealed or not initialized: it accepts no login", evidence)
	}
	return area.Spoken{Adapter: "vault-login", URL: u.String(), Evidence: evidence}, nil
}

// tellsHTTP knows metadata servers of GCE by their header, and takes any other good answer for that of a plain server.
func tellsHTTP(u *url.URL, h area.Heard) (area.Spoken, error) {
	switch {
	case h.Header("Metadata-Flavor") == "Google" && strings.Trim(u.Path, "/") == "":
		return area.Spoken{
			Adapter: "gce-metadata", URL: u.String(), Evidence: fmt.Sprintf("%s answers with Metadata-Flavor: Google", u),
		}, nil
	case h.Status == http.StatusForbidden && strings.Contains(h.Begin, gceHeaderName):
		return tellsGCE(u)
	case h.Status != http.StatusOK:
		return area.Spoken{}, nil
	}
	return area.Spoken{
		Adapter: "http-token", URL: u.String(),
		Options: "  http: {status_only: true}   # a call is good by its status 200, whatever the body is\n",
		Evidence: fmt.Sprintf("GET %s answers with status 200, and nothing there describes a protocol that tare asks for; "+
			"answers are judged by their status alone", u),
	}, nil
}

// tellsGCE knows a server by its refusal of a request that lacks the header of GCE's metadata protocol. The adapter
// adds the path itself, so the address of one of the protocol's paths stands for its server.
func tellsGCE(u *url.URL) (area.Spoken, error) {
	base := u.Scheme + "://" + u.Host
	if path := strings.Trim(u.Path, "/"); path != "" && !strings.HasPrefix("/"+path, gceRoot) {
		return area.Spoken{}, area.Usage("%s refuses requests without the header %s, as the metadata server of GCE does; if "+
			"it is one, give its address without a path: %s", u, gceHeader, base)
	}
	return area.Spoken{
		Adapter: "gce-metadata", URL: base, Evidence: fmt.Sprintf("%s answers with status 403, and asks for the header "+
			"%s, which this adapter sends", u, gceHeader),
	}, nil
}

// needs says what an adapter needs besides an address. Values of secrets are named by their place, never given.
var needs = map[string]string{
	"oidc-token": "oidc-token needs a client: --set target.oidc.client_id=ID --set " +
		"'target.oidc.client_secret={env: OIDC_CLIENT_SECRET}'",
	"vault-login": "vault-login needs a login: --set target.vault.method=approle --set target.vault.role_id=ID --set " +
		"'target.vault.secret_id={env: VAULT_SECRET_ID}'",
	"http-token": "http-token expects a token at access_token: --set target.http.token=NAME, or --set " +
		"target.http.status_only=true for a server that gives none",
}

// listed is area.Parts.Adapters.
func listed() (out []area.Adapter) {
	for _, a := range adapters() {
		x := area.Adapter{Name: a.name, Help: a.help, Needs: needs[a.name], Trespass: mustRefuse}
		if a.name == "http-token" {
			x.Query = "-X GET --set 'target.http.path=/path?query'"
			x.Request = writeRequest
			x.GuardNeeds = "say what it must refuse: --without-header NAME, --forbidden PATH, or a credential, which is then " +
				"left out and forged: --set 'target.http.bearer={env: TOKEN}'"
		}
		out = append(out, x)
	}
	slices.SortFunc(out, func(a, b area.Adapter) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// mustRefuse writes what a server must refuse as lines of the target section.
func mustRefuse(without, forbidden []string) string {
	var out strings.Builder
	for _, name := range without {
		fmt.Fprintf(&out, "    - {name: %s, without: [%s]}\n", kit.Quote("a request without "+name), kit.Quote(name))
	}
	for _, path := range forbidden {
		fmt.Fprintf(&out, "    - {name: %s, path: %s}\n", kit.Quote("a request for "+path), kit.Quote(path))
	}
	return "  trespass:   # the request with what an entry changes; refused is what is answered with 401 or 403\n" +
		out.String()
}
