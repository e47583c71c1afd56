package limit

import "tare/internal/signature"

// Hypotheses returns the kinds of limit that the evidence leaves open and that more experiments could tell apart. If
// Judge names a limit, that is the only one, unless another kind looks the same. Otherwise they are all kinds that no
// observation contradicts. It returns nil if the rate still grew with the calls in flight: there is no plateau to
// compare with.
func Hypotheses(e Evidence) (open []Kind) {
	f := factsOf(&e)
	switch v := Judge(e); {
	case v.Kind == Slots && f.refusesUnslowed() == "" && v.Certainty == signature.Likely && !f.triedOperations():
		return []Kind{Slots, RateLimit} // a limit that lets calls wait looks the same where few calls fill it
	case v.Known():
		return []Kind{v.Kind}
	}
	if !f.flat && f.refusesUnslowed() == "" {
		return nil
	}
	_, oneRate, _ := f.byOperation()
	for _, h := range []struct {
		kind         Kind
		contradicted bool
	}{
		{CPUQuota, f.againstQuota() != ""},
		{Processors, f.processors >= 0 && f.processors < partly && !f.crowded()},
		{Slots, false},
		{Connections, !meetsConnections(f.Signature.Class) || f.againstConnections() != ""},
		{RateLimit, oneRate != ""},
	} {
		if !h.contradicted {
			open = append(open, h.kind)
		}
	}
	return open
}

// meetsConnections reports whether callers meet the limit at connections, and not at calls on connections that are
// served.
func meetsConnections(c signature.Class) bool {
	return c == signature.AcceptQueue || c == signature.ConnectionRefused
}
