package vm

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"tare/internal/clock"
	"tare/internal/files"
	"tare/internal/proc"
	"tare/rigs/hosttest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(hosttest.Sharing(m)) }

// entryOf is what a reader of the format finds.
type entryOf struct {
	mode    uint64
	content string
}

// readArchive reads the format "newc" independently of its writer.
func readArchive(t *testing.T, b []byte) map[string]entryOf {
	t.Helper()
	out := map[string]entryOf{}
	round := func(n int) int { return (n + 3) / 4 * 4 }
	for at := 0; ; {
		if at+110 > len(b) || string(b[at:at+6]) != "070701" {
			t.Fatalf("no entry at byte %d of %d", at, len(b))
		}
		field := func(i int) int {
			n, err := strconv.ParseUint(string(b[at+6+8*i:at+14+8*i]), 16, 32)
			if err != nil {
				t.Fatal(err)
			}
			return int(n)
		}
		size, length := field(6), field(11)
		name := string(b[at+110 : at+110+length-1])
		begin := round(at + 110 + length)
		if name == "TRAILER!!!" {
			return out
		}
		if _, twice := out[name]; twice {
			t.Errorf("%s is in the archive twice", name)
		}
		if dir := filepath.Dir(name); dir != "." && out[dir].mode&dirMode == 0 {
			t.Errorf("%s precedes its folder", name)
		}
		out[name] = entryOf{uint64(field(1)), string(b[begin : begin+size])}
		at = round(begin + size)
	}
}

func TestInitrd(t *testing.T) {
	host := filepath.Join(t.TempDir(), "host")
	if err := os.WriteFile(host, []byte("of the host"), 0o750); err != nil {
		t.Fatal(err)
	}
	r := NewInitrd()
	r.Folder("/dev")
	r.Write("/etc/deep/text", []byte("12345"), 0o644)
	for _, at := range []string{"/bin/host", "/bin/same"} {
		if err := r.Put(at, host); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.Put("/x", t.TempDir()); err == nil {
		t.Error("a folder was put as a file")
	}
	var b bytes.Buffer
	if err := r.save(&b); err != nil {
		t.Fatal(err)
	}
	got := readArchive(t, b.Bytes())
	want := map[string]entryOf{
		"bin": {dirMode | 0o755, ""}, "dev": {dirMode | 0o755, ""}, "etc": {dirMode | 0o755, ""},
		"etc/deep": {dirMode | 0o755, ""}, "etc/deep/text": {fileMode | 0o644, "12345"},
		"bin/host": {fileMode | 0o750, "of the host"}, "bin/same": {fileMode | 0o750, ""}, // a link: it has no content
	}
	if len(got) != len(want) {
		t.Errorf("%d entries, want %d", len(got), len(want))
	}
	for name, w := range want {
		if got[name] != w {
			t.Errorf("%s is %+v, want %+v", name, got[name], w)
		}
	}
}

// TestProgramsAreBare: of this program what is loaded stands in a guest once, under both of its names, and it runs.
func TestProgramsAreBare(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	r, err := NewGuest(t.Context(), self, nil)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := r.save(&b); err != nil {
		t.Fatal(err)
	}
	archive := readArchive(t, b.Bytes())
	first, second := archive["bin/tare"].content, archive[key(self)].content
	if (first == "") == (second == "") {
		t.Fatalf("the program stands there with %d and %d bytes", len(first), len(second))
	}
	whole, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	bare := first + second
	more := slices.Concat(whole, make([]byte, 1<<20))
	if _, n, err := loaded(bytes.NewReader(more), int64(len(more))); err != nil || n != int64(len(bare)) {
		t.Errorf("of a program with more behind it %d bytes are taken, not %d: %v", n, len(bare), err)
	}
	path := filepath.Join(t.TempDir(), "bare")
	if err := files.WriteProgram(path, []byte(bare)); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), path, "-test.list", "TestProgramsAreBare").CombinedOutput()
	if err != nil || !strings.HasPrefix(string(out), "TestProgramsAreBare\n") {
		t.Errorf("%s: %v", out, err)
	}
	for name, text := range map[string]string{"no program": "#!/bin/sh\n", "cut off": string(whole[:len(bare)/2])} {
		if _, _, err := loaded(strings.NewReader(text), int64(len(text))); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
}

