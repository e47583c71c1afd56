// Package vm boots a Linux kernel of the distribution in QEMU, with this program as its init, and speaks to it over a
// serial line. The machine keeps nothing: it has no disk and no network.
package vm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"tare/internal/clock"
	"tare/internal/proc"
)

// Options say which machine to boot.
type Options struct {
	Emulator string // the path of QEMU
	Kernel   Kernel
	Initrd   string // the path of an initial file system, as Initrd.Save writes it
	Init     []string
	// LSM lists the security modules, in order: "landlock,apparmor,bpf".
	LSM string
	// Dir receives the logs: the guest's console and what QEMU says.
	Dir string
	// Name is part of the logs' names, and of errors.
	Name string
	// CPUs are the processors on which QEMU may run; empty: all.
	CPUs []int
	// Processors is how many processors the machine has, which run at the same time by the host's clock; 0: one, with a
	// clock that advances with each instruction.
	Processors int
	// Born is called with QEMU's process before it does anything, so that the caller can journal it.
	Born  func(proc.ID) error
	Clock clock.Clock
	// Within bounds the boot until the guest's first line; 0: bootWithin.
	Within time.Duration
}

const (
	// bootWithin bounds a boot, which takes about 12 s of one processor.
	bootWithin = 3 * time.Minute
	// attempts is how often a boot is tried.
	attempts = 2
	// endWithin is how long a machine may take to switch itself off.
	endWithin = 10 * time.Second
	// stalledAfter is how long QEMU may use no processor time.
	stalledAfter = time.Minute
	// checkEvery is how often that is looked at during a boot.
	checkEvery = 5 * time.Second
	// memory, in MiB, suffices for all workloads and an initial file system of 200 MiB. Servers with a thread for each of
	// many connections need the second half. The host has to have what the guest uses.
	memory = "2048"
)

// hello is the first line that a guest sends.
const hello = "tare-guest-is-up"

// A Link joins the two directions of a serial line.
type Link struct{ from, to *os.File }

// Read implements io.Reader.
func (l Link) Read(b []byte) (int, error) { return l.from.Read(b) }

// Write implements io.Writer.
func (l Link) Write(b []byte) (int, error) { return l.to.Write(b) }

// SetDeadline bounds reading and writing; the zero time: no more.
func (l Link) SetDeadline(at time.Time) error {
	return errors.Join(l.from.SetReadDeadline(at), l.to.SetWriteDeadline(at))
}

// A Machine is a running guest. Its Link carries what the program in the guest and the caller say to each other.
type Machine struct {
	Link Link
	// Booted is how long the boot took.
	Booted  time.Duration
	child   *proc.Child
	console *console
	o       Options
	waking  atomic.Bool

	looking sync.Mutex // several requests may wait for an answer
	used    used
}

// used is the processor time that QEMU has used, and since when it has been that much.
type used struct {
	cpu   time.Duration
	since time.Time
}

// Boot boots a machine and returns when its init says that it is up. It tries twice. An error holds the end of the
// guest's console.
func Boot(ctx context.Context, o Options) (*Machine, error) {
	if o.Within == 0 {
		o.Within = bootWithin
	}
	if err := o.Kernel.check(); err != nil {
		return nil, fmt.Errorf("boot Linux %s in QEMU: %w", o.Kernel.Release, err)
	}
	var errs []error
	for range attempts {
		m, err := boot(ctx, o)
		if err == nil {
			return m, nil
		}
		if len(errs) == 0 || errs[0].Error() != err.Error() {
			errs = append(errs, err)
		}
		if ctx.Err() != nil {
			break
		}
	}
	return nil, fmt.Errorf("boot Linux %s in QEMU: %w", o.Kernel.Release, errors.Join(errs...))
}

func boot(ctx context.Context, o Options) (*Machine, error) {
	began := o.Clock.Now()
	console, write, err := openConsole(o.console())
	if err != nil {
		return nil, err
	}
	child, err := proc.Start(ctx, proc.Spec{
		Name: "the lab VM " + o.Name, Path: o.Emulator, Args: o.arguments(), Talk: true, LogFile: o.log(), CPUs: o.CPUs,
		Born: o.Born, Grace: endWithin, Files: []*os.File{write},
	})
	_ = write.Close() // QEMU has it
	if err != nil {
		return nil, err
	}
	m := &Machine{Link: Link{child.Out, child.In}, child: child, console: console, o: o}
	if err := m.greet(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("%w; %s", err, console.lastWords()), m.kill())
	}
	m.Booted = o.Clock.Now().Sub(began)
	return m, nil
}

