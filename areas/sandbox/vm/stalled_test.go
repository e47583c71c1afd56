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

// TestStalled stops the process of a machine, as SIGSTOP does: it uses no more processor time.
func TestStalled(t *testing.T) {
	dir := t.TempDir()
	emulator := filepath.Join(dir, "qemu")
	if err := files.WriteProgram(emulator, []byte("#!/bin/sh\necho "+hello+"\nwhile :; do :; done\n")); err != nil {
		t.Fatal(err)
	}
	c := &laterClock{}
	m, err := Boot(t.Context(), Options{
		Emulator: emulator, Kernel: fakeKernel(t), Init: []string{"/bin/tare"}, Dir: dir,
		Name: "test", Clock: c, Born: func(proc.ID) error { return nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	}()
	for range 3 { // it computes
		if err := m.Stalled(); err != nil {
			t.Fatal(err)
		}
		for before := m.used.cpu; ; { // until the host has let it
			time.Sleep(time.Millisecond)
			if cpu, err := proc.CPUOf(m.child.PID); err != nil || cpu != before {
				break
			}
		}
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
		dir := t.TempDir()
		emulator := filepath.Join(dir, "qemu")
		if err := files.WriteProgram(emulator, []byte("#!/bin/sh\necho "+hello+"\n"+c.does+"\n")); err != nil {
			t.Fatal(err)
		}
		clk := &laterClock{}
		m, err := Boot(t.Context(), Options{
			Emulator: emulator, Kernel: fakeKernel(t), Init: []string{"/bin/tare"}, Dir: dir,
			Name: "test", Clock: clk, Born: func(proc.ID) error { return nil },
		})
		if err != nil {
			t.Fatal(err)
		}
		settled(t, m)
		clk.ahead += checkEvery
		if err := m.Stalled(); err != nil { // wakes it
			t.Errorf("%s: %v", c.does, err)
		}
		if c.want == "" {
			for before := m.used.cpu; ; time.Sleep(time.Millisecond) {
				if cpu, err := proc.CPUOf(m.child.PID); err != nil || cpu != before {
					break
				}
			}
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
