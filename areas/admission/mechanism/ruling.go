package mechanism

import (
	"bytes"
	"net/http"
)

// Ruling is the admission decision that an API server's answer shows.
type Ruling int

const (
	// NoRuling means none of the others: an admitted object, a malformed one, a full queue, a page of a proxy.
	NoRuling Ruling = iota
	// PolicyDenied means that an admission policy or webhook evaluated the request and denied it.
	PolicyDenied
	// PolicyFailed means that the request failed because a policy or webhook could not decide.
	PolicyFailed
	// AccessDenied means that the caller may not make the request: no policy has evaluated it.
	AccessDenied
)

// RulingOf returns the decision that an answer of this status and body shows. It accepts only a Status as
// kube-apiserver writes it, whose code matches the answer's. It considers only the beginning of the message, which
// names the source: later words may quote the request. It does not allocate.
//
// The sources and their codes (k8s.io/apiserver 1.24 to 1.36):
//   - a webhook that denies: any code from 400 that it sets, 400 if it sets none. Above 499, and with 408 and 429, it
//     reports a failure of its own.
//   - a webhook that cannot be called, with failurePolicy Fail: 500, "failed calling webhook".
//   - a ValidatingAdmissionPolicy: 403, 413 or 422, as it says; 422 if its expression fails, with failurePolicy Fail.
//   - a plugin of the API server: 403. Plugins that deny by a policy are listed in deniers; others, such as that of
//     service accounts, deny for other reasons, or because they are not ready.
func RulingOf(code int, body []byte) Ruling {
	if code < 400 {
		return NoRuling
	}
	s, ok := readStatus(body)
	if !ok || s.code != code || string(s.kind) != "Status" || string(s.status) == "Success" {
		return NoRuling
	}
	if said, ok := bytes.CutPrefix(s.message, []byte(`admission webhook \"`)); ok {
		return ofWebhook(code, said)
	}
	if code == http.StatusInternalServerError &&
		bytes.HasPrefix(s.message, []byte(`Internal error occurred: failed calling webhook \"`)) {
		return PolicyFailed
	}
	if said, ok := afterForbidden(s.message); ok {
		return ofPlugin(code, said)
	}
	return NoRuling
}

// ofWebhook classifies what follows the words: admission webhook ".
func ofWebhook(code int, said []byte) Ruling {
	name, said, ok := bytes.Cut(said, []byte(`\"`))
	if !ok || len(name) == 0 || !bytes.HasPrefix(said, []byte(" denied the request")) {
		return NoRuling // for example a webhook that does not support dry runs
	}
	if code >= 500 || code == http.StatusTooManyRequests || code == http.StatusRequestTimeout {
		return PolicyFailed
	}
	return PolicyDenied
}

// afterForbidden returns what follows "pods "x" is forbidden: ", "pods is forbidden: " or "forbidden: " at the
// beginning of a message.
func afterForbidden(message []byte) (said []byte, ok bool) {
	if said, ok = bytes.CutPrefix(message, []byte("forbidden: ")); ok {
		return said, true
	}
	object, said, ok := bytes.Cut(message, []byte(" is forbidden: "))
	resource, name, named := bytes.Cut(object, []byte(` \"`))
	if named {
		name, named = bytes.CutSuffix(name, []byte(`\"`))
		ok = ok && named && !bytes.Contains(name, []byte(`\"`))
	}
	return said, ok && !bytes.ContainsAny(resource, " :")
}

// deniers are the beginnings of denials by plugins that enforce a policy, after: pods "x" is forbidden.
var deniers = [][]byte{
	[]byte(`violates PodSecurity \"`),
	[]byte("PodSecurityPolicy: unable to "),
	[]byte("exceeded quota: "),
	[]byte("maximum "), []byte("minimum "), []byte("[maximum "), []byte("[minimum "), // LimitRange
}

// failures are the beginnings of messages of plugins that could not decide.
var failures = [][]byte{
	[]byte("not yet ready to handle request"),
	[]byte("expression '"), []byte("[expression '"), // a webhook's matchConditions
}

// ofPlugin classifies what a plugin of the API server says after: pods "x" is forbidden.
func ofPlugin(code int, said []byte) Ruling {
	switch {
	case bytes.HasPrefix(said, []byte("ValidatingAdmissionPolicy '")):
		return ofExpression(said)
	case code != http.StatusForbidden:
		return NoRuling
	case bytes.HasPrefix(said, []byte(`User \"`)) && bytes.Contains(said, []byte(`\" cannot `)):
		return AccessDenied
	case startsWithAny(said, deniers):
		return PolicyDenied
	case startsWithAny(said, failures):
		return PolicyFailed
	}
	return NoRuling
}

// undecided are the beginnings of messages about a ValidatingAdmissionPolicy that could not be evaluated.
var undecided = [][]byte{
	[]byte("expression '"), []byte("[expression '"), []byte("valueExpression '"), []byte("compilation error: "),
	[]byte("failed messageExpression: "),
	[]byte("failed to configure "), []byte("validation failed due to running out of cost budget"),
}

// ofExpression classifies the message of a ValidatingAdmissionPolicy.
func ofExpression(said []byte) Ruling {
	_, why, ok := bytes.Cut(said, []byte(" denied request: "))
	switch {
	case !ok:
		return NoRuling
	case startsWithAny(why, undecided):
		return PolicyFailed
	}
	return PolicyDenied
}

func startsWithAny(text []byte, starts [][]byte) bool {
	for _, s := range starts {
		if bytes.HasPrefix(text, s) {
			return true
		}
	}
	return false
}
