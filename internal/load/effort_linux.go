//go:build amd64 || arm64 || riscv64

package load

import (
	"fmt"
	"os"
	"runtime"
	"strconv"

	"tare/internal/files"
)

// threadTimes reads the times of a thread (sched-stats.rst): how long it ran, and how long it waited on a run queue. ok
// is false if the kernel does not report them.
func threadTimes(id int) (threadTime, bool) {
	b, err := files.Kernel("/proc/self/task/" + strconv.Itoa(id) + "/schedstat")
	if err != nil {
		return threadTime{}, false
	}
	var t threadTime
	if n, err := fmt.Sscan(string(b), &t.ran, &t.queued); err != nil || n != 2 {
		return threadTime{}, false
	}
	return t, true
}

// allThreads reads the times of every thread of this process.
func allThreads() map[int]threadTime {
	list, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return nil
	}
	out := make(map[int]threadTime, len(list))
	for _, f := range list {
		if id, err := strconv.Atoi(f.Name()); err == nil {
			if t, ok := threadTimes(id); ok {
				out[id] = t
			}
		}
	}
	return out
}

// usableProcessors returns how many processors the Go code of this process can use at a time.
func usableProcessors() int { return min(runtime.GOMAXPROCS(0), processors()) }

func (e *std) meter(m *Meter) {
	m.threads = allThreads()
	m.sched, m.bounds = goScheduler()
}
