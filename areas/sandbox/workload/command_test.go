package workload

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"tare/rigs/hosttest"
)

func TestCommandCostsWhatItUses(t *testing.T) {
	c, _ := start(t)
	burn := Command{Name: "burn", Run: []string{"sh", "-c", "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done"}}
	child := Command{
		Name: "child",
		Run:  []string{"sh", "-c", `sh -c "i=0; while [ \$i -lt 20000 ]; do i=\$((i+1)); done"; true`},
	}
	idle := Command{Name: "idle", Run: []string{"sleep", "0.05"}}
	cost := func(c1 Command, n int) Cost {
		got, err := c.Command(t.Context(), c1, n)
		if err != nil {
			t.Fatal(err)
		}
		if got.N != n || got.Wall <= 0 || got.CPU <= 0 {
			t.Errorf("%s: impossible cost %+v", c1.Name, got)
		}
		return got
	}
	orphan := Command{Name: "orphan", Run: []string{"sh", "-c", `sh -c "i=0; while [ \$i -lt 20000 ]; do i=\$((i+1)); done" &`}}
	one, three, below, none := cost(burn, 1), cost(burn, 3), cost(child, 1), cost(idle, 2)
	if left := cost(orphan, 1); left.CPU < one.CPU/4 {
		t.Errorf("a loop that the command leaves behind costs %v, the same loop of its own %v", left.CPU, one.CPU)
	}
	if none.Wall < 100*time.Millisecond || none.CPU > none.Wall {
		t.Errorf("two sleeps of 50 ms cost %+v", none)
	}
	if one.CPU < none.CPU || three.CPU < one.CPU || below.CPU < one.CPU/4 {
		t.Errorf("CPU times: a loop %v, three %v, one in a child %v, two sleeps %v", one.CPU, three.CPU, below.CPU, none.CPU)
	}
}

func TestCommandPreparesUntimed(t *testing.T) {
	c, dir := start(t)
	burn := []string{"sh", "-c", "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; touch ready"}
	run := []string{"sh", "-c", "test -e ready && rm ready && echo x >> ran"}
	alone, err := c.Command(t.Context(), Command{Name: "alone", Run: burn, Dir: dir}, 1)
	if err != nil {
		t.Fatal(err)
	}
	cost, err := c.Command(t.Context(), Command{Name: "c", Run: run, Prepare: burn, Dir: dir}, 3)
	if err != nil {
		t.Fatal(err)
	}
	ran, err := os.ReadFile(filepath.Join(dir, "ran"))
	if err != nil || strings.Count(string(ran), "x") != 3 {
		t.Errorf("it ran %q: %v", ran, err)
	}
	if cost.CPU > alone.CPU {
		t.Errorf("three runs that do little cost %v: the preparation, %v each, is in it", cost.CPU, alone.CPU)
	}
}

func TestCommandFailures(t *testing.T) {
	hosttest.SkipIfShortUnlessRaced(t)
	c, dir := start(t)
	for name, f := range map[string]struct {
		cmd   Command
		errno syscall.Errno
		want  string
	}{
		"status": {
			Command{Run: []string{"sh", "-c", "echo first >&2; echo 'the last line' >&2; exit 3"}},
			0,
			"exit status 3: the last line",
		},
		"much to say": {Command{Run: []string{"sh", "-c", "yes error | head -c 3000000 >&2; yes out | head -c " +
			"3000000; echo end >&2; exit 1"}}, 0, "exit status 1: end"},
		"no program":      {Command{Run: []string{"no-such-program"}}, 0, "not found"},
		"no such path":    {Command{Run: []string{"/no/such/program"}}, syscall.ENOENT, "/no/such/program"},
		"no program file": {Command{Run: []string{dir}}, syscall.EACCES, "execve"},
		"signal":          {Command{Run: []string{"sh", "-c", "kill -9 $$"}}, 0, "signal: killed"},
		"preparation": {
			Command{Run: []string{"true"}, Prepare: []string{"sh", "-c", "echo why >&2; false"}},
			0,
			"prepare: c: sh: exit status 1: why",
		},
		"left behind": {Command{Run: []string{"sh", "-c", "sleep 30 &"}}, 0, "hold its errors open"},
		"going on":    {Command{Run: []string{"sh", "-c", "sleep 2 2>/dev/null &"}}, 0, "left processes behind that go on"},
	} {
		f.cmd.Name = "c"
		_, err := c.Command(t.Context(), f.cmd, 1)
		if err == nil || !strings.Contains(err.Error(), f.want) {
			t.Errorf("%s: %v; want %q", name, err, f.want)
			continue
		}
		if f.errno != 0 && !errors.Is(err, f.errno) {
			t.Errorf("%s: %v; want %v", name, err, f.errno)
		}
	}
	if _, err := c.Command(t.Context(), Command{Name: "c", Run: []string{"true"}}, 2); err != nil {
		t.Errorf("after all these: %v", err)
	}
}

// TestHungCommandIsKilled with everything that it started, at the worker's deadline and when the client goes away.
func TestHungCommandIsKilled(t *testing.T) {
	hang := func(dir string) Command {
		return Command{Name: "hang", Dir: dir, Run: []string{"sh", "-c", "sleep 60 & echo $! > child; echo $$ > self; wait"}}
	}
	c, dir := start(t)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := c.Command(ctx, hang(dir), 1); err == nil || !strings.Contains(err.Error(), "deadline exceeded") {
		t.Errorf("%v; want that time is over", err)
	}
	awaitEnd(t, dir)

	c, dir = start(t)
	ctx, stop := context.WithCancel(t.Context())
	time.AfterFunc(300*time.Millisecond, stop)
	if _, err := c.Command(ctx, hang(dir), 1); !errors.Is(err, context.Canceled) {
		t.Errorf("%v; want that it was cancelled", err)
	}
	awaitEnd(t, dir)
}

// awaitEnd waits until the processes that left their PIDs in dir have ended.
func awaitEnd(t *testing.T, dir string) {
	t.Helper()
	for _, file := range []string{"self", "child"} {
		pid, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			t.Fatal(err)
		}
		proc := filepath.Join("/proc", strings.TrimSpace(string(pid)), "stat")
		for end := time.Now().Add(20 * time.Second); ; {
			stat, err := os.ReadFile(proc)
			if err != nil || strings.Contains(string(stat), ") Z ") {
				break
			}
			if time.Now().After(end) {
				t.Errorf("%s of the command lives on: %s", file, stat)
				break
			}
			time.Sleep(5 * time.Millisecond)
		}
	}
}
