package workload

import (
	"math"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"
)

// getppid is the routine "syscall".
type getppid struct {
	plain

	parent uintptr
}

func (g *getppid) begin() error {
	parent, _, errno := syscall.RawSyscall(unix.SYS_GETPPID, 0, 0, 0)
	if errno != 0 {
		return failed("syscall", "getppid", errno)
	}
	g.parent = parent
	return nil
}

func (g *getppid) batch(n int, halt *atomic.Bool) error {
	for range n {
		if halt.Load() {
			return errHalted
		}
		// A filter that returns 0 without an errno would look like a fast success.
		if parent, _, errno := syscall.RawSyscall(unix.SYS_GETPPID, 0, 0, 0); errno != 0 || parent != g.parent {
			return &Failure{Op: "syscall", Call: "getppid", Errno: errno, Detail: "not the parent's process id"}
		}
	}
	return nil
}

// compute is the routine "compute".
type compute struct {
	plain

	sum uint64 // kept, so that the work is not optimised away
}

func (c *compute) batch(n int, halt *atomic.Bool) error {
	for range n {
		if halt.Load() {
			return errHalted
		}
		c.sum += steps(c.sum)
	}
	return nil
}

// steps computes for about a microsecond in user space: integers, branches and memory as in Dhrystone, floating point
// as in Whetstone.
//
//go:noinline
func steps(seed uint64) uint64 {
	var table [64]uint64
	x, f := seed|1, 1.0
	for i := range 150 {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17 // xorshift64 (Marsaglia 2003)
		table[x%64] += uint64(i)
		if x&1 == 0 {
			f = math.Sqrt(f+float64(i)) * 0.5
		} else {
			f += 0.25
		}
	}
	return table[x%64] + math.Float64bits(f)
}
