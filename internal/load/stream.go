package load

import (
	"context"
	"time"

	"tare/internal/hist"
	"tare/internal/ratelimit"
)

// Engine names the implementation that carries calls.
type Engine string

// The engines.
const (
	Auto Engine = ""     // fast if available, else std
	Fast Engine = "fast" // HTTP/1.1 over epoll, in plaintext or over TLS
	Std  Engine = "std"  // net/http, or any Go call
)

// Config says how a Stream carries calls.
type Config struct {
	Engine     Engine
	Endpoint   Endpoint
	Operations []Operation
	// Arms are several targets that take turns, instead of Endpoint and Operations. A Call then has the number that its
	// operation has among those of all arms, in their order.
	Arms []Arm
	// Timeout counts from a call's intended instant. Default 30 s.
	Timeout time.Duration
	// MaxConns bounds the pool over all keys. Default 256. The pool grows only when no connection of the call's key is
	// idle, by one a millisecond; a connection that the target closed after an answer may be replaced immediately.
	MaxConns int
	// GrowGap is the minimum time between two new connections. Default 1 ms; bursts of callers with a connection each need
	// less.
	GrowGap time.Duration
	// MaxRate bounds every arrival process, in 1/s; 0: unbounded. A faster process is an error, never a silent slowdown.
	MaxRate float64
	// Limit bounds the calls that are sent, together with everything else that shares it; nil: MaxRate does, for this
	// stream alone. Calls on time may be ahead of it by a second and ten calls, late ones by a tenth of a second and one
	// call.
	Limit *ratelimit.Limiter
	// Shards is the number of event loops; 0: GOMAXPROCS − 1, at least 1.
	Shards int
	// Spin is how long before a deadline a shard stops sleeping and spins. Default 0.
	Spin time.Duration
	// KeepCalls keeps every call's record (32 bytes) until Close, so that Calls can return them.
	KeepCalls bool
	// Precise takes completion instants at the client's own wake-up in open loops too. By default engine fast reaps lazily
	// in open loops and takes them from the kernel's receive timestamps: a first byte that was read together with the last
	// has its instant.
	Precise bool
	// Host reads the CPU times of the relevant processors for a Meter; nil: unknown.
	Host func() *Processors
	// Seed draws the mix of operations.
	Seed uint64
	at   *places // where calls go; set by Open

	// First is the number of the first call. Calls of the same numbers may ask the same again.
	First uint64
}

// A Stream is one continuous stream of calls to one target. Segments of load follow one another on it; calls in flight
// at the end of a segment continue. All methods but Progress and Calls belong to one goroutine.
type Stream interface {
	// Now is the time since the stream was opened.
	Now() time.Duration
	// Offer runs an open-loop segment: calls start when p says, whether earlier ones have ended or not. Every poll it
	// calls stop (which may be nil) and ends early if that returns true. It returns the actual segment.
	Offer(ctx context.Context, p Process, poll time.Duration, stop func() bool) (Segment, error)
	// Cycle runs a closed-loop segment: each worker sends its next call when its last has ended.
	Cycle(ctx context.Context, c Closed, poll time.Duration, stop func() bool) (Segment, error)
	// Wait sends nothing until done returns true or d has passed; calls in flight continue. done may be nil.
	Wait(ctx context.Context, d, poll time.Duration, done func() bool) error
	// Fresh makes one call of operation op (of the identity that i selects) on a new connection outside the pool, over
	// HTTP/1.1 for Wire operations, with its own timeout. It is not part of Progress, Calls or Cells.
	Fresh(ctx context.Context, op int, i uint64, timeout time.Duration) Call
	// DropIdle closes the idle connections of the pool, as clients do after a while.
	DropIdle()
	// Reset closes every connection and abandons every call, in flight or waiting: they end as ConnFailed with
	// ECONNABORTED.
	Reset()
	// Progress is a cheap count of what has happened so far.
	Progress() Progress
	// Calls returns a copy of the calls that were scheduled at or after since, in order of their intended instant,
	// including outstanding ones. It needs Config.KeepCalls, and does not slow the engine. Instants other than the
	// intended one are rounded down to nanoseconds or, where that is longer, to 2⁻²⁹ of the timeout.
	Calls(since time.Duration) []Call
	// Take returns the histograms of all calls that ended since the last Take, and resets them. It may be called during a
	// segment, from stop or done, which run in the stream's own goroutine: each event loop then hands over its table
	// between two events, which costs a wake-up, and the new table's histograms grow again with the first calls. Once a
	// second, that is negligible. Each call is in exactly one Take.
	Take() []Cell
	// Meter reads what the generator's own threads have done so far; the difference of two readings is an Effort. It reads
	// a few files of /proc, and does not slow the engine.
	Meter() Meter
	// Close ends everything and waits for it.
	Close() error
}

