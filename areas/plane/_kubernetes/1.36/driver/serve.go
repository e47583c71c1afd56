package driver

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
)

// Serve answers requests until "stop" or the end of its input, which is not an error, because the parent may die. It
// answers one after another, and reads the next request only after it has answered, so that nothing runs beside timed
// calls; but single calls and conditions side by side where the driver takes them together.
func Serve(in io.Reader, out io.Writer, d Driver) error {
	lines, answers := bufio.NewReaderSize(in, MaxLine), &answers{out: out}
	for {
		line, err := lines.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			err = fmt.Errorf("more than %d bytes", MaxLine)
		}
		if errors.Is(err, io.EOF) && len(line) == 0 {
			answers.under.Wait()
			return answers.failed()
		}
		if err != nil {
			return fmt.Errorf("read a request: no whole line: %w", err)
		}
		var q request
		if err := json.Unmarshal(line, &q); err != nil {
			answers.write(answer{Error: "no request of protocol 1: " + err.Error()})
			continue
		}
		if q.single() && d.Together() {
			answers.under.Go(func() { answers.write(respond(q, d)) })
			continue
		}
		answers.under.Wait()
		answers.write(respond(q, d))
		if err := answers.failed(); err != nil || q.Do == "stop" {
			return err
		}
	}
}

// single reports whether a request can be carried out beside others.
func (q request) single() bool {
	return q.Do == "operate" && q.Calls != nil && *q.Calls == 1 || q.Do == "impose" || q.Do == "lift"
}

// answers writes the answers to requests that are under way.
type answers struct {
	under sync.WaitGroup
	mu    sync.Mutex
	out   io.Writer
	err   error // the first
}

func (w *answers) write(a answer) {
	text, err := json.Marshal(a)
	w.mu.Lock()
	defer w.mu.Unlock()
	if err == nil {
		_, err = w.out.Write(append(text, '\n'))
	}
	if err != nil && w.err == nil {
		w.err = fmt.Errorf("answer %d: %w", a.ID, err)
	}
}

func (w *answers) failed() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

func respond(q request, d Driver) (a answer) {
	ok, err := perform(q, d)
	if err == nil {
		a.OK, err = json.Marshal(ok)
	}
	a.ID = q.ID
	if err != nil {
		a.OK, a.Error = nil, err.Error()
		if f, ok := errors.AsType[*Failure](err); ok {
			a.Next = f.Next
		}
	}
	return a
}

// perform carries out one request. A panic is an error of that request; the process can still serve the next one, such
// as undo.
func perform(q request, d Driver) (ok any, err error) {
	defer func() {
		if r := recover(); r != nil {
			ok, err = nil, Panicked(r)
		}
	}()
	switch q.Do {
	case "describe":
		if q.Protocol > 0 && q.Protocol != Protocol {
			return nil, fmt.Errorf("protocol %d is not spoken, but %d", q.Protocol, Protocol)
		}
		return d.Describe(), nil
	case "prepare":
		return d.Prepare(q.Preparation)
	case "verify":
		checks, err := d.Verify()
		return verified{checks}, err
	case "operate":
		return operate(q, d)
	case "impose":
		return struct{}{}, d.Impose(q.Condition)
	case "lift":
		return struct{}{}, d.Lift(q.Condition)
	case "undo":
		return struct{}{}, d.Undo(q.Preparation)
	case "stop":
		return struct{}{}, nil
	}
	return nil, fmt.Errorf("request %q is none of describe, prepare, verify, operate, impose, lift, undo, stop", q.Do)
}

func operate(q request, d Driver) (any, error) {
	if q.Calls == nil || *q.Calls < 0 {
		return nil, errors.New("operate: want a number of calls, 0 or more")
	}
	if *q.Calls == 0 {
		return Cost{}, nil
	}
	c, err := d.Operate(q.Operation, *q.Calls)
	c.Calls = *q.Calls
	return c, err
}

// Panicked returns a panic as an error: its first line.
func Panicked(r any) error {
	first, _, _ := strings.Cut(fmt.Sprint(r), "\n")
	return fmt.Errorf("panic: %s", first)
}
