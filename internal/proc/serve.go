package proc

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// ErrParentGone is the cause of a child's context that ended because the parent did.
var ErrParentGone = errors.New("the parent process is gone")

// Serve is the child's whole side of the protocol: it reads the config from stdin, runs work with it, and cancels
// work's context when the parent has ended. work calls ready once, when it serves. Serve returns work's error, or nil
// if the parent's end was its only cause.
func Serve(ctx context.Context, stdin io.Reader, stdout io.Writer,
	work func(ctx context.Context, config json.RawMessage, ready func(any) error) error,
) error {
	in := bufio.NewReader(stdin)
	var config json.RawMessage
	if err := ReadConfig(in, &config); err != nil {
		return err
	}
	ctx, cancel := WatchParent(ctx, in)
	defer cancel()
	err := work(ctx, config, func(v any) error { return Ready(stdout, v) })
	if ctx.Err() != nil && (errors.Is(err, context.Cause(ctx)) || errors.Is(err, ctx.Err())) {
		return nil
	}
	return err
}

// ReadConfig decodes the line of JSON that the parent sent. It reads no further than the line.
func ReadConfig(stdin *bufio.Reader, config any) error {
	line, err := stdin.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("read config from stdin: %w; this command is started by tare itself, not by hand", err)
	}
	if err := json.Unmarshal(line, config); err != nil {
		return fmt.Errorf("read config from stdin: %w", err)
	}
	return nil
}

// Ready tells the parent that the child serves; v, usually addresses, becomes Child.Ready.
func Ready(stdout io.Writer, v any) error {
	line, err := json.Marshal(map[string]any{"ready": v})
	if err != nil {
		return fmt.Errorf("encode ready line: %w", err)
	}
	if _, err := stdout.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("write ready line: %w", err)
	}
	return nil
}

// WatchParent returns a context that ends with cause ErrParentGone when stdin ends: the parent holds the other end, and
// the kernel closes it however the parent dies. Its goroutine ends with stdin, at the latest with this process, since a
// blocked read of stdin cannot be cancelled. The caller must cancel.
func WatchParent(ctx context.Context, stdin io.Reader) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		_, _ = io.Copy(io.Discard, stdin) // an error means the same as the end
		cancel(ErrParentGone)
	}()
	return ctx, func() { cancel(context.Canceled) }
}
