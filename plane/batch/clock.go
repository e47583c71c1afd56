// Package batch times calls: many together, or one after the other with something undone in between.
package batch

import (
	"fmt"
	"runtime"
	"syscall"
	"time"
	"unsafe"
)

// processCPU is CLOCK_PROCESS_CPUTIME_ID of clock_gettime(2).
const processCPU = 2

// cpu is the CPU time that this process has spent, all threads, in nanoseconds. The clock is exact to the nanosecond, which the ticks of getrusage(2)
// are not on every kernel.
func cpu() (int64, error) {
	var t syscall.Timespec
	if _, _, errno := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, processCPU, uintptr(unsafe.Pointer(&t)), 0); errno != 0 {
		return 0, fmt.Errorf("read the process's CPU clock: %w", errno)
	}
	return t.Nano(), nil
}

// A meter adds up what spans of a process cost.
type meter struct {
	total Cost
	heap  [2]runtime.MemStats // before and after a span: fields, because as variables they would be allocated for each
	cpu   int64
	wall  time.Time
}

// begin starts a span. The heap is looked at first, since that stops the world, and the clocks are read last, the wall clock as the inner one: it is
// what calls are compared by that take less than reading the CPU clock does.
func (m *meter) begin() (err error) {
	runtime.ReadMemStats(&m.heap[0])
	m.cpu, err = cpu()
	m.wall = time.Now()
	return err
}

// end ends it. The caller adds the wall time: with several goroutines it is not this one's.
func (m *meter) end() (elapsed time.Duration, err error) {
	elapsed = time.Since(m.wall)
	now, err := cpu()
	runtime.ReadMemStats(&m.heap[1])
	m.total.CPU += float64(now-m.cpu) / 1e9
	m.total.Allocations += m.heap[1].Mallocs - m.heap[0].Mallocs
	m.total.Allocated += m.heap[1].TotalAlloc - m.heap[0].TotalAlloc
	return elapsed, err
}
