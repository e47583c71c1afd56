package probe

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync"

	"tare/internal/metric"
)

// Attached reads a process that somebody else started, and its descendants, and follows it over restarts: when the process is gone, the next
// Read looks for its successor on Port. The quantity "started" tells the two apart. If the process is a JVM, or one process below it is (a
// start script's), the JVM's own values (see JVM) are among the samples. Use it by pointer; Read may be called from several goroutines.
type Attached struct {
	Name string // the subject
	// PID is the process to begin with; 0: the listener on Port.
	PID int
	// Port is the TCP port on which the process listens; 0: there is no successor to look for.
	Port uint16
	// Light is that of Process: cheap enough for periodic reading.
	Light bool
	Root  fs.FS // nil: this machine

	mu     sync.Mutex
	at     holder // what was resolved last; pid 0: nothing
	lookup bool   // PID was looked at once: from now on only Port counts
	vm     vm     // the JVM in the process's tree; pid 0: none known
	misses int    // readings of this process in which there was no JVM
	reads  int    // readings of this process
}

var _ Probe = (*Attached)(nil)

// Subject implements Probe.
func (a *Attached) Subject() string { return a.Name }

// Read implements Probe. The error wraps ErrGone while nobody listens on the port, or once the process has ended and no port is known;
// otherwise it may wrap the errors of Listener. The resolution is kept as long as the same process lives and, found by its port, has the
// socket open; so a reading costs no more than that of a Process and, of a JVM, a file of 32 KiB.
func (a *Attached) Read(ctx context.Context) ([]metric.Sample, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	root := host(a.Root)
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

// resolve finds the process anew.
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
	at, err := findListener(root, a.Port, a.Root == nil)
	if err != nil {
		return fmt.Errorf("find who listens on port %d: %w", a.Port, err)
	}
	a.at = at
	return nil
}

// process reads what was resolved.
func (a *Attached) process(ctx context.Context) ([]metric.Sample, error) {
	list, tree, err := Process{Name: a.Name, PID: a.at.pid, StartTicks: a.at.start, Light: a.Light, Root: a.Root}.readTree(ctx)
	if err != nil {
		return nil, err
	}
	return append(list, a.jvm(host(a.Root), tree)...), nil
}

// jvm gives the values of the JVM among the processes of the tree. Where there is none, it is looked for less and less often: a process may
// become one by exec(2).
func (a *Attached) jvm(root fs.FS, tree []int) []metric.Sample {
	const often, seldom = 10, 32
	a.reads++
	out := samples{subject: a.Name}
	if slices.Contains(tree, a.vm.pid) && a.vm.read(root, &out) == nil {
		return out.list
	}
	a.vm = vm{}
	if a.misses > often && a.reads%seldom != 0 {
		return nil
	}
	at, err := oneJVM(root, tree)
	if err != nil || at.read(root, &out) != nil {
		a.misses++
		return nil
	}
	a.vm, a.misses = at, 0
	return out.list
}

// oneJVM finds the JVM of a tree: its root, else the only one, as below a start script. Of several none can speak for the subject.
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
