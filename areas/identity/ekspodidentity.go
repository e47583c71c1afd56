package identity

import (
	"errors"
	"net/http"

	"tare/area"
	"tare/internal/jsonscan"
)

// eksPodIdentity asks the agent of EKS Pod Identity on a node for temporary credentials: GET <url>/v1/credentials, with
// the pod's JWT as it is (https://docs.aws.amazon.com/eks/latest/userguide/pod-id-how-it-works.html,
// …/sdkref/latest/guide/feature-container-credentials.html; statuses: github.com/aws/eks-pod-identity-agent,
// pkg/errors). Pods reach the agent at http://169.254.170.23.
//
//	identity selector  the JWT, of audience pods.eks.amazonaws.com (callers: token is the JWT)
//	cache key          the JWT: the agent keeps credentials and renews them before they expire
//	cold path          a JWT that the agent has not seen; it asks EKS Auth then
//	success            200, credentials of which all parts are visible and whose Expiration is ahead
//	error classes      429, 503 Refused · 5xx Failed · 400, 401, 403 Wrong (the JWT) · 404 Wrong (no association)
func eksPodIdentity() adapter {
	return adapter{
		name: "eks-pod-identity", help: "the agent of EKS Pod Identity: GET /v1/credentials with the pod's JWT",
		section: "eks", reach: reach{tls: true, node: true},
		operations: []operation{{
			name: opCredentials, expect: "200, an access key, its secret and a token that have not expired",
			request: func(s session, key int) []byte {
				return eksRequest(s, key, s.token(key, eksOptions(s.spec).Token))
			},
			reader: eksReader,
		}},
		validate: func(s *Spec, _ string) error {
			if eksOptions(s).Token.IsZero() && !s.everyCaller(hasToken) {
				return errors.New("eks.token: name the pod's JWT, such as {file: " + eksToken + "}")
			}
			return nil
		},
		canaries: eksCanaries, refused: eksRefusal,
	}
}

// eksToken is where EKS puts the JWT of a pod.
const eksToken = "/var/run/secrets/pods.eks.amazonaws.com/serviceaccount/" +
	"eks-pod-identity-token" //nolint:gosec // a path

// EKS are the options of eks-pod-identity.
type EKS struct {
	Token area.Secret `yaml:"token,omitempty" json:"token,omitzero" jsonschema_description:"The pod's JWT: {file: path} or {env: NAME}. A file is read again while the run lasts."`
}

func eksOptions(s *Spec) EKS { return optionsOf(s, func(s *Spec) *EKS { return s.EKS }) }

// eksRequest renders the request with a token; empty: without one.
func eksRequest(s session, key int, token string) []byte {
	if token == "" {
		return s.request(key, http.MethodGet, "/v1/credentials", nil)
	}
	return s.request(key, http.MethodGet, "/v1/credentials", nil, "Authorization: "+token)
}

func eksCanaries(s session) []canary {
	statuses := []int{http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden}
	return []canary{
		{
			name: "a request without a token", statuses: statuses,
			request: func(key int) []byte { return eksRequest(s, key, "") },
		},
		{
			name: "a request with a forged token", statuses: statuses,
			request: func(key int) []byte { return eksRequest(s, key, forgedJWT) },
			alone:   "the agent asks EKS for each token that it does not know, within the quota of the whole account",
		},
	}
}

func eksReader(s session) reader {
	j := newJudge(s)
	return func(_ uint64, key int, body []byte) verdict {
		var f [4][]byte
		if !jsonscan.Pick(body, f[:], "AccessKeyId", "SecretAccessKey", "Token", "Expiration") {
			return malformed(body)
		}
		token, now := jsonscan.Text(f[2]), s.clock.Now().Unix()
		if v := temporary(jsonscan.Text(f[0]), jsonscan.Text(f[1]), token, jsonscan.Text(f[3]), now); v != noCause {
			return v
		}
		return j.token(key, token, wanted{now: now}, true)
	}
}

// eksRefusal is what a status other than 200 means: the agent passes those of EKS Auth on.
var eksRefusal = refusing(map[int]verdict{
	http.StatusBadRequest: credentialRefused, http.StatusNotFound: notActive,
})
