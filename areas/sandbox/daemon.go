package sandbox

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"tare/area"
	"tare/areas/sandbox/bpflsm"
	"tare/areas/sandbox/workload"
	"tare/internal/clock"
	"tare/internal/kit"
	"tare/internal/probe"
	"tare/internal/proc"
)

const (
	// daemonReady bounds the start of a daemon until it answers.
	daemonReady = 20 * time.Second
	// daemonGrace is how long a daemon may take to end by itself.
	daemonGrace = 5 * time.Second
	// daemonSpan is how long a batch of requests lasts.
	daemonSpan = 20 * time.Millisecond
)

// serverApache is the server that listens on a port.
const serverApache = "apache"

// realSysbench stands for all programs of sysbench.
const realSysbench = "sysbench"

// realNames returns the allowed values of `real`.
func realNames() []string {
	return append(append(workload.Loads(), realSysbench), workload.Programs()...)
}

// loads returns the loads of servers that `real` names, on each of the numbers of connections.
func (s *Spec) loads() (out []workload.Load) {
	for _, name := range s.Real {
		l, ok := workload.FindLoad(name)
		switch {
		case !ok:
		case l.Connections > 0 || len(s.Connections) == 0:
			out = append(out, l)
		default:
			for _, l.Connections = range s.Connections {
				out = append(out, l)
			}
		}
	}
	return out
}

// daemons returns the servers of all loads.
func (s *Spec) daemons() (out []string) {
	for _, l := range s.loads() {
		if !slices.Contains(out, l.Daemon()) {
			out = append(out, l.Daemon())
		}
	}
	return out
}

// connections returns how many connections a server must accept.
func (s *Spec) connections(daemon string) (most int) {
	for _, l := range s.loads() {
		if l.Daemon() == daemon {
			most = max(most, l.Width())
		}
	}
	return most
}

// checkConnections reports that this process may not open as many files as the servers of all treatments have
// connections. Go has raised its limit to the highest that it may set.
func (s *Spec) checkConnections(treatments int) []area.Finding {
	need := 0
	for _, d := range s.daemons() {
		need += s.connections(d)
	}
	const others = 256 // files, and a treatment that is measured against itself
	need = need*(treatments+1) + others
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return []area.Finding{area.Fault("connections", fmt.Errorf("read the limit of open files: %w", err), "")}
	}
	if limit.Max >= uint64(need) {
		return nil
	}
	return []area.Finding{area.Fault("connections", fmt.Errorf("connections to the servers of %d treatments need up "+
		"to %d open files, and a process may have %d here", treatments, need, limit.Max),
		fmt.Sprintf("raise the limit with ulimit -Hn %d, or use fewer connections or treatments", need))}
}

// programs are the values of `real` that are programs.
func (s *Spec) programs() []string {
	var out []string
	for _, name := range s.Real {
		switch {
		case name == realSysbench:
			out = append(out, workload.Programs()...)
		case slices.Contains(workload.Programs(), name):
			out = append(out, name)
		}
	}
	return out
}

// served is a daemon that runs confined, with the connection to it.
type served struct {
	name   string
	child  *proc.Child
	change *area.Change
	daemon *workload.Daemon
	tree   *proc.Tree
	proof  *selfProof // of a profile; nil: the worker proves the policy
	// profile is the one that BPF programs have for it; nil: none
	profile *bpflsm.Confined
}

// serve starts a daemon under the sample's policy, with the worker's shim, and waits until it answers.
func (s *sample) serve(ctx context.Context, name string, c clock.Clock) error {
	dir := filepath.Join(s.dir, name)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return fmt.Errorf("make the folder of %s: %w", name, err)
	}
	d, err := workload.NewDaemon(name, dir, s.spec.connections(name))
	if err != nil {
		return err
	}
	x := &served{name: name, daemon: d}
	s.daemons = append(s.daemons, x) // added before it is complete, so that end finds it
	p := s.plan.policy
	p.Scratch, p.Port = dir, d.Port
	config := shimConfig{Policy: p, Command: d.Command, Files: uint64(usualFiles + s.spec.connections(name))}
	var files []*os.File
	if p.Profile != nil && s.launch.observer == nil {
		if x.proof, err = newSelfProof(); err != nil {
			return err
		}
		config.Proves, files = true, []*os.File{x.proof.memory}
	}
	x.child, err = s.launch.begin(ctx, proc.Spec{
		Name: processName(name, p), Path: s.launch.self, Args: []string{"serve", areaName, serverShim}, Dir: dir,
		LogFile: s.launch.log, CPUs: s.launch.cpus, Grace: daemonGrace, Files: files,
		Born: func(id proc.ID) error {
			change := kit.ProcessChange(areaName, s.id+"-"+name, id)
			x.change = &change
			if err := s.journal.Intend(change); err != nil {
				x.change = nil
				return fmt.Errorf("journal %s: %w", name, err)
			}
			return nil
		},
	}, config)
	if err != nil {
		return err
	}
	if x.proof != nil {
		x.proof.pid = x.child.PID
	}
	if err := x.ask(ctx, daemonReady, func(ctx context.Context) error { return d.Ready(ctx, c) }); err != nil {
		return fmt.Errorf("start %s: %w", name, err)
	}
	if err := x.listens(); err != nil {
		return fmt.Errorf("start %s: its port was taken before it listened there: %w; run it again, it then gets another",
			name, err)
	}
	if x.profile, err = s.launch.host.bpfProfileOf(p, x.child.PID); err != nil {
		return err
	}
	if x.tree, err = proc.NewTree(x.child.PID); err != nil {
		return fmt.Errorf("find the processes of %s: %w", name, err)
	}
	return nil
}

