package proc

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// ProcessCPU is the CPU time, user and system, that all threads of this process have used (CLOCK_PROCESS_CPUTIME_ID).
func ProcessCPU() (time.Duration, error) { return cpuClock(unix.CLOCK_PROCESS_CPUTIME_ID) }

// ThreadCPU is the CPU time that the calling thread has used (CLOCK_THREAD_CPUTIME_ID). Lock the goroutine to its thread before comparing
// two readings.
func ThreadCPU() (time.Duration, error) { return cpuClock(unix.CLOCK_THREAD_CPUTIME_ID) }

// CPUOf is the CPU time, user and system, that all threads of a living process have used, in nanoseconds, by the clock whose id is made from the pid as
// clock_getcpuclockid(3) does: CPUCLOCK_SCHED (2) of the whole process.
func CPUOf(pid int) (time.Duration, error) { return cpuClock(int32(^pid<<3 | 2)) }

func cpuClock(id int32) (time.Duration, error) {
	var ts unix.Timespec
	if err := unix.ClockGettime(id, &ts); err != nil {
		return 0, fmt.Errorf("read CPU clock: %w", err)
	}
	return time.Duration(ts.Nano()), nil
}