// arguments are QEMU's: no devices but two serial lines, the first for the console, the second for the Link. QEMU
// emulates the processor. Where instructions are counted it advances the guest's clocks by one nanosecond for each
// instruction, so that times measured by the guest are numbers of instructions.
func (o Options) arguments() []string {
	kernel := []string{
		"console=ttyS0", "panic=-1", "quiet", "lsm=" + o.LSM, "rdinit=" + o.Init[0],
		"cryptomgr.notests", // half of what the kernel does at a boot would be to test its ciphers, which nothing here uses
	}
	processors, accel, clock := "1", "tcg", []string{"-icount", "shift=0"}
	if o.Processors > 0 {
		processors, accel, clock = strconv.Itoa(o.Processors), "tcg,thread=multi", nil
	} else {
		kernel = append(
			kernel,
			"norandmaps",            // otherwise what an execve costs depends on where it happens to put its stack
			"tsc_early_khz=1000000", // a tick of the time-stamp counter is a nanosecond; calibrating it would be off by a little
			"noapictimer",           // to calibrate that timer, the kernel reads clocks for 0.2 s: half of a boot, counted
		)
	}
	kernel = append(kernel, "--")
	return append([]string{
		"-nodefaults", "-no-user-config", "-no-reboot", "-display", "none", "-smp", processors, "-m", memory,
		"-add-fd", "fd=3,set=1", "-chardev", "file,id=console,path=/dev/fdset/1,append=on", "-serial", "chardev:console",
		"-chardev", "stdio,id=link,signal=off", "-serial", "chardev:link",
		"-kernel", o.Kernel.Path, "-initrd", o.Initrd, "-machine", "q35", "-accel", accel, "-cpu", "max",
		"-append", strings.Join(append(kernel, o.Init[1:]...), " "),
	}, clock...)
}

func (o Options) console() string { return filepath.Join(o.Dir, "vm-"+o.Name+"-console.log") }
func (o Options) log() string     { return filepath.Join(o.Dir, "vm-"+o.Name+"-qemu.log") }

// greet waits for the guest's first line.
func (m *Machine) greet(ctx context.Context) error {
	limited, cancel := context.WithTimeoutCause(ctx, m.o.Within, fmt.Errorf("it has not booted within %s", m.o.Within))
	defer cancel()
	said := make(chan error, 1)
	go func() {
		line := make([]byte, len(hello)+1)
		_, err := io.ReadFull(m.Link, line)
		if err == nil && string(line) != hello+"\n" {
			err = fmt.Errorf("its first line is %q, not %q", line, hello)
		}
		said <- err
	}()
	check := time.NewTicker(checkEvery)
	defer check.Stop()
	for {
		select {
		case err := <-said:
			if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
				return m.ended()
			}
			return err
		case <-check.C:
			if err := m.Stalled(); err != nil {
				return err
			}
		case <-limited.Done():
			return context.Cause(limited)
		}
	}
}

// ended says how QEMU ended, which has closed its end of the Link.
func (m *Machine) ended() error {
	ctx, cancel := context.WithTimeout(context.Background(), endWithin)
	defer cancel()
	if err := m.child.Wait(ctx); err != nil {
		return err
	}
	return errors.New("the machine has switched itself off")
}

// Exited is closed when the machine has ended.
func (m *Machine) Exited() <-chan struct{} { return m.child.Exited() }

// Stalled returns an error if QEMU has used no processor time for a minute, by the calls of Stalled until then: even a
// guest that waits uses some. Before that it wakes QEMU. It says nothing about a machine that has ended.
func (m *Machine) Stalled() error {
	m.looking.Lock()
	defer m.looking.Unlock()
	cpu, err := proc.CPUOf(m.child.PID)
	now := m.o.Clock.Now()
	switch {
	case err != nil: // it has ended
		return nil
	case cpu != m.used.cpu || m.used.since.IsZero():
		m.used = used{cpu, now}
		return nil
	case now.Sub(m.used.since) < stalledAfter:
		m.wake()
		return nil
	}
	if stopped, err := m.child.Frozen(); err == nil && stopped {
		return fmt.Errorf("QEMU (process %d) has used no processor time for %s, since it is stopped; \"kill -CONT %[1]d\" "+
			"would have continued it", m.child.PID, stalledAfter)
	}
	return fmt.Errorf("QEMU (process %d) has used no processor time for %s, though it was woken: it hangs",
		m.child.PID, stalledAfter)
}

// wake sends the guest an empty line, which it ignores. With a clock that counts instructions QEMU can miss that all
// processors wait for that clock, and then waits for ever; any input has it look again (main_loop_wait).
func (m *Machine) wake() {
	if m.waking.CompareAndSwap(false, true) {
		go func() {
			defer m.waking.Store(false)
			_, _ = m.Link.Write([]byte("\n")) // whoever asks for an answer is told of a line that is broken
		}()
	}
}

// Failed describes a machine that ended by itself.
func (m *Machine) Failed() error {
	return fmt.Errorf("it has ended: %w; %s", m.ended(), m.console.lastWords())
}

// Close ends the machine: nothing in it is worth an orderly end.
func (m *Machine) Close() error { return m.kill() }

func (m *Machine) kill() error {
	ctx, cancel := context.WithTimeout(context.Background(), endWithin)
	defer cancel()
	err := m.child.Stop(ctx)
	_ = m.child.In.Close()
	_ = m.child.Out.Close()
	return err
}

// Release is the kernel's release.
func (m *Machine) Release() string { return m.o.Kernel.Release }
