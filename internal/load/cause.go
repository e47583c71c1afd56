package load

import (
	"math"

	"tare/area"
)

// The words of the contract, under the names that the engine has for them.
type (
	// Operation is area.Operation.
	Operation = area.Operation
	// Wire is area.Wire.
	Wire = area.Wire
	// Result is area.Result.
	Result = area.Result
	// Mark is area.Mark.
	Mark = area.Mark
	// BatchSample is area.BatchSample.
	BatchSample = area.BatchSample
	// Endpoint is area.Endpoint.
	Endpoint = area.Endpoint
	// Outcome is area.Outcome.
	Outcome = area.Outcome
	// Cause is area.Cause.
	Cause = area.Cause
)

// The outcomes.
const (
	OK         = area.OK
	Denied     = area.Denied
	Wrong      = area.Wrong
	Refused    = area.Refused
	Timeout    = area.Timeout
	ConnFailed = area.ConnFailed
	Failed     = area.Failed
	Permitted  = area.Permitted
	Outcomes   = area.Outcomes
)

// The causes.
const (
	OwnCauses              = area.OwnCauses
	CauseConnect           = area.CauseConnect
	CauseTLS               = area.CauseTLS
	CauseClosedEarly       = area.CauseClosedEarly
	CauseClosedWithin      = area.CauseClosedWithin
	CauseMalformed         = area.CauseMalformed
	CauseHeaderTooLong     = area.CauseHeaderTooLong
	CauseBadLength         = area.CauseBadLength
	CauseBadChunks         = area.CauseBadChunks
	CauseRedirect          = area.CauseRedirect
	CauseRequest           = area.CauseRequest
	CauseNoConnection      = area.CauseNoConnection
	CauseNoByte            = area.CauseNoByte
	CauseNoEnd             = area.CauseNoEnd
	CauseUnknownAuthority  = area.CauseUnknownAuthority
	CauseNameMismatch      = area.CauseNameMismatch
	CauseExpired           = area.CauseExpired
	CauseAlert             = area.CauseAlert
	CauseClientCertificate = area.CauseClientCertificate
	CauseNotTLS            = area.CauseNotTLS
	CauseSpeaksTLS         = area.CauseSpeaksTLS
	CauseDialing           = area.CauseDialing
	CauseHandshaking       = area.CauseHandshaking
	CauseNoReturn          = area.CauseNoReturn
	CauseTrailerTooLong    = area.CauseTrailerTooLong
	CauseCoding            = area.CauseCoding
	CauseSwitching         = area.CauseSwitching
	CauseTooLong           = area.CauseTooLong
	CauseUnasked           = area.CauseUnasked
	CauseAbandoned         = area.CauseAbandoned
	CauseHeldBack          = area.CauseHeldBack
)

// explain returns the cause of an answer to call i that is not good: the operation's own, if it names one.
func explain(o *Operation, i uint64, status int, body []byte) Cause {
	if o.Wire != nil {
		if k := o.Wire.Explain(i, status, body); k >= 0 && k <= math.MaxUint8-int(OwnCauses) {
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
func stuckCause(o *Operation, i uint64) Cause {
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
