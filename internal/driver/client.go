package driver

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"tare/internal/clock"
	"tare/internal/proc"
)

const (
	// defaultGrace is how long a driver may take to answer "stop", and then to end.
	defaultGrace = 5 * time.Second
	// endWithin is how long a driver that closed its output may take to end, so that its exit status can be reported.
	endWithin = time.Second
	// lineBuffer is the usual length of an answer.
	lineBuffer = 16 << 10
)

// client speaks to a driver's process, one request at a time unless it shares. After any error but a *Failure it has
// killed the process.
type client struct {
	name   string
	child  *proc.Child
	lines  *bufio.Reader
	last   uint64  // id of the last request; while it shares, the shared's
	shared *shared // nil: one request at a time
	mu     sync.Mutex
	// broken is why the client can no longer be used; nil while it can. Under mu.
	broken error
	// watched is closed when no goroutine waits for the process any more.
	watched chan struct{}
	closed  bool
	grace   time.Duration // see defaultGrace
}

// launch says how a driver's process is started.
type launch struct {
	program Program
	folder  string // for Mark; empty: none
	log     string // the file for stderr; empty: stderr is discarded
	cpus    []int
	born    func(proc.ID) error
	grace   time.Duration // 0: defaultGrace
}

// start starts a driver and sends it nothing yet.
func (l launch) start(ctx context.Context) (*client, error) {
	p := l.program
	child, err := proc.Start(ctx, proc.Spec{
		Name: p.Name, Path: p.Path, Args: p.Args, Dir: p.Dir, Env: p.environment(l.folder), Talk: true,
		Secrets: p.secrets(), LogFile: l.log, CPUs: l.cpus, Born: l.born,
	})
	if err != nil {
		return nil, err
	}
	c := &client{
		name: p.Name, child: child, lines: bufio.NewReaderSize(child.Out, lineBuffer),
		watched: make(chan struct{}), grace: l.grace,
	}
	if c.grace <= 0 {
		c.grace = defaultGrace
	}
	go c.watch()
	return c, nil
}

// watch ends a wait for an answer when the process has ended: another process may hold its stdout open. Output that
// precedes the end can still be read.
func (c *client) watch() {
	defer close(c.watched)
	<-c.child.Exited()
	_ = c.child.Out.SetReadDeadline(clock.System{}.Now().Add(endWithin / 2)) // it may be closed already
}

// monotonic reads CLOCK_MONOTONIC.
func monotonic() (time.Duration, error) {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		return 0, fmt.Errorf("read clock: %w", err)
	}
	return time.Duration(ts.Nano()), nil
}

// ask sends a request, waits for its answer, and decodes that into into unless it is nil. took is the time from the
// first byte of the request to the last byte of the answer.
func (c *client) ask(ctx context.Context, within time.Duration, r Request, into any) (took time.Duration, err error) {
	if err := c.why(); err != nil {
		return 0, err
	}
	var answer []byte
	if c.shared != nil {
		answer, took, err = c.shared.exchange(ctx, within, &r)
	} else {
		c.last++
		r.ID = c.last
		answer, took, err = c.alone(ctx, within, r)
	}
	if err != nil {
		return 0, c.fail(err)
	}
	ok, err := parseAnswer(answer, r)
	if _, failed := errors.AsType[*Failure](err); failed {
		return 0, fmt.Errorf("%s: %w", c.name, err)
	}
	if err == nil && into != nil {
		err = decode(r.Do, ok, into)
	}
	if err != nil {
		return 0, c.fail(err)
	}
	return took, nil
}

// encode returns a request as a line.
func encode(r Request) ([]byte, error) {
	line, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", r.Do, err)
	}
	if len(line) >= MaxLine {
		return nil, fmt.Errorf("the request of %s has %d bytes, more than %d", r.Do, len(line), MaxLine)
	}
	return append(line, '\n'), nil
}

// alone exchanges a request while no other is under way.
func (c *client) alone(ctx context.Context, within time.Duration, r Request) ([]byte, time.Duration, error) {
	line, err := encode(r)
	if err != nil {
		return nil, 0, err
	}
	return c.exchange(ctx, within, r.Do, line)
}

// exchange writes a line and reads one.
func (c *client) exchange(ctx context.Context, within time.Duration, do string, line []byte) (answer []byte,
	took time.Duration, err error,
) {
	limited, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	cut := make(chan struct{})
	stop := context.AfterFunc(limited, func() {
		defer close(cut)
		past := time.Unix(1, 0)
		_ = c.child.In.SetWriteDeadline(past) // it may be closed already
		_ = c.child.Out.SetReadDeadline(past)
	})
	answer, took, err = c.transfer(line)
	if !stop() {
		<-cut
		if ctx.Err() != nil {
			return nil, 0, fmt.Errorf("%s: %w", do, context.Cause(ctx))
		}
		return nil, 0, fmt.Errorf("no answer to %s within %s: %w", do, within, ErrLate)
	}
	if err != nil {
		return nil, 0, c.explain(do, answer, err)
	}
	return answer, took, nil
}

// ErrLate means that a driver did not answer in time and was killed.
var ErrLate = errors.New("it hangs, or needs longer than it is given")

