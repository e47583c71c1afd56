package load

import (
	"fmt"
	"math"
)

// A Cause says why a call failed, in more detail than its Outcome, Status and Errno. 0 is none. Causes below OwnCauses
// are the engines'; the others index the Causes of the call's Operation.
type Cause uint8

// OwnCauses is the first cause that operations define.
const OwnCauses Cause = 64

// An Explainer is a Wire that can explain the result of Check. Explain is called after a Check that was neither OK nor
// Denied, with the same arguments and under the same conditions. It returns an index into Operation.Causes; −1: the
// status says all.
type Explainer interface {
	Explain(i uint64, status int, body []byte) int
}

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

// explain returns the cause of an answer to call i that is not good: the operation's own, if it names one.
func (o *Operation) explain(i uint64, status int, body []byte) Cause {
	if e, ok := o.Wire.(Explainer); ok {
		if k := e.Explain(i, status, body); k >= 0 && k <= math.MaxUint8-int(OwnCauses) {
			return OwnCauses + Cause(k)
		}
	}
	switch status {
	case 301, 302, 303, 307, 308:
		return CauseRedirect
	}
	return 0
}

// stuckCause returns the cause of a Go call that timed out.
func (o *Operation) stuckCause(i uint64) Cause {
	if o.Stuck != nil {
		if k := o.Stuck(i); k >= 0 && k <= math.MaxUint8-int(OwnCauses) {
			return OwnCauses + Cause(k)
		}
	}
	return CauseNoReturn
}

// Phase returns the cause of a Timeout without a known cause, by the phase that the call had reached.
func (c *Call) Phase() Cause {
	switch {
	case c.Sent == 0:
		return CauseNoConnection
	case c.FirstByte == 0:
		return CauseNoByte
	}
	return CauseNoEnd
}
