package proc

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// ProcessCPU returns the CPU time, user and system, of all threads of this process (CLOCK_PROCESS_CPUTIME_ID).
func ProcessCPU() (time.Duration, error) { return cpuClock(unix.CLOCK_PROCESS_CPUTIME_ID) }

// ThreadCPU returns the CPU time of the calling thread (CLOCK_THREAD_CPUTIME_ID). Lock the goroutine to its thread
// before comparing two readings.
func ThreadCPU() (time.Duration, error) { return cpuClock(unix.CLOCK_THREAD_CPUTIME_ID) }

// CPUOf returns the CPU time, user and system, of all threads of a living process, in nanoseconds. The clock's id is
// made from the pid as clock_getcpuclockid(3) does: CPUCLOCK_SCHED (2) of the whole process.
func CPUOf(pid int) (time.Duration, error) { return cpuClock(int32(^pid<<3 | 2)) }

func cpuClock(id int32) (time.Duration, error) {
	var ts unix.Timespec
	if err := unix.ClockGettime(id, &ts); err != nil {
		return 0, fmt.Errorf("read CPU clock: %w", err)
	}
	return time.Duration(ts.Nano()), nil
}