// listens returns an error unless the daemon listens on its port itself, if it has one.
func (x *served) listens() error {
	if x.daemon.Port == 0 {
		return nil
	}
	at := netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), uint16(x.daemon.Port)) //nolint:gosec // it is a port
	return probe.ListensWithin(nil, at, x.child.PID)
}

// proveLabel proves by the kernel's word that an AppArmor profile confines the daemon.
func (x *served) proveLabel(ctx context.Context, p Policy) error {
	proof := &proof{ctx: ctx, w: &selfProof{pid: x.child.PID}}
	proof.wantFilters(0)
	proof.wantLabel(p)
	return proof.end()
}

// ask runs do against the daemon within a time, and ends it when the daemon ends.
func (x *served) ask(ctx context.Context, within time.Duration, do func(context.Context) error) error {
	limited, cancel := context.WithTimeoutCause(ctx, within, fmt.Errorf("no answer within %s", within))
	defer cancel()
	watched, stop := context.WithCancelCause(limited)
	defer stop(nil)
	done := make(chan struct{})
	go func() {
		defer close(done)
		select {
		case <-x.child.Exited():
			stop(errors.New("it has ended"))
		case <-watched.Done():
		}
	}()
	err := do(watched)
	stop(nil)
	<-done
	select {
	case <-x.child.Exited():
		return errors.Join(err, x.child.Wait(context.Background()))
	default:
		return err
	}
}

// end ends the daemon and waits for it.
func (x *served) end(ctx context.Context, j area.Journal) error {
	_ = x.daemon.Close() // it is of no more use anyway
	if x.proof != nil {
		_ = x.proof.close() // nothing is buffered
		x.proof = nil
	}
	if x.child != nil {
		if err := x.child.Stop(ctx); err != nil {
			return err
		}
		x.child = nil
	}
	if err := forget(x.profile); err != nil {
		return err
	}
	x.profile = nil
	if x.change == nil {
		return nil
	}
	err := j.Undone(*x.change)
	x.change = nil
	return err
}

// usualFiles is how many files a process may open by default. A server needs one more for each connection.
const usualFiles = 1024

// requests makes n requests of a daemon.
//
// The client shares the daemon's CPU meanwhile. On another CPU it would sometimes wake the daemon across CPUs, which
// costs two to three times the daemon's own work: the cost of a request would then depend on chance.
func requests(l workload.Load) func(context.Context, *sample, int) (workload.Cost, error) {
	return func(ctx context.Context, s *sample, n int) (cost workload.Cost, err error) {
		i := slices.IndexFunc(s.daemons, func(x *served) bool { return x.name == l.Daemon() })
		if i < 0 {
			return cost, fmt.Errorf("%s has not been started", l.Daemon())
		}
		x := s.daemons[i]
		before, err := proc.Allowed()
		if err != nil {
			return cost, err
		}
		if err := proc.Pin(s.launch.cpus); err != nil {
			return cost, err
		}
		defer func() { err = errors.Join(err, proc.Pin(before)) }()
		err = x.ask(ctx, commandWithin, func(ctx context.Context) error {
			cost, err = workload.Measure(ctx, x.daemon, x.tree, l, n)
			return err
		})
		return cost, err
	}
}

// missing reports the programs that `real` needs and this host lacks. Each is tried in a temporary folder.
func (s *Spec) missing() (out []area.Finding) {
	fail := func(err error) {
		f := area.Finding{Path: "real", Severity: area.Error, Message: err.Error()}
		if m, ok := errors.AsType[*workload.Missing](err); ok {
			f.Message, f.Hint = m.Program+" is not installed", "apt-get install "+m.Package+", or leave it out"
		}
		out = append(out, f)
	}
	for _, name := range s.programs() {
		if _, err := workload.NewProgram(name); err != nil {
			fail(err)
		}
	}
	for _, name := range s.daemons() {
		err := inTrialFolder(func(dir string) error {
			d, err := workload.NewDaemon(name, dir, s.connections(name))
			if err != nil {
				return err
			}
			return d.Close()
		})
		if err != nil {
			fail(err)
		}
	}
	return out
}
