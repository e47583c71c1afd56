package driver

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Serve answers requests in order until "stop" or the end of its input, which is not an error, because the parent may
// die. It reads the next request only after it has answered, so that nothing runs beside timed calls.
func Serve(in io.Reader, out io.Writer, d Driver) error {
	lines := bufio.NewReaderSize(in, MaxLine)
	for {
		line, err := lines.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			return fmt.Errorf("read a request: more than %d bytes", MaxLine)
		}
		if errors.Is(err, io.EOF) && len(line) == 0 {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read a request: no whole line: %w", err)
		}
		a, stop := respond(line, d)
		text, err := json.Marshal(a)
		if err != nil {
			return fmt.Errorf("answer %d: %w", a.ID, err)
		}
		if _, err := out.Write(append(text, '\n')); err != nil {
			return fmt.Errorf("answer %d: %w", a.ID, err)
		}
		if stop {
			return nil
		}
	}
}

func respond(line []byte, d Driver) (a answer, stop bool) {
	var q request
	if err := json.Unmarshal(line, &q); err != nil {
		return answer{Error: "no request of protocol 1: " + err.Error()}, false
	}
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
	return a, q.Do == "stop"
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
		notes, err := d.Prepare(q.Preparation)
		return prepared{notes}, err
	case "verify":
		checks, err := d.Verify()
		return verified{checks}, err
	case "operate":
		return operate(q, d)
	case "undo":
		return struct{}{}, d.Undo(q.Preparation)
	case "stop":
		return struct{}{}, nil
	}
	return nil, fmt.Errorf("request %q is none of describe, prepare, verify, operate, undo, stop", q.Do)
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
