// Package shell runs commands in a guest, one at a time, over its serial line.
package shell

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// maxLine bounds a line in bytes, either way.
const maxLine = 1 << 20

// request is a command line, or the wish that the command which runs ends.
type request struct {
	Run []string `json:"run,omitempty"`
	End bool     `json:"end,omitempty"`
}

// answer is a piece of what a command prints, or its end.
type answer struct {
	Output []byte `json:"output,omitempty"`
	Ended  bool   `json:"ended,omitempty"`
	Status int    `json:"status,omitempty"`
	Error  string `json:"error,omitempty"` // why it was not run
}

// Serve runs the commands that in names, one after another, until it ends.
func Serve(ctx context.Context, in io.Reader, out io.Writer) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxLine)
	end, answered := func() {}, make(chan error, 1)
	answered <- nil
	for lines.Scan() {
		if len(lines.Bytes()) == 0 { // it only woke this machine
			continue
		}
		var r request
		wrong := json.Unmarshal(lines.Bytes(), &r)
		if r.End {
			end()
			continue
		}
		if err := <-answered; err != nil {
			return err
		}
		running, stop := context.WithCancel(ctx)
		end = stop
		go func() {
			defer stop()
			answered <- reply(running, r, wrong, out)
		}()
	}
	return errors.Join(<-answered, lines.Err())
}

// reply runs the command of a request, unless that is wrong, and sends its end.
func reply(ctx context.Context, r request, wrong error, out io.Writer) error {
	if wrong == nil && len(r.Run) == 0 {
		wrong = errors.New("no command is named")
	}
	a := answer{Ended: true}
	if wrong == nil {
		a.Status, wrong = run(ctx, r.Run, out)
	}
	if wrong != nil {
		a.Error = wrong.Error()
	}
	return send(out, a)
}

// run runs a command and sends what it prints. When ctx ends, so do the command and what it has started.
func run(ctx context.Context, argv []string, out io.Writer) (status int, err error) {
	c := exec.CommandContext(ctx, argv[0], argv[1:]...) //nolint:gosec // the user names it
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	w := sender{out}
	c.Stdout, c.Stderr = w, w
	if err := c.Start(); err != nil {
		return 0, err
	}
	defer context.AfterFunc(ctx, func() { _ = unix.Kill(-c.Process.Pid, unix.SIGKILL) })()
	err = c.Wait()
	if e, ok := errors.AsType[*exec.ExitError](err); ok {
		if status = e.ExitCode(); status >= 0 {
			return status, nil
		}
		return 0, fmt.Errorf("%s ended by a signal: %w", argv[0], e)
	}
	return 0, err
}

// sender sends each write as an answer.
type sender struct{ to io.Writer }

func (s sender) Write(b []byte) (int, error) {
	const most = 64 << 10
	for rest := b; len(rest) > 0; {
		piece := rest[:min(most, len(rest))]
		if err := send(s.to, answer{Output: piece}); err != nil {
			return 0, err
		}
		rest = rest[len(piece):]
	}
	return len(b), nil
}

func send(to io.Writer, v any) error {
	line, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = to.Write(append(line, '\n'))
	return err
}

// Run runs a command at the other end of a line, writes what it prints to out, and returns its exit status.
func Run(line io.ReadWriter, argv []string, out io.Writer) (status int, err error) {
	if err := send(line, request{Run: argv}); err != nil {
		return 0, err
	}
	lines := bufio.NewScanner(line)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		var a answer
		if err := json.Unmarshal(lines.Bytes(), &a); err != nil {
			return 0, fmt.Errorf("it answers %.80q: %w", lines.Bytes(), err)
		}
		if _, err := out.Write(a.Output); err != nil {
			return 0, err
		}
		switch {
		case a.Error != "":
			return 0, errors.New(a.Error)
		case a.Ended:
			return a.Status, nil
		}
	}
	return 0, errors.Join(lines.Err(), errors.New("the machine ended before the command did"))
}
