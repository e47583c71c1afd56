package workload

import (
	"bytes"
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

	"tare/internal/files"
	"tare/rigs/hosttest"
)

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