var (
	errLong    = errors.New("the line is too long")
	errUnasked = errors.New("unasked")
)

func (c *client) transfer(line []byte) (answer []byte, took time.Duration, err error) {
	if n := c.lines.Buffered(); n > 0 {
		said, _ := c.lines.Peek(n) // what has been read so far
		return c.child.MaskSecrets(slices.Clone(said)), 0, errUnasked
	}
	asked, err := monotonic()
	if err != nil {
		return nil, 0, err
	}
	if _, err := c.child.In.Write(line); err != nil {
		return nil, 0, err
	}
	if answer, err = readLine(c.lines); err != nil {
		return c.child.MaskSecrets(answer), 0, err
	}
	answered, err := monotonic()
	return c.child.MaskSecrets(answer), answered - asked, err
}

// readLine returns a line without its end. With an error it returns what was read.
func readLine(r *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case len(line) > MaxLine:
			return line, errLong
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil:
			return line, err
		}
		return line[:len(line)-1], nil
	}
}

// explain explains an exchange that failed on the driver's side. said is the part of an answer that was read.
func (c *client) explain(do string, said []byte, err error) error {
	switch {
	case errors.Is(err, errLong):
		return fmt.Errorf("its answer to %s is longer than a line may be (%d bytes): it begins with %s", do,
			MaxLine, quote(said))
	case errors.Is(err, errUnasked):
		return fmt.Errorf("it said %s, which nobody asked for, before %s; each request has one answer, a line; print to "+
			"stderr, stdout is for answers", quote(said), do)
	}
	words := ""
	if len(said) > 0 {
		words = fmt.Sprintf(", after it said %s without an end of line", quote(said))
	}
	ended, cancel := context.WithTimeout(context.Background(), endWithin)
	defer cancel()
	if c.awaitExit(ended) {
		return fmt.Errorf("it ended where an answer to %s was expected%s: %s", do, words, c.status())
	}
	switch {
	case errors.Is(err, syscall.EPIPE):
		return fmt.Errorf("it closed its standard input before %s, although it still runs: it must read a request a line "+
			"until "+
			"it ends", do)
	case errors.Is(err, io.EOF):
		return fmt.Errorf("it closed its standard output where an answer to %s was expected%s, although it still runs", do,
			words)
	}
	return fmt.Errorf("%s: %w", do, err)
}

// usable reports whether the driver can take a request.
func (c *client) usable() bool {
	select {
	case <-c.child.Exited():
		return false
	default:
		return c.why() == nil
	}
}

// why returns why the client can no longer be used; nil while it can.
func (c *client) why() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.broken
}

// awaitExit reports whether the process has ended, or ends before ctx.
func (c *client) awaitExit(ctx context.Context) bool {
	select {
	case <-c.child.Exited():
		return true
	case <-ctx.Done():
		return false
	}
}

// status describes how the process ended. It must have ended.
func (c *client) status() string {
	if s := c.child.Status(); s != "" {
		return s
	}
	return "exit status 0, without having been asked to stop"
}

// fail kills the process with its group, waits for its end, and records the reason. The error includes the end of its
// log. The first failure stands.
func (c *client) fail(err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.broken != nil {
		return c.broken
	}
	how := ""
	select {
	case <-c.child.Exited():
	default:
		how = "; it was killed"
		c.kill()
	}
	c.broken = fmt.Errorf("%s: %w%s%s", c.name, err, how, c.child.Tail())
	c.close()
	return c.broken
}

// discard kills the process and makes the client unusable. No request may be under way.
func (c *client) discard(why error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.broken == nil {
		c.kill()
		c.broken = why
		c.close()
	}
}

// kill ends the process and its group, and waits.
func (c *client) kill() {
	_ = c.child.Signal(syscall.SIGKILL) // it cannot fail for tare's own running child
	<-c.child.Exited()
}

// close closes the pipes of a process that has ended.
func (c *client) close() {
	if c.closed {
		return
	}
	c.closed = true
	<-c.watched
	for _, f := range []*os.File{c.child.In, c.child.Out} {
		_ = f.Close() // pipes: nothing is buffered that could be lost
	}
}

// stop asks the driver to end, and kills it if it does not. untidy says in what way it failed to end properly; the
// process has ended in any case.
func (c *client) stop(ctx context.Context) (untidy string) {
	if c.why() != nil {
		return ""
	}
	_, err := c.ask(ctx, c.grace, Request{Do: DoStop}, nil)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.broken != nil { // and has ended
		if c.child.Status() == "" {
			return "" // the driver took the request as its own
		}
		return err.Error()
	}
	c.broken = fmt.Errorf("%s: it was stopped", c.name)
	_ = c.child.In.Close() // the second signal to end
	limited, cancel := context.WithTimeout(ctx, c.grace)
	defer cancel()
	switch {
	case !c.awaitExit(limited):
		untidy = fmt.Sprintf("%s did not end within %s after it was asked to, and was killed", c.name, c.grace)
		c.kill()
	case c.child.Status() != "":
		untidy = fmt.Sprintf("%s ended with %s after it was asked to stop%s", c.name, c.child.Status(), c.child.Tail())
	case err != nil:
		untidy = err.Error()
	}
	c.close()
	return untidy
}
