package load

import (
	"context"
	"crypto/tls"
	"net/netip"
	"time"
)

// An Operation is one kind of call in the mix. Exactly one of Wire, Call and Batch is set.
type Operation struct {
	Name   string
	Weight int // share of the mix, ≥ 1
	// Expect says in words which answer is the expected one; Wire.Check or Call decide.
	Expect string
	// Causes are the operation's own reasons for answers that are not good, in words; see Explainer.
	Causes []string
	// Answer is what an expected answer says, in one word: "permit". CauseAnswers is the same for answers that are not expected, by the
	// number of the cause: "deny"; "" where there was no answer. Both are empty where only good and bad are told apart.
	Answer       string
	CauseAnswers []string
	Wire         Wire
	Call         func(ctx context.Context, i uint64) Result
	// Stuck says why call i of Call, which has not ended in time, has not: an index into Causes, −1: nothing to add. It must not block. May be nil.
	Stuck func(i uint64) int
	// Batch makes n calls one after another and returns what one of them cost, by metric. Its target has its own clock.
	Batch func(ctx context.Context, n int) ([]BatchSample, error)
	// Span is how long a batch should last, so that n can be found; 0: 5 ms. Rounds is how many batches make a trial; 0: 16. Most bounds n; 0: it
	// is not bounded.
	Span   time.Duration
	Rounds int
	Most   int
	// Negative says that the treatment cannot act on this operation, so that any effect on it is an artefact: a negative control.
	Negative bool
	// Harness says that the operation does nothing: what it costs is what the harness itself adds to every other one.
	Harness bool
	// Overhead names the operation with Harness whose cost is in this one; empty: whichever costs most.
	Overhead string
}

// Wire is an operation as HTTP/1.1 bytes. Its methods are called on the hot path: they must not allocate, block or keep
// their arguments, and must be safe from several shards at once.
type Wire interface {
	// ConnKey names the identity that call i needs on its connection, 0 ≤ key < Endpoint.Keys.
	ConnKey(i uint64) int
	// Render appends the whole request of call i to dst.
	Render(dst []byte, i uint64) []byte
	// Check judges a complete response to call i. The body is only valid during the call; of a longer one it is the first MiB. An answer
	// of more than 16 MiB, or with more than 64 KiB of header, of interim answers or of trailer, is not read to its end: it is Failed.
	Check(i uint64, status int, body []byte) Outcome
}

// Result is how a Go call ended.
type Result struct {
	Outcome Outcome
	Status  uint16
	Errno   uint16
	Cause   Cause
	// BytesIn and BytesOut are the sizes of answer and request, where they are known.
	BytesIn, BytesOut uint64
	// Ready, Sent and FirstByte are when the call reached these phases; zero: the engine's own instants stand.
	Ready, Sent, FirstByte time.Time
	Marks                  []Mark
}

// Mark is a named phase of a long call (pod startup: scheduled, running, ready): it lasted until At, from From on, or, where that is zero, from
// when the call was sent. A phase whose end comes before its beginning counts as 0; one without an end (At is zero) is none. Where From or At come
// from another clock, as a time that a server wrote down does, they are compared by wall clock.
type Mark struct {
	Name     string
	From, At time.Time
}

// BatchSample is one sample that a target with its own clock took: what one call of a batch cost on average.
type BatchSample struct {
	Metric string  // a name that metric.Find knows: "wall", "cpu"
	Value  float64 // per call, in the metric's base unit
}

// Endpoint is where Wire calls go.
type Endpoint struct {
	Addr netip.AddrPort
	Host string      // the Host header's value, and the TLS server name by default
	TLS  *tls.Config // nil: plaintext. With TLS only engine std can be used.
	// Keys is how many connection identities there are, at least 1.
	Keys int
	// Local is the source address of connections with this key; an invalid address leaves the choice to the kernel. May be nil.
	Local func(key int) netip.Addr
}
