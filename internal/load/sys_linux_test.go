//go:build amd64 || arm64 || riscv64

package load

import (
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// The poller keeps its timeouts and sees events with the calls of old kernels as with those of new ones.
func TestPollerOldAndNew(t *testing.T) {
	for _, old := range []bool{false, true} {
		a, err := newAlarm()
		if err != nil {
			t.Fatal(err)
		}
		a.poller.old = old
		for _, handoff := range []bool{false, true} {
			for _, d := range []time.Duration{0, 30 * time.Microsecond, 3 * time.Millisecond} {
				begin := time.Now()
				n := 0
				for n == 0 && time.Since(begin) < d { // a short wait may end early on old kernels
					n = a.poller.wait(int64(d-time.Since(begin)), handoff)
				}
				if took := time.Since(begin); n != 0 || took < d || took > d+2*time.Second {
					t.Errorf("old %v: %d events after %v of %v", old, n, took, d)
				}
			}
			a.wake()
			if n := a.poller.wait(int64(10*time.Second), handoff); n != 1 || a.poller.events[0].Fd != wakerSlot {
				t.Errorf("old %v: %d events after a ring", old, n)
			}
			a.drain()
			if n := a.poller.wait(0, handoff); n != 0 {
				t.Errorf("old %v: %d events after hush", old, n)
			}
		}
		go a.wake()
		a.sleep(-1)
		if a.poller.old != old {
			t.Errorf("the poller changed to old = %v", a.poller.old)
		}
		a.close()
	}
}

// Kernel receive times and our own clock agree: an answer is never dated before its request nor after it was read.
func TestWallClock(t *testing.T) {
	k := newClock()
	var w wallClock
	w.refresh(k)
	before := k.now()
	wall := wallNow() - w.ahead
	after := k.now()
	if slack := int64(time.Millisecond); wall < before-slack || wall > after+slack {
		t.Errorf("the wall clock reads %d, ours between %d and %d", wall, before, after)
	}
}

// A thread that shares its only processor with the rest of the runtime must never have a real-time priority.
func TestNoRealTimeOnOneProcessor(t *testing.T) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // and never unlocked: the thread ends with its settings
		var all, one unix.CPUSet
		if err := unix.SchedGetaffinity(0, &all); err != nil {
			t.Error(err)
			return
		}
		for cpu := 0; one.Count() == 0; cpu++ {
			if all.IsSet(cpu) {
				one.Set(cpu)
			}
		}
		for _, c := range []struct {
			set *unix.CPUSet
			may bool
		}{{&one, false}, {&all, all.Count() > 1}} {
			if err := unix.SchedSetaffinity(0, c.set); err != nil {
				t.Error(err)
				return
			}
			for _, on := range []bool{true, false} {
				if err := setPriority(on); err != nil {
					t.Errorf("prefer(%v): %v", on, err)
				}
				attr, err := unix.SchedGetAttr(0, 0)
				if err != nil || (attr.Policy != unix.SCHED_NORMAL && (!on || !c.may)) {
					t.Errorf("on %d processors, prefer(%v): policy %d, %v", c.set.Count(), on, attr.Policy, err)
				}
			}
		}
	}()
	<-done
}
