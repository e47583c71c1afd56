package proc_test

import (
	"crypto/sha256"
	"errors"
	"runtime"
	"time"

	"tare/internal/proc"
)

// A burner uses CPU in known amounts, in place of a real server's work. Amounts are thread CPU time, not wall time:
// under a quota or beside a noisy neighbour the same work takes longer, as real work does.
type burner struct {
	unit time.Duration // estimated thread CPU time of batch hashes
}

// batch is the number of hashes between two readings of the clock in calibration: about 10 µs, against about 0.2 µs for
// a reading.
const batch = 64

// newBurner calibrates for about 2 ms.
func newBurner() (*burner, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	const rounds = 64
	best := time.Duration(0)
	for range rounds {
		t0, err := proc.ThreadCPU()
		if err != nil {
			return nil, err
		}
		hash(batch)
		t1, err := proc.ThreadCPU()
		if err != nil {
			return nil, err
		}
		if d := t1 - t0; d > 0 && (best == 0 || d < best) {
			best = d
		}
	}
	if best == 0 {
		return nil, errors.New("calibrate CPU burner: the thread CPU clock does not advance")
	}
	return &burner{unit: best}, nil
}

// Burn uses d of the calling thread's CPU time, to within about a microsecond, and returns how much it used. The
// calibration only sizes the pieces; the thread's CPU clock decides when to stop.
func (b *burner) Burn(d time.Duration) (time.Duration, error) {
	if d <= 0 {
		return 0, nil
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	start, err := proc.ThreadCPU()
	if err != nil {
		return 0, err
	}
	for used := time.Duration(0); ; {
		hash(b.hashes(d - used))
		now, err := proc.ThreadCPU()
		if err != nil {
			return used, err
		}
		if used = now - start; used >= d {
			return used, nil
		}
	}
}

// hashes returns the number of hashes that fit into d, at least one. It covers nine tenths of the rest, so that a slow
// calibration does not overshoot.
func (b *burner) hashes(d time.Duration) int {
	return max(1, int(d*batch*9/(b.unit*10)))
}

func hash(n int) {
	var sum [sha256.Size]byte
	for range n {
		sum = sha256.Sum256(sum[:])
	}
	runtime.KeepAlive(&sum)
}
