//go:build amd64 || arm64 || riscv64

package load

import (
	"os"
	"runtime"
	"strconv"
)

const (
	// updateEvery is the interval at which the priority is applied to new threads and this process's CPU use is checked,
	// in ns.
	updateEvery = int64(50e6)
	// idleEnough and tooBusy are shares of one CPU: a process that uses less may run before others, one that uses more
	// would starve them.
	idleEnough, tooBusy = 0.25, 0.5
)

// A priority makes all threads of this process run as soon as they wake, during an open loop on engine std. There a
// call passes from the pacer through goroutines, on any thread, before it is sent; on a host that the target keeps busy
// each of them would wait for milliseconds, and the generator would make the calls late. Only a process that mostly
// sleeps may have it: once it uses a good part of a CPU it takes turns with all others. The pacer's goroutine owns it.
type priority struct {
	on, refused bool
	next, at    int64
	cpu         float64
}

// update acquires or releases the priority, depending on what the process has used since the last look.
func (p *priority) update(now int64, open bool) {
	switch {
	case !open:
		p.release()
		p.at, p.next = 0, 0
		return
	case p.refused || now < p.next:
		return
	}
	cpu, busy := ProcessCPU(), 0.0
	if p.at > 0 {
		busy = (cpu - p.cpu) / (float64(now-p.at) / 1e9)
	}
	p.cpu, p.at, p.next = cpu, now, now+updateEvery
	switch {
	case busy > tooBusy:
		p.release()
	case p.on || busy < idleEnough:
		p.refused = !setProcessPriority(true)
		p.on = !p.refused
	}
}

// release returns the process to normal priority.
func (p *priority) release() {
	if p.on {
		setProcessPriority(false)
	}
	p.on = false
}

// setProcessPriority sets or clears the priority of every thread of the process. It reports whether anything was
// granted. It does nothing if there are fewer processors than the Go runtime uses: two spinning threads could then
// block a third that they wait for.
func setProcessPriority(on bool) (granted bool) {
	if on && runtime.GOMAXPROCS(0) > processors() {
		return false
	}
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return false
	}
	for _, t := range threads {
		if id, err := strconv.Atoi(t.Name()); err == nil && setThreadPriority(id, on) == nil {
			granted = true
		}
	}
	return granted
}
