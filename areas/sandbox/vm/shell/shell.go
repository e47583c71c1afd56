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
)

// maxLine bounds a line in bytes, either way.
const maxLine = 1 << 20

// request is a command line.
type request struct {
	Run []string `json:"run"`
}

// answer is a piece of what a command prints, or its end.
type answer struct {
	Output []byte `json:"output,omitempty"`
	Ended  bool   `json:"ended,omitempty"`
	Status int    `json:"status,omitempty"`
	Error  string `json:"error,omitempty"` // why it was not run
}

// Serve runs the commands that in names until it ends.
func Serve(ctx context.Context, in io.Reader, out io.Writer) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		if len(lines.Bytes()) == 0 { // it only woke this machine
			continue
		}
		var r request
		err := json.Unmarshal(lines.Bytes(), &r)
		if err == nil && len(r.Run) == 0 {
			err = errors.New("no command is named")
		}
		a := answer{Ended: true}
		if err == nil {
			a.Status, err = run(ctx, r.Run, out)
		}
		if err != nil {
			a.Error = err.Error()
		}
		if err := send(out, a); err != nil {
			return err
		}
	}
	return lines.Err()
}

// run runs a command and sends what it prints.
func run(ctx context.Context, argv []string, out io.Writer) (status int, err error) {
	c := exec.CommandContext(ctx, argv[0], argv[1:]...) //nolint:gosec // the user names it
	w := sender{out}
	c.Stdout, c.Stderr = w, w
	err = c.Run()
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
