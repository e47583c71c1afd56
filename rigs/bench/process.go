//go:build linux

package bench

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// host starts the children, each on its CPU.
type host struct {
	self           string
	server, client int // CPUs, −1: anywhere
}

// start starts cmd with its affinity set from the first instruction, so that its runtime sizes itself to it.
func start(cmd *exec.Cmd, cpu int) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if cpu < 0 {
		return cmd.Start()
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var was, only unix.CPUSet
	if err := unix.SchedGetaffinity(0, &was); err != nil {
		return fmt.Errorf("read affinity: %w", err)
	}
	only.Set(cpu)
	if err := unix.SchedSetaffinity(0, &only); err != nil {
		return fmt.Errorf("pin to CPU %d: %w", cpu, err)
	}
	defer func() { _ = unix.SchedSetaffinity(0, &was) }()
	return cmd.Start()
}

// pinning finds a CPU for the server and another for the generator, or says why there are none.
func pinning() (server, client int, why string) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return -1, -1, fmt.Sprintf("not pinned: %v", err)
	}
	if set.Count() < 2 {
		return -1, -1, "not pinned: this process may use one CPU only, and server and generator share it"
	}
	var cpus []int
	for i := 0; len(cpus) < 2; i++ {
		if set.IsSet(i) {
			cpus = append(cpus, i)
		}
	}
	return cpus[1], cpus[0], fmt.Sprintf("server on CPU %d, generators on CPU %d", cpus[1], cpus[0])
}

// running is a server process.
type running struct {
	Ready
	cmd *exec.Cmd
}

func (h *host) serve(ctx context.Context, s Server) (*running, error) {
	spec, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, h.self, "-serve", string(spec))
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := start(cmd, h.server); err != nil {
		return nil, fmt.Errorf("start server: %w", err)
	}
	r := &running{cmd: cmd}
	line, err := bufio.NewReader(out).ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &r.Ready)
	}
	if err != nil {
		r.stop()
		return nil, fmt.Errorf("start server: it said %q: %w", line, err)
	}
	return r, nil
}

func (r *running) stop() {
	_ = r.cmd.Process.Kill()
	_ = r.cmd.Wait()
}

// usage is what a child process used.
type usage struct {
	cpu float64 // seconds
	rss int64   // bytes, at most
}

func used(s *os.ProcessState) usage {
	u := usage{cpu: (s.UserTime() + s.SystemTime()).Seconds()}
	if r, ok := s.SysUsage().(*syscall.Rusage); ok {
		u.rss = r.Maxrss << 10
	}
	return u
}

// run runs a job in a child process.
func (h *host) run(ctx context.Context, j Job) (Outcome, usage, error) {
	spec, err := json.Marshal(j)
	if err != nil {
		return Outcome{}, usage{}, err
	}
	cmd := exec.CommandContext(ctx, h.self, "-job", string(spec))
	out, u, err := h.output(cmd)
	if err != nil {
		return Outcome{}, usage{}, fmt.Errorf("run %s: %w", spec, err)
	}
	var o Outcome
	if err := json.Unmarshal(out, &o); err != nil {
		return Outcome{}, usage{}, fmt.Errorf("run %s: %w", spec, err)
	}
	return o, u, nil
}

func (h *host) output(cmd *exec.Cmd) ([]byte, usage, error) {
	var out, complaints bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaints
	if err := start(cmd, h.client); err != nil {
		return nil, usage{}, err
	}
	if err := cmd.Wait(); err != nil {
		return nil, usage{}, fmt.Errorf("%w: %s", err, strings.TrimSpace(complaints.String()))
	}
	return out.Bytes(), used(cmd.ProcessState), nil
}

var wrkTotal = regexp.MustCompile(`(\d+) requests in`)

// wrk runs wrk with one thread and returns how many requests it made.
func (h *host) wrk(ctx context.Context, path, scheme string, port, conns int, length time.Duration) (int, usage,
	error,
) {
	cmd := exec.CommandContext(ctx, path, "-t1", "-c"+strconv.Itoa(conns),
		fmt.Sprintf("-d%ds", max(1, int(length.Seconds()))),
		fmt.Sprintf("%s://127.0.0.1:%d/", scheme, port))
	out, u, err := h.output(cmd)
	if err != nil {
		return 0, usage{}, fmt.Errorf("run wrk: %w", err)
	}
	m := wrkTotal.FindSubmatch(out)
	if m == nil {
		return 0, usage{}, fmt.Errorf("run wrk: no total in %q", out)
	}
	n, err := strconv.Atoi(string(m[1]))
	return n, u, err
}
