package cli

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// Every clue is a member that the protocol requires and that no other answer has by chance. What a server says of
// itself is believed as far as the adapter goes, but never to send the load to another server.

// tellsOIDC knows OpenID Connect Discovery 1.0, section 3: issuer and token_endpoint.
func tellsOIDC(u *url.URL, h heard) (s spoken, evidence string, err error) {
	endpoint := h.text("token_endpoint")
	if h.status != http.StatusOK || h.text("issuer") == "" || endpoint == "" {
		return s, "", nil
	}
	if err := sameServer(u, endpoint, "oidc-token"); err != nil {
		return s, "", err
	}
	return spoken{area: "identity", adapter: "oidc-token", url: endpoint},
		fmt.Sprintf("%s answers OIDC discovery, and names this token endpoint: %s", u, endpoint), nil
}

// keycloakRealm returns the issuer's address for the address of an endpoint of a Keycloak realm, whose discovery stands
// below the realm only.
func keycloakRealm(u *url.URL) (issuer string, ok bool) {
	before, _, ok := strings.Cut(u.Path, "/protocol/openid-connect")
	if !ok || !strings.Contains(before, "/realms/") {
		return "", false
	}
	realm := *u
	realm.Path, realm.RawPath = before, ""
	return realm.String(), true
}

// tellsKeycloak knows the description of the realm that every Keycloak has. A server has an issuer for each realm, and
// which one is meant cannot be told.
func tellsKeycloak(u *url.URL, h heard) (s spoken, evidence string, err error) {
	if h.status != http.StatusOK || h.text("realm") != "master" || h.text("token-service") == "" {
		return s, "", nil
	}
	return s, "", usage("%s is a Keycloak; give the address of a realm, its issuer: %s/realms/NAME", u.Host,
		strings.TrimRight(u.String(), "/"))
}

// tellsVault knows the health of Vault and OpenBao, which standby and sealed servers tell too, by other statuses.
func tellsVault(u *url.URL, h heard) (s spoken, evidence string, err error) {
	started, ok := h.body["initialized"].(bool)
	sealed, has := h.body["sealed"].(bool)
	if !ok || !has || h.text("version") == "" {
		return s, "", nil
	}
	evidence = fmt.Sprintf("%s answers /v1/sys/health as Vault and OpenBao do, version %.40s", u, h.text("version"))
	if sealed || !started {
		return s, "", usage("%s, and says that it is sealed or not initialized: it accepts no login", evidence)
	}
	return spoken{area: "identity", adapter: "vault-login", url: u.String()}, evidence, nil
}

// tellsAuthZEN knows the metadata of AuthZEN 1.0: policy_decision_point and access_evaluation_endpoint.
func tellsAuthZEN(u *url.URL, h heard) (s spoken, evidence string, err error) {
	endpoint := h.text("access_evaluation_endpoint")
	if h.status != http.StatusOK || h.text("policy_decision_point") == "" || endpoint == "" {
		return s, "", nil
	}
	if err := sameServer(u, endpoint, "authzen"); err != nil {
		return s, "", err
	}
	s = spoken{area: "decision", adapter: "authzen", url: u.Scheme + "://" + u.Host}
	if at, _ := url.Parse(endpoint); at.Path != "/access/v1/evaluation" { // sameServer has parsed it
		s.options = "  path: " + quote(at.Path) + "\n"
	}
	return s, fmt.Sprintf("%s answers AuthZEN's discovery, and names this endpoint: %s", u, endpoint), nil
}

// tellsOPA knows the build that Open Policy Agent keeps in its own data.
func tellsOPA(u *url.URL, h heard) (s spoken, evidence string, err error) {
	result, _ := h.body["result"].(map[string]any)
	_, built := result["build_commit"].(string) // empty in a build from source
	if h.status != http.StatusOK || !built || h.text("result.version") == "" {
		return s, "", nil
	}
	return spoken{area: "decision", adapter: "opa", url: u.String()},
		fmt.Sprintf("%s answers /v1/data/system/version as Open Policy Agent does, version %.40s", u,
			h.text("result.version")), nil
}

// tellsHTTP knows metadata servers of GCE by their header, and takes any other good answer for that of a plain server.
func tellsHTTP(u *url.URL, h heard) (s spoken, evidence string, err error) {
	switch {
	case h.header.Get("Metadata-Flavor") == "Google" && strings.Trim(u.Path, "/") == "":
		return spoken{area: "identity", adapter: "gce-metadata", url: u.String()},
			fmt.Sprintf("%s answers with Metadata-Flavor: Google", u), nil
	case h.status != http.StatusOK:
		return s, "", nil
	}
	s = spoken{area: "identity", adapter: "http-token", url: u.String()}
	s.options = "  http: {status_only: true}   # a call is good by its status 200, whatever the body is\n"
	return s, fmt.Sprintf("GET %s answers with status 200, and nothing there describes a protocol that tare asks for; "+
		"answers are judged by their status alone", u), nil
}

// sameServer refuses an endpoint that a server names if it is not on that server.
func sameServer(u *url.URL, endpoint, adapter string) error {
	e, err := url.Parse(endpoint)
	if err == nil && len(endpoint) < 500 && e.User == nil && e.RawQuery == "" && e.Fragment == "" &&
		e.Scheme == u.Scheme && strings.EqualFold(e.Host, u.Host) {
		return nil
	}
	return usage("%s names an endpoint on another address: %.200q; if that is to be measured, give it with --adapter %s",
		u, endpoint, adapter)
}

// needsOf says what an adapter needs besides an address. Values of secrets are named by their place, never given.
func needsOf(adapter string) string {
	switch adapter {
	case "oidc-token":
		return "oidc-token needs a client: --set target.oidc.client_id=ID --set " +
			"'target.oidc.client_secret={env: OIDC_CLIENT_SECRET}'"
	case "vault-login":
		return "vault-login needs a login: --set target.vault.method=approle --set target.vault.role_id=ID --set " +
			"'target.vault.secret_id={env: VAULT_SECRET_ID}'"
	case "opa":
		return "opa needs policies: --set target.load=true puts tare's own there for the run and takes them out again; to " +
			"ask about those that are there, set target.opa.path and target.requests"
	case "authzen", "ext-authz", "k8s-sar", "xacml", "openfga":
		return adapter + " needs questions with known answers: set target.requests"
	case "http-token":
		return "http-token expects a token at access_token: --set target.http.token=NAME, or --set " +
			"target.http.status_only=true for a server that gives none"
	}
	return "see the options of " + adapter + " in docs/reference: --set target.NAME=VALUE"
}
