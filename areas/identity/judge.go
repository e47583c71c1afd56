package identity

import (
	"hash/maphash"
	"net/http"
	"sync/atomic"

	"tare/internal/jsonscan"
	"tare/internal/load"
)

// A verdict says why an answer is not good, as an index of causes; noCause: the status says it all.
type verdict int

// The verdicts. Records contain their numbers, so they are append-only.
const (
	noCause verdict = iota - 1
	notJSON
	noToken
	notVisible
	noLifetime
	hasExpired
	otherSubject
	otherAudience
	otherIssuer
	notSigned
	alreadyOthers
	notAuthenticated
	leaseRefused
	credentialRefused
	requestRefused
	slowDown
	temporarilyUnavailable
	notBearer
	notActive
)

// causes returns the verdicts in words, by number. They are the Operation.Causes of every adapter.
func causes() []string {
	return []string{
		notJSON:                "the answer is no JSON, or has not the form that the protocol promises",
		noToken:                "a good status without a token",
		notVisible:             "the token is not made of visible characters",
		noLifetime:             "the answer does not say how long the token lives, or the token does not",
		hasExpired:             "the token has expired",
		otherSubject:           "the token is for somebody else",
		otherAudience:          "the token is for another audience",
		otherIssuer:            "the token is from another issuer",
		notSigned:              "the token is no signed JWT",
		alreadyOthers:          "the token is one that another identity has got",
		notAuthenticated:       "the token was reviewed and found bad",
		leaseRefused:           "the session token was refused",
		credentialRefused:      "the caller's credential was refused",
		requestRefused:         "the request was refused as invalid",
		slowDown:               "the server asks to slow down",
		temporarilyUnavailable: "the server says that it is temporarily unavailable",
		notBearer:              "the token is of another type than Bearer",
		notActive:              "the identity is not active, or not there",
	}
}

// A wanted says what a token must be. Empty fields are not checked.
type wanted struct {
	subject  string
	audience []byte // one of the token's audiences
	issuer   string
	email    string
	named    bool  // it must name its subject
	signed   bool  // it must be a JWT; otherwise it may be opaque
	now      int64 // seconds since 1970
}

// A judge knows the tokens that the identities have got, so that none gets another's.
type judge struct {
	distinct bool
	seed     maphash.Seed
	seen     []atomic.Uint64 // hash of the last good token of each identity
	tally    *tally
}

func newJudge(s session) *judge {
	n := s.identities()
	return &judge{distinct: s.distinct && n > 1, seed: maphash.MakeSeed(), seen: make([]atomic.Uint64, n), tally: s.tally}
}

// known reports whether token is the last one that the identity got, and was found good.
func (j *judge) known(key int, token []byte) bool {
	return j.seen[key].Load() == maphash.Bytes(j.seed, token)
}

// take records a good token of an identity; it reports false if another identity has it.
func (j *judge) take(key int, token []byte) bool {
	h := maphash.Bytes(j.seed, token)
	if j.distinct {
		for k := range j.seen {
			if k != key && j.seen[k].Load() == h {
				return false
			}
		}
	}
	j.seen[key].Store(h)
	return true
}

// token judges a token that a good answer holds: its characters, and if it is a JWT its claims. lives says whether the
// answer itself promised a life. An opaque token has no claims, so it is accepted when no claims are expected. It does
// not allocate.
func (j *judge) token(key int, token []byte, want wanted, lives bool) verdict {
	if len(token) == 0 {
		return noToken
	}
	if !visible(token) {
		return notVisible
	}
	// A JWT is read again even if it is known: it may have expired meanwhile.
	if v := claims(token, want, lives); v != noCause {
		return v
	}
	return j.owns(key, token)
}

// owns checks that no other identity has the good token, and records it as this identity's.
func (j *judge) owns(key int, token []byte) verdict {
	if !j.known(key, token) && !j.take(key, token) {
		return alreadyOthers
	}
	j.tally.saw(key, token)
	return noCause
}

// A tokenWire is a wire of requests that are rendered ahead, and of answers that look judges.
type tokenWire struct {
	*requests
	// look judges an answer; it must not allocate. noCause with an outcome other than OK means that the status says it
	// all.
	look func(i uint64, key, status int, body []byte) (load.Outcome, verdict)
	// who returns the subject of a good answer; nil: answers do not name it.
	who func(body []byte) string
}

var (
	_ load.Wire = (*tokenWire)(nil)
	_ load.Wire = (*tokenWire)(nil)
	_ learner   = (*tokenWire)(nil)
)

// ConnKey implements load.Wire.
func (w *tokenWire) ConnKey(i uint64) int { return w.key(i) }

// Render implements load.Wire.
func (w *tokenWire) Render(dst []byte, i uint64) []byte { return w.appendTo(dst, i) }

// Check implements load.Wire.
func (w *tokenWire) Check(i uint64, status int, body []byte) load.Outcome {
	o, _ := w.look(i, w.key(i), status, body)
	return o
}

// Explain implements load.Wire.
func (w *tokenWire) Explain(i uint64, status int, body []byte) int {
	_, v := w.look(i, w.key(i), status, body)
	return int(v)
}

func (w *tokenWire) subject(_ uint64, body []byte) string {
	if w.who == nil {
		return ""
	}
	return w.who(body)
}

// wrong returns the outcome of an answer whose status is good and whose content is not.
func wrong(v verdict) (load.Outcome, verdict) {
	if v == noCause {
		return load.OK, noCause
	}
	return load.Wrong, v
}

// refusal returns what a status other than success means, where the protocol says nothing else.
func refusal(status int) (load.Outcome, verdict) {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return load.Wrong, credentialRefused
	case http.StatusBadRequest:
		return load.Wrong, requestRefused
	}
	return outcomeOf(status), noCause
}

// refusing returns a classifier of statuses for a protocol in which some mean a mistake of tare or of the file:
// mistakes holds their verdicts. refusalOrBusy classifies all others.
func refusing(mistakes map[int]verdict) func(status int, body []byte) (load.Outcome, verdict) {
	return func(status int, _ []byte) (load.Outcome, verdict) {
		if v, ok := mistakes[status]; ok {
			return load.Wrong, v
		}
		return refusalOrBusy(status)
	}
}

// refusalOrBusy is refusal for protocols in which 429 and 503 mean that the endpoint is busy.
func refusalOrBusy(status int) (load.Outcome, verdict) {
	switch status {
	case http.StatusTooManyRequests:
		return load.Refused, slowDown
	case http.StatusServiceUnavailable:
		return load.Refused, temporarilyUnavailable
	}
	return refusal(status)
}

// malformed returns the verdict on a body without the promised form: no JSON, or empty.
func malformed(body []byte) verdict {
	if jsonscan.IsBlank(body) {
		return noToken
	}
	return notJSON
}
