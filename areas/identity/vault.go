package identity

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"tare/area"
	"tare/internal/jsonscan"
	"tare/internal/load"
)

// vaultLogin logs in to Vault or OpenBao: POST <url>/v1/auth/<mount>/login
// (https://developer.hashicorp.com/vault/api-docs/auth/kubernetes, …/auth/jwt, …/auth/approle, …/auth/userpass; error
// classes: …/api-docs#http-status-codes).
//
//	identity selector  JWT, secret ID or user (callers: name is the role, role ID or user, token the JWT, secret ID or
//	                   password)
//	cache key          none: every login makes a token, and a lease for it that lives on; method kubernetes usually asks
//	                   for a TokenReview
//	cold path          every request; Vault Agent with auto-auth caches, and is another endpoint
//	success            200, auth.client_token visible, auth.lease_duration above 0 or a token that never expires, with
//	                   the policies of a login
//	error classes      429 (quota), 503 (sealed), 472, 473 (standby) Refused · 5xx Failed · 400, 403, 404 Wrong
func vaultLogin() adapter {
	return adapter{
		name: "vault-login", help: "logins to Vault and OpenBao: POST /v1/auth/<mount>/login by kubernetes, jwt, approle " +
			"or userpass",
		section: "vault", reach: reach{tls: true, path: true},
		operations: []operation{{
			name: opLogin, expect: "200, a client token with a lease that has not run out",
			request: func(s session, key int) []byte {
				o := vaultOptions(s.spec)
				return vaultRequest(s, key, o.nameOf(s, key), s.token(key, o.secret()))
			},
			reader: vaultReader,
			subject: func(body []byte) string {
				r, _ := readLogin(body)
				return string(r.entity)
			},
		}},
		validate: vaultValidate, canaries: vaultCanaries, refused: vaultRefusal,
	}
}

const opLogin = "login"

// projectedToken is where Kubernetes puts the token of a pod's service account.
const projectedToken = "/var/run/secrets/kubernetes.io/serviceaccount/token"

// vaultOptions fills in defaults.
func vaultOptions(s *Spec) Vault {
	o := optionsOf(s, func(s *Spec) *Vault { return s.Vault })
	o.Method = cmp.Or(o.Method, "kubernetes")
	o.Mount = strings.Trim(cmp.Or(o.Mount, o.Method), "/")
	return o
}

// secret returns the location of the method's credential.
func (o Vault) secret() area.Secret {
	switch o.Method {
	case "approle":
		return o.SecretID
	case "userpass":
		return o.Password
	}
	return o.JWT
}

// identity returns the caller's name as the method calls it.
func (o Vault) identity() string {
	switch o.Method {
	case "approle":
		return o.RoleID
	case "userpass":
		return o.Username
	}
	return o.Role
}

func vaultValidate(s *Spec, _ string) error {
	o := vaultOptions(s)
	fields := map[string][2]string{
		"kubernetes": {"role", "jwt"}, "jwt": {"role", "jwt"}, "approle": {"role_id", "secret_id"},
		"userpass": {"username", "password"},
	}
	names, ok := fields[o.Method]
	if !ok {
		return fmt.Errorf("vault.method: %q is not one of kubernetes, jwt, approle, userpass", o.Method)
	}
	if o.identity() == "" && !s.everyCaller(func(c Caller) bool { return c.Name != "" }) {
		return fmt.Errorf("vault.%s: method %s needs one", names[0], o.Method)
	}
	if o.secret().IsZero() && !s.everyCaller(hasToken) {
		return fmt.Errorf("vault.%s: method %s needs one: {file: path} or {env: NAME}, such as {file: %s} within a pod",
			names[1], o.Method, projectedToken)
	}
	given := map[string]bool{
		"role": o.Role != "", "jwt": !o.JWT.IsZero(), "role_id": o.RoleID != "", "secret_id": !o.SecretID.IsZero(),
		"username": o.Username != "", "password": !o.Password.IsZero(),
	}
	for _, name := range []string{"role", "jwt", "role_id", "secret_id", "username", "password"} {
		if given[name] && name != names[0] && name != names[1] {
			return fmt.Errorf("vault.%s: method %s has no such field; it has %s and %s", name, o.Method, names[0], names[1])
		}
	}
	if !plainPath("/"+o.Mount) || strings.ContainsAny(o.Mount, "?%") {
		return errors.New("vault.mount: want a path such as kubernetes or auth-of/team-a")
	}
	if o.Namespace != "" && !visible([]byte(o.Namespace)) {
		return errors.New("vault.namespace: it has blanks or characters other than ASCII")
	}
	for i, c := range append([]Caller{{Name: o.Username}}, s.Callers...) {
		if o.Method == "userpass" && c.Name != "" && (strings.ContainsAny(c.Name, "/?#%") || !visible([]byte(c.Name))) {
			return fmt.Errorf("%s: a user's name stands in the path, and must have no blanks, slashes or percent signs",
				cmp.Or(map[bool]string{true: "vault.username"}[i == 0], "callers"))
		}
	}
	return nil
}

