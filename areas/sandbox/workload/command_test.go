package workload

import (
	"bytes"
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"iter"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"tare/internal/files"
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
	for _, f := range []struct {
		name  string
		cmd   Command
		errno syscall.Errno
		want  string
	}{
		{
			"status",
			Command{Run: []string{"sh", "-c", "echo first >&2; echo 'the last line' >&2; exit 3"}},
			0,
			"exit status 3: the last line",
		},
		{"much to say", Command{Run: []string{"sh", "-c", "yes error | head -c 3000000 >&2; yes out | head -c " +
			"3000000; echo end >&2; exit 1"}}, 0, "exit status 1: end"},
		{"no program", Command{Run: []string{"no-such-program"}}, 0, "not found"},
		{"no such path", Command{Run: []string{"/no/such/program"}}, syscall.ENOENT, "/no/such/program"},
		{"no program file", Command{Run: []string{dir}}, syscall.EACCES, "execve"},
		{"signal", Command{Run: []string{"sh", "-c", "kill -9 $$"}}, 0, "signal: killed"},
		{
			"preparation",
			Command{Run: []string{"true"}, Prepare: []string{"sh", "-c", "echo why >&2; false"}},
			0,
			"prepare: c: sh: exit status 1: why",
		},
		// Many, that some are still ending: what follows must not take them for something that prepare started.
		{
			"left behind",
			Command{Run: []string{"sh", "-c", "for i in $(seq 200); do sleep 30 & done"}},
			0,
			"hold its errors open",
		},
		{"going on", Command{Run: []string{"sh", "-c", "sleep 2 2>/dev/null &"}}, 0, "left processes behind that go on"},
	} {
		f.cmd.Name = "c"
		_, err := c.Command(t.Context(), f.cmd, 1)
		if err == nil || !strings.Contains(err.Error(), f.want) {
			t.Errorf("%s: %v; want %q", f.name, err, f.want)
			continue
		}
		if f.errno != 0 && !errors.Is(err, f.errno) {
			t.Errorf("%s: %v; want %v", f.name, err, f.errno)
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
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second) // on a busy host the shell begins late
	defer cancel()
	if _, err := c.Command(ctx, hang(dir), 1); err == nil || !strings.Contains(err.Error(), "deadline exceeded") {
		t.Errorf("%v; want that time is over", err)
	}
	awaitEnd(t, dir)

	c, dir = start(t)
	ctx, stop := context.WithCancel(t.Context())
	go func() {
		defer stop()
		for ctx.Err() == nil {
			if pid, _ := os.ReadFile(filepath.Join(dir, "self")); strings.HasSuffix(string(pid), "\n") {
				return
			}
			time.Sleep(5 * time.Millisecond)
		}
	}()
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

func TestProgramIsAnELF(t *testing.T) {
	for arch, machine := range map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64} {
		b, err := program(arch)
		if err != nil {
			t.Fatal(err)
		}
		f, err := elf.NewFile(bytes.NewReader(b))
		if err != nil {
			t.Fatalf("%s: %v", arch, err)
		}
		if f.Machine != machine || f.Type != elf.ET_EXEC || len(f.Progs) != 1 {
			t.Errorf("%s: got header %+v", arch, f.FileHeader)
		}
		p := f.Progs[0]
		if p.Type != elf.PT_LOAD || p.Flags != elf.PF_R|elf.PF_X || p.Filesz != uint64(len(b)) || f.Entry <= p.Vaddr ||
			f.Entry >= p.Vaddr+p.Memsz {
			t.Errorf("%s: segment %+v, entry %#x", arch, p.ProgHeader, f.Entry)
		}
	}
	if _, err := program("mips"); err == nil || !strings.Contains(err.Error(), "mips") {
		t.Errorf("a program for mips: %v", err)
	}
}

// TestProgramExecutesItself counts its execve calls with strace.
func TestProgramExecutesItself(t *testing.T) {
	path := plantedProgram(t, runtime.GOARCH)
	hosttest.Program(t, "strace", "strace")
	for counter, want := range counters() {
		out, err := exec.Command("strace", append([]string{"-f", "-e", "trace=execve", path}, counter...)...).CombinedOutput()
		if err != nil {
			t.Fatalf("counter %q: %v: %s", counter, err, out)
		}
		if got := bytes.Count(out, []byte("execve(")) - 1; got != want { // one is strace's own
			t.Errorf("counter %q: %d execve instead of %d: %s", counter, got, want, out)
		}
	}
}

// TestProgramForARM64 runs it in QEMU's user mode. The kernel cannot execute it again from there: it must say so in its
// status.
func TestProgramForARM64(t *testing.T) {
	if runtime.GOARCH == "arm64" {
		return // it is the native program here
	}
	path := plantedProgram(t, "arm64")
	hosttest.Program(t, "qemu-aarch64-static", "qemu-user-static")
	for counter, want := range counters() {
		out, err := exec.Command("qemu-aarch64-static", append([]string{"-strace", path}, counter...)...).CombinedOutput()
		if want == 0 {
			if err != nil || bytes.Contains(out, []byte("execve(")) {
				t.Errorf("counter %q: %v: %s", counter, err, out)
			}
			continue
		}
		exit, ok := errors.AsType[*exec.ExitError](err)
		next := fmt.Sprintf("execve(%[1]q,{%[1]q,\"%010[2]d\",NULL})", path, want-1)
		if !ok || exit.ExitCode() != int(syscall.ENOEXEC) || !bytes.Contains(out, []byte(next)) {
			t.Errorf("counter %q: %v, want status %d after %s: %s", counter, err, syscall.ENOEXEC, next, out)
		}
	}
}

// TestProgramBehindItsGate lets the program at its gate make calls, natively and, for the other processor, in QEMU's
// user mode, where it cannot execute itself.
func TestProgramBehindItsGate(t *testing.T) {
	for _, c := range []struct {
		arch  string
		do    byte
		calls []string
	}{
		{runtime.GOARCH, doExecute, []string{"execve("}},
		{runtime.GOARCH, doFork, []string{"clone(", "wait4("}},
		{runtime.GOARCH, doSpawn, []string{"clone(", "execve(", "wait4("}},
		{"arm64", doFork, []string{"clone(", "wait4("}},
	} {
		t.Run(fmt.Sprintf("%s-%c", c.arch, c.do), func(t *testing.T) {
			path := plantedProgram(t, c.arch)
			tracer := []string{"strace", "-f", "-e", "trace=execve,clone,wait4", path}
			own := 1 // strace's execve of the program
			if c.arch != runtime.GOARCH {
				tracer, own = []string{"qemu-aarch64-static", "-strace", path}, 0
			}
			hosttest.Program(t, tracer[0], "strace qemu-user-static")
			cmd := exec.Command(tracer[0], append(tracer[1:], "0000000000", string([]byte{c.do, 3, 4}))...)
			out := behindGate(t, cmd, 12)
			for _, call := range c.calls {
				want := 12
				if call == "execve(" {
					want += own
				}
				if got := strings.Count(out, call); got != want {
					t.Errorf("%d %s instead of %d: %s", got, call, want, out)
				}
			}
		})
	}
}

// behindGate starts a program with a gate on descriptors 3 and 4, lets it make n calls, and returns its output.
func behindGate(t *testing.T, cmd *exec.Cmd, n int) string {
	t.Helper()
	from, there, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	back, to, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = &out, &out, []*os.File{from, to}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(from.Close(), to.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := back.Read(make([]byte, 1)); err != nil {
		t.Fatalf("it does not come to its gate: %v: %s", err, &out)
	}
	if _, err := fmt.Fprintf(there, "%010d", n); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v: %s", err, &out)
	}
	if err := errors.Join(there.Close(), back.Close()); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// counters maps the program's argument to the number of times that it executes itself.
func counters() iter.Seq2[[]string, int] {
	return func(yield func([]string, int) bool) {
		_ = yield(nil, 0) && yield([]string{"0000000000"}, 0) && yield([]string{"0000000001"}, 1) &&
			yield([]string{"0000000012"}, 12) && yield([]string{"0000000100"}, 100)
	}
}

// plantedProgram writes the program of an architecture.
func plantedProgram(t *testing.T, arch string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "program")
	b, err := program(arch)
	if err != nil {
		t.Fatal(err)
	}
	if err := files.WriteProgram(path, b); err != nil {
		t.Fatal(err)
	}
	return path
}
