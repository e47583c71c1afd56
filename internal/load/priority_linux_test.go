//go:build amd64 || arm64 || riscv64

package load

import (
	"os"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"tare/rigs/hosttest"
)

// preferred counts the threads of this process that have a real-time priority.
func preferred(t *testing.T) (n, all int) {
	t.Helper()
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range threads {
		id, err := strconv.Atoi(x.Name())
		if err != nil {
			t.Fatal(err)
		}
		attr, err := unix.SchedGetAttr(id, 0)
		if err != nil {
			continue // it has ended
		}
		all++
		if attr.Policy != unix.SCHED_NORMAL {
			n++
		}
	}
	return n, all
}

// TestPriorityIsForThoseWhoSleep: all threads get it while an open loop uses little, none while it uses much, and none
// afterwards.
func TestPriorityIsForThoseWhoSleep(t *testing.T) {
	if !setProcessPriority(true) {
		hosttest.Missing(t, "this host grants no priority",
			"run with CAP_SYS_NICE, and with as many processors as the Go runtime uses")
	}
	setProcessPriority(false)
	var p priority
	defer p.release()
	p.update(1, true)
	if n, _ := preferred(t); n == 0 || !p.on {
		hosttest.Missing(t, "there is no right to a real-time priority", hosttest.Root)
	}
	burned := ProcessCPU()
	for ProcessCPU()-burned < 0.1 {
	}
	p.update(1+int64(time.Second)/10, true) // all of a CPU in the time between, as far as it knows
	if n, all := preferred(t); n != 0 || p.on {
		t.Errorf("%d of %d threads go before others while the process is busy", n, all)
	}
	p.update(1+int64(100*time.Second), true)
	if n, _ := preferred(t); n == 0 || !p.on {
		t.Error("no thread goes before others after the process has come to rest")
	}
	p.update(1+int64(101*time.Second), false)
	if n, all := preferred(t); n != 0 {
		t.Errorf("%d of %d threads go before others after the segment", n, all)
	}
}
