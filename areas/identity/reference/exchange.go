package reference

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"tare/internal/clock"
)

// The words of RFC 8693, sections 2.1 and 3.
const (
	grantExchange   = "urn:ietf:params:oauth:grant-type:token-exchange"
	typeJWT         = "urn:ietf:params:oauth:token-type:jwt"
	typeAccessToken = "urn:ietf:params:oauth:token-type:access_token"
)

// serviceAccountLife is how long a service-account JWT is valid: kubelets ask for an hour.
const serviceAccountLife = time.Hour

// maxAnswer bounds what is read of an upstream answer.
const maxAnswer = 1 << 16

// An UpstreamError is a refusal by the STS or IAM. It carries no token.
type UpstreamError struct {
	Hop    string // "STS" or "IAM"
	Status int    // HTTP status
}

// Error implements error.
func (e *UpstreamError) Error() string { return fmt.Sprintf("%s answered %d", e.Hop, e.Status) }

// An Exchanger turns a workload's identity into tokens: it signs a service-account JWT, exchanges it at the STS, and
// lets IAM make the token asked for.
type Exchanger struct {
	base   string
	signer *Signer
	client *http.Client
	clock  clock.Clock
}

// NewExchanger talks to the STS at base, over at most conns connections (0: no bound).
func NewExchanger(base string, s *Signer, conns int, c clock.Clock) *Exchanger {
	idle := conns
	if idle == 0 {
		idle = 4096
	}
	t := &http.Transport{MaxConnsPerHost: conns, MaxIdleConnsPerHost: idle, DisableCompression: true}
	return &Exchanger{base: strings.TrimSuffix(base, "/"), signer: s, client: &http.Client{Transport: t}, clock: c}
}

// Close closes the idle connections.
func (x *Exchanger) Close() { x.client.CloseIdleConnections() }

// AccessToken makes an access token for the account email on behalf of w.
func (x *Exchanger) accessToken(ctx context.Context, w Workload, email string) (credential, error) {
	federated, err := x.Federate(ctx, w, Pool)
	if err != nil {
		return credential{}, err
	}
	var answer struct {
		Token   string    `json:"accessToken"`
		Expires time.Time `json:"expireTime"`
	}
	body := `{"scope":["` + platform + `"],"lifetime":"3600s"}`
	if err := x.impersonate(ctx, federated, email, "generateAccessToken", body, &answer); err != nil {
		return credential{}, err
	}
	if answer.Token == "" {
		return credential{}, errors.New("IAM answered without a token")
	}
	return credential{answer.Token, answer.Expires}, nil
}

// identityToken makes an identity token of email for audience on behalf of w.
func (x *Exchanger) identityToken(ctx context.Context, w Workload, email, aud string) (credential, error) {
	federated, err := x.Federate(ctx, w, Pool)
	if err != nil {
		return credential{}, err
	}
	body, err := json.Marshal(map[string]any{"audience": aud, "includeEmail": true})
	if err != nil {
		return credential{}, fmt.Errorf("encode the audience: %w", err)
	}
	var answer struct {
		Token string `json:"token"`
	}
	if err := x.impersonate(ctx, federated, email, "generateIdToken", string(body), &answer); err != nil {
		return credential{}, err
	}
	var c Claims
	parts := strings.Split(answer.Token, ".")
	if len(parts) != 3 || decodePart(parts[1], &c) != nil {
		return credential{}, errors.New("IAM answered without an identity token")
	}
	return credential{answer.Token, time.Unix(c.Expires, 0)}, nil
}

// Federate exchanges a service-account JWT of w for a federated token in pool (RFC 8693, section 2).
func (x *Exchanger) Federate(ctx context.Context, w Workload, pool string) (string, error) {
	now := x.clock.Now()
	jwt, err := x.signer.Sign(Claims{
		Issuer: clusterURL, Subject: w.Subject(), Audience: pool,
		IssuedAt: now.Unix(), Expires: now.Add(serviceAccountLife).Unix(),
	})
	if err != nil {
		return "", err
	}
	return x.Exchange(ctx, jwt, pool)
}

// Exchange offers jwt to the STS as it is.
func (x *Exchanger) Exchange(ctx context.Context, jwt, pool string) (string, error) {
	form := url.Values{
		"grant_type": {grantExchange}, "audience": {audience(pool)}, "scope": {platform},
		"subject_token_type": {typeJWT}, "subject_token": {jwt}, "requested_token_type": {typeAccessToken},
	}
	var answer struct {
		Token string `json:"access_token"`
	}
	err := x.post(ctx, "STS", "/v1/token", "", "application/x-www-form-urlencoded", form.Encode(), &answer)
	if err == nil && answer.Token == "" {
		err = errors.New("STS answered without a token")
	}
	return answer.Token, err
}

// Email asks the STS for the owner of an access token.
func (x *Exchanger) Email(ctx context.Context, token string) (string, error) {
	var answer struct {
		Email string `json:"email"`
	}
	form := url.Values{"access_token": {token}}
	err := x.post(ctx, "STS", "/tokeninfo", "", "application/x-www-form-urlencoded", form.Encode(), &answer)
	return answer.Email, err
}

func (x *Exchanger) impersonate(ctx context.Context, bearer, email, verb, body string, answer any) error {
	path := "/v1/projects/-/serviceAccounts/" + url.PathEscape(email) + ":" + verb
	return x.post(ctx, "IAM", path, bearer, "application/json", body, answer)
}

func (x *Exchanger) post(ctx context.Context, hop, path, bearer, kind, body string, answer any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, x.base+path, strings.NewReader(body))
	if err != nil {
		return fmt.Errorf("ask %s: %w", hop, err)
	}
	req.Header.Set("Content-Type", kind)
	if bearer != "" {
		req.Header.Set("Authorization", "Bearer "+bearer)
	}
	return x.do(hop, req, answer)
}

func (x *Exchanger) get(ctx context.Context, path string, answer any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, x.base+path, nil)
	if err != nil {
		return fmt.Errorf("ask %s: %w", path, err)
	}
	return x.do(path, req, answer)
}

// do reads a JSON answer. Its errors hold nothing of the answer, which may be a token.
func (x *Exchanger) do(hop string, req *http.Request, answer any) error {
	resp, err := x.client.Do(req)
	if err != nil {
		return fmt.Errorf("ask %s: %w", hop, err)
	}
	defer resp.Body.Close() //nolint:errcheck // read only
	b, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return fmt.Errorf("ask %s: %w", hop, err)
	}
	if resp.StatusCode != http.StatusOK {
		return &UpstreamError{Hop: hop, Status: resp.StatusCode}
	}
	if err := json.Unmarshal(b, answer); err != nil {
		return fmt.Errorf("ask %s: the answer is not the JSON that was expected", hop)
	}
	return nil
}
