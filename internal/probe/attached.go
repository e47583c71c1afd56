package probe

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"slices"
	"sync"

	"tare/internal/metric"
)

// Attached reads a process that tare did not start, with its descendants. It follows restarts: when the process has
// ended, the next Read looks for its successor on Port, and the quantity "started" shows that it is another process. If
// the process, or the only JVM below it (under a start script), is a JVM, the samples include the values of JVM. Use it
// by pointer; Read may be called from several goroutines.
type Attached struct {
	Name string // the subject
	// PID is the first process to read; 0: the process that listens on Port.
	PID int
	// Port is the TCP port on which the process listens; 0: restarts are not followed.
	Port uint16
	// Light is Process.Light: cheap enough for periodic readings.
	Light bool
	Root  fs.FS // nil: this machine

	mu     sync.Mutex
	at     holder // the process read last; pid 0: none yet
	lookup bool   // PID was used once: from now on only Port counts
	vm     vm     // the JVM in the process tree; pid 0: none known
	misses int    // readings of this process that found no JVM
	reads  int    // readings of this process
}

var _ Probe = (*Attached)(nil)

// Subject implements Probe.
func (a *Attached) Subject() string { return a.Name }

// Read implements Probe. The error wraps ErrGone while nobody listens on the port, or once the process has ended and no
// port is given; otherwise it may wrap the errors of Listener. A process found by its port is looked up again only
// after it has ended or closed the socket, so a reading costs no more than that of a Process and, for a JVM, of a file
// of 32 KiB.
func (a *Attached) Read(ctx context.Context) ([]metric.Sample, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	root := rootFS(a.Root)
	if a.at.pid != 0 && a.at.fd != "" && !a.at.stillHeld(root) {
		a.at = holder{}
	}
	if a.at.pid != 0 {
		list, err := a.process(ctx)
		if !errors.Is(err, ErrGone) {
			return list, err
		}
	}
	if err := a.resolve(root); err != nil {
		return nil, fmt.Errorf("probe %s: %w", a.Name, err)
	}
	return a.process(ctx)
}

// resolve finds the process by PID the first time and by Port from then on.
func (a *Attached) resolve(root fs.FS) error {
	a.at, a.vm, a.misses, a.reads = holder{}, vm{}, 0, 0
	if a.PID != 0 && !a.lookup {
		a.lookup = true // the number may be given to another process
		found, err := byPID(root, a.PID)
		if err == nil {
			a.at = holder{pid: found.PID, start: found.StartTicks}
			return nil
		}
		if a.Port == 0 {
			return err
		}
	}
	if a.Port == 0 {
		return fmt.Errorf("process %d: %w", a.PID, ErrGone)
	}
	at, err := findListener(root, netip.AddrPortFrom(netip.Addr{}, a.Port), a.Root == nil)
	if err != nil {
		return fmt.Errorf("find the process that listens on port %d: %w", a.Port, err)
	}
	a.at = at
	return nil
}

// process reads the resolved process and its descendants.
func (a *Attached) process(ctx context.Context) ([]metric.Sample, error) {
	list, tree, err := Process{
		Name: a.Name, PID: a.at.pid, StartTicks: a.at.start, Light: a.Light,
		Root: a.Root,
	}.readTree(ctx)
	if err != nil {
		return nil, err
	}
	return append(list, a.jvm(rootFS(a.Root), tree)...), nil
}

// jvm returns the values of the JVM among the processes of the tree. While there is none, it searches less and less
// often: a process may become a JVM by exec(2).
func (a *Attached) jvm(root fs.FS, tree []int) []metric.Sample {
	const often, seldom = 10, 32
	a.reads++
	out := samples{subject: a.Name}
	if slices.Contains(tree, a.vm.pid) && a.vm.addTo(root, &out) == nil {
		return out.list
	}
	a.vm = vm{}
	if a.misses > often && a.reads%seldom != 0 {
		return nil
	}
	at, err := oneJVM(root, tree)
	if err != nil || at.addTo(root, &out) != nil {
		a.misses++
		return nil
	}
	a.vm, a.misses = at, 0
	return out.list
}

// oneJVM finds the JVM of a tree: its root, else the only JVM below it, as under a start script. It fails if there are
// several.
func oneJVM(root fs.FS, tree []int) (vm, error) {
	var found []vm
	for _, pid := range tree {
		at, err := JVM{PID: pid}.locate(root)
		if err != nil {
			continue
		}
		if found = append(found, at); pid == tree[0] {
			break
		}
	}
	if len(found) != 1 {
		return vm{}, fmt.Errorf("%d JVMs: %w", len(found), ErrNoJVM)
	}
	return found[0], nil
}
