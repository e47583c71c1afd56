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
	// holderLog is what a holder itself has to say, beside its components' logs.
	holderLog = "holder.log"
	// holdersTurn is how long a holder may take to end after it was told that nobody waits.
	holdersTurn = 45 * time.Second
)

// holdOptions tell a holder what to start. They reach it on its standard input.
type holdOptions struct {
	Name    string        `json:"name"`
	Version plane.Version `json:"version"`
	Binary  plane.Binary  `json:"binary"`
	Nodes   int           `json:"nodes"`
	Etcd    string        `json:"etcd"`
	PSP     bool          `json:"psp"`
	Shelf   string        `json:"shelf"`
	Logs    string        `json:"logs"`
}

// launch starts a process of its own session that holds the plane, and returns when that says that it is ready.
func launch(ctx context.Context, o holdOptions) (plane.Kept, error) {
	self, err := os.Executable()
	if err != nil {
		return plane.Kept{}, fmt.Errorf("find this program's own file, to start a holder from it: %w", err)
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
	k, heard := hear(ctx, cmd, out)
	if err := errors.Join(heard, err, in.Close()); err != nil {
		return plane.Kept{}, fmt.Errorf("start plane %s: %w", o.Name, err)
	}
	return k, nil
}

// hear reads what the holder says until it is ready. When ctx ends, the holder is asked to end, and heard to its end.
func hear(ctx context.Context, cmd *exec.Cmd, out io.ReadCloser) (plane.Kept, error) {
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
		turn, cancel := context.WithTimeout(context.WithoutCancel(ctx), holdersTurn)
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

// errSilent says that a holder ended without a word.
var errSilent = errors.New("its holder said nothing")

// A holderLine is what a holder says: one of the two.
type holderLine struct {
	Ready  *plane.Kept `json:"ready,omitempty"`
	Failed string      `json:"failed,omitempty"`
}

// mostSaid bounds the line, in bytes.
const mostSaid = 1 << 20

func hearLine(out io.Reader) (plane.Kept, error) {
	line, err := bufio.NewReader(io.LimitReader(out, mostSaid)).ReadBytes('\n')
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
