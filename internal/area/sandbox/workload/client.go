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

// Client is the unconfined side of a worker. One request is under way at a time: calls from several goroutines wait for each other.
type Client struct {
	in  io.WriteCloser
	out io.ReadCloser

	mu     sync.Mutex
	lines  *bufio.Reader
	last   uint64 // number of the last request
	met    bool   // the hello has come
	broken error  // why the worker can no longer be spoken to
}

// NewClient speaks to a worker's stdin and stdout. Both must be such that Close ends a blocked read or write, as pipes are: so does a context that
// ends stop a call at once. After that, or after an answer that is none, the client is broken and every call fails; a worker that lost its client
// ends by itself after the batch under way.
func NewClient(in io.WriteCloser, out io.ReadCloser) *Client {
	return &Client{in: in, out: out, lines: bufio.NewReaderSize(out, maxLine)}
}

// Close closes both streams. The worker ends.
func (c *Client) Close() error {
	return errors.Join(c.in.Close(), c.out.Close())
}

// Run makes n calls of the kind op and returns what they cost together. A call that was refused is a *Failure.
func (c *Client) Run(ctx context.Context, op string, n int) (Cost, error) {
	a, err := c.ask(ctx, request{Verb: verbRun, Op: op, N: n})
	if err != nil {
		return Cost{}, fmt.Errorf("run %s: %w", op, err)
	}
	return *a.Cost, nil
}

// Command runs a command line n times and returns what the runs cost together, without their preparations. A run that ends other than with
// status 0 is a *Failure with the last line of its errors. When ctx ends, the command's process group is killed.
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

// Try makes one attempt in the worker, for proofs that an enforcer denies what it should; Attempts lists them. errno is 0 when the attempt
// succeeded. err is not nil when there was no attempt: it is unknown, or the worker is gone.
func (c *Client) Try(ctx context.Context, what string, args ...string) (errno syscall.Errno, err error) {
	a, err := c.ask(ctx, request{Verb: verbTry, Op: what, Args: args})
	if err != nil {
		return 0, fmt.Errorf("try %s: %w", what, err)
	}
	return syscall.Errno(*a.Errno), nil
}

// Status returns what the kernel says of the worker's confinement.
func (c *Client) Status(ctx context.Context) (Status, error) {
	a, err := c.ask(ctx, request{Verb: verbStatus})
	if err != nil {
		return Status{}, fmt.Errorf("status of worker: %w", err)
	}
	return *a.Status, nil
}

// ask sends a request and reads its answer. What the worker refused is an error of its own; all others break the client.
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
			err = context.Cause(ctx) // whatever the read said, it is because of this
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

// gone says in words that the worker's stream ended.
func gone(what string, err error) error {
	if errors.Is(err, io.EOF) {
		return fmt.Errorf("it ended before its %s: %w", what, io.ErrUnexpectedEOF)
	}
	return fmt.Errorf("read %s: %w", what, err)
}
