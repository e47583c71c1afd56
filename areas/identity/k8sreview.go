package identity

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"tare/internal/jsonscan"
)

// k8sTokenReview asks the API server whose token this is, as webhooks and other token services do at each of their
// logins (https://kubernetes.io/docs/reference/kubernetes-api/authentication-resources/token-review-v1/).
//
//	identity selector  the token that is reviewed; the caller's own credential needs the right to create tokenreviews
//	cache key          the token and the audiences that are asked for, for 10 s where the API server caches at all
//	                   (k8s.io/apiserver, pkg/authentication/token/cache)
//	cold path          an audience that was never asked for before, beside the right one: audiences [<right one>,
//	                   "tare-{n}"]
//	success            201, authenticated true, a user name (the one that the token's sub names), and one of the
//	                   audiences asked for
//	error classes      429 Refused (priority and fairness) · 503 Refused · 5xx Failed · 401, 403 Wrong (the caller's
//	                   credential or its rights) · 400, 422 Wrong (the request); 201 with authenticated false is Wrong,
//	                   too
//
// What is reviewed is the secret that the file names; or with a service account, a token of its own, minted before the
// load and renewed outside of it; or else the caller's own token.
func k8sTokenReview() adapter {
	return adapter{
		name: "k8s-tokenreview", help: "the API server of Kubernetes: POST …/tokenreviews says whose token this is",
		section: "k8s", reach: reach{tls: true, path: true},
		operations: []operation{{
			name: opReview, expect: "201, authenticated true, and the user name of the token that is reviewed",
			request: func(s session, key int) []byte {
				return tokenReview(s, key, reviewed(s, key), k8sHeaders(reviewer(s, key))...)
			},
			status: http.StatusCreated, reader: reviewReader, denied: unauthenticated,
		}},
		validate: validateReview, canaries: reviewCanaries, refused: k8sRefusal, login: mint,
	}
}

// opReview asks for a review.
const opReview = "review"

func validateReview(s *Spec, _ string) error {
	o := k8sOptions(s)
	if o.ReviewToken.IsZero() && o.Token.IsZero() && !mints(o) {
		for i, c := range s.Callers {
			if c.Token.IsZero() && c.Name == "" {
				return fmt.Errorf("callers: number %d has no token to review, and no name of a service account", i+1)
			}
		}
		if len(s.Callers) == 0 {
			return fmt.Errorf("k8s.review_token: there is no token to review: name one, or a service_account to mint one for")
		}
	}
	return validateK8s(o, s)
}

// mints reports whether tare creates the tokens that are reviewed.
func mints(o K8s) bool { return o.ReviewToken.IsZero() && o.ServiceAccount != "" }

// minted reports whether tare creates the token that is reviewed for one identity.
func minted(s session, key int) bool {
	o, c := k8sOptions(s.spec), s.caller(key)
	return c.Token.IsZero() && (mints(o) || (o.ReviewToken.IsZero() && c.Name != ""))
}

// mint obtains the token that is reviewed.
func mint(ctx context.Context, s session, key int, do doer) (lease, error) {
	if !minted(s, key) {
		return lease{}, nil
	}
	var audiences []string
	for _, x := range lasting(s, key) {
		audiences = append(audiences, string(x))
	}
	bearer := s.token(key, k8sOptions(s.spec).Token)
	got, err := do(ctx, key, tokenRequest(s, key, audiences, k8sHeaders(bearer)...))
	if err != nil {
		return lease{}, fmt.Errorf("mint a token to review: %w", err)
	}
	now := s.clock.Now()
	token, v := readTokenRequest(got.Body, now.Unix())
	if got.Status != http.StatusCreated {
		_, v = k8sRefusal(got.Status, nil)
	}
	switch {
	case v != noCause:
		return lease{}, fmt.Errorf("mint a token to review: status %d: %s", got.Status, causes()[v])
	case got.Status != http.StatusCreated || len(token) == 0:
		return lease{}, fmt.Errorf("mint a token to review: status %d: %w", got.Status, errNoToken)
	}
	life := k8sOptions(s.spec).life()
	if exp, ok := expiryOf(token); ok { // the API server may grant less than was asked for
		life = min(life, max(time.Second, time.Unix(exp, 0).Sub(now)))
	}
	return lease{value: string(token), lives: life}, nil
}

// lasting returns the audiences that are the same in every call; the others only make each call unique.
func lasting(s session, key int) (out [][]byte) {
	for _, x := range k8sAudiences(s, key) {
		if !strings.Contains(x, placeholder) {
			out = append(out, []byte(x))
		}
	}
	return out
}

