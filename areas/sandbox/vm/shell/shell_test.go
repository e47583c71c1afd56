package shell

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"tare/rigs/hosttest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(hosttest.Sharing(m)) }

func TestRun(t *testing.T) {
	here, there := net.Pipe()
	served := make(chan error, 1)
	go func() { served <- Serve(t.Context(), there, there) }()
	for _, c := range []struct {
		argv   []string
		output string
		status int
		err    string
	}{
		{[]string{"sh", "-c", "echo out; echo err >&2; exit 3"}, "out\nerr\n", 3, ""},
		{[]string{"sh", "-c", "head -c 200000 /dev/zero | tr '\\0' x"}, strings.Repeat("x", 200_000), 0, ""},
		{[]string{"sh", "-c", "kill -9 $$"}, "", 0, "ended by a signal"},
		{[]string{"no-such-program"}, "", 0, "not found"},
		{nil, "", 0, "no command"},
		{[]string{"true"}, "", 0, ""},
	} {
		if _, err := here.Write([]byte("\n")); err != nil { // as who wakes the machine
			t.Fatal(err)
		}
		var out bytes.Buffer
		status, err := Run(here, c.argv, &out)
		if status != c.status || out.String() != c.output || (err == nil) != (c.err == "") ||
			err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%q: status %d, %d bytes, %v; want %d, %d bytes, %q", c.argv, status, out.Len(), err, c.status,
				len(c.output), c.err)
		}
	}
	_ = here.Close()
	if err := <-served; err != nil {
		t.Error(err)
	}
}

func TestRunOfBrokenMachines(t *testing.T) {
	for answer, want := range map[string]string{"": "ended before", "what\n": "it answers"} {
		here, there := net.Pipe()
		go func() {
			_, _ = io.ReadFull(there, make([]byte, len(`{"run":["x"]}`)+1))
			_, _ = io.WriteString(there, answer)
			_ = there.Close()
		}()
		if _, err := Run(here, []string{"x"}, io.Discard); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", answer, err, want)
		}
		_ = here.Close()
	}
}

// earlyLine is a line with deadlines of one direction, which are over at once.
type earlyLine struct {
	net.Conn

	set func(time.Time) error
}

func (l earlyLine) SetDeadline(at time.Time) error {
	if !at.IsZero() {
		at = time.Unix(1, 0)
	}
	return l.set(at)
}

// call returns a caller's end of a call, and a channel that is closed when the relay has ended it.
func call(r *Relay) (caller net.Conn, ended <-chan struct{}) {
	here, there := net.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer there.Close() //nolint:errcheck // nothing is buffered
		r.Carry(there)
	}()
	return here, done
}

// TestCommandEndsWithItsCaller: what a caller who goes away has started ends, also where a part of it is in the
// background, and the next caller is served.
func TestCommandEndsWithItsCaller(t *testing.T) {
	here, there := net.Pipe()
	served := make(chan error, 1)
	go func() { served <- Serve(t.Context(), there, there) }()
	r := NewRelay(here)
	for _, command := range []string{
		"echo begun; exec sleep 600", "sleep 600 & echo begun; wait", "sleep 600 & echo begun",
		"while :; do echo begun; done",
	} {
		gone, ended := call(r)
		if err := send(gone, request{Run: []string{"sh", "-c", command}}); err != nil {
			t.Fatal(err)
		}
		if _, err := bufio.NewReaderSize(gone, maxLine).ReadSlice('\n'); err != nil {
			t.Fatalf("%s: %v", command, err)
		}
		_ = gone.Close()
		<-ended
		caller, ended := call(r)
		var out bytes.Buffer
		status, err := Run(caller, []string{"sh", "-c", "echo next; exit 3"}, &out)
		if err != nil || status != 3 || out.String() != "next\n" {
			t.Errorf("after %q: status %d, %q, %v", command, status, out.String(), err)
		}
		_ = caller.Close()
		<-ended
	}
	_ = here.Close()
	if err := <-served; err != nil {
		t.Error(err)
	}
}

// TestMachinesThatBreakTheRules: a machine that sends a line without an end fills no memory, and one that does not end
// a command keeps nobody waiting. Its caller and later ones are told why they are not served.
func TestMachinesThatBreakTheRules(t *testing.T) {
	for title, c := range map[string]struct {
		sends  string // again and again
		leaves bool   // the first caller does not wait for the end
		want   string
	}{
		"a line without an end":      {strings.Repeat("x", 1000), false, "a line of more than 1048576 bytes"},
		"no answer":                  {"what\n", false, `answers "what\n"`},
		"a command that goes on":     {"", true, "has not ended a command within 10s"},
		"one that prints for ever":   {`{"output":"eA=="}` + "\n", true, "has not ended a command within 10s"},
		"a machine that has gone":    {"gone", false, "the machine has ended"},
		"one that takes no requests": {"deaf", false, "takes no request"},
	} {
		t.Run(title, func(t *testing.T) {
			here, there := net.Pipe()
			sent := make(chan int, 1)
			go func() { sent <- misbehave(there, c.sends) }()
			line := Line(here)
			switch {
			case c.leaves:
				line = earlyLine{here, here.SetReadDeadline}
			case c.sends == "deaf":
				line = earlyLine{here, here.SetWriteDeadline}
			}
			r := NewRelay(line)
			caller, ended := call(r)
			if c.leaves {
				if err := send(caller, request{Run: []string{"x"}}); err != nil {
					t.Fatal(err)
				}
			} else if _, err := Run(caller, []string{"x"}, io.Discard); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("the caller is told %v, want %q", err, c.want)
			}
			_ = caller.Close()
			<-ended
			later, ended := call(r)
			_, err := Run(later, []string{"x"}, io.Discard)
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "tare lab down") {
				t.Errorf("a later caller is told %v, want %q and the next step", err, c.want)
			}
			_ = later.Close()
			<-ended
			_ = here.Close()
			if n := <-sent; !c.leaves && n > 2*maxLine {
				t.Errorf("the relay has taken %d bytes", n)
			}
		})
	}
}

// misbehave is a machine that takes a request and sends the same again and again until nobody reads. It returns how
// many bytes it has sent.
func misbehave(line net.Conn, what string) (sent int) {
	defer line.Close() //nolint:errcheck // nothing is buffered
	requests := bufio.NewReader(line)
	if _, err := requests.ReadSlice('\n'); err != nil || what == "gone" {
		return 0
	}
	heard := make(chan struct{})
	go func() {
		defer close(heard)
		_, _ = io.Copy(io.Discard, requests) // until the line is closed
	}()
	for what != "" {
		n, err := io.WriteString(line, what)
		sent += n
		if err != nil {
			break
		}
	}
	<-heard
	return sent
}
