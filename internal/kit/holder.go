package kit

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
)

const (
	// holderLog is the log of the holder itself, beside those of its components.
	holderLog = "holder.log"
	// HolderEndsWithin limits how long a holder may take to end after it was told that nobody waits.
	HolderEndsWithin = 45 * time.Second
	// MaxLine limits the length of a holder's line, in bytes.
	MaxLine = 1 << 20
)

// StartHolder starts this program in a session of its own, with a config and a log in dir, and returns the first line
// that it prints. When ctx ends, it asks the holder to end, and waits until it has.
func StartHolder(ctx context.Context, dir string, config any, args ...string) ([]byte, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find tare's own executable, to start the holder process with it: %w", err)
	}
	text, err := json.Marshal(config)
	if err != nil {
		return nil, fmt.Errorf("start a holder: %w", err)
	}
	log, err := os.OpenFile(filepath.Join(dir, holderLog), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("start a holder: %w", err)
	}
	defer log.Close()                  //nolint:errcheck // the holder has its own descriptor
	cmd := exec.Command(self, args...) //nolint:noctx,gosec // it outlives us on purpose
	cmd.Dir, cmd.Stderr, cmd.SysProcAttr = dir, log, &syscall.SysProcAttr{Setsid: true}
	in, err1 := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	if err := errors.Join(err1, err2); err != nil {
		return nil, fmt.Errorf("start a holder: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start a holder: %w", err)
	}
	_, err = in.Write(append(text, '\n'))
	line, silent := awaitLine(ctx, cmd, out)
	return line, errors.Join(silent, err, in.Close())
}

// awaitLine reads the holder's first line.
func awaitLine(ctx context.Context, cmd *exec.Cmd, out io.ReadCloser) ([]byte, error) {
	said := make(chan []byte, 1)
	go func() {
		line, err := bufio.NewReader(io.LimitReader(out, MaxLine)).ReadBytes('\n')
		if err != nil {
			line = nil
		}
		said <- line
	}()
	var line []byte
	select {
	case line = <-said:
	case <-ctx.Done():
		_ = cmd.Process.Signal(syscall.SIGTERM) // it has ended, or will
		turn, cancel := context.WithTimeout(context.WithoutCancel(ctx), HolderEndsWithin)
		defer cancel()
		select {
		case line = <-said:
		case <-turn.Done():
			_ = cmd.Process.Kill() // what it started ends with it
			line = <-said
		}
	}
	if line != nil {
		return line, errors.Join(out.Close(), cmd.Process.Release())
	}
	if err := cmd.Wait(); err != nil {
		return nil, fmt.Errorf("its holder ended: %w; see %s", err, filepath.Join(cmd.Dir, holderLog))
	}
	return nil, errSilent
}

// errSilent reports that a holder ended without printing a line.
var errSilent = errors.New("its holder process printed nothing")
