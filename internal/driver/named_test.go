package driver

import (
	"context"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"testing"
	"time"

	"tare/internal/proc"
	"tare/rigs/hosttest"
)

// TestStartedInTheSameTick: start times have ticks of 10 ms, so a process that began in the tick of the program's first
// one may be an earlier server. Then the pids say which is older.
func TestStartedInTheSameTick(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "sleep", "60")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	pid := cmd.Process.Pid
	ticks, err := proc.StartTicks(pid)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		first proc.ID
		want  bool
	}{
		{proc.ID{PID: pid + 1, StartTicks: ticks}, false},
		{proc.ID{PID: pid - 1, StartTicks: ticks}, true},
		{proc.ID{PID: pid + 1, StartTicks: ticks - 1}, true},
		{proc.ID{PID: pid - 1, StartTicks: ticks + 1}, false},
	} {
		if got := (&arm{first: c.first}).started(proc.ID{PID: pid, StartTicks: ticks}, os.Getpid()); got != c.want {
			t.Errorf("%d began at %d, the program's first process %+v: started by the program %t, want %t", pid, ticks, c.first,
				got, c.want)
		}
	}
}

// TestProcessesOfOthersAreNotEnded: a program with fewer rights than tare has none ended that it could not end itself.
func TestProcessesOfOthersAreNotEnded(t *testing.T) {
	hosttest.NeedsRoot(t)
	hosttest.Program(t, "setpriv", "util-linux")
	const less, other = 65534, 65533
	sleep := []string{"sleep", "60"}
	wrapped := []string{"sh", "-c", "setpriv --reuid=65534 sleep 60 & wait"} // as sudo does
	for name, c := range map[string]struct {
		program []string
		user    uint32
		named   uint32 // the user of the process
		marked  bool
		want    bool
	}{
		"root's of root":            {sleep, 0, 0, false, true},
		"root's of another user":    {sleep, 0, less, false, true},
		"its own":                   {sleep, less, less, false, true},
		"root's":                    {sleep, less, 0, false, false},
		"a third user's":            {sleep, less, other, false, false},
		"root's, which it started":  {sleep, less, 0, true, true},
		"root's, behind a wrapper":  {wrapped, 0, 0, false, false},
		"its own, behind a wrapper": {wrapped, 0, less, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			program := begin(t, c.user, os.Environ(), c.program...)
			s := &process{client: &client{child: &proc.Child{ID: program}}}
			for until := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
				if s.users = usersOf(program.PID); len(c.program) == 2 || slices.Contains(s.users, less) {
					break
				}
				if time.Now().After(until) {
					t.Fatalf("the wrapper has started nothing: %v", s.users)
				}
			}
			a := &arm{first: program, preparation: Preparation{Folder: "/folder"}}
			env := []string{}
			if c.marked {
				env = []string{Mark + "=/folder"}
			}
			named := begin(t, c.named, env, sleep...)
			s.pids = map[string]proc.ID{"server": named}
			journal := &testJournal{}
			target := New(Config{Area: "tool"})
			target.journal = journal
			if err := target.journalNamed(a, s); err != nil {
				t.Fatal(err)
			}
			if err := target.endNamed(a); err != nil {
				t.Fatal(err)
			}
			if ended := !named.Alive(); ended != c.want || len(journal.lines) > 0 != c.want {
				t.Errorf("ended %t, want %t; journal %v", ended, c.want, journal.lines)
			}
		})
	}
}

// begin starts a program as a user, until the end of the test.
func begin(t *testing.T, user uint32, env []string, argv ...string) proc.ID {
	t.Helper()
	path, err := exec.LookPath(argv[0])
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), path, argv[1:]...)
	cmd.Env = env
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: user, Gid: user}, Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { defer close(ended); _ = cmd.Wait() }()
	t.Cleanup(func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL); <-ended })
	id, err := proc.Identify(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	return id
}
