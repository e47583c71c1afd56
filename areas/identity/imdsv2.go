package identity

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"tare/internal/jsonscan"
)

// imdsv2 speaks the instance metadata protocol of EC2 with session tokens
// (https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/instancedata-data-retrieval.html,
// …/instance-metadata-v2-how-it-works.html, …/instance-metadata-security-credentials.html; statuses: section "HTTP
// response codes" of the first).
//
//	identity selector  the instance: all its processes share one role. Through a proxy for pods, source address
//	cache key          the role: everyone gets the same credentials until shortly before they expire
//	cold path          operation session: each PUT makes a session token. Credentials themselves cannot be asked for
//	                   afresh
//	success            credentials: 200, Code Success, an Expiration in the future, and all three parts visible; session:
//	                   200 and a token
//	error classes      503, 429 Refused · 401 Wrong (the session token) · 400, 403 Wrong (the request) · 404 Wrong (no
//	                   such role) · 5xx Failed
//
// The session token is obtained before the load and renewed outside of it. An interface carries 1,024 packets/s to the
// metadata, DNS and time services together, and drops what is more: on EC2 that shows as timeouts, not as a status.
//
// The canary is what makes this version 2: a made-up session token opens nothing. Whether version 1 is off is the
// instance's own setting (HttpTokens); and that EC2 refuses proxied requests and lives out of bounds, emulators leave
// out.
func imdsv2() adapter {
	return adapter{
		name: "imdsv2", help: "the metadata service of EC2: GET …/iam/security-credentials/<role> with a session token, " +
			"or PUT for one",
		section: "imds", reach: reach{tls: true, node: true},
		operations: []operation{
			{
				name: opCredentials, expect: "200, Code Success, an access key, its secret and a token that have not expired",
				request: imdsGet, reader: imdsReader,
			},
			{
				name: opSession, expect: "200 and a session token", request: imdsPut,
				reader: func(session) reader { return func(_ uint64, _ int, body []byte) verdict { return judgeSession(body) } },
			},
		},
		validate: imdsValidate, canaries: imdsCanaries, refused: imdsRefusal, login: imdsLogin,
	}
}

// The operations of imdsv2.
const (
	opCredentials = "credentials"
	opSession     = "session"
)

const (
	imdsToken  = "/latest/api/token"
	imdsRoles  = "/latest/meta-data/iam/security-credentials/"
	imdsHeader = "X-aws-ec2-metadata-token: "
	imdsTTL    = "X-aws-ec2-metadata-token-ttl-seconds: "
	// imdsLife is the longest life of a session token.
	imdsLife = 6 * time.Hour
	// minSession and maxSession bound a session token's characters: EC2's have 56, and less than 16 can be guessed.
	minSession, maxSession = 16, 1024
)

func imdsValidate(s *Spec, _ string) error {
	o := imdsOptions(s)
	if ttl := time.Duration(o.TTL); ttl != 0 && (ttl < time.Second || ttl > imdsLife || ttl%time.Second != 0) {
		return fmt.Errorf("imds.ttl: %v is not from 1s to 6h, in whole seconds", ttl)
	}
	if o.Role != "" && !roleName([]byte(o.Role)) {
		return fmt.Errorf("imds.role: %q is not the name of a role", o.Role)
	}
	return nil
}

func imdsOptions(s *Spec) IMDS { return optionsOf(s, func(s *Spec) *IMDS { return s.IMDS }) }

// roleName reports whether b is 1 to 64 characters of those that IAM allows in names of roles.
func roleName(b []byte) bool {
	for _, c := range b {
		if (c|0x20 < 'a' || c|0x20 > 'z') && (c < '0' || c > '9') && !strings.ContainsRune("+=,.@_-", rune(c)) {
			return false
		}
	}
	return len(b) > 0 && len(b) <= 64
}

// imdsTTLOf returns the life of session tokens that is asked for, in seconds.
func imdsTTLOf(s session) string {
	life := time.Duration(imdsOptions(s.spec).TTL)
	if life == 0 {
		life = imdsLife
	}
	return strconv.Itoa(int(life / time.Second))
}

func imdsCanaries(s session) []canary {
	c := canary{
		name: "a request with a session token that nobody has issued", statuses: []int{http.StatusUnauthorized},
		request: func(key int) []byte {
			token, role, _ := strings.Cut(s.lease(key), " ")
			made := strings.Repeat("0", cmp.Or(len(token), 56))
			return s.request(key, http.MethodGet, s.base+imdsRoles+role, nil, imdsHeader+made)
		},
	}
	if s.operation == opSession {
		c.alone = "anybody on the instance may ask for a session token: set operation: credentials"
	}
	return []canary{c}
}

