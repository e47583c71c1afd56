package area

import "fmt"

// Outcome classifies an ended call.
type Outcome uint8

// The outcomes.
const (
	OK         Outcome = iota
	Denied             // the control denied it, as expected
	Wrong              // a well-formed answer, but not the expected one
	Refused            // shed or rate limited: 429, 503, RESOURCE_EXHAUSTED
	Timeout            // no answer within the timeout, counted from the intended instant; perhaps never sent
	ConnFailed         // the connection could not be established, or was reset; Errno says why, if known
	// Failed is any other failure: 5xx, a malformed answer, a connection closed in good order before the response was
	// complete.
	Failed
	// Permitted is the breach of a control: a call that it must refuse was granted.
	Permitted
	outcomes
)

// Outcomes is the number of outcomes.
const Outcomes = int(outcomes)

var outcomeNames = [Outcomes]string{"ok", "denied", "wrong", "refused", "timeout", "conn_failed", "failed", "permitted"}

// String returns the outcome's name in all outputs.
func (o Outcome) String() string {
	if int(o) < len(outcomeNames) {
		return outcomeNames[o]
	}
	return fmt.Sprintf("outcome(%d)", uint8(o))
}

// MarshalText implements encoding.TextMarshaler.
func (o Outcome) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (o *Outcome) UnmarshalText(b []byte) error {
	for i, n := range outcomeNames {
		if n == string(b) {
			*o = Outcome(i)
			return nil
		}
	}
	return fmt.Errorf("unknown outcome %q", b)
}

// Good reports whether the outcome counts as goodput: OK, or an expected denial.
func (o Outcome) Good() bool { return o == OK || o == Denied }

// A Cause says why a call failed, in more detail than its Outcome, Status and Errno. 0 is none. Causes below OwnCauses
// are the engines'; the others index the Causes of the call's Operation.
type Cause uint8

// OwnCauses is the first cause that operations define.
const OwnCauses Cause = 64

// Text describes the cause for a report; own are the Causes of the call's operation. It is empty for 0.
func (c Cause) Text(own []string) string {
	switch {
	case c == 0:
		return ""
	case c >= OwnCauses:
		if i := int(c - OwnCauses); i < len(own) {
			return own[i]
		}
	case int(c) < len(causeTexts):
		return causeTexts[c]
	}
	return fmt.Sprintf("cause %d", c)
}

// The engines' causes. Records contain their numbers, so they are append-only.
const (
	_ Cause = iota
	CauseConnect
	CauseTLS
	CauseClosedEarly
	CauseClosedWithin
	CauseMalformed
	CauseHeaderTooLong
	CauseBadLength
	CauseBadChunks
	CauseRedirect
	CauseRequest
	CauseNoConnection
	CauseNoByte
	CauseNoEnd
	CauseUnknownAuthority
	CauseNameMismatch
	CauseExpired
	CauseAlert
	CauseClientCertificate
	CauseNotTLS
	CauseSpeaksTLS
	CauseDialing
	CauseHandshaking
	CauseNoReturn
	CauseTrailerTooLong
	CauseCoding
	CauseSwitching
	CauseTooLong
	CauseUnasked
	CauseAbandoned
	CauseHeldBack
)

// causeTexts describe the engines' causes, by number.
var causeTexts = [...]string{
	CauseConnect:       "no connection could be made",
	CauseTLS:           "the TLS handshake failed",
	CauseClosedEarly:   "the connection was closed before the first byte of an answer",
	CauseClosedWithin:  "the connection was closed within the answer",
	CauseMalformed:     "the answer is not HTTP/1.1",
	CauseHeaderTooLong: "the header of the answer is longer than 64 KiB",
	CauseBadLength:     "the length of the answer is contradictory or no number",
	CauseBadChunks:     "the chunks of the answer are malformed",
	CauseRedirect:      "the answer is a redirect, which is not followed",
	CauseRequest:       "the operation rendered no valid request",
	CauseNoConnection:  "no connection became free before the timeout",
	CauseNoByte:        "no byte of an answer came before the timeout",
	CauseNoEnd:         "the answer did not end before the timeout",

	CauseUnknownAuthority:  "the TLS certificate is signed by no trusted authority",
	CauseNameMismatch:      "the TLS certificate is for another name",
	CauseExpired:           "the TLS certificate has expired, or is not valid yet",
	CauseAlert:             "the target refused the TLS handshake with an alert",
	CauseClientCertificate: "the target requires a TLS client certificate",
	CauseNotTLS:            "the target does not speak TLS",
	CauseSpeaksTLS:         "the target speaks TLS, and was asked in plaintext",
	CauseDialing:           "the target accepted no connection before the timeout",
	CauseHandshaking:       "the TLS handshake did not end before the timeout",
	CauseNoReturn:          "the operation did not end before the timeout",
	CauseTrailerTooLong:    "the trailer of the answer is longer than 64 KiB",
	CauseCoding:            "the transfer coding of the answer is unknown, or not allowed",
	CauseSwitching:         "the answer switches protocols without being asked to",
	CauseTooLong:           "the answer is longer than 16 MiB",
	CauseUnasked:           "an answer came before the request had arrived: the connection is out of step",
	CauseAbandoned:         "the generator gave the call up",
	CauseHeldBack:          "max_rate held the call back until its timeout",
}
