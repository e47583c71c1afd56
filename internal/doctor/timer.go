package doctor

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"tare/internal/stat"
	"tare/internal/unit"
)

// sleepFrom and sleepTo bound the sleeps of the timer trial: the intervals between calls at 500/s to 10 000/s.
const (
	sleepFrom = 100 * time.Microsecond
	sleepTo   = 2 * time.Millisecond
)

// timerGood and timerUsable are limits of the 99th percentile of the timer's error.
const (
	timerGood   = 200 * time.Microsecond
	timerUsable = time.Millisecond
)

// timers measures how much later than asked a sleeping thread runs again. It sleeps as the load engine does: in
// epoll_pwait2, with a timer slack of 1 ns, in a thread of its own; then again with real-time priority, if the host
// grants it.
func (x *examiner) timers(ctx context.Context) []Check {
	length := x.timeShare(5, time.Second)
	plain, call, err := x.oversleep(ctx, length, false)
	if err != nil {
		return []Check{
			{
				Group: groupGenerator, Name: "timers", State: Broken, Found: "no thread could be made to sleep", Cause: err.Error(),
				Next: "find out what blocks epoll and clock_nanosleep: a seccomp profile?",
			},
		}
	}
	timer := Check{
		Group: groupGenerator, Name: "timers", State: OK, Found: call + ": late by " + plain.String(),
		Values: plain.values(""),
	}
	best := plain
	priority, refused := x.priority()
	if refused == nil {
		if first, _, err := x.oversleep(ctx, length, true); err == nil {
			timer.Found += "; with real-time priority " + first.String()
			maps.Copy(timer.Values, first.values("fifo_"))
			best = first
		}
	}
	switch {
	case best.p99 > timerUsable:
		timer.State = Limited
		timer.Cause = "sleeping threads wake more than 1 ms late: the host is busy, short of CPU, or its kernel has no " +
			"high-resolution timers (" + x.resolution() + ")"
		timer.Next = "stop what else runs here, or give tare a CPU of its own (pin); the forecast below says what it " +
			"means for times"
	case best.p99 > timerGood:
		timer.State, timer.Cause = Limited, "sleeping threads wake late: others use the CPUs, or the hypervisor does"
		timer.Next = "stop what else runs here before you compare answers that take less than 1 ms"
	}
	return []Check{timer, priority}
}

// resolution returns the timers' resolution as the kernel reports it; 1 ns means high-resolution timers.
func (x *examiner) resolution() string {
	var ts unix.Timespec
	if err := unix.ClockGetres(unix.CLOCK_MONOTONIC, &ts); err != nil {
		return "resolution unknown"
	}
	return "resolution " + unit.Seconds(time.Duration(ts.Nano()).Seconds())
}

// spread holds quantiles of times.
type spread struct {
	p50, p99, max time.Duration
	n             int
}

func spreadOf(ns []float64) spread {
	slices.Sort(ns)
	at := func(q float64) time.Duration { return time.Duration(stat.SortedQuantile(ns, q)) }
	return spread{p50: at(.5), p99: at(.99), max: at(1), n: len(ns)}
}

// String returns "p50 3 µs, p99 40 µs, max 310 µs".
func (s spread) String() string {
	return fmt.Sprintf("p50 %s, p99 %s, max %s", unit.Seconds(s.p50.Seconds()), unit.Seconds(s.p99.Seconds()),
		unit.Seconds(s.max.Seconds()))
}

func (s spread) values(prefix string) map[string]float64 {
	return map[string]float64{
		prefix + "p50": s.p50.Seconds(), prefix + "p99": s.p99.Seconds(), prefix + "max": s.max.Seconds(), prefix +
			"sleeps": float64(s.n),
	}
}

// oversleep sleeps for random times on a thread that ends with the trial, so its priority and timer slack end too.
func (x *examiner) oversleep(ctx context.Context, length time.Duration, first bool) (s spread, call string, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
		if first {
			if err = realtime(); err != nil {
				return
			}
		}
		s, call, err = sleeper(ctx, length, rand.New(rand.NewPCG(x.Seed, 1)))
	}()
	<-done
	return s, call, err
}

