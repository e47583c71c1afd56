package admission

import (
	"bytes"
	"net/http"

	"tare/internal/load"
)

// A cause is why an answer is not what the treatment should give: an index into causes.
type cause int

const (
	fine cause = iota - 1
	causeDenied
	causeNoRight
	causeUnknownCaller
	causeExists
	causeGone
	causeInvalid
	causeOther
	causeUntouched
	causeWebhook
	causeAdmitted
	causeDeniedByOther
)

// causes are the operations' own reasons, in words.
func causes() []string {
	return []string{
		causeDenied:        "an admission policy denied what it should admit",
		causeNoRight:       "the caller has no right to do this: tare doctor --rbac prints what it needs",
		causeUnknownCaller: "the API server does not know the caller: its credentials have expired, or are wrong",
		causeExists:        "there is an object of that name already, or it was changed meanwhile",
		causeGone:          "there is no such object (any more): delete uses up the stock, and target.objects makes it larger",
		causeInvalid:       "the API server finds the request invalid",
		causeOther:         "the answer holds another kind of object than was asked for",
		causeUntouched:     "the answer lacks what the policies should have put there",
		causeWebhook:       "an admission webhook could not be called",
		causeAdmitted:      "what a policy should deny was admitted",
		causeDeniedByOther: "it was denied, but not by the policy that should do it",
	}
}

// A judge says what an answer is worth. The zero judge finds everything wrong.
type judge struct {
	status int // of a good answer
	// starts are how a good body may begin, one of them; holds is what it must hold besides, all of it.
	starts, holds [][]byte
	// denied, if set, is what the denial that is expected must hold.
	denied [][]byte
}

// answer judges an answer. It does not allocate, and keeps nothing.
func (j *judge) answer(status int, body []byte) (load.Outcome, cause) {
	switch {
	case status == j.status && j.denied == nil:
		return j.object(body)
	case j.denied != nil && denial(status, body):
		if !holdsAll(body, j.denied) {
			return load.Wrong, causeDeniedByOther
		}
		return load.Denied, fine
	case j.denied != nil && (status == http.StatusCreated || status == http.StatusOK):
		return load.Wrong, causeAdmitted
	}
	return unwanted(status, body)
}

// object judges the body of a good status.
func (j *judge) object(body []byte) (load.Outcome, cause) {
	if !startsWithAny(body, j.starts) {
		return load.Wrong, causeOther
	}
	if !holdsAll(body, j.holds) {
		return load.Wrong, causeUntouched
	}
	return load.OK, fine
}

var (
	// cannot and aResource stand in what role-based access control says, and together in no denial by a policy.
	cannot    = []byte(`" cannot `)
	aResource = []byte(` resource \"`)
	calling   = []byte("failed calling webhook")
	// denials are the words of policies whose denials may come with any status: that of a CEL policy is 422 unless the policy says otherwise, that
	// of a webhook what the webhook says.
	celDenial     = []byte("denied request")
	webhookDenial = []byte("denied the request")
)

// denial reports whether an answer is an admission policy's no, not that of access control.
func denial(status int, body []byte) bool {
	if status < 400 {
		return false
	}
	if bytes.Contains(body, celDenial) || bytes.Contains(body, webhookDenial) {
		return true
	}
	return status == http.StatusForbidden && (!bytes.Contains(body, cannot) || !bytes.Contains(body, aResource))
}

// unwanted is what a status means that is not the expected one.
func unwanted(status int, body []byte) (load.Outcome, cause) {
	if denial(status, body) {
		return load.Wrong, causeDenied
	}
	switch status {
	case http.StatusForbidden:
		return load.Wrong, causeNoRight
	case http.StatusUnauthorized:
		return load.Wrong, causeUnknownCaller
	case http.StatusConflict:
		return load.Wrong, causeExists
	case http.StatusNotFound:
		return load.Wrong, causeGone
	case http.StatusBadRequest, http.StatusUnprocessableEntity:
		return load.Wrong, causeInvalid
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		return load.Refused, fine
	case http.StatusInternalServerError:
		if bytes.Contains(body, calling) {
			return load.Failed, causeWebhook
		}
	}
	if status >= 500 || status < 200 {
		return load.Failed, fine
	}
	return load.Wrong, fine
}

func startsWithAny(body []byte, starts [][]byte) bool {
	for _, s := range starts {
		if bytes.HasPrefix(body, s) {
			return true
		}
	}
	return false
}

func holdsAll(body []byte, parts [][]byte) bool {
	for _, p := range parts {
		if !bytes.Contains(body, p) {
			return false
		}
	}
	return true
}
