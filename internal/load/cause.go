package load

import "fmt"

// A Cause says why a call did not end well, more closely than its Outcome, Status and Errno do. 0 is none. Causes below OwnCauses are the
// engines'; from there on they count into the Causes of the call's Operation.
type Cause uint8

// OwnCauses is the first cause that an operation names itself.
const OwnCauses Cause = 64

// An Explainer is a Wire that can tell why Check was not satisfied. Explain is called after a Check that was not OK, with the same
// arguments and under the same conditions, and returns an index into Operation.Causes, −1: nothing to add to the status.
type Explainer interface {
	Explain(i uint64, status int, body []byte) int
}

// Text is the cause in words, for a report; own are the Causes of the call's operation. It is empty for 0.
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

// The engines' causes. Their numbers stand in records and are never used for anything else: append only.
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
)

// causeTexts are the engines' causes in words, by number.
var causeTexts = [...]string{
	CauseConnect:       "no connection could be made",
	CauseTLS:           "the TLS handshake failed",
	CauseClosedEarly:   "the connection was closed before the first byte of an answer",
	CauseClosedWithin:  "the connection was closed within the answer",
	CauseMalformed:     "the answer is not HTTP/1.1",
	CauseHeaderTooLong: "the header of the answer does not end",
	CauseBadLength:     "the length of the answer is contradictory or no number",
	CauseBadChunks:     "the chunks of the answer are malformed",
	CauseRedirect:      "the answer is a redirect, which is not followed",
	CauseRequest:       "the operation rendered no valid request",
	CauseNoConnection:  "no connection became free before the timeout",
	CauseNoByte:        "no byte of an answer came before the timeout",
	CauseNoEnd:         "the answer did not end before the timeout",
}
