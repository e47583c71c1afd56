package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"tare/internal/clock"
)

const (
	healthEvery  = 10 * time.Millisecond
	healthWithin = 60 * time.Second
	stopWithin   = 3 * time.Second
)

// RunOPA is a child of tare that runs the opa found in PATH as a child of its own, with the policies in cfg.File, until
// ctx ends: opa speaks nothing of package proc's protocol. The load on the decision point is in that grandchild: look
// at the whole process tree. No fault can be planted in it.
func RunOPA(ctx context.Context, cfg Config, ready func(Ready) error) error {
	if cfg.Answer != "" || cfg.Leak != 0 || cfg.Delay != 0 || cfg.Cache != 0 || cfg.Gap != 0 {
		return errors.New("opa: no fault can be planted in it")
	}
	path, err := exec.LookPath("opa")
	if err != nil {
		return fmt.Errorf("opa: %w", err)
	}
	addr, err := freePort(ctx, cfg.Addr)
	if err != nil {
		return fmt.Errorf("opa: %w", err)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	began := clock.System{}.Now()
	ended := make(chan struct{})
	var said lastBytes
	bundle := cfg.File
	if !cfg.Own {
		bundle = filepath.Dir(cfg.File)
	}
	cmd := opaCommand(ctx, path, addr, bundle, &said)
	if cfg.V0 {
		cmd.Args = append(cmd.Args, "--v0-compatible")
	}
	go func() { // one thread from fork to end: the kernel sends Pdeathsig when the thread that forked ends
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Run()
		if err == nil {
			err = errors.New("exit status 0")
		}
		cancel(fmt.Errorf("opa ended by itself (%w): %s", err, said.text)) // not the cause, if ctx has ended before
		close(ended)
	}()
	if err = healthy(ctx, addr); err == nil {
		err = ready(Ready{Addr: addr, LoadSeconds: clock.System{}.Now().Sub(began).Seconds()})
	}
	if err == nil {
		<-ctx.Done()
		err = context.Cause(ctx)
	}
	cancel(err)
	<-ended
	return err
}

// lastBytes keeps the end of what is written to it.
type lastBytes struct{ text []byte }

// Write implements io.Writer.
func (l *lastBytes) Write(p []byte) (int, error) {
	const most = 2000
	l.text = append(l.text, p...)
	l.text = l.text[max(0, len(l.text)-most):]
	return len(p), nil
}

// opaCommand serves a bundle: without roots of its own it owns all paths, so that nobody who can connect to the port
// can write a policy or data. No secret can be read there either: the child's environment holds none, and OPA keeps
// http.send out of queries that are made up.
func opaCommand(ctx context.Context, path, addr, bundle string, log io.Writer) *exec.Cmd {
	cmd := exec.CommandContext(ctx, path, "run", "--server", "--addr", addr, "--log-level", "error", "--disable-telemetry",
		"--bundle", bundle)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = stopWithin
	return cmd
}

// freePort replaces port 0, which opa would not tell us, by one that is free now.
func freePort(ctx context.Context, addr string) (string, error) {
	if !strings.HasSuffix(addr, ":0") {
		return addr, nil
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", addr)
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// healthy waits until the server answers: opa listens when its policies are compiled.
func healthy(ctx context.Context, addr string) error {
	within, cancel := context.WithTimeout(ctx, healthWithin)
	defer cancel()
	client := http.Client{Timeout: time.Second}
	defer client.CloseIdleConnections()
	for {
		req, err := http.NewRequestWithContext(within, http.MethodGet, "http://"+addr+"/health", http.NoBody)
		if err != nil {
			return err
		}
		if resp, err := client.Do(req); err == nil {
			_ = resp.Body.Close() // only the status counts
			if resp.StatusCode == http.StatusOK {
				return nil
			}
		}
		if err := (clock.System{}).Sleep(within, healthEvery); err != nil {
			if cause := context.Cause(ctx); cause != nil {
				return cause
			}
			return fmt.Errorf("opa does not answer at %s within %v", addr, healthWithin)
		}
	}
}
