package servers

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"tare/internal/proc"
)

// childVariable names the fixture that this program is to be, and its seed, in its environment.
const childVariable = "TARE_RIG_SERVER"

// ServeChild makes this process the fixture that its environment names, until stdin ends. child is false where the
// environment names none.
func ServeChild(in io.Reader, out io.Writer) (child bool, err error) {
	name, text, child := strings.Cut(os.Getenv(childVariable), " ") //nolint:forbidigo // it is asked before any cli.Env is
	if !child {
		return false, nil
	}
	seed, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return true, fmt.Errorf("seed of %s: %w", name, err)
	}
	all := All()
	i := slices.IndexFunc(all, func(f Fixture) bool { return f.Name == name })
	if i < 0 {
		return true, fmt.Errorf("no fixture %s", name)
	}
	r, err := all[i].start(context.Background(), seed)
	if err != nil {
		return true, err
	}
	_, err = fmt.Fprintln(out, r.Addr)
	_, ended := io.Copy(io.Discard, in)
	return true, errors.Join(err, ended, r.Stop())
}

// A process is a fixture in a process of its own.
type process struct {
	command *exec.Cmd
	in      io.Closer
	group   *proc.Cgroup // nil: without a quota
}

// startProcess starts this program again as the fixture. It ends with this process.
func (f Fixture) startProcess(ctx context.Context, seed uint64) (*Running, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := &process{command: exec.Command(self)} //nolint:noctx // stop ends it
	p.command.Env = append(os.Environ(), fmt.Sprintf("%s=%s %d", childVariable, f.Name, seed))
	p.command.Stderr = os.Stderr //nolint:forbidigo // what a child panics with
	// Ctrl-C reaches the parent alone, which stops it.
	p.command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	in, err := p.command.StdinPipe()
	if err != nil {
		return nil, err
	}
	p.in = in
	out, err := p.command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.command.Start(); err != nil {
		return nil, err
	}
	r := &Running{of: f, own: p}
	if err = ctx.Err(); err == nil && f.quota > 0 {
		if p.group, err = newQuota(f.quota, p.command.Process.Pid); err == nil {
			err = p.group.Add(p.command.Process.Pid)
		}
	}
	if err == nil {
		var line string
		if line, err = bufio.NewReader(out).ReadString('\n'); err == nil {
			r.Addr, err = netip.ParseAddrPort(strings.TrimSpace(line))
		}
	}
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", f.Name, errors.Join(err, p.stop()))
	}
	return r, nil
}

// stop ends the process, and removes its control group.
func (p *process) stop() error {
	err := p.in.Close()
	late := time.AfterFunc(10*time.Second, func() { _ = p.command.Process.Kill() })
	defer late.Stop()
	err = errors.Join(err, p.command.Wait())
	if p.group != nil {
		err = errors.Join(err, p.group.Remove())
	}
	return err
}

func newQuota(share float64, pid int) (*proc.Cgroup, error) {
	return proc.NewCgroup(proc.CgroupName("rig", strconv.Itoa(pid)), proc.Quota{Share: share})
}

// canLimit says why this process cannot make a control group with a quota; nil: it can.
func canLimit() error {
	g, err := newQuota(1, os.Getpid())
	if err != nil {
		return fmt.Errorf("a CPU quota needs a control group: %w", err)
	}
	return g.Remove()
}

// compute uses d of processor time for each call, of which n at a time, and passes it on.
func (r *rig) compute(d time.Duration, n int, next part) part {
	return r.work(n, func() error { return useCPU(d) }, next)
}

// work does something for each call, for n of them at a time, and passes the call on, or answers with status 500 if it
// failed. Calls whose clients have given up cost nothing.
func (r *rig) work(n int, do func() error, next part) part {
	free := make(chan struct{}, n)
	return func(c *call) {
		go func() {
			free <- struct{}{}
			r.mu.Lock()
			gone := c.gone
			r.mu.Unlock()
			to := next
			if !gone && do() != nil {
				to = refuse(http.StatusInternalServerError)
			}
			<-free
			r.mu.Lock()
			defer r.mu.Unlock()
			r.catchUp()
			to(c)
		}()
	}
}

// useCPU computes until its thread has used d.
func useCPU(d time.Duration) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	begun, err := proc.ThreadCPU()
	for now := begun; err == nil && now-begun < d; {
		now, err = proc.ThreadCPU()
	}
	return err
}
