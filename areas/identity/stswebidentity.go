package identity

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"time"

	"tare/area"
	"tare/internal/load"
	"tare/internal/unit"
)

// stsWebIdentity exchanges a workload's JWT for temporary credentials at AWS STS
// (https://docs.aws.amazon.com/STS/latest/APIReference/API_AssumeRoleWithWebIdentity.html, …/CommonErrors.html).
//
//	identity selector  the JWT, and the role (callers: name is the role's ARN, token the JWT)
//	cache key          none: every call makes credentials. SDKs cache them until shortly before they expire
//	cold path          every call
//	success            200, credentials of the role, Expiration ahead; the JWT's subject and audience if expected
//	error classes      429, 503, Throttling, RequestLimitExceeded Refused · 5xx, IDPCommunicationError Failed · 403,
//	                   ExpiredTokenException, InvalidIdentityToken, IDPRejectedClaim Wrong (the JWT) · other 4xx Wrong
//
// The call needs no signature of AWS: the JWT is the caller's only credential.
func stsWebIdentity() adapter {
	return adapter{
		name: "sts-web-identity", help: "AWS STS: POST AssumeRoleWithWebIdentity gives temporary credentials for a JWT",
		section: "sts", reach: reach{tls: true},
		operations: []operation{{
			name:   opCredentials,
			expect: "200, an access key, its secret and a token of the role that was asked for, that have not expired",
			request: func(s session, key int) []byte {
				return stsRequest(s, key, s.token(key, stsOptions(s.spec).Token))
			},
			reader: stsReader, subject: stsSubjectOf,
		}},
		validate: stsValidate, refused: stsRefusal,
		canaries: func(s session) []canary {
			return []canary{{
				name: "an exchange of a token that nobody has issued", statuses: []int{400, 403},
				request: func(key int) []byte { return stsRequest(s, key, forgedFrom(s.token(key, stsOptions(s.spec).Token))) },
			}}
		},
	}
}

// STS are the options of sts-web-identity.
type STS struct {
	RoleARN     string        `yaml:"role_arn,omitempty" json:"role_arn,omitempty" jsonschema_description:"The role to assume: arn:aws:iam::123456789012:role/NAME."`
	SessionName string        `yaml:"session_name,omitempty" json:"session_name,omitempty" jsonschema_description:"Name of the session. Default tare."`
	Duration    unit.Duration `yaml:"duration,omitempty" json:"duration,omitempty" jsonschema_description:"Life of the credentials that is asked for, from 15m to 12h. Default: the service's own, 1h."`
	Token       area.Secret   `yaml:"token,omitempty" json:"token,omitzero" jsonschema_description:"The workload's JWT: {file: path} or {env: NAME}. A file is read again while the run lasts."`
}

const (
	stsRoot    = "AssumeRoleWithWebIdentityResponse"
	stsSubject = "AssumeRoleWithWebIdentityResult/SubjectFromWebIdentityToken"
)

var (
	roleARN     = regexp.MustCompile(`^arn:aws[a-z-]*:iam::[0-9]{12}:role/([\x21-\x7e]+/)?([A-Za-z0-9_+=,.@-]{1,64})$`)
	sessionName = regexp.MustCompile(`^[A-Za-z0-9_+=,.@-]{2,64}$`)
)

func stsOptions(s *Spec) STS {
	o := optionsOf(s, func(s *Spec) *STS { return s.STS })
	o.SessionName = cmp.Or(o.SessionName, "tare")
	return o
}

func stsValidate(s *Spec, _ string) error {
	o := stsOptions(s)
	for i, c := range s.Callers {
		if c.Name != "" && !roleARN.MatchString(c.Name) {
			return fmt.Errorf("callers: name %d, %q, is not the ARN of a role", i+1, c.Name)
		}
	}
	switch life := time.Duration(o.Duration); {
	case o.RoleARN == "" && !s.everyCaller(func(c Caller) bool { return c.Name != "" }):
		return errors.New("sts.role_arn: name the role to assume: role_arn: arn:aws:iam::123456789012:role/NAME")
	case o.RoleARN != "" && !roleARN.MatchString(o.RoleARN):
		return fmt.Errorf("sts.role_arn: %q is not like arn:aws:iam::123456789012:role/NAME", o.RoleARN)
	case !sessionName.MatchString(o.SessionName):
		return fmt.Errorf("sts.session_name: %q is not 2 to 64 letters, digits or characters of _+=,.@-", o.SessionName)
	case life != 0 && (life < 15*time.Minute || life > 12*time.Hour || life%time.Second != 0):
		return fmt.Errorf("sts.duration: %v is not from 15m to 12h, in whole seconds", life)
	case o.Token.IsZero() && !s.everyCaller(hasToken):
		return errors.New("sts.token: name the JWT to exchange: {file: path} or {env: NAME}")
	}
	return nil
}

func stsRequest(s session, key int, token string) []byte {
	o := stsOptions(s.spec)
	form := url.Values{
		"Action": {"AssumeRoleWithWebIdentity"}, "Version": {"2011-06-15"},
		"RoleArn": {cmp.Or(s.caller(key).Name, o.RoleARN)}, "RoleSessionName": {o.SessionName}, "WebIdentityToken": {token},
	}
	if o.Duration > 0 {
		form.Set("DurationSeconds", strconv.Itoa(int(time.Duration(o.Duration)/time.Second)))
	}
	return s.request(key, http.MethodPost, "/", []byte(form.Encode()), formType)
}

func stsReader(s session) reader {
	j, x, o := newJudge(s), newExpected(s), stsOptions(s.spec)
	assumed := make([][]byte, s.identities()) // the end of the ARN of each identity's session
	for key := range assumed {
		role := roleARN.ReplaceAllString(cmp.Or(s.caller(key).Name, o.RoleARN), "$2")
		assumed[key] = []byte(":assumed-role/" + role + "/" + o.SessionName)
	}
	return func(i uint64, key int, body []byte) verdict {
		var f [7][]byte
		if !pickXML(body, stsRoot, f[:], "Credentials/AccessKeyId", "Credentials/SecretAccessKey",
			"Credentials/SessionToken", "Credentials/Expiration", "AssumedRoleUser/Arn", stsSubject,
			"AssumeRoleWithWebIdentityResult/Audience") {
			return malformed(body)
		}
		want := x.of(i, key)
		switch v := temporary(f[0], f[1], f[2], f[3], want.now); {
		case v != noCause:
			return v
		case !bytes.HasSuffix(f[4], assumed[key]), want.subject != "" && string(f[5]) != want.subject:
			return otherSubject
		case len(want.audience) > 0 && !bytes.Equal(f[6], want.audience):
			return otherAudience
		}
		return j.token(key, f[2], wanted{now: want.now}, true)
	}
}

// stsSubjectOf returns whose token was exchanged.
func stsSubjectOf(body []byte) string {
	var f [1][]byte
	pickXML(body, stsRoot, f[:], stsSubject)
	return string(f[0])
}

// stsRefusal classifies an error by its code: STS throttles with 400.
func stsRefusal(status int, body []byte) (load.Outcome, verdict) {
	var f [1][]byte
	pickXML(body, "ErrorResponse", f[:], "Error/Code")
	switch string(f[0]) {
	case "Throttling", "ThrottlingException", "RequestLimitExceeded":
		return load.Refused, slowDown
	case "IDPCommunicationError":
		return load.Failed, temporarilyUnavailable
	case "ExpiredTokenException", "InvalidIdentityToken", "IDPRejectedClaim", "AccessDenied":
		return load.Wrong, credentialRefused
	}
	return refusal(status)
}
