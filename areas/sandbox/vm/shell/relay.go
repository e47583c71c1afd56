package shell

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"tare/internal/clock"
)

// patience bounds how long a machine may take to accept a request, or to end a command whose caller has gone.
const patience = 10 * time.Second

// A Line leads to a machine.
type Line interface {
	io.ReadWriter
	SetDeadline(at time.Time) error
}

// A Relay lets callers take turns on a line. It keeps no more than one answer in memory, whatever the machine sends.
type Relay struct {
	line    Line
	answers *bufio.Reader
	turn    sync.Mutex
	failed  error // why it carries no more requests; nil: it does
}

// NewRelay returns the relay of a line, which nobody else uses.
func NewRelay(line Line) *Relay {
	return &Relay{line: line, answers: bufio.NewReaderSize(line, maxLine)}
}

// Carry carries a caller's request to the machine, and the answers back until the last. It has the machine end the
// command if the caller goes away. After a machine has broken the rules, it only says so.
func (r *Relay) Carry(caller io.ReadWriter) {
	line, err := bufio.NewReader(io.LimitReader(caller, maxLine)).ReadBytes('\n')
	if err != nil {
		return // a caller without a request, such as "down"
	}
	r.turn.Lock()
	defer r.turn.Unlock()
	if r.failed == nil {
		if err := r.carry(caller, line); err != nil {
			r.failed = fmt.Errorf("%w; it is asked nothing more: end it with 'tare lab down'", err)
		}
	}
	if r.failed != nil {
		_ = send(caller, answer{Ended: true, Error: r.failed.Error()}) // it may have gone
	}
}

func (r *Relay) carry(caller io.ReadWriter, line []byte) error {
	r.hurry()
	_, err := r.line.Write(line)
	_ = r.line.SetDeadline(time.Time{})
	if err != nil {
		return fmt.Errorf("the machine takes no request: %w", err)
	}
	defer r.endWith(caller)()
	for {
		text, err := r.answers.ReadSlice('\n')
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			return fmt.Errorf("the machine sent a line of more than %d bytes", maxLine)
		case errors.Is(err, os.ErrDeadlineExceeded):
			return fmt.Errorf("the machine has not ended a command within %s after its caller had gone", patience)
		case err != nil:
			return fmt.Errorf("the machine has ended: %w", err)
		}
		var a answer
		if err := json.Unmarshal(text, &a); err != nil {
			return fmt.Errorf("the machine answers %.80q: %w", text, err)
		}
		_, _ = caller.Write(text) // the answers are read to the last even if nobody waits for them
		if a.Ended {
			return nil
		}
	}
}

// endWith has the machine end its command when the caller goes away, until over is called.
func (r *Relay) endWith(caller io.Reader) (over func()) {
	var mu sync.Mutex
	isOver := false
	go func() {
		_, _ = io.Copy(io.Discard, caller) // until it goes away
		mu.Lock()
		defer mu.Unlock()
		if !isOver {
			r.hurry()
			_ = send(r.line, request{End: true}) // whoever waits for the last answer is told
		}
	}()
	return func() {
		mu.Lock()
		defer mu.Unlock()
		isOver = true
		_ = r.line.SetDeadline(time.Time{}) // the next request sets its own
	}
}

// hurry bounds what is done on the line from now on. A line that has no deadlines any more says so when it is used.
func (r *Relay) hurry() { _ = r.line.SetDeadline(clock.System{}.Now().Add(patience)) }