// Closed describes a closed loop. A worker sends its next call when its last has ended. After a call that could not
// reach the target it pauses for 50 ms, or for 1 ms times the workers, so that an unreachable or restarting target is
// not called as fast as the host can fail.
type Closed struct {
	Workers  int
	Ramp     time.Duration // workers start evenly over this time
	Duration time.Duration
	// Arm is the arm that is called. With several arms, the segment ends when all its calls have ended.
	Arm int
}

// Segment is one segment of load as it was offered.
type Segment struct {
	Start, End time.Duration // on the stream's clock
	Offered    int           // calls that were scheduled in it
	Sent       int           // of these, how many had been sent by its end
	Stopped    bool          // stop ended it early
	// CPU is the generator process's own CPU time during the segment, in seconds.
	CPU float64
	// Effort is what the generator's threads did in it; nil: unknown.
	Effort *Effort `json:",omitempty"`
}

// Progress counts calls since the stream was opened.
type Progress struct {
	Now            time.Duration
	Due            uint64 // calls whose intended instant has passed
	Sent           uint64
	Done           [Outcomes]uint64
	UnsentTimeouts uint64
	Held           uint64 // how often the rate limit delayed a call
	Waiting        int    // due, not sent yet
	InFlight       int    // sent, not ended
	Established    int    // established connections, including those in a TLS handshake
	Connecting     int    // connections being established
	BytesIn        uint64
	BytesOut       uint64
}

// Ended returns how many calls have ended.
func (p Progress) Ended() uint64 {
	var n uint64
	for _, d := range p.Done {
		n += d
	}
	return n
}

// Open returns how many calls have come due and not ended.
func (p Progress) Open() int { return p.Waiting + p.InFlight }

// A Cell holds the histograms, in nanoseconds, of the calls of one operation with one outcome.
type Cell struct {
	Operation                             int
	Outcome                               Outcome
	Unsent                                uint64 // of the Timeouts, how many were never sent
	Response, Service, PoolWait, Lateness *hist.Histogram
	// Causes count the failed calls by cause, in no order. Empty for good outcomes.
	Causes []CauseCount
	// BytesIn and BytesOut are the sizes of these calls' answers and requests, including headers, as far as received and
	// sent: of HTTP, without TLS. Heads of HTTP/2 count as in HTTP/1.1. Go calls report their own sizes.
	BytesIn, BytesOut uint64
	// Phases are the distributions, in nanoseconds, of the phases that these calls marked, in the order of their first
	// occurrence: of calls with this outcome, so that those of good calls are in the cells of good outcomes. At most 16;
	// further names are dropped without a count. Timeouts have none: an abandoned call cannot report what it has seen.
	Phases []Phase
}

// Phase is the distribution of one phase of long calls; see Mark.
type Phase struct {
	Name string
	Hist *hist.Histogram
}

// CauseCount is how many calls of a Cell ended for one reason.
type CauseCount struct {
	Cause  Cause  `json:"cause,omitempty"`
	Status uint16 `json:"status,omitempty"`
	Errno  uint16 `json:"errno,omitempty"`
	Count  uint64 `json:"count"`
}
