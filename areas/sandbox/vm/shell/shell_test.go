package shell

import (
	"bytes"
	"io"
	"net"
	"strings"
	"testing"

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
