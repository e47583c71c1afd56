package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"tare/areas/sandbox/workload"
)

// The servers' names, as arguments of "serve".
const (
	serverShim   = "shim"
	serverWorker = "worker"
)

// Where the worker reads its requests and writes its answers. Standard input and output belong to the protocol between
// a parent and its children and end with it.
const (
	requestsFD = 3
	answersFD  = 4
)

// resultsFD is the memory of a selfProof, in the process that becomes a server.
const resultsFD = 3

// shimConfig is the shim's configuration.
type shimConfig struct {
	Policy Policy `json:"policy"`
	Self   string `json:"self,omitempty"` // this program's file, to become the worker
	// Command is the daemon to execute instead of the worker.
	Command []string `json:"command,omitempty"`
	// Proves makes the shim try the policy, with the results in the memory that resultsFD is.
	Proves bool `json:"proves,omitempty"`
	// Files is how many files the daemon may open, unless the host allows fewer; 0: what this process was given.
	Files uint64 `json:"files,omitempty"`
	// Observe lets all calls pass and reports those that the policy would refuse to an observer.
	Observe bool `json:"observe,omitempty"`
}

// workerConfig is the configuration that the shim passes to the worker.
type workerConfig struct {
	Dir  string `json:"dir"`
	Port int    `json:"port,omitempty"` // for its listener; 0: any
	// Slack is by how much the thread that measures, and the programs that it starts, may wake late, in nanoseconds.
	Slack int `json:"slack"`
	// Held is the writing end of the pipe that carried this config. It stays open while the worker lives, so that its
	// standard input does not end.
	Held int `json:"held"`
}

// serve runs a server: "shim" confines itself and then executes "worker".
func serve(ctx context.Context, name string, config json.RawMessage, ready func(any) error) error {
	switch name {
	case serverShim:
		var c shimConfig
		if err := json.Unmarshal(config, &c); err != nil {
			return fmt.Errorf("serve shim: %w", err)
		}
		return shim(c, ready)
	case serverWorker:
		var c workerConfig
		if err := json.Unmarshal(config, &c); err != nil {
			return fmt.Errorf("serve worker: %w", err)
		}
		return work(ctx, c, ready)
	case serverSetUp, serverOthers:
		return serveThreads(ctx, name, config, ready)
	}
	return fmt.Errorf("serve: sandbox has no server %q, only %s and %s", name, serverShim, serverWorker)
}

// shim confines one thread, which then executes the worker or a daemon: restrictions of a thread survive execve, which
// ends all other threads. Restrictions cannot be removed, so each sample of each treatment needs its own shim. It
// returns only errors.
func shim(c shimConfig, ready func(any) error) error {
	runtime.LockOSThread()
	s, err := findStack(c.Policy.Enforcer)
	if err != nil {
		return err
	}
	// All arms have it, including the baseline: the enforcer is the only difference.
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("set no_new_privs: %w", err)
	}
	if err := errors.Join(allowFiles(c.Files), workload.AdoptOrphans()); err != nil {
		return err
	}
	if c.Observe { // before setStdin gives this thread descriptors of its own, which no other process could copy
		if err := observeSelf(s, c.Policy); err != nil {
			return err
		}
	}
	command := c.Command
	if len(command) == 0 {
		command = []string{c.Self, "serve", areaName, serverWorker} // reports readiness itself
		err = handOver(c.Policy)
	} else {
		err = ready(struct{}{}) // a daemon cannot
	}
	if err != nil {
		return fmt.Errorf("hand over to %s: %w", command[0], err)
	}
	if c.Observe {
		_, _, _ = unix.RawSyscall(observedCall, 0, 0, 0) // it returns once there is an observer
	} else if err := confineSelf(s, c); err != nil {
		return err
	}
	err = syscall.Exec(command[0], command, syscall.Environ())
	return fmt.Errorf("execute %s under %s: %w", command[0], c.Policy.Enforcer, err)
}

// lateWakes is how late the other threads of a worker may wake: at a tick of the kernel's clock. The runtime has one
// that sleeps for 20 µs at a time, about fifty times after the worker was idle. On the worker's only CPU each time
// would interrupt the thread that measures, and make the first milliseconds of a batch dearer than the rest.
const lateWakes = 20 * time.Millisecond

// handOver makes the worker's configuration this thread's standard input, and has the worker's threads wake late.
func handOver(p Policy) error {
	slack, err := unix.PrctlRetInt(unix.PR_GET_TIMERSLACK, 0, 0, 0, 0)
	if err == nil {
		err = unix.Prctl(unix.PR_SET_TIMERSLACK, uintptr(lateWakes), 0, 0, 0)
	}
	if err != nil {
		return fmt.Errorf("set how late threads may wake: %w", err)
	}
	return setStdin(workerConfig{Dir: p.Scratch, Port: p.Port, Slack: slack})
}

// allowFiles lets the program that this process becomes open n files, before a policy could refuse it.
func allowFiles(n uint64) error {
	if n == 0 {
		return nil
	}
	var limit unix.Rlimit
	err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit)
	if err == nil {
		limit.Cur = min(n, limit.Max)
		err = unix.Setrlimit(unix.RLIMIT_NOFILE, &limit)
	}
	if err != nil {
		return fmt.Errorf("allow %d open files: %w", n, err)
	}
	return nil
}

// confineSelf puts this thread under the policy, and tries it if the configuration says so.
func confineSelf(s stack, c shimConfig) error {
	if !c.Proves {
		return s.confine(c.Policy)
	}
	results, err := shareResults()
	if err != nil {
		return err
	}
	tries, err := planTries(c.Policy)
	if err != nil {
		return err
	}
	if err := s.confine(c.Policy); err != nil {
		return err
	}
	tryAll(tries, results)
	return nil
}

// observeSelf lets an observer see the calls that the policy would refuse.
func observeSelf(s stack, p Policy) error {
	o, ok := s[0].(interface{ Observe(p Policy) error })
	if !ok {
		return fmt.Errorf("%s has no way to observe calls", s[0].Name())
	}
	return o.Observe(p)
}

// setStdin makes c the standard input of the program that this thread executes next. It first unshares the thread's
// descriptor table: another thread watches this process's standard input, and would read the worker's config.
func setStdin(c workerConfig) error {
	if err := unix.Unshare(unix.CLONE_FILES); err != nil {
		return fmt.Errorf("unshare the table of files: %w", err)
	}
	var ends [2]int
	if err := unix.Pipe2(ends[:], 0); err != nil {
		return err
	}
	c.Held = ends[1]
	line, err := json.Marshal(c)
	if err != nil {
		return err
	}
	if _, err := unix.Write(ends[1], append(line, '\n')); err != nil { // far less than a pipe holds
		return err
	}
	if err := unix.Dup3(ends[0], 0, 0); err != nil {
		return err
	}
	return unix.Close(ends[0])
}

// work answers requests until their stream ends. Programs that it runs inherit none of its descriptors.
func work(ctx context.Context, c workerConfig, ready func(any) error) error {
	runtime.LockOSThread()
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, uintptr(c.Slack), 0, 0, 0) // an enforcer may refuse it: programs then wake late
	for _, fd := range []int{requestsFD, answersFD, c.Held} {
		unix.CloseOnExec(fd)
	}
	requests, answers := os.NewFile(requestsFD, "requests"), os.NewFile(answersFD, "answers")
	if requests == nil || answers == nil {
		return errors.New("serve worker: there are no pipes to speak through; tare starts this itself")
	}
	if err := ready(struct{}{}); err != nil {
		return err
	}
	return workload.Serve(ctx, requests, answers, c.Dir, workload.Own{Port: c.Port})
}
