//go:build amd64 || arm64 || riscv64

package load

import (
	"os"
	"runtime"
	"strconv"
)

const (
	// lookEvery is how often the priority looks for new threads, and at what this process uses; in ns.
	lookEvery = int64(50e6)
	// idleEnough and tooBusy are parts of one CPU: a process that uses less may go before others, one that uses more would starve them.
	idleEnough, tooBusy = 0.25, 0.5
)

// A priority has all threads of this process run as soon as they wake, for the time of an open loop on engine std. There a call passes from the
// pacer through goroutines, on any thread, before it is sent; on a host that the target keeps busy each of them would wait for milliseconds, and the
// calls would be late by our own fault. Only a process that mostly sleeps may ask: as soon as it uses a good part of a CPU it takes its turn like
// all others. The pacer's goroutine owns it.
type priority struct {
	on, refused bool
	next, at    int64
	cpu         float64
}

// look asks for the priority, or gives it back, as what the process has used since the last look says.
func (p *priority) look(now int64, open bool) {
	switch {
	case !open:
		p.giveBack()
		p.at, p.next = 0, 0
		return
	case p.refused || now < p.next:
		return
	}
	cpu, busy := ProcessCPU(), 0.0
	if p.at > 0 {
		busy = (cpu - p.cpu) / (float64(now-p.at) / 1e9)
	}
	p.cpu, p.at, p.next = cpu, now, now+lookEvery
	switch {
	case busy > tooBusy:
		p.giveBack()
	case p.on || busy < idleEnough:
		p.refused = !preferAll(true)
		p.on = !p.refused
	}
}

// giveBack makes the process one among equals again.
func (p *priority) giveBack() {
	if p.on {
		preferAll(false)
	}
	p.on = false
}

// preferAll asks for every thread that the process has, or takes that back. It reports whether anything was granted. Where there are fewer
// processors than the Go runtime uses, two threads that spin could keep a third from what they wait for: nothing is asked.
func preferAll(on bool) (granted bool) {
	if on && runtime.GOMAXPROCS(0) > processors() {
		return false
	}
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return false
	}
	for _, t := range threads {
		if id, err := strconv.Atoi(t.Name()); err == nil && preferThread(id, on) == nil {
			granted = true
		}
	}
	return granted
}