func sleeper(ctx context.Context, length time.Duration, rng *rand.Rand) (spread, string, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return spread{}, "", fmt.Errorf("create epoll: %w", err)
	}
	defer unix.Close(fd) //nolint:errcheck // nothing to lose
	sleep, call := sleepEpoll, "epoll_pwait2"
	if e := sleep(fd, int64(time.Microsecond)); e == unix.ENOSYS { // before Linux 5.11
		sleep, call = sleepNano, "clock_nanosleep"
	}
	late := make([]float64, 0, int(length/sleepFrom))
	for end := monotonic() + int64(length); monotonic() < end && ctx.Err() == nil; {
		d := int64(sleepFrom) + rng.Int64N(int64(sleepTo-sleepFrom))
		from := monotonic()
		if e := sleep(fd, d); e == unix.EINTR {
			continue // a signal, such as the runtime's own, and no error of the timer
		} else if e != 0 {
			return spread{}, call, fmt.Errorf("%s: %w", call, e)
		}
		late = append(late, float64(max(0, monotonic()-from-d)))
	}
	if len(late) == 0 {
		return spread{}, call, fmt.Errorf("%s: no sleep came to its end within %v", call, length)
	}
	return spreadOf(late), call, nil
}

func sleepEpoll(fd int, ns int64) syscall.Errno {
	var ev unix.EpollEvent
	ts := unix.NsecToTimespec(ns)
	_, _, e := syscall.Syscall6(unix.SYS_EPOLL_PWAIT2, uintptr(fd), uintptr(unsafe.Pointer(&ev)), 1,
		uintptr(unsafe.Pointer(&ts)), 0, 0)
	return e
}

func sleepNano(_ int, ns int64) syscall.Errno {
	ts := unix.NsecToTimespec(ns)
	_, _, e := syscall.Syscall6(unix.SYS_CLOCK_NANOSLEEP, unix.CLOCK_MONOTONIC, 0, uintptr(unsafe.Pointer(&ts)), 0, 0, 0)
	return e
}

// realtime gives the calling thread real-time priority, as the engine does for open loops.
func realtime() error {
	return unix.SchedSetAttr(0, &unix.SchedAttr{
		Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: 1,
		Flags: unix.SCHED_FLAG_RESET_ON_FORK,
	}, 0)
}

// priority tries SCHED_FIFO. The error says that the host does not grant it, or that it should not be used.
func (x *examiner) priority() (Check, error) {
	c := Check{
		Group: groupGenerator, Name: "real-time priority", State: OK,
		Found: "SCHED_FIFO granted to a thread of its own",
	}
	if x.cpus < 2 {
		c.State, c.Found = Limited, "not asked for"
		c.Cause = "only one CPU is allowed: a thread before all others there would stop the Go runtime"
		c.Next = "allow two CPUs or more"
		return c, unix.EPERM
	}
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with its priority
		done <- realtime()
	}()
	err := <-done
	if err != nil {
		c.State, c.Found = Limited, "SCHED_FIFO refused: "+err.Error()
		c.Cause, c.Next = x.explainRefusal()
	}
	return c, err
}

// explainRefusal says why there is no real-time priority. On an idle host that makes no difference, so no action is
// needed.
func (x *examiner) explainRefusal() (cause, next string) {
	const waits = ", so the load generator waits its turn behind other processes"
	for _, group := range x.ownCPUGroups() {
		if x.read(group+"/cpu.rt_runtime_us") == "0" {
			return "control group /" + group + " has no real-time budget (cpu.rt_runtime_us is 0)" + waits,
				"run outside of this group, or as root: \"echo 100000 > /" + group +
					"/cpu.rt_runtime_us\"; on an idle host it makes no difference"
		}
	}
	return "this process has neither CAP_SYS_NICE nor an RLIMIT_RTPRIO" + waits,
		"run as root, with CAP_SYS_NICE, or after \"ulimit -r 1\" has been allowed in /etc/security/limits.conf; on an " +
			"idle host it makes no difference"
}
