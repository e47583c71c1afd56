package proc_test

import (
	"context"
	"strings"
	"syscall"
	"testing"
	"time"

	"tare/internal/proc"
)

// TestFreeze: none of the threads uses processor time from the moment when Freeze has returned, until they go on.
func TestFreeze(t *testing.T) {
	c := start(t, spec(t, "burners"))
	cpu := func() time.Duration {
		t.Helper()
		used, err := proc.CPUOf(c.PID)
		if err != nil {
			t.Fatal(err)
		}
		return used
	}
	for range 20 {
		thaw, err := c.Freeze(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		frozen := cpu()
		time.Sleep(2 * time.Millisecond)
		if used := cpu() - frozen; used != 0 {
			t.Errorf("it used %v of CPU time while it was frozen", used)
		}
		if err := thaw(t.Context()); err != nil {
			t.Fatal(err)
		}
		for cpu() == frozen {
			time.Sleep(time.Millisecond)
		}
	}
}

// TestFreezeFails: an error says why, and leaves the process running.
func TestFreezeFails(t *testing.T) {
	c := start(t, spec(t, "burners"))
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Freeze(ended); err != nil {
		before, err := proc.CPUOf(c.PID)
		if err != nil {
			t.Fatal(err)
		}
		for now := before; now == before; time.Sleep(time.Millisecond) {
			if now, err = proc.CPUOf(c.PID); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := c.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-c.Exited()
	if _, err := c.Freeze(t.Context()); err == nil || !strings.Contains(err.Error(), "it has ended") {
		t.Errorf("a process that has ended: %v", err)
	}
}
