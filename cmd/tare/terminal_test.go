package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/sys/unix"
)

// onTerminal runs a program whose standard output is a terminal, and writes what stands there into a file: "terminal
// FILE PROGRAM ARGUMENT…". (The scripts' own ttyout closes the terminal before it has read all that was written.)
func onTerminal(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: terminal FILE PROGRAM ARGUMENT...")
	}
	screen, line, err := openTerminal()
	ts.Check(err)
	defer screen.Close() //nolint:errcheck // it is only read
	cmd := exec.Command("/bin/sh", append([]string{"-c", `exec "$@"`, "sh"}, args[1:]...)...)
	cmd.Dir, cmd.Stdout = ts.MkAbs("."), line
	for _, name := range []string{"PATH", "HOME", "TERM", "NO_COLOR", "XDG_STATE_HOME"} {
		if v := ts.Getenv(name); v != "" {
			cmd.Env = append(cmd.Env, name+"="+v)
		}
	}
	ts.Check(cmd.Start())
	ts.Check(line.Close())
	text, err := io.ReadAll(screen)
	if !errors.Is(err, syscall.EIO) { // no one has the terminal open any more, and all was read
		ts.Check(err)
	}
	ts.Check(cmd.Wait())
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), text, 0o600))
}

// openTerminal returns both ends of a new terminal: what is written to line stands on screen.
func openTerminal() (screen, line *os.File, err error) {
	if screen, err = os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0); err != nil {
		return nil, nil, err
	}
	var n int
	raw, err := screen.SyscallConn()
	if err == nil {
		err = errors.Join(raw.Control(func(fd uintptr) {
			if err = unix.IoctlSetPointerInt(int(fd), unix.TIOCSPTLCK, 0); err == nil {
				n, err = unix.IoctlGetInt(int(fd), unix.TIOCGPTN)
			}
		}), err)
	}
	if err == nil {
		line, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	}
	if err != nil {
		return nil, nil, errors.Join(err, screen.Close())
	}
	return screen, line, nil
}
