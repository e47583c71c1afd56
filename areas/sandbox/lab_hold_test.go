package sandbox

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"tare/area"
	"tare/areas/sandbox/vm"
	"tare/internal/files"
	"tare/rigs/hosttest"
)

// TestOneLabVMIsHeldAtATime: while a machine boots and while it is up, another `tare lab up` neither starts a second
// one nor touches the files of the first, which then runs commands.
func TestOneLabVMIsHeldAtATime(t *testing.T) {
	at := t.TempDir()
	goes := emulatorThatWaits(t, at)
	env := map[string]string{"XDG_RUNTIME_DIR": at, "TARE_CACHE": at}
	var one sync.Mutex
	shellOf := func(out io.Writer) labs {
		return labs{&area.Shell{
			Stdout: out, Tell: t.Logf,
			Getenv: func(name string) (string, bool) { v, ok := env[name]; return v, ok },
			Lock: func(string, string, time.Time) (func(), error) {
				if !one.TryLock() {
					return nil, errors.New("it is taken")
				}
				return one.Unlock, nil
			},
		}}
	}
	o := labOptions{Dir: filepath.Join(at, "tare", "lab")}
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(t.Context())
	defer end()
	read, write := io.Pipe()
	held := make(chan error, 1)
	go func() { held <- shellOf(write).holdLab(ctx, o) }()
	for !strings.Contains(filesIn(t, o.Dir), "vm-9.9.9-qemu.log") {
		time.Sleep(time.Millisecond)
	}
	before := filesIn(t, o.Dir)
	const want = "a lab VM boots, or is up"
	if err := shellOf(io.Discard).labUp(t.Context(), labOptions{}); err == nil || !strings.Contains(err.Error(), want) {
		t.Fatalf("up while one boots: %v, want %q", err, want)
	}
	var said bytes.Buffer
	if err := shellOf(&said).holdLab(t.Context(), o); err != nil || !strings.Contains(said.String(), want) {
		t.Errorf("a second holder: %v, says %q, want %q", err, said.String(), want)
	}
	if after := filesIn(t, o.Dir); after != before {
		t.Errorf("the first machine's files were %q, are %q", before, after)
	}
	goes()
	var ready labReady
	text, err := bufio.NewReader(read).ReadBytes('\n')
	if err = errors.Join(err, json.Unmarshal(text, &ready)); err != nil || ready.Failed != "" || ready.Kernel != "9.9.9" {
		t.Fatalf("the first machine says %s, %v", text, err)
	}
	var out bytes.Buffer
	if err := shellOf(&out).labRun(t.Context(), o, []string{"echo", "hi"}); err != nil || out.String() != "hi\n" {
		t.Errorf("a command in it: %q, %v", out.String(), err)
	}
	err = shellOf(io.Discard).labUp(t.Context(), labOptions{})
	if err == nil || !strings.Contains(err.Error(), "is up already") {
		t.Errorf("up while one is up: %v", err)
	}
	end()
	if err := <-held; err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(o.Dir); !errors.Is(err, os.ErrNotExist) || !one.TryLock() {
		t.Errorf("after its end the folder is there (%v), or the lock is held", err)
	}
}

// emulatorThatWaits puts an emulator into PATH that says hello once goes is called, and then runs commands on this
// host. Its kernel is below cache.
func emulatorThatWaits(t *testing.T, cache string) (goes func()) {
	t.Helper()
	boot, bin, begin := filepath.Join(cache, "lab", "boot"), filepath.Join(cache, "bin"), filepath.Join(cache, "begin")
	kernel := make([]byte, 0x300)
	copy(kernel[0x202:], "HdrS")
	self, err := os.Executable()
	err = errors.Join(err, os.MkdirAll(boot, 0o700), os.Mkdir(bin, 0o700),
		os.WriteFile(filepath.Join(boot, "vmlinuz-9.9.9"), kernel, 0o600),
		files.WriteProgram(filepath.Join(bin, "qemu-system-x86_64"), fmt.Appendf(nil,
			"#!/bin/sh\nuntil [ -e %s ]; do sleep 0.01; done\necho tare-guest-is-up\nexec %s lab shell\n", begin, self)))
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	if _, err := vm.Emulator(); err != nil {
		hosttest.Missing(t, err.Error(), "run on x86-64")
	}
	return func() {
		if err := os.WriteFile(begin, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// filesIn lists what is in a folder.
func filesIn(t *testing.T, folder string) string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(folder, "*"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(names, " ")
}

// TestLabDownEndsItsHolderOnly: a process that listens at the lab VM's socket is not ended for that, and a folder that
// another user could have made is neither believed nor removed.
func TestLabDownEndsItsHolderOnly(t *testing.T) {
	at := t.TempDir()
	var said strings.Builder
	tell := func(format string, args ...any) { fmt.Fprintf(&said, format, args...) }
	sh := labs{&area.Shell{Print: tell, Tell: tell, Getenv: func(name string) (string, bool) {
		return at, name == "XDG_RUNTIME_DIR"
	}}}
	dir := filepath.Join(at, "tare", "lab")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", filepath.Join(dir, labSocket))
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close() //nolint:errcheck // nothing to lose
	if err := sh.labDown(t.Context()); err != nil || !strings.Contains(said.String(), "no lab VM is up") {
		t.Errorf("without a holder: %v, %s", err, said.String())
	}
	sleep := exec.Command("sleep", "600")
	if err := sleep.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = sleep.Wait() }()
	defer func() { _ = sleep.Process.Kill() }()
	if err := nameHolder(dir, sleep.Process.Pid); err != nil {
		t.Fatal(err)
	}
	err = sh.labDown(t.Context())
	if err == nil || !strings.Contains(err.Error(), "and not its holder") {
		t.Errorf("another process listens: %v", err)
	}
	hosttest.NeedsRoot(t)
	canary := filepath.Join(dir, "canary")
	if err := errors.Join(os.WriteFile(canary, nil, 0o600), os.Chown(filepath.Dir(dir), 65534, 65534)); err != nil {
		t.Fatal(err)
	}
	for name, do := range map[string]func() error{
		"down": func() error { return sh.labDown(t.Context()) },
		"up":   func() error { return sh.labUp(t.Context(), labOptions{}) },
	} {
		if err := do(); err == nil || !strings.Contains(err.Error(), "belongs to another user") {
			t.Errorf("%s in a stranger's folder: %v", name, err)
		}
	}
	if _, err := os.Stat(canary); err != nil {
		t.Error(err)
	}
}

func TestCheckOfLab(t *testing.T) {
	cache := t.TempDir()
	getenv := func(name string) (string, bool) { return cache, name == "TARE_CACHE" }
	c := checkLab(getenv)
	if _, err := vm.Emulator(); err != nil {
		if c.Found != err.Error() {
			t.Errorf("got %+v, want %v", c, err)
		}
		return
	}
	if err := os.MkdirAll(filepath.Join(cache, "lab", "boot"), 0o755); err != nil {
		t.Fatal(err)
	}
	image := filepath.Join(cache, "lab", "boot", "vmlinuz-99.1.2-lab")
	if err := os.WriteFile(image, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if c = checkLab(getenv); !strings.HasPrefix(c.Found, "QEMU with Linux 99.1.2-lab") || c.Next != "" {
		t.Errorf("got %+v, want the kernel in the cache", c)
	}
}
