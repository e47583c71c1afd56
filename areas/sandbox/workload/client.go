package workload

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"syscall"

	"tare/internal/clock"
)

// Client is the unconfined side of a worker. It has one request in flight at a time: concurrent calls wait for each
// other.
type Client struct {
	in  io.WriteCloser
	out io.ReadCloser

	mu     sync.Mutex
	lines  *bufio.Reader
	last   uint64 // number of the last request
	met    bool   // the hello was received
	broken error  // why the worker can no longer be used
}

// NewClient makes a client of a worker's stdin and stdout. Close must unblock reads and writes on both, as with pipes,
// so that a call ends when its context does. After that, or after an invalid answer, the client is broken and every
// call fails; a worker that lost its client ends by itself after the current batch.
func NewClient(in io.WriteCloser, out io.ReadCloser) *Client {
	return &Client{in: in, out: out, lines: bufio.NewReaderSize(out, maxLine)}
}

// Close closes both streams, which ends the worker.
func (c *Client) Close() error {
	return errors.Join(c.in.Close(), c.out.Close())
}

// Run makes n calls of the kind op and returns their total cost. A refused call is a *Failure.
func (c *Client) Run(ctx context.Context, op string, n int) (Cost, error) {
	a, err := c.ask(ctx, request{Verb: verbRun, Op: op, N: n})
	if err != nil {
		return Cost{}, fmt.Errorf("run %s: %w", op, err)
	}
	return *a.Cost, nil
}

// Command runs a command line n times and returns the total cost of the runs, without their preparations. A run with an
// exit status other than 0 is a *Failure with the last line of its stderr. When ctx ends, the command's process group
// is killed.
func (c *Client) Command(ctx context.Context, command Command, n int) (Cost, error) {
	r := request{Verb: verbCommand, Command: &command, N: n}
	if end, ok := ctx.Deadline(); ok {
		r.Within = max(1, end.Sub(clock.System{}.Now()))
	}
	a, err := c.ask(ctx, r)
	if err != nil {
		return Cost{}, fmt.Errorf("command %s: %w", command.Name, err)
	}
	return *a.Cost, nil
}

// Try makes one attempt in the worker, to prove that an enforcer denies what it should; Attempts lists them. errno is 0
// when the attempt succeeded. err means that no attempt was made: it is unknown, or the worker has ended.
func (c *Client) Try(ctx context.Context, what string, args ...string) (errno syscall.Errno, err error) {
	a, err := c.ask(ctx, request{Verb: verbTry, Op: what, Args: args})
	if err != nil {
		return 0, fmt.Errorf("try %s: %w", what, err)
	}
	return syscall.Errno(*a.Errno), nil
}

// Status returns the kernel's view of the worker's confinement.
func (c *Client) Status(ctx context.Context) (Status, error) {
	a, err := c.ask(ctx, request{Verb: verbStatus})
	if err != nil {
		return Status{}, fmt.Errorf("status of worker: %w", err)
	}
	return *a.Status, nil
}

// ask sends a request and reads its answer. An error that the worker reports is returned; all others break the client.
func (c *Client) ask(ctx context.Context, r request) (answer, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.broken != nil {
		return answer{}, c.broken
	}
	if err := ctx.Err(); err != nil {
		return answer{}, err
	}
	c.last++
	r.ID = c.last
	if err := r.validate(); err != nil {
		return answer{}, err
	}
	a, err := c.exchange(ctx, r)
	if err != nil {
		c.broken = fmt.Errorf("worker: %w", err)
		_ = c.Close()
		return answer{}, c.broken
	}
	return a, a.err()
}

func (c *Client) exchange(ctx context.Context, r request) (a answer, err error) {
	closed := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(closed)
		_ = c.Close()
	})
	defer func() {
		if !stop() {
			<-closed
			err = context.Cause(ctx) // the cause, whatever the read returned
		}
	}()
	if !c.met {
		line, err := readLine(c.lines)
		if err != nil {
			return answer{}, gone("hello", err)
		}
		if err := parseHello(line); err != nil {
			return answer{}, err
		}
		c.met = true
	}
	if err := writeLine(c.in, r); err != nil {
		return answer{}, fmt.Errorf("send request: %w", err)
	}
	line, err := readLine(c.lines)
	if err != nil {
		return answer{}, gone("answer", err)
	}
	return parseAnswer(line, r)
}

// gone explains that the worker's stream ended.
func gone(what string, err error) error {
	if errors.Is(err, io.EOF) {
		return fmt.Errorf("it ended before its %s: %w", what, io.ErrUnexpectedEOF)
	}
	return fmt.Errorf("read %s: %w", what, err)
}
