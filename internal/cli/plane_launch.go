package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"tare/internal/plane"
)

const (
	// holderLog is the log of the holder itself, beside those of its components.
	holderLog = "holder.log"
	// holderEndsWithin limits how long a holder may take to end after it was told that nobody waits.
	holderEndsWithin = 45 * time.Second
)

// holdOptions tell a holder what to start. It reads them from its standard input.
type holdOptions struct {
	Name        string        `json:"name"`
	Version     plane.Version `json:"version"`
	Binary      plane.Binary  `json:"binary"`
	Nodes       int           `json:"nodes"`
	Etcd        string        `json:"etcd"`
	PSP         bool          `json:"psp"`
	StateFolder string        `json:"shelf"`
	Logs        string        `json:"logs"`
}

// launch starts a holder in its own session, and returns when the holder reports that the plane is ready.
func launch(ctx context.Context, o holdOptions) (plane.Kept, error) {
	self, err := os.Executable()
	if err != nil {
		return plane.Kept{}, fmt.Errorf("find tare's own executable, to start the holder process with it: %w", err)
	}
	config, err := json.Marshal(o)
	if err != nil {
		return plane.Kept{}, fmt.Errorf("start a holder: %w", err)
	}
	log, err := os.OpenFile(filepath.Join(o.Logs, holderLog), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return plane.Kept{}, fmt.Errorf("start a holder: %w", err)
	}
	defer log.Close()                          //nolint:errcheck // the holder has its own descriptor
	cmd := exec.Command(self, "plane", "hold") //nolint:noctx // it outlives us on purpose
	cmd.Dir, cmd.Stderr, cmd.SysProcAttr = o.Logs, log, &syscall.SysProcAttr{Setsid: true}
	in, err1 := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	if err := errors.Join(err1, err2); err != nil {
		return plane.Kept{}, fmt.Errorf("start a holder: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return plane.Kept{}, fmt.Errorf("start a holder: %w", err)
	}
	_, err = in.Write(append(config, '\n'))
	k, heard := awaitReady(ctx, cmd, out)
	if err := errors.Join(heard, err, in.Close()); err != nil {
		return plane.Kept{}, fmt.Errorf("start plane %s: %w", o.Name, err)
	}
	return k, nil
}

// awaitReady reads the holder's lines until one says that the plane is ready. When ctx ends, it asks the holder to end,
// and reads until it has ended.
func awaitReady(ctx context.Context, cmd *exec.Cmd, out io.ReadCloser) (plane.Kept, error) {
	type heard struct {
		kept plane.Kept
		err  error
	}
	said := make(chan heard, 1)
	go func() {
		k, err := hearLine(out)
		said <- heard{k, err}
	}()
	var h heard
	select {
	case h = <-said:
	case <-ctx.Done():
		_ = cmd.Process.Signal(syscall.SIGTERM) // it has ended, or will
		turn, cancel := context.WithTimeout(context.WithoutCancel(ctx), holderEndsWithin)
		defer cancel()
		select {
		case h = <-said:
		case <-turn.Done():
			_ = cmd.Process.Kill() // its components end with it
			h = <-said
		}
	}
	if h.err == nil {
		return h.kept, errors.Join(out.Close(), cmd.Process.Release())
	}
	if ended := cmd.Wait(); ended != nil && errors.Is(h.err, errSilent) {
		h.err = fmt.Errorf("its holder ended: %w; see %s", ended, filepath.Join(cmd.Dir, holderLog))
	}
	return plane.Kept{}, h.err
}

// errSilent reports that a holder ended without printing a line.
var errSilent = errors.New("its holder process printed nothing")

// A holderLine is one line of a holder's output: it has one of the two fields.
type holderLine struct {
	Ready  *plane.Kept `json:"ready,omitempty"`
	Failed string      `json:"failed,omitempty"`
}

// maxLine limits the length of the line, in bytes.
const maxLine = 1 << 20

func hearLine(out io.Reader) (plane.Kept, error) {
	line, err := bufio.NewReader(io.LimitReader(out, maxLine)).ReadBytes('\n')
	if err != nil {
		return plane.Kept{}, errSilent
	}
	var said holderLine
	switch err := json.Unmarshal(line, &said); {
	case err != nil:
		return plane.Kept{}, fmt.Errorf("its holder says %.80q: %w", line, err)
	case said.Ready == nil:
		return plane.Kept{}, errors.New(said.Failed)
	}
	return *said.Ready, nil
}
