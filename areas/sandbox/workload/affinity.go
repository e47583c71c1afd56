package workload

import (
	"fmt"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// bind binds this thread, and the children that it starts from now on, to the current CPU until release is called. A
// batch that moves between CPUs pays for cold caches, and a child on another CPU for its wake-up: neither is the
// workload's cost.
func bind() (release func() error, err error) {
	var before, one unix.CPUSet
	if err := unix.SchedGetaffinity(0, &before); err != nil {
		return nil, fmt.Errorf("bind to a CPU: sched_getaffinity: %w", err)
	}
	var cpu uint32
	if _, _, errno := syscall.RawSyscall(unix.SYS_GETCPU, uintptr(unsafe.Pointer(&cpu)), 0, 0); errno != 0 {
		return nil, fmt.Errorf("bind to a CPU: getcpu: %w", errno)
	}
	one.Set(int(cpu))
	if err := unix.SchedSetaffinity(0, &one); err != nil {
		return nil, fmt.Errorf("bind to a CPU: sched_setaffinity: %w", err)
	}
	return func() error {
		if err := unix.SchedSetaffinity(0, &before); err != nil {
			return fmt.Errorf("release from a CPU: sched_setaffinity: %w", err)
		}
		return nil
	}, nil
}
