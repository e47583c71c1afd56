package workload

import (
	"encoding/binary"
	"fmt"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"tare/internal/proc"
)

// meter measures this thread, the children that it waits for, and a companion process.
type meter struct {
	from     reading
	pid      int  // of the companion; 0: none
	survives bool // the companion does not end within the batch
	counter  counter
}

type reading struct {
	wall, cpu    time.Duration
	instructions uint64
}

// start begins a measurement. pid is a companion's, or 0. A companion that does not survive the batch must be reaped
// before stop: its time is then part of the children's, so its time before start is subtracted in both cases.
func (m *meter) start(pid int, survives bool) error {
	m.pid, m.survives = pid, survives
	var err error
	m.from, err = m.read(m.pid)
	return err
}

// stop returns the cost since start, without N.
func (m *meter) stop() (Cost, error) {
	pid := 0
	if m.survives {
		pid = m.pid
	}
	to, err := m.read(pid)
	if err != nil {
		return Cost{}, err
	}
	return Cost{
		// a clock of 4 ms, on a host without a finer one, may not have moved
		Wall: max(1, to.wall-m.from.wall), CPU: max(0, to.cpu-m.from.cpu),
		Instructions: to.instructions - m.from.instructions, Counted: m.counter.fd > 0,
	}, nil
}

// read reads all clocks, wall time last.
func (m *meter) read(companion int) (r reading, err error) {
	if r.instructions, err = m.counter.read(); err != nil {
		return r, err
	}
	if companion != 0 {
		if r.cpu, err = proc.CPUOf(companion); err != nil {
			return r, err
		}
	}
	waited, err := waitedFor()
	if err != nil {
		return r, err
	}
	own, err := read(unix.CLOCK_THREAD_CPUTIME_ID)
	if err != nil {
		return r, err
	}
	r.cpu += waited + own
	r.wall, err = read(unix.CLOCK_MONOTONIC)
	return r, err
}

func (m *meter) close() { m.counter.close() }

// read reads a clock.
func read(clock int32) (time.Duration, error) {
	var ts unix.Timespec
	if err := unix.ClockGettime(clock, &ts); err != nil {
		return 0, fmt.Errorf("read clock %d: %w", clock, err)
	}
	return time.Duration(ts.Nano()), nil
}

// waitedFor returns the CPU time of all children that this process has reaped. The kernel sums it in nanoseconds, but
// reports user and system time in whole microseconds each. The split between the two is an estimate; only their sum is
// exact (cputime_adjust in kernel/sched/cputime.c).
func waitedFor() (time.Duration, error) {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_CHILDREN, &u); err != nil {
		return 0, fmt.Errorf("read children's CPU time: %w", err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), nil
}

// counter counts instructions of this thread and its children, in user space and kernel, if the host has such a counter
// and permits it.
type counter struct{ fd int } // 0: no counter

// open tries to open the counter. Its absence is no error: virtual machines often have none, and enforcers refuse it.
// It only counts children that this thread starts afterwards, so open precedes any routine.
func (c *counter) open() {
	attr := unix.PerfEventAttr{
		Type: unix.PERF_TYPE_HARDWARE, Config: unix.PERF_COUNT_HW_INSTRUCTIONS,
		Size: uint32(unsafe.Sizeof(unix.PerfEventAttr{})),
		Bits: unix.PerfBitInherit | unix.PerfBitExcludeHv,
	}
	fd, err := unix.PerfEventOpen(&attr, 0, -1, -1, unix.PERF_FLAG_FD_CLOEXEC)
	if err != nil {
		return
	}
	c.fd = fd
	// Some hypervisors' counters do not advance: those count as absent.
	before, err1 := c.read()
	steps(1)
	after, err2 := c.read()
	if err1 != nil || err2 != nil || after <= before {
		c.close()
	}
}

func (c *counter) read() (uint64, error) {
	if c.fd <= 0 {
		return 0, nil
	}
	var b [8]byte
	if n, err := unix.Read(c.fd, b[:]); err != nil || n != len(b) {
		return 0, fmt.Errorf("read instruction counter: %d bytes: %w", n, err)
	}
	return binary.NativeEndian.Uint64(b[:]), nil
}

func (c *counter) close() {
	if c.fd > 0 {
		_ = unix.Close(c.fd)
	}
	c.fd = 0
}

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
