package admission

import (
	"bytes"
	"net/http"

	"tare/areas/admission/mechanism"
	"tare/internal/load"
)

// A cause is why an answer differs from what the treatment should give: an index into causes.
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
	causePolicyFailed
	causeForbidden
)

// causes describes the operations' own causes. rightless is what access control's refusal means.
func causes(rightless string) []string {
	return []string{
		causeDenied:        "an admission policy denied what it should admit",
		causeNoRight:       rightless,
		causeUnknownCaller: "the API server does not know the caller: its credentials have expired, or are wrong",
		causeExists:        "there is an object of that name already, or it was changed meanwhile",
		causeGone: "there is no such object (any more): delete uses up the stock, and target.objects makes it " +
			"larger",
		causeInvalid:      "the API server finds the request invalid",
		causeOther:        "the answer holds another kind of object than was asked for",
		causeUntouched:    "the answer lacks what the policies should have put there",
		causePolicyFailed: "an admission policy or webhook failed, and decided nothing",
		causeForbidden:    "the API server forbids it, and neither a policy that tare knows nor access control says so",
	}
}

// rightless says why access control refuses the caller. On a control plane of tare's own the caller has its rights,
// which the rehearsal has shown: what refuses it is a kube-apiserver that answers before it has read the roles.
func (p *arm) rightless() string {
	if p.foreign {
		return "the caller has no right to do this: tare doctor --rbac prints what it needs"
	}
	return "access control refused the caller, who has the right: kube-apiserver answers before it is ready, and has " +
		"not read the roles yet"
}

// A judge classifies answers. The zero judge finds every answer wrong.
type judge struct {
	status int // of a good answer
	// starts are the allowed beginnings of a good body; holds are the parts that it must all contain.
	starts, holds [][]byte
}

// answer classifies an answer. It does not allocate, and keeps nothing.
func (j *judge) answer(status int, body []byte) (load.Outcome, cause) {
	if status == j.status {
		return j.object(body)
	}
	return unwanted(status, body)
}

// object checks the body of an answer with a good status.
func (j *judge) object(body []byte) (load.Outcome, cause) {
	if !startsWithAny(body, j.starts) {
		return load.Wrong, causeOther
	}
	if !holdsAll(body, j.holds) {
		return load.Wrong, causeUntouched
	}
	return load.OK, fine
}

// unwanted classifies an unexpected status.
func unwanted(status int, body []byte) (load.Outcome, cause) {
	switch mechanism.RulingOf(status, body) {
	case mechanism.PolicyDenied:
		return load.Wrong, causeDenied
	case mechanism.PolicyFailed:
		return load.Failed, causePolicyFailed
	case mechanism.AccessDenied:
		return load.Wrong, causeNoRight
	case mechanism.NoRuling:
	}
	switch status {
	case http.StatusForbidden:
		return load.Wrong, causeForbidden
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
