package limit

import "tare/internal/signature"

// Evidence is all that Judge looks at.
type Evidence struct {
	Rate, Lo, Hi float64           // the capacity with its interval, 1/s; 0: not known
	Signature    signature.Verdict // how the target broke, from outside
	// Idle is the median service time well below the capacity, Served that of the calls that were served under overload,
	// in seconds; 0: not known.
	Idle, Served float64
	// Scope says whose limit it is, where that was tried.
	Scope       string
	Experiments []Experiment
	Local       signature.Local
}

// Judge names what sets the rate.
func Judge(e Evidence) Verdict {
	v := Verdict{Kind: Unknown, Certainty: signature.NotKnown, Scope: e.Scope}
	if kind, ok := implied[e.Signature.Class]; ok {
		v.Kind, v.Certainty, v.Evidence = kind, signature.Likely, e.Signature.Evidence
	}
	return v
}

// implied are the limits that follow from how a target fails.
var implied = map[signature.Class]Kind{
	signature.TokenBucket: RateLimit, signature.FixedWindow: RateLimit, signature.Penalty: RateLimit,
	signature.QuotaHang: RateLimit, signature.ConcurrencyLimit: Slots, signature.CPUThrottling: CPUQuota,
}