// TestInitrdThatCannotBeWritten: nothing is left, so that no machine boots with a part of it.
func TestInitrdThatCannotBeWritten(t *testing.T) {
	dir := t.TempDir()
	host := filepath.Join(dir, "host")
	if err := os.WriteFile(host, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	r := NewInitrd()
	if err := r.Put("/bin/host", host); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(host); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "initrd")
	if err := r.Save(path); err == nil || !strings.Contains(err.Error(), host) {
		t.Errorf("a file that is gone: %v", err)
	}
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("a part of it is left: %v", err)
	}
}

// TestProgramBringsItsLibraries adds a script and runs its interpreter in a root of nothing but the added files.
func TestProgramBringsItsLibraries(t *testing.T) {
	script := filepath.Join(t.TempDir(), "script")
	if err := files.WriteProgram(script, []byte("#!/bin/sh\nexit 7\n")); err != nil {
		t.Fatal(err)
	}
	r := NewInitrd()
	if path, err := r.Program(t.Context(), script); err != nil || path != script {
		t.Fatalf("%s, %v", path, err)
	}
	root := t.TempDir()
	for name, s := range r.files {
		to := filepath.Join(root, name)
		text, err := os.ReadFile(s.path)
		if err != nil || os.MkdirAll(filepath.Dir(to), 0o755) != nil || os.WriteFile(to, text, s.mode) != nil {
			t.Fatal(err)
		}
	}
	hosttest.NeedsRoot(t)
	c := exec.CommandContext(t.Context(), "chroot", root, script)
	if err := c.Run(); c.ProcessState.ExitCode() != 7 {
		t.Errorf("the script ended with %v, want status 7", err)
	}
}

