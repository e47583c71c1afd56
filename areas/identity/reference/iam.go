package reference

import (
	"encoding/json"
	"net/http"
	"strings"
	"time"
)

// impersonate answers generateAccessToken and generateIdToken of the IAM credentials API
// (https://cloud.google.com/iam/docs/reference/credentials/rest/v1/projects.serviceAccounts).
func (t *sts) impersonate(w http.ResponseWriter, r *http.Request) {
	email, verb, _ := strings.Cut(r.PathValue("call"), ":")
	token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	who, ok := t.unsealed("ya29.d.", token)
	switch {
	case !ok:
		writeGoogle(w, http.StatusUnauthorized, "UNAUTHENTICATED", "Request had invalid authentication credentials.")
		return
	case !mayActAs(who.Subject, email), t.isRevoked(who.Subject):
		writeGoogle(w, http.StatusForbidden, "PERMISSION_DENIED",
			"Permission 'iam.serviceAccounts.getAccessToken' denied on resource (or it may not exist).")
		return
	}
	if t.clock.Sleep(r.Context(), t.latency()) != nil {
		return
	}
	switch verb {
	case "generateAccessToken":
		t.accessToken(w, email)
	case "generateIdToken":
		t.identityToken(w, r, email)
	default:
		writeGoogle(w, http.StatusNotFound, "NOT_FOUND", "Method not found.")
	}
}

func (t *sts) accessToken(w http.ResponseWriter, email string) {
	expires := t.clock.Now().Add(t.knobs.TTL)
	token, err := t.sealed("ya29.c.", bearer{Email: email, Expires: expires})
	if err != nil {
		http.Error(w, "seal a token", http.StatusInternalServerError)
		return
	}
	writeJSON(w, map[string]string{"accessToken": token, "expireTime": expires.UTC().Format(time.RFC3339Nano)})
}

func (t *sts) identityToken(w http.ResponseWriter, r *http.Request, email string) {
	var ask struct {
		Audience     string `json:"audience"`
		IncludeEmail bool   `json:"includeEmail"`
	}
	if json.NewDecoder(r.Body).Decode(&ask) != nil || ask.Audience == "" {
		writeGoogle(w, http.StatusBadRequest, "INVALID_ARGUMENT", "An audience is needed.")
		return
	}
	now := t.clock.Now()
	c := Claims{
		Issuer: "https://sts.reference.invalid", Subject: email, Audience: ask.Audience,
		IssuedAt: now.Unix(), Expires: now.Add(t.knobs.TTL).Unix(),
	}
	if ask.IncludeEmail {
		c.Email, c.Verified = email, true
	}
	token, err := t.keys.Load().signer.Sign(c)
	if err != nil {
		http.Error(w, "sign a token", http.StatusInternalServerError)
		return
	}
	writeJSON(w, map[string]string{"token": token})
}

// info answers with the owner of an access token, as https://oauth2.googleapis.com/tokeninfo does. The token is sent in
// the body, so that no URL contains it.
func (t *sts) info(w http.ResponseWriter, r *http.Request) {
	who, ok := t.unsealed("ya29.c.", r.PostFormValue("access_token"))
	if !ok {
		writeStatus(w, http.StatusBadRequest, map[string]string{"error": "invalid_token"})
		return
	}
	writeJSON(w, map[string]any{"email": who.Email, "exp": who.Expires.Unix(), "scope": platform})
}
