package load

import (
	"context"
	"time"

	"tare/internal/hist"
	"tare/internal/ratelimit"
)

// Engine names the machinery that carries calls.
type Engine string

// The engines.
const (
	Auto Engine = ""     // fast where it can be had, else std
	Fast Engine = "fast" // HTTP/1.1 in plaintext over epoll
	Std  Engine = "std"  // net/http, or any Go call
)

// Config says how a Stream carries calls.
type Config struct {
	Engine     Engine
	Endpoint   Endpoint
	Operations []Operation
	// Timeout counts from a call's intended instant. Default 30 s.
	Timeout time.Duration
	// MaxConns bounds the pool over all keys. Default 256. The pool grows only when no connection of the call's key is idle, by one a
	// millisecond; a connection that the target closed after an answer may be replaced at once.
	MaxConns int
	// GrowGap is the least time between two new connections. Default 1 ms; bursts of callers that each have a connection of their own
	// want less.
	GrowGap time.Duration
	// MaxRate bounds every arrival process, in 1/s; 0: no bound. A faster process is an error, never a silent slowdown.
	MaxRate float64
	// Limit bounds the calls that are sent, together with all else that shares it; nil: MaxRate does, for this stream alone. Calls on time may be a
	// second and ten calls ahead of it, late ones a tenth of a second and one call.
	Limit *ratelimit.Limiter
	// Shards is the number of event loops; 0: GOMAXPROCS − 1, at least 1.
	Shards int
	// Spin is how long before a deadline a shard stops sleeping and spins. Default 0.
	Spin time.Duration
	// KeepCalls keeps every call's record (32 bytes) until Close, so that Calls can return them.
	KeepCalls bool
	// Precise takes completion instants at the client's own wake-up also in open loop. By default open loop on engine fast reaps
	// lazily and takes them from the kernel's receive timestamps: a first byte that was read together with the last has its instant.
	Precise bool
	// Host reads the accounts of the processors that matter to a Meter; nil: they are not known.
	Host func() *Processors
	// Seed draws the mix of operations.
	Seed uint64
}

// A Stream is one continuous stream of calls at one target. Segments of load follow one another on it; calls in flight
// at the end of a segment go on. All methods but Progress and Calls belong to one goroutine.
type Stream interface {
	// Now is the time since the stream was opened.
	Now() time.Duration
	// Offer runs an open-loop segment: calls start when p says, whether earlier ones have ended or not. Every poll it asks stop
	// (which may be nil) and ends early when told to. It returns the segment as it was.
	Offer(ctx context.Context, p Process, poll time.Duration, stop func() bool) (Segment, error)
	// Cycle runs a closed-loop segment: workers that each send their next call when the last has ended.
	Cycle(ctx context.Context, c Closed, poll time.Duration, stop func() bool) (Segment, error)
	// Wait offers nothing until done says so or d has passed; calls in flight go on. done may be nil.
	Wait(ctx context.Context, d, poll time.Duration, done func() bool) error
	// Fresh makes one call of operation op (of the identity that i selects) on a new connection outside the pool, over HTTP/1.1
	// where it goes over the wire, with its own timeout. It is not part of Progress, Calls or Cells.
	Fresh(ctx context.Context, op int, i uint64, timeout time.Duration) Call
	// DropIdle closes the idle connections of the pool, as clients do after a while.
	DropIdle()
	// Reset closes every connection and abandons every call, in flight or waiting: they end as ConnFailed with ECONNABORTED.
	Reset()
	// Progress is a cheap count of what has happened so far.
	Progress() Progress
	// Calls returns a copy of the calls that were due at or after since, in order of their intended instant, outstanding ones included.
	// It needs Config.KeepCalls, and costs those who carry the calls nothing. Instants other than the intended one are whole
	// microseconds after it.
	Calls(since time.Duration) []Call
	// Take returns the histograms of all calls that ended since the last Take, and forgets them. It may be called while a segment runs,
	// from stop or done, which the stream's own goroutine calls: each event loop then hands over its table between two events, which costs
	// it a wake-up, and the new table's histograms grow again with the first calls. Once a second that is lost in the noise. A call is in
	// exactly one Take.
	Take() []Cell
	// Meter reads what the generator's own threads have done so far; the difference of two readings is an Effort. It reads a few files of
	// /proc, and costs those who carry the calls nothing.
	Meter() Meter
	// Close ends everything and waits for it.
	Close() error
}

// Closed describes a closed loop. A worker sends its next call when its last has ended, but for one that could not reach the target: after
// that it pauses for 50 ms, or for 1 ms times the workers, so that a target that is gone or is starting anew is not called as fast as the host can fail.
type Closed struct {
	Workers  int
	Ramp     time.Duration // workers start evenly over this time
	Duration time.Duration
}

// Segment is one stretch of load as it was offered.
type Segment struct {
	Start, End time.Duration // on the stream's clock
	Offered    int           // calls that were due in it
	Sent       int           // of these, how many had been sent by its end
	Stopped    bool          // stop ended it early
	// CPU is the generator process's own CPU time during the segment, in seconds.
	CPU float64
	// Effort is what the generator's threads did in it; nil: not known.
	Effort *Effort `json:",omitempty"`
}

// Progress counts calls since the stream was opened.
type Progress struct {
	Now            time.Duration
	Due            uint64 // calls whose intended instant has come
	Sent           uint64
	Done           [Outcomes]uint64
	UnsentTimeouts uint64
	Held           uint64 // how often the limit has kept a call from being sent
	Waiting        int    // due, not sent yet
	InFlight       int    // sent, not ended
	Established    int    // connections that are established, also those in a TLS handshake
	Connecting     int    // connections that are being made
	BytesIn        uint64
	BytesOut       uint64
}

// Ended is how many calls have ended.
func (p Progress) Ended() uint64 {
	var n uint64
	for _, d := range p.Done {
		n += d
	}
	return n
}

// Open is how many calls have come due and not ended.
func (p Progress) Open() int { return p.Waiting + p.InFlight }

// A Cell holds the histograms, in nanoseconds, of the calls of one operation with one outcome.
type Cell struct {
	Operation                             int
	Outcome                               Outcome
	Unsent                                uint64 // of the Timeouts, how many were never sent
	Response, Service, PoolWait, Lateness *hist.Histogram
	// Causes count the calls that did not end well by what is known of them, in no order. Empty for outcomes that are good.
	Causes []CauseCount
	// BytesIn and BytesOut are the sizes of these calls' answers and requests, headers included, as far as they came and were sent: of
	// HTTP, without TLS around it. Heads of HTTP/2 count as they would be written in HTTP/1.1. Go calls say their own sizes.
	BytesIn, BytesOut uint64
	// Phases are the distributions, in nanoseconds, of the phases that these calls marked, in the order in which they first came: of calls that
	// ended with this outcome, so that those of good calls are in the cells of good outcomes. At most 16; a further name is dropped and counted
	// nowhere. Timeouts have none: a call that is given up cannot say what it has seen.
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
