// Package batch times calls: many together, or in waves with an undo between them.
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

// cpu returns the CPU time of all threads of this process in nanoseconds. The clock is exact to the nanosecond, unlike
// the ticks of getrusage(2) on some kernels.
func cpu() (int64, error) {
	var t syscall.Timespec
	if _, _, errno := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, processCPU, uintptr(unsafe.Pointer(&t)),
		0); errno != 0 {
		return 0, fmt.Errorf("read the process's CPU clock: %w", errno)
	}
	return t.Nano(), nil
}

// A meter sums the costs of timed spans.
type meter struct {
	total Cost
	heap  [2]runtime.MemStats // before and after a span; as local variables they would be allocated for each span
	cpu   int64
	wall  time.Time
}

// begin starts a span. It reads the heap first, because that stops the world, and the wall clock last: for calls that
// take less time than reading the CPU clock, the wall time is the value that is compared.
func (m *meter) begin() (err error) {
	runtime.ReadMemStats(&m.heap[0])
	m.cpu, err = cpu()
	m.wall = time.Now()
	return err
}

// end ends the span. The caller adds the wall time, which with several goroutines is not that of this one.
func (m *meter) end() (elapsed time.Duration, err error) {
	elapsed = time.Since(m.wall)
	now, err := cpu()
	runtime.ReadMemStats(&m.heap[1])
	m.total.CPU += float64(now-m.cpu) / 1e9
	m.total.Allocations += m.heap[1].Mallocs - m.heap[0].Mallocs
	m.total.Allocated += m.heap[1].TotalAlloc - m.heap[0].TotalAlloc
	return elapsed, err
}
