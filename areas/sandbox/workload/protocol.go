package workload

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"
	"time"
)

// The protocol is one JSON object per line. The worker first sends the version that it speaks; then it sends one answer
// to each request, with the request's number.
const (
	protocol = "tare-workload"
	version  = 1
	// maxLine bounds a line of either side; a longer one is invalid.
	maxLine = 64 << 10
	// maxCalls bounds a batch. A getppid takes at least 20 ns, so more calls would take longer than any trial.
	maxCalls = 1 << 30
)

// hello is the worker's first line.
type hello struct {
	Protocol string `json:"protocol"`
	Version  int    `json:"version"`
}

// The verbs of a request.
const (
	verbRun     = "run"
	verbCommand = "command"
	verbTry     = "try"
	verbStatus  = "status"
)

// request is a request to the worker.
type request struct {
	ID   uint64   `json:"id"`
	Verb string   `json:"verb"`
	Op   string   `json:"op,omitempty"`   // run: the kind's name; try: what to attempt
	Args []string `json:"args,omitempty"` // try
	N    int      `json:"n,omitempty"`    // run and command: how many calls
	// Command is the command line to run.
	Command *Command `json:"command,omitempty"`
	// Within bounds a command's n runs together; 0: no bound.
	Within time.Duration `json:"within_ns,omitempty"`
	// At is when a run begins, by CLOCK_MONOTONIC; 0: at once.
	At time.Duration `json:"at_ns,omitempty"`
}

// answer is the worker's answer to a request: a result, or an error.
type answer struct {
	ID     uint64   `json:"id"`
	Cost   *Cost    `json:"cost,omitempty"`
	Errno  *int     `json:"errno,omitempty"` // of an attempt
	Status *Status  `json:"status,omitempty"`
	Error  string   `json:"error,omitempty"`
	Failed *failure `json:"failed,omitempty"` // the error, if it is a Failure
}

// failure is a Failure on the wire.
type failure struct {
	Op     string `json:"op"`
	Call   string `json:"call"`
	Errno  int    `json:"errno,omitempty"`
	Detail string `json:"detail,omitempty"`
}

// maxErrno is the largest errno that Linux uses (MAX_ERRNO).
const maxErrno = 4095

// Status is the kernel's view of the worker's confinement.
type Status struct {
	PID int `json:"pid"`
	// Seccomp is the mode: 0 off, 1 strict, 2 filter. Filters is the number of attached filters; −1 where the kernel does
	// not report it.
	Seccomp    int  `json:"seccomp"`
	Filters    int  `json:"seccomp_filters"`
	NoNewPrivs bool `json:"no_new_privs"`
}

// parseRequest rejects what a client of this version does not send.
func parseRequest(line []byte) (request, error) {
	var r request
	if err := strict(line, &r); err != nil {
		return request{}, fmt.Errorf("request: %w", err)
	}
	if err := r.validate(); err != nil {
		return request{ID: r.ID}, fmt.Errorf("request %d: %w", r.ID, err)
	}
	return r, nil
}

func (r *request) validate() error {
	counted := r.N >= 1 && r.N <= maxCalls
	switch {
	case r.Within < 0:
		return fmt.Errorf("within %d ns", r.Within)
	case r.At < 0 || (r.At > 0 && r.Verb != verbRun):
		return fmt.Errorf("%s at %d ns", r.Verb, r.At)
	case r.Verb == verbRun && !counted, r.Verb == verbCommand && !counted:
		return fmt.Errorf("%d calls: must be 1 to %d", r.N, maxCalls)
	case r.Verb == verbCommand && r.Command == nil:
		return errors.New("no command")
	}
	switch r.Verb {
	case verbRun, verbTry, verbStatus:
		return nil
	case verbCommand:
		return r.Command.Validate()
	}
	return fmt.Errorf("unknown verb %.40q", r.Verb)
}

// parseHello rejects anything but the hello of this version.
func parseHello(line []byte) error {
	var h hello
	if err := strict(line, &h); err != nil {
		return fmt.Errorf("hello: %w", err)
	}
	if h.Protocol != protocol || h.Version != version {
		return fmt.Errorf("hello: it speaks %.40q version %d, not %q version %d", h.Protocol, h.Version, protocol, version)
	}
	return nil
}

