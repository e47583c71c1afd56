package reference

import (
	"crypto/sha256"
	"sync/atomic"
	"time"

	"tare/internal/proc"
)

// A ledger makes each request cost the process a fixed amount of CPU time in total. A request pays only for what is
// missing: what the HTTP work of the requests before it has used, garbage collection and system calls included, counts
// as paid. So the price holds on fast and slow machines alike and needs no calibration. CPU time, not wall time, is
// counted: throttling stretches a payment and does not shorten it.
type ledger struct {
	cost time.Duration // CPU per request
	cpu  func() (time.Duration, error)
	due  atomic.Int64 // process CPU time, in ns, at which all requests so far have paid
}

// newLedger fails where the kernel offers no CPU clock of the process.
func newLedger(cost time.Duration) (*ledger, error) {
	if _, err := proc.ProcessCPU(); err != nil {
		return nil, err
	}
	return &ledger{cost: cost, cpu: proc.ProcessCPU}, nil
}

// pay works until the process has used the CPU time that all requests so far have to cost.
func (l *ledger) pay() {
	if l.cost == 0 {
		return
	}
	now, err := l.cpu()
	if err != nil {
		return // newLedger has seen it work
	}
	due := l.book(now)
	var block [4096]byte
	for now < due {
		sum := sha256.Sum256(block[:])
		copy(block[:], sum[:])
		if now, err = l.cpu(); err != nil {
			return
		}
	}
}

// book adds one request at process CPU time now and returns the time up to which to work. CPU that the process used
// while it was idle is forgiven, but for one request's worth: it is not the price of requests to come.
func (l *ledger) book(now time.Duration) time.Duration {
	for {
		was := l.due.Load()
		due := max(was, int64(now-l.cost)) + int64(l.cost)
		if l.due.CompareAndSwap(was, due) {
			return time.Duration(due)
		}
	}
}