// expiryOf returns the claim exp of a JWT.
func expiryOf(token []byte) (int64, bool) {
	var buf [maxClaims]byte
	payload, _ := payloadOf(buf[:], token)
	exp, _ := jsonscan.Member(payload, "exp")
	return seconds(exp)
}

// reviewed returns the token that is reviewed for an identity.
func reviewed(s session, key int) string {
	if minted(s, key) {
		return s.lease(key)
	}
	o := k8sOptions(s.spec)
	if !o.ReviewToken.IsZero() {
		return s.token(key, o.ReviewToken)
	}
	return s.token(key, o.Token)
}

// reviewer returns the caller's own credential. If callers name the tokens that are reviewed, all of them use the
// credential of the option.
func reviewer(s session, key int) string {
	o := k8sOptions(s.spec)
	if !o.Token.IsZero() {
		return s.secret(o.Token)
	}
	return s.token(key, o.Token)
}

// tokenReview renders the request of one identity for a token.
func tokenReview(s session, key int, token string, headers ...string) []byte {
	type spec struct {
		Token     string   `json:"token"`
		Audiences []string `json:"audiences,omitempty"`
	}
	body, err := json.Marshal(struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Spec       spec   `json:"spec"`
	}{k8sAuth, "TokenReview", spec{token, uniqueAll(s, k8sAudiences(s, key))}})
	if err != nil {
		return nil // strings only
	}
	return s.request(key, http.MethodPost, s.base+"/apis/authentication.k8s.io/v1/tokenreviews", body, headers...)
}

// reviewCanaries returns a review of a forged token, which the API server must report as unauthenticated, with status
// 201.
func reviewCanaries(s session) []canary {
	out := []canary{{
		name: "the review of a forged token",
		request: func(key int) []byte {
			return tokenReview(s, key, forgedFrom(reviewed(s, key)), k8sHeaders(reviewer(s, key))...)
		},
		refused: func(status int, body []byte) bool { return status == http.StatusCreated && unauthenticated(body) },
	}}
	if !s.hasToken(k8sOptions(s.spec).Token) {
		return out
	}
	bearer := func(key int) string { return reviewer(s, key) }
	return append(out, k8sStrangers(bearer, func(key int, headers ...string) []byte {
		return tokenReview(s, key, reviewed(s, key), headers...)
	})...)
}

// unauthenticated reports whether a review says that the token is nobody's.
func unauthenticated(body []byte) bool {
	r, v := readReview(body)
	return v == noCause && !r.authenticated
}

func reviewReader(s session) reader {
	users, asked := make([]string, s.identities()), make([][][]byte, s.identities())
	for key := range users {
		asked[key] = lasting(s, key)
		switch subject := s.caller(key).Subject; {
		case subject != "":
			users[key] = subject
		case minted(s, key):
			users[key] = k8sOwner(s, key)
		default:
			users[key] = subjectOf([]byte(reviewed(s, key)))
		}
	}
	return func(_ uint64, key int, body []byte) verdict { return judgeReview(body, users[key], asked[key]) }
}

// judgeReview judges a review: user is whose token it must be, empty if unknown, and asked are the audiences of which
// the answer must name one.
func judgeReview(body []byte, user string, asked [][]byte) verdict {
	r, v := readReview(body)
	switch {
	case v != noCause:
		return v
	case !r.authenticated:
		return notAuthenticated
	case len(r.username) == 0, user != "" && string(r.username) != user:
		return otherSubject
	case len(asked) > 0 && !r.names(asked):
		return otherAudience
	}
	return noCause
}

// A review is what the status of a TokenReview says.
type review struct {
	authenticated bool
	username      []byte
	audiences     []byte // a list, as it stands in the answer; nil: none
}

// names reports whether one of the audiences is among the review's.
func (r review) names(asked [][]byte) bool {
	for _, a := range asked {
		if len(r.audiences) > 0 && holds(r.audiences, a) {
			return true
		}
	}
	return false
}

// readReview reads a TokenReview. "authenticated" is left out when it is false. It does not allocate.
func readReview(body []byte) (r review, v verdict) {
	status, v := k8sStatus(body, "TokenReview")
	if v != noCause {
		return r, v
	}
	var f [3][]byte
	if !jsonscan.Pick(status, f[:], "authenticated", "user", "audiences") {
		return r, notJSON
	}
	r.authenticated, r.audiences = string(f[0]) == "true", f[2]
	if f[0] != nil && !r.authenticated && string(f[0]) != "false" {
		return review{}, notJSON
	}
	if f[1] != nil {
		name, ok := jsonscan.Member(f[1], "username")
		if !ok {
			return review{}, notJSON
		}
		r.username = jsonscan.Text(name)
	}
	return r, noCause
}
