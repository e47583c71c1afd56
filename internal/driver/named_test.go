package driver

import (
	"os"
	"os/exec"
	"testing"

	"tare/internal/proc"
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
