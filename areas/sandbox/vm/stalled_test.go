package vm

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"tare/internal/clock"
	"tare/internal/files"
	"tare/internal/proc"
)

// laterClock is a clock that the test puts forward.
type laterClock struct {
	clock.System

	ahead time.Duration
}

func (c *laterClock) Now() time.Time { return c.System.Now().Add(c.ahead) }

// bootThatDoes boots a machine whose emulator says hello and then does what a shell is told.
func bootThatDoes(t *testing.T, what string, c clock.Clock) *Machine {
	t.Helper()
	dir := t.TempDir()
	emulator := filepath.Join(dir, "qemu")
	if err := files.WriteProgram(emulator, []byte("#!/bin/sh\necho "+hello+"\n"+what+"\n")); err != nil {
		t.Fatal(err)
	}
	m, err := Boot(t.Context(), Options{
		Emulator: emulator, Kernel: fakeKernel(t), Init: []string{"/bin/tare"}, Dir: dir,
		Name: "test", Clock: c, Born: func(proc.ID) error { return nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// awaitUse returns when a machine has used more processor time than it had when Stalled last looked.
func awaitUse(m *Machine) {
	for {
		time.Sleep(time.Millisecond)
		if cpu, err := proc.CPUOf(m.child.PID); err != nil || cpu != m.used.cpu {
			return
		}
	}
}

// TestStalled stops the process of a machine, as SIGSTOP does: it uses no more processor time.
func TestStalled(t *testing.T) {
	c := &laterClock{}
	m := bootThatDoes(t, "while :; do :; done", c)
	defer func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	}()
	for range 3 { // it computes
		if err := m.Stalled(); err != nil {
			t.Fatal(err)
		}
		awaitUse(m) // until the host has let it
		c.ahead += 2 * stalledAfter
	}
	if err := m.child.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	time.Sleep(50 * time.Millisecond)
	m.used = used{}
	if err := m.Stalled(); err != nil { // the first look
		t.Fatal(err)
	}
	if err := m.Stalled(); err != nil {
		t.Errorf("stalled within a moment: %v", err)
	}
	c.ahead += stalledAfter
	if err := m.Stalled(); err == nil || !strings.Contains(err.Error(), "time for 1m0s, since it is stopped") {
		t.Errorf("a stopped process: %v", err)
	}
	if err := m.child.Signal(syscall.SIGKILL); err != nil { // it would not heed SIGTERM
		t.Error(err)
	}
}

// TestStalledMachineIsWoken: a machine that waits for what it has missed goes on by input, and one that heeds no input
// is said to hang, not to be stopped.
func TestStalledMachineIsWoken(t *testing.T) {
	for _, c := range []struct{ does, want string }{
		{"read line; while :; do :; done", ""},
		{"exec sleep 600", "though it was woken: it hangs"},
	} {
		clk := &laterClock{}
		m := bootThatDoes(t, c.does, clk)
		settled(t, m)
		clk.ahead += checkEvery
		if err := m.Stalled(); err != nil { // wakes it
			t.Errorf("%s: %v", c.does, err)
		}
		if c.want == "" {
			awaitUse(m)
		}
		clk.ahead += stalledAfter
		if err := m.Stalled(); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.does, err, c.want)
		}
		if err := m.child.Signal(syscall.SIGKILL); err != nil {
			t.Error(err)
		}
		if err := m.Close(); err != nil {
			t.Logf("closed: %v", err)
		}
	}
}

// settled returns when a machine uses no more processor time, and has seen that.
func settled(t *testing.T, m *Machine) {
	t.Helper()
	for {
		if err := m.Stalled(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(100 * time.Millisecond)
		if cpu, err := proc.CPUOf(m.child.PID); err != nil || cpu == m.used.cpu {
			return
		}
	}
}
