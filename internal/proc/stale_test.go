package proc_test

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"testing"

	"tare/internal/proc"
)

func TestKillStale(t *testing.T) {
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), roleEnv+"=stubborn")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ticks, err := proc.StartTicks(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	id := proc.ID{PID: cmd.Process.Pid, StartTicks: ticks}

	other := proc.ID{PID: id.PID, StartTicks: id.StartTicks + 1}
	if killed, err := proc.KillStale(other); killed || err != nil {
		t.Errorf("with another start time: killed %v, %v; want left alone", killed, err)
	}
	if !alive(id) {
		t.Fatal("a process with another start time was killed")
	}
	if killed, err := proc.KillStale(id); !killed || err != nil {
		t.Errorf("killed %v, %v; want killed", killed, err)
	}
	if alive(id) {
		t.Error("still alive")
	}
	_ = cmd.Wait()
	if killed, err := proc.KillStale(id); killed || err != nil {
		t.Errorf("second time: killed %v, %v; want nothing", killed, err)
	}
	for _, bad := range []proc.ID{{}, {PID: 1, StartTicks: 1}, {PID: -5, StartTicks: 1}, {PID: id.PID}} {
		if _, err := proc.KillStale(bad); err == nil {
			t.Errorf("%+v: no error", bad)
		}
	}
	if _, err := proc.StartTicks(id.PID); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("StartTicks of a dead process: %v, want fs.ErrNotExist", err)
	}
}