// parseAnswer rejects an answer to another request, one that does not fit the request, and impossible costs.
func parseAnswer(line []byte, r request) (answer, error) {
	var a answer
	if err := strict(line, &a); err != nil {
		return answer{}, fmt.Errorf("answer: %w", err)
	}
	if a.ID != r.ID {
		return answer{}, fmt.Errorf("answer: to request %d, not to %d", a.ID, r.ID)
	}
	if a.Error != "" {
		if f := a.Failed; f != nil && (f.Errno < 0 || f.Errno > maxErrno) {
			return answer{}, fmt.Errorf("answer: errno %d", f.Errno)
		}
		return a, nil
	}
	if err := a.fits(r); err != nil {
		return answer{}, fmt.Errorf("answer to %s: %w", r.Verb, err)
	}
	return a, nil
}

func (a *answer) fits(r request) error {
	switch c := a.Cost; {
	case a.Failed != nil:
		return errors.New("a failure without an error")
	case (c != nil) != (r.Verb == verbRun || r.Verb == verbCommand):
		return errors.New("a cost is missing or not asked for")
	case c != nil && c.N != r.N:
		return fmt.Errorf("the cost of %d calls, not of %d", c.N, r.N)
	case c != nil && (c.Wall <= 0 || c.CPU < 0 || (!c.Counted && c.Instructions != 0)):
		return fmt.Errorf("wall %d ns, CPU %d ns, %d instructions", c.Wall, c.CPU, c.Instructions)
	case (a.Errno != nil) != (r.Verb == verbTry):
		return errors.New("an errno is missing or not asked for")
	case a.Errno != nil && (*a.Errno < 0 || *a.Errno > maxErrno):
		return fmt.Errorf("errno %d", *a.Errno)
	case (a.Status != nil) != (r.Verb == verbStatus):
		return errors.New("a status is missing or not asked for")
	}
	return nil
}

// err returns the answer's error, with its type.
func (a *answer) err() error {
	switch {
	case a.Error == "":
		return nil
	case a.Failed != nil:
		f := a.Failed
		return &told{text: a.Error, failure: &Failure{
			Op: f.Op, Call: f.Call, Errno: syscall.Errno(f.Errno),
			Detail: f.Detail,
		}}
	}
	return errors.New(a.Error)
}

// told is the worker's error message, which may say more than its Failure.
type told struct {
	text    string
	failure *Failure
}

func (t *told) Error() string { return t.text }
func (t *told) Unwrap() error { return t.failure }

// refuse returns the answer that carries err.
func refuse(id uint64, err error) answer {
	a := answer{ID: id, Error: clip(err.Error())}
	if f, ok := errors.AsType[*Failure](err); ok {
		a.Failed = &failure{Op: f.Op, Call: f.Call, Errno: int(f.Errno), Detail: clip(f.Detail)}
	}
	return a
}

// clip shortens a message to fit into a line.
func clip(s string) string {
	const most = 2000
	if len(s) > most {
		s = s[:most] + "…"
	}
	return strings.ToValidUTF8(s, "?")
}

// strict decodes a line that holds one object, and rejects unknown members.
func strict(line []byte, v any) error {
	line = bytes.TrimSpace(line)
	if len(line) == 0 || line[0] != '{' {
		return fmt.Errorf("not an object: %.80q", line)
	}
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return fmt.Errorf("%w in %.80q", err, line)
	}
	if rest := bytes.TrimSpace(line[d.InputOffset():]); len(rest) > 0 {
		return fmt.Errorf("more after the object: %.80q", rest)
	}
	return nil
}

// errLong is the error for a line longer than maxLine.
var errLong = fmt.Errorf("a line of more than %d bytes", maxLine)

// readLine reads a line, which is valid until the next call. The end of the stream within a line is an error.
func readLine(r *bufio.Reader) ([]byte, error) {
	line, err := r.ReadSlice('\n')
	switch {
	case err == nil:
		return line, nil
	case errors.Is(err, bufio.ErrBufferFull):
		return nil, errLong
	case errors.Is(err, io.EOF) && len(line) > 0:
		return nil, fmt.Errorf("the stream ended within a line: %.80q: %w", line, io.ErrUnexpectedEOF)
	}
	return nil, err
}

// writeLine writes v as one line.
func writeLine(w io.Writer, v any) error {
	line, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode line: %w", err)
	}
	if len(line) >= maxLine {
		return errLong
	}
	_, err = w.Write(append(line, '\n'))
	return err
}
