package proc

import (
	"context"
	"errors"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// leader starts a process that leads a group, and returns its pidfd.
func leader(t *testing.T, line ...string) (cmd *exec.Cmd, fd int) {
	t.Helper()
	cmd = exec.CommandContext(t.Context(), line[0], line[1:]...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, PidFD: &fd}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have been killed
		_ = cmd.Wait()         // as it was meant to end
	})
	return cmd, fd
}

// ends reports whether a process ends within a second.
func ends(pid int) bool {
	for range 100 {
		var info unix.Siginfo
		err := unix.Waitid(unix.P_PID, pid, &info, unix.WEXITED|unix.WNOWAIT|unix.WNOHANG, nil)
		if err != nil || info.Signo != 0 {
			return true
		}
		time.Sleep(10 * time.Millisecond)
	}
	return false
}

// TestNumberOfAnotherGroup: once the leader has been reaped, its number may be that of another group, which no signal
// reaches, with a pidfd and without.
func TestNumberOfAnotherGroup(t *testing.T) {
	t.Parallel()
	gone, fd := leader(t, "true")
	if err := gone.Wait(); err != nil {
		t.Fatal(err)
	}
	stranger, _ := leader(t, "sleep", "60")
	for name, fd := range map[string]int{"pidfd": fd, "number": -1} {
		g := &group{leader: stranger.Process.Pid, fd: fd, reaped: true}
		if err := g.signal(syscall.SIGKILL); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		g.close()
		if err := g.signal(syscall.SIGKILL); err != nil {
			t.Errorf("%s: closed: %v", name, err)
		}
	}
	if ends(stranger.Process.Pid) {
		t.Error("a process that was not of the group was killed")
	}
}

func TestGroupEnds(t *testing.T) {
	t.Parallel()
	for _, way := range []string{"pidfd", "number", "early"} {
		cmd, fd := leader(t, "sleep", "60")
		g := &group{}
		if way == "number" {
			fd = -1
		}
		if way != "early" {
			g.follow(cmd.Process.Pid, fd)
		}
		if err := g.signal(syscall.SIGKILL); err != nil {
			t.Errorf("%s: %v", way, err)
		}
		if way == "early" {
			g.follow(cmd.Process.Pid, fd)
		}
		if !ends(cmd.Process.Pid) {
			t.Errorf("%s: the leader goes on", way)
		}
	}
}

// TestCommandEnds: with its context, the whole group; without, only what holds its output open, and only if it is told.
func TestCommandEnds(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, script string
		end, after   bool // EndHolders; whether what it left goes on
		want         error
	}{
		{"ended by its context", "sleep 61 & echo $! >&2; wait", false, false, nil},
		{"left a process", "sleep 62 >/dev/null 2>&1 & echo $! >&2", false, true, nil},
		{"left a holder", "sleep 63 & echo $! >&2", false, true, exec.ErrWaitDelay},
		{"holders end", "sleep 64 & echo $! >&2", true, false, exec.ErrWaitDelay},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			said := &Tail{}
			cmd := Command(ctx, "sh", "-c", c.script)
			cmd.Stderr, cmd.WaitDelay, cmd.EndHolders = said, 300*time.Millisecond, c.end
			if err := cmd.Run(); c.want != nil && !errors.Is(err, c.want) {
				t.Errorf("it ended with %v, want %v", err, c.want)
			}
			var left int
			for _, r := range said.LastLine() {
				left = 10*left + int(r-'0')
			}
			on := func() bool {
				id, err := Identify(left)
				return err == nil && id.Alive()
			}
			for began := time.Now(); on() != c.after && time.Since(began) < 5*time.Second; { // a kill takes a moment
				time.Sleep(time.Millisecond)
			}
			if on() != c.after {
				t.Errorf("process %d goes on: %t, want %t", left, on(), c.after)
			}
			if id, err := Identify(left); err == nil {
				if _, err := KillStale(id); err != nil {
					t.Error(err)
				}
			}
		})
	}
}