func TestProgramErrors(t *testing.T) {
	dir := t.TempDir()
	for name, c := range map[string]struct{ text, want string }{
		"none":     {"#!\n", "names no interpreter"},
		"lost":     {"#!/no/such/interpreter\n", "no such file"},
		"nonsense": {"\x7fELFnonsense", "neither a script nor a program"},
	} {
		path := filepath.Join(dir, name)
		if err := files.WriteProgram(path, []byte(c.text)); err != nil {
			t.Fatal(err)
		}
		if _, err := NewInitrd().Program(t.Context(), path); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	loop := filepath.Join(dir, "loop")
	if err := files.WriteProgram(loop, []byte("#!"+loop+"\n")); err != nil {
		t.Fatal(err)
	}
	_, err := NewInitrd().Program(t.Context(), loop)
	if err == nil || !strings.Contains(err.Error(), "nested too deeply") {
		t.Errorf("a loop: %v", err)
	}
	if _, err := NewInitrd().Program(t.Context(), "no-such-program"); err == nil {
		t.Error("a program that does not exist was added")
	}
}

func TestKernels(t *testing.T) {
	cache := t.TempDir()
	boot := filepath.Join(cache, "lab", "boot")
	if err := os.MkdirAll(boot, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{
		"vmlinuz-6.1.0-9-amd64", "vmlinuz-6.12.117+deb12-cloud-amd64", "vmlinuz-6.1.0-56-amd64", "config-6.1.0", "vmlinuz-",
	} {
		if err := os.WriteFile(filepath.Join(boot, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	all, err := Kernels(func(name string) (string, bool) { return cache, name == "TARE_CACHE" })
	if err != nil {
		t.Fatal(err)
	}
	var ours []string
	for _, k := range all {
		if strings.HasPrefix(k.Path, boot) {
			ours = append(ours, k.Release)
		}
	}
	if want := []string{"6.12.117+deb12-cloud-amd64", "6.1.0-56-amd64", "6.1.0-9-amd64"}; !slices.Equal(ours, want) {
		t.Errorf("kernels %q, want %q", ours, want)
	}
	for release, want := range map[string]string{
		"": "6.12.117+deb12-cloud-amd64", "6.1": "6.1.0-56-amd64", "6.1.0-9": "6.1.0-9-amd64",
		"6.12": "6.12.117+deb12-cloud-amd64",
	} {
		k, err := FindKernel([]Kernel{{Release: ours[0]}, {Release: ours[1]}, {Release: ours[2]}}, release)
		if err != nil || k.Release != want {
			t.Errorf("%q: %q, %v, want %q", release, k.Release, err, want)
		}
	}
	if _, err := FindKernel(all, "1.0"); err == nil || !strings.Contains(err.Error(), "there are") && len(all) > 0 {
		t.Errorf("an unknown kernel: %v", err)
	}
	if _, err := FindKernel(nil, ""); err == nil {
		t.Error("a kernel was found where there is none")
	}
}

// TestKernelsOfOthers: no kernel is taken from a folder in which another user could have put it, and what is no regular
// file is not opened.
func TestKernelsOfOthers(t *testing.T) {
	const theirs = "belongs to another user; set TARE_CACHE"
	for title, c := range map[string]struct {
		make func(cache, boot, kernel string) error // what another user could do, or has done
		want string
	}{
		"a cache that all may write":  {func(cache, _, _ string) error { return os.Chmod(cache, 0o777) }, "may be written"},
		"a folder that all may write": {func(_, boot, _ string) error { return os.Chmod(boot, 0o1777) }, "may be written"},
		"a folder of another user's":  {func(_, boot, _ string) error { return os.Chown(boot, 65533, 65533) }, theirs},
		"a pipe": {func(_, _, kernel string) error {
			return errors.Join(os.Remove(kernel), unix.Mkfifo(kernel, 0o600))
		}, ""},
		"a link to a device": {func(_, _, kernel string) error {
			return errors.Join(os.Remove(kernel), os.Symlink("/dev/null", kernel))
		}, ""},
		"an empty cache that all may write": {func(cache, boot, _ string) error {
			return errors.Join(os.RemoveAll(boot), os.Chmod(cache, 0o1777))
		}, ""},
	} {
		t.Run(title, func(t *testing.T) {
			cache := filepath.Join(t.TempDir(), "cache")
			boot := filepath.Join(cache, "lab", "boot")
			kernel := filepath.Join(boot, "vmlinuz-99.0")
			err := errors.Join(os.MkdirAll(boot, 0o700), os.WriteFile(kernel, nil, 0o600))
			if err = errors.Join(err, c.make(cache, boot, kernel)); errors.Is(err, os.ErrPermission) {
				hosttest.Missing(t, err.Error(), hosttest.Root)
			}
			if err != nil {
				t.Fatal(err)
			}
			all, err := Kernels(func(name string) (string, bool) { return cache, name == "TARE_CACHE" })
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
			if slices.ContainsFunc(all, func(k Kernel) bool { return strings.HasPrefix(k.Path, cache) }) {
				t.Errorf("kernels %v were taken", all)
			}
		})
	}
}

// TestBootFailures boots with emulators that do not: each is tried twice, and the error says why.
func TestBootFailures(t *testing.T) {
	for title, c := range map[string]struct{ script, want string }{
		"it refuses":         {"echo cannot set up guest memory >&2; exit 1", "cannot set up guest memory"},
		"another first line": {"echo hello from another guest; exec sleep 20", "its first line is"},
		"it hangs":           {"exec sleep 20", "it has not booted within 300ms"},
	} {
		t.Run(title, func(t *testing.T) {
			dir := t.TempDir()
			emulator := filepath.Join(dir, "qemu")
			if err := files.WriteProgram(emulator, []byte("#!/bin/sh\necho >>"+dir+"/attempts\n"+c.script+"\n")); err != nil {
				t.Fatal(err)
			}
			var born []proc.ID
			_, err := Boot(t.Context(), Options{
				Emulator: emulator, Kernel: fakeKernel(t), Init: []string{"/bin/tare"}, Dir: dir,
				Name: "test", Clock: clock.System{}, Within: 300 * time.Millisecond,
				Born: func(id proc.ID) error { born = append(born, id); return nil },
			})
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "boot Linux 6.1 in QEMU") {
				t.Errorf("got %v, want %q", err, c.want)
			}
			if made, err := os.ReadFile(filepath.Join(dir, "attempts")); err != nil || len(made) != attempts {
				t.Errorf("%d attempts, want %d: %v", len(made), attempts, err)
			}
			for _, id := range born {
				if ticks, err := proc.StartTicks(id.PID); err == nil && ticks == id.StartTicks {
					t.Errorf("process %d still runs", id.PID)
				}
			}
		})
	}
}

// fakeKernel returns a kernel whose image has the right header and nothing else.
func fakeKernel(t *testing.T) Kernel {
	t.Helper()
	path := filepath.Join(t.TempDir(), "vmlinuz-6.1")
	if err := os.WriteFile(path, append(make([]byte, 0x202), "HdrS"...), 0o600); err != nil {
		t.Fatal(err)
	}
	return Kernel{Release: "6.1", Path: path}
}

// TestBootNeedsAKernel: QEMU is not started with another file.
func TestBootNeedsAKernel(t *testing.T) {
	dir := t.TempDir()
	for name, want := range map[string]string{
		"none": "no such file", "empty": "not a kernel image", "noise": "not a kernel image",
	} {
		path := filepath.Join(dir, name)
		text := map[string]int{"empty": 0, "noise": 4096}
		if n, ok := text[name]; ok {
			if err := os.WriteFile(path, bytes.Repeat([]byte("x"), n), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		_, err := Boot(t.Context(), Options{
			Emulator: filepath.Join(dir, "qemu"), Kernel: Kernel{Release: "6.1", Path: path}, Dir: dir, Clock: clock.System{},
			Born: func(proc.ID) error { t.Error("QEMU was started"); return nil },
		})
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
}

// TestLastWords shows the reason of a panic, not the registers after it.
func TestLastWords(t *testing.T) {
	c, write, err := openConsole(filepath.Join(t.TempDir(), "vm-x-console.log"))
	if err != nil {
		t.Fatal(err)
	}
	text := "tare: no such area\r\n[    1.8] Kernel panic - not syncing: Attempted to kill init!\r\n" +
		"[    1.8] CPU: 0\r\n[    1.9] R13: 0\r\n"
	if _, err := write.WriteString(text); err != nil {
		t.Fatal(err)
	}
	if err := write.Close(); err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("its console (%s) says: tare: no such area | [    1.8] Kernel panic - not syncing: "+
		"Attempted to kill init!", c.path)
	if got := c.lastWords(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestConsoleIsBounded: a guest that prints without end fills neither the disk nor the memory.
func TestConsoleIsBounded(t *testing.T) {
	c, write, err := openConsole(filepath.Join(t.TempDir(), "vm-x-console.log"))
	if err != nil {
		t.Fatal(err)
	}
	for range 3 * keptOnDisk / 1024 {
		if _, err := write.WriteString(strings.Repeat("x", 1023) + "\n"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := write.WriteString("the last line"); err != nil {
		t.Fatal(err)
	}
	if err := write.Close(); err != nil {
		t.Fatal(err)
	}
	<-c.ended
	if !strings.HasSuffix(c.lastWords(), " | the last line") || len(c.end) > keptEnd {
		t.Errorf("%d bytes in memory: %.100s", len(c.end), c.lastWords())
	}
	text, err := os.ReadFile(c.path)
	if err != nil || len(text) < keptOnDisk || len(text) > keptOnDisk+100 ||
		!strings.Contains(string(text), "[tare keeps") {
		t.Errorf("%d bytes on disk, %v", len(text), err)
	}
}

func TestInitIsForGuests(t *testing.T) {
	if err := Init(t.Context(), &bytes.Buffer{}, "/bin/false"); err == nil {
		t.Error("it ran as an ordinary process")
	}
}

// TestMachineHasNoDiskAndNoNetwork: QEMU gets no device but two serial lines.
func TestMachineHasNoDiskAndNoNetwork(t *testing.T) {
	harmless := []string{
		"-nodefaults", "-no-user-config", "-no-reboot", "-display", "-smp", "-m", "-kernel", "-initrd", "-machine", "-accel",
		"-cpu", "-append", "-icount", "-add-fd",
	}
	for _, processors := range []int{0, 2} {
		o := Options{Name: "x", Dir: "/d", Init: []string{"/init"}, Processors: processors}
		args := o.arguments()
		if !slices.Contains(args, "-nodefaults") || !slices.Contains(args, "-no-user-config") {
			t.Errorf("%q: QEMU adds devices of its own", args)
		}
		lines := 0
		for i, a := range args {
			switch {
			case !strings.HasPrefix(a, "-") || slices.Contains(harmless, a):
			case a == "-serial":
				lines++
			case a == "-chardev" && strings.HasPrefix(args[i+1], "stdio,"):
			case a == "-chardev" && strings.Contains(args[i+1], ",path=/dev/fdset/1,"): // a descriptor that QEMU was given
			default:
				t.Errorf("%s %s is another device", a, args[min(i+1, len(args)-1)])
			}
		}
		if lines != 2 {
			t.Errorf("%d serial lines", lines)
		}
	}
}

// laterClock is a clock that the test puts forward.
type laterClock struct {
	clock.System

	ahead time.Duration
}

func (c *laterClock) Now() time.Time { return c.System.Now().Add(c.ahead) }

// bootThatDoes boots a machine whose emulator says hello and then does what a shell is told.
func bootThatDoes(t *testing.T, what string, c clock.Clock) *Machine {
	t.Helper()
	dir := t.TempDir()
	emulator := filepath.Join(dir, "qemu")
	if err := files.WriteProgram(emulator, []byte("#!/bin/sh\necho "+hello+"\n"+what+"\n")); err != nil {
		t.Fatal(err)
	}
	m, err := Boot(t.Context(), Options{
		Emulator: emulator, Kernel: fakeKernel(t), Init: []string{"/bin/tare"}, Dir: dir,
		Name: "test", Clock: c, Born: func(proc.ID) error { return nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// awaitUse returns when a machine has used more processor time than it had when Stalled last looked.
func awaitUse(m *Machine) {
	for {
		time.Sleep(time.Millisecond)
		if cpu, err := proc.CPUOf(m.child.PID); err != nil || cpu != m.used.cpu {
			return
		}
	}
}

// TestStalled stops the process of a machine, as SIGSTOP does: it uses no more processor time.
func TestStalled(t *testing.T) {
	c := &laterClock{}
	m := bootThatDoes(t, "while :; do :; done", c)
	defer func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	}()
	for range 3 { // it computes
		if err := m.Stalled(); err != nil {
			t.Fatal(err)
		}
		awaitUse(m) // until the host has let it
		c.ahead += 2 * stalledAfter
	}
	if err := m.child.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	time.Sleep(50 * time.Millisecond)
	m.used = used{}
	if err := m.Stalled(); err != nil { // the first look
		t.Fatal(err)
	}
	if err := m.Stalled(); err != nil {
		t.Errorf("stalled within a moment: %v", err)
	}
	c.ahead += stalledAfter
	if err := m.Stalled(); err == nil || !strings.Contains(err.Error(), "time for 1m0s, since it is stopped") {
		t.Errorf("a stopped process: %v", err)
	}
	if err := m.child.Signal(syscall.SIGKILL); err != nil { // it would not heed SIGTERM
		t.Error(err)
	}
}

// TestStalledMachineIsWoken: a machine that waits for what it has missed goes on by input, and one that heeds no input
// is said to hang, not to be stopped.
func TestStalledMachineIsWoken(t *testing.T) {
	for _, c := range []struct{ does, want string }{
		{"read line; while :; do :; done", ""},
		{"exec sleep 600", "though it was woken: it hangs"},
	} {
		clk := &laterClock{}
		m := bootThatDoes(t, c.does, clk)
		settled(t, m)
		clk.ahead += checkEvery
		if err := m.Stalled(); err != nil { // wakes it
			t.Errorf("%s: %v", c.does, err)
		}
		if c.want == "" {
			awaitUse(m)
		}
		clk.ahead += stalledAfter
		if err := m.Stalled(); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.does, err, c.want)
		}
		if err := m.child.Signal(syscall.SIGKILL); err != nil {
			t.Error(err)
		}
		if err := m.Close(); err != nil {
			t.Logf("closed: %v", err)
		}
	}
}

// settled returns when a machine uses no more processor time, and has seen that.
func settled(t *testing.T, m *Machine) {
	t.Helper()
	for {
		if err := m.Stalled(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(100 * time.Millisecond)
		if cpu, err := proc.CPUOf(m.child.PID); err != nil || cpu == m.used.cpu {
			return
		}
	}
}