// vaultCanaries returns a login with a forged credential. For userpass the user is made up, too, since Vault locks real
// ones out after some failures.
func vaultCanaries(s session) []canary {
	o := vaultOptions(s.spec)
	c := canary{
		name:     "a login with a credential that nobody has issued",
		statuses: []int{http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden, http.StatusInternalServerError},
		request: func(key int) []byte {
			name, forged := o.nameOf(s, key), forgedSecret(s.token(key, o.secret()))
			if o.Method == "userpass" && !s.spec.NoLockout {
				name = "tare-canary-nobody"
			}
			return vaultRequest(s, key, name, forged)
		},
	}
	if o.Method == "approle" || o.Method == "userpass" {
		c.alone = s.guessing("Vault locks a role or user out after some wrong secrets")
	}
	return []canary{c}
}

// forgedJWT has the form of a JWT and nobody's signature: {"alg":"RS256"} and {"sub":"tare-canary"}.
const forgedJWT = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJ0YXJlLWNhbmFyeSJ9." +
	"dGFyZS1jYW5hcnk" //nolint:gosec // a forgery by design

// nameOf returns the role, role ID or user of an identity.
func (o Vault) nameOf(s session, key int) string { return cmp.Or(s.caller(key).Name, o.identity()) }

func vaultRequest(s session, key int, name, secret string) []byte {
	o := vaultOptions(s.spec)
	path := s.base + "/v1/auth/" + o.Mount + "/login"
	var form map[string]string
	switch o.Method {
	case "approle":
		form = map[string]string{"role_id": name, "secret_id": secret}
	case "userpass":
		path += "/" + name
		form = map[string]string{"password": secret}
	default:
		form = map[string]string{"role": name, "jwt": secret}
	}
	body, err := json.Marshal(form)
	if err != nil {
		return nil // strings only
	}
	headers := []string{"Accept: application/json", "Content-Type: application/json", "X-Vault-Request: true"}
	if o.Namespace != "" {
		headers = append(headers, "X-Vault-Namespace: "+o.Namespace)
	}
	return s.request(key, http.MethodPost, path, body, headers...)
}

func vaultReader(s session) reader {
	j := newJudge(s)
	return func(_ uint64, key int, body []byte) verdict {
		r, ok := readLogin(body)
		if !ok {
			return malformed(body)
		}
		entity := ""
		if key < len(s.subjects) {
			entity = s.subjects[key]
		}
		return r.judge(j, key, entity)
	}
}

// A vaultAuth is the member auth of a login's answer.
type vaultAuth struct {
	token, entity []byte
	lives         int64
	dated         bool
}

func readLogin(body []byte) (a vaultAuth, ok bool) {
	auth, ok := jsonscan.Member(body, "auth")
	if !ok || auth == nil || string(auth) == "null" { // null is an answer without a token
		return a, ok && auth != nil
	}
	var f [3][]byte
	ok = jsonscan.Pick(auth, f[:], "client_token", "entity_id", "lease_duration")
	a.token, a.entity = jsonscan.Text(f[0]), jsonscan.Text(f[1])
	a.lives, a.dated = seconds(f[2])
	return a, ok
}

// judge compares the entity that the token is for. A lease of 0 means a token that never expires, which root tokens are
// and logins never give.
func (a vaultAuth) judge(j *judge, key int, entity string) verdict {
	switch {
	case len(a.token) == 0:
		return noToken
	case !a.dated:
		return noLifetime
	case a.lives <= 0:
		return hasExpired
	case !visible(a.token):
		return notVisible
	case entity != "" && string(a.entity) != entity:
		return otherSubject
	}
	return j.owns(key, a.token)
}

// vaultRefusal returns Vault's own meaning of statuses: 472 and 473 are standby nodes that do not answer themselves.
func vaultRefusal(status int, _ []byte) (load.Outcome, verdict) {
	if status == 472 || status == 473 {
		return load.Refused, temporarilyUnavailable
	}
	return refusalOrBusy(status)
}
