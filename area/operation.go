package area

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
	// Expect describes the expected answer; Wire.Check or Call decide.
	Expect string
	// Causes describe the operation's own reasons for answers that are not good; see Wire.Explain.
	Causes []string
	// Answer is the expected answer in one word: "permit". CauseAnswers are the unexpected answers, by the number of the
	// cause: "deny"; "" if there was no answer. Both are empty if only good and bad are distinguished.
	Answer       string
	CauseAnswers []string
	Wire         Wire
	Call         func(ctx context.Context, i uint64) Result
	// Stuck says why call i of Call has timed out: an index into Causes; −1: unknown. It must not block. May be nil.
	Stuck func(i uint64) int
	// Batch makes n calls one after another and returns the cost of one, by metric. Its target has its own clock.
	Batch func(ctx context.Context, n int) ([]BatchSample, error)
	// Span is how long a batch should last, so that n can be calibrated; 0: 5 ms. Rounds is the number of batches in a
	// trial; 0: 16. Most bounds n; 0: unbounded. n is a multiple of Whole; 0: of 1.
	Span   time.Duration
	Rounds int
	Most   int
	Whole  int
	// Negative marks a negative control: the treatment cannot affect this operation, so any effect on it is an artefact.
	Negative bool
	// Harness says that the operation does nothing: its cost is what the harness itself adds to every other operation.
	Harness bool
	// Twin names the operation that this one is drawn from, if it is a trespass: a request that the control must refuse.
	// Its right outcome is Denied, and Permitted is a breach. Empty: the control must allow the operation.
	Twin string
	// Breaches are those of Causes that break the control although it must allow the call: it answered with what is
	// somebody else's. Such a call stays Wrong, and is counted as a breach beside the trespasses.
	Breaches []int
	// Describe tells the request and the answer of call i of a trespass that was permitted, both without secrets. nil: the
	// name and the status say enough.
	Describe func(i uint64, status int, body []byte) (request, answer string)
	// Overhead names the harness operation whose cost this one includes; empty: the most expensive.
	Overhead string
}

// Wire is an operation as HTTP/1.1 bytes. Its methods are called on the hot path: they must not allocate, block or keep
// their arguments, and must be safe from several shards at once.
type Wire interface {
	// ConnKey returns the identity that call i needs on its connection, 0 ≤ key < Endpoint.Keys.
	ConnKey(i uint64) int
	// Render appends the whole request of call i to dst.
	Render(dst []byte, i uint64) []byte
	// Check judges a complete response to call i. The body is only valid during the call, and limited to its first MiB. An
	// answer of more than 16 MiB, or with more than 64 KiB of header, of interim answers or of trailer, is not read to its
	// end: it is Failed.
	Check(i uint64, status int, body []byte) Outcome
	// Explain explains the result of a Check that was neither OK nor Denied, with the same arguments and under the same
	// conditions. It returns an index into Operation.Causes; −1: the status says all.
	Explain(i uint64, status int, body []byte) int
}

// Result is how a Go call ended.
type Result struct {
	Outcome Outcome
	Status  uint16
	Errno   uint16
	Cause   Cause
	// BytesIn and BytesOut are the sizes of answer and request, if known.
	BytesIn, BytesOut uint64
	// Ready, Sent and FirstByte are when the call reached these phases; zero: the engine's own instants are used.
	Ready, Sent, FirstByte time.Time
	Marks                  []Mark
}

// Mark is a named phase of a long call (pod startup: scheduled, running, ready): it lasted from From, or, if that is
// zero, from when the call was sent, until At. A phase that ends before it begins counts as 0; one without an end (At
// is zero) does not count. If From or At come from another clock, such as a server's timestamp, wall-clock times are
// compared.
type Mark struct {
	Name     string
	From, At time.Time
}

// BatchSample is one sample of a target with its own clock: the average cost of one call of a batch.
type BatchSample struct {
	Metric string  // "wall", "cpu", or one of Parts.Quantities
	Value  float64 // per call, in the metric's base unit
}

// Endpoint is where Wire calls go.
type Endpoint struct {
	Addr netip.AddrPort
	Host string // the Host header's value, and the TLS server name by default
	// TLS is the configuration of TLS, nil: plaintext. With "h2" in NextProtos, HTTP/2 is used if the target accepts it. A
	// ClientSessionCache makes connections resume sessions; without one, every handshake is a full one.
	TLS *tls.Config
	// Keys is the number of connection identities, at least 1.
	Keys int
	// Local returns the source address of connections with this key; if it is invalid, the kernel chooses. May be nil.
	Local func(key int) netip.Addr
}

// Unexplained is embedded by a Wire whose statuses say all.
type Unexplained struct{}

// Explain implements Wire.
func (Unexplained) Explain(uint64, int, []byte) int { return -1 }