// imdsLogin obtains the session token, and the role's name after a blank.
func imdsLogin(ctx context.Context, s session, key int, do doer) (lease, error) {
	if s.operation == opSession {
		return lease{}, nil
	}
	got, err := do(ctx, key, imdsPut(s, key))
	if err != nil {
		return lease{}, fmt.Errorf("ask for a session token: %w", err)
	}
	token := bytes.TrimSpace(got.Body)
	if got.Status != http.StatusOK || !sessionToken(token) {
		return lease{}, fmt.Errorf("ask for a session token: status %d without one", got.Status)
	}
	seconds, err := strconv.Atoi(imdsTTLOf(s))
	if err != nil {
		return lease{}, fmt.Errorf("ask for a session token: %w", err)
	}
	// The service may grant less than was asked for, and says so.
	if granted, err := strconv.Atoi(got.Header.Get("X-Aws-Ec2-Metadata-Token-Ttl-Seconds")); err == nil && granted > 0 {
		seconds = min(seconds, granted)
	}
	role, err := imdsRole(ctx, s, key, do, string(token))
	return lease{value: string(token) + " " + role, lives: time.Duration(seconds) * time.Second}, err
}

// imdsRole returns the role that the file names or, without one, the instance's. Each call asks for the credentials of
// one role, which must be known before.
func imdsRole(ctx context.Context, s session, key int, do doer, token string) (string, error) {
	if role := cmp.Or(s.caller(key).Name, imdsOptions(s.spec).Role); role != "" {
		return role, nil
	}
	got, err := do(ctx, key, s.request(key, http.MethodGet, s.base+imdsRoles, nil, imdsHeader+token))
	if err != nil {
		return "", fmt.Errorf("ask for the instance's role: %w", err)
	}
	list, _, _ := bytes.Cut(bytes.TrimSpace(got.Body), []byte("\n"))
	role := bytes.TrimSpace(list)
	switch {
	case got.Status == http.StatusNotFound:
		return "", errors.New("ask for the instance's role: it has none (404)")
	case got.Status != http.StatusOK || !roleName(role):
		return "", fmt.Errorf("ask for the instance's role: status %d without a name", got.Status)
	}
	return string(role), nil
}

func imdsPut(s session, key int) []byte {
	return s.request(key, http.MethodPut, s.base+imdsToken, nil, imdsTTL+imdsTTLOf(s))
}

func imdsGet(s session, key int) []byte {
	token, role, _ := strings.Cut(s.lease(key), " ")
	return s.request(key, http.MethodGet, s.base+imdsRoles+role, nil, imdsHeader+token)
}

func imdsReader(s session) reader {
	j := newJudge(s)
	return func(_ uint64, key int, body []byte) verdict {
		now := s.clock.Now().Unix()
		token, v := readCredentials(body, now)
		if v != noCause {
			return v
		}
		return j.token(key, token, wanted{now: now}, true)
	}
}

// imdsRefusal is what a status other than 200 means here.
var imdsRefusal = refusing(map[int]verdict{
	http.StatusUnauthorized: leaseRefused, http.StatusBadRequest: requestRefused, http.StatusForbidden: requestRefused,
	http.StatusNotFound: notActive,
})

// judgeSession judges a body that should be a session token.
func judgeSession(body []byte) verdict {
	switch token := bytes.TrimSpace(body); {
	case len(token) == 0:
		return noToken
	case !sessionToken(token):
		return notJSON
	}
	return noCause
}

// sessionToken reports whether b is base64 of a plausible length: pages and error objects are not.
func sessionToken(b []byte) bool {
	body := bytes.TrimRight(b, "=")
	for _, c := range body {
		if (c|0x20 < 'a' || c|0x20 > 'z') && (c < '0' || c > '9') && c != '+' && c != '/' && c != '-' && c != '_' {
			return false
		}
	}
	return len(b) >= minSession && len(b) <= maxSession && len(b)-len(body) <= 2
}

// readCredentials returns the session part of a role's credentials, which identifies them, and what is wrong with them.
// It does not allocate.
func readCredentials(body []byte, now int64) (token []byte, v verdict) {
	var f [5][]byte
	if !jsonscan.Pick(body, f[:], "Code", "AccessKeyId", "SecretAccessKey", "Token", "Expiration") {
		return nil, malformed(body)
	}
	code, token := jsonscan.Text(f[0]), jsonscan.Text(f[3])
	v = temporary(jsonscan.Text(f[1]), jsonscan.Text(f[2]), token, jsonscan.Text(f[4]), now)
	switch {
	case string(code) != "Success" && len(code) > 0:
		return nil, notActive
	case len(code) == 0 && v != noToken:
		return nil, notJSON
	}
	return token, v
}

// temporary judges temporary credentials of AWS by their parts. It does not allocate.
func temporary(id, secret, token, expiration []byte, now int64) verdict {
	expires, dated := timestamp(expiration)
	switch {
	case len(token) == 0, len(id) == 0, len(secret) == 0:
		return noToken
	case !visible(id), !visible(secret), !visible(token):
		return notVisible
	case !dated:
		return noLifetime
	case expires <= now:
		return hasExpired
	}
	return noCause
}
