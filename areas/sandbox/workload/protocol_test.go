package workload

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tare/rigs/memtest"
)

const greeting = `{"protocol":"tare-workload","version":1}` + "\n"

// cannedWorker is a worker that always gives the same answer.
func cannedWorker(said string) *Client {
	return NewClient(discard{}, io.NopCloser(strings.NewReader(said)))
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }
func (discard) Close() error                { return nil }

func TestClientRejectsInvalidAnswers(t *testing.T) {
	for name, c := range map[string]struct{ said, want string }{
		"nothing":           {"", "ended before its hello"},
		"no hello":          {"ready\n", "not an object"},
		"another protocol":  {`{"protocol":"x","version":1}` + "\n", `"x" version 1`},
		"another version":   {`{"protocol":"tare-workload","version":2}` + "\n", "version 2"},
		"a hello cut short": {greeting[:20], "within a line"},
		"no answer":         {greeting, "ended before its answer"},
		"an answer cut":     {greeting + `{"id":1`, "within a line"},
		"an endless line":   {greeting + strings.Repeat("x", 2*maxLine), "more than 65536 bytes"},
		"an array":          {greeting + "[]\n", "not an object"},
		"two objects":       {greeting + `{"id":1}{"id":1}` + "\n", "more after the object"},
		"an unknown member": {greeting + `{"id":1,"n":3}` + "\n", "unknown field"},
		"another's answer":  {greeting + `{"id":2,"cost":{"n":5,"wall_ns":1,"cpu_ns":1}}` + "\n", "request 2"},
		"no cost":           {greeting + `{"id":1}` + "\n", "missing"},
		"a status": {greeting + `{"id":1,"status":{},"cost":{"n":5,"wall_ns":1,"cpu_ns":1}}` +
			"\n", "not asked for"},
		"another n":    {greeting + `{"id":1,"cost":{"n":4,"wall_ns":1,"cpu_ns":1}}` + "\n", "4 calls, not of 5"},
		"no time":      {greeting + `{"id":1,"cost":{"n":5,"wall_ns":0,"cpu_ns":1}}` + "\n", "wall 0"},
		"negative CPU": {greeting + `{"id":1,"cost":{"n":5,"wall_ns":1,"cpu_ns":-1}}` + "\n", "CPU -1"},
		"uncounted count": {greeting + `{"id":1,"cost":{"n":5,"wall_ns":1,"cpu_ns":1,"instructions":7}}` +
			"\n", "7 instructions"},
		"an errno too large": {greeting + `{"id":1,"error":"x","failed":{"op":"a","call":"b","errno":4096}}` +
			"\n", "errno 4096"},
	} {
		t.Run(name, func(t *testing.T) {
			client := cannedWorker(c.said)
			_, err := client.Run(t.Context(), "open", 5)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("%v; want %q", err, c.want)
			}
			if _, again := client.Run(t.Context(), "open", 5); again == nil || !errors.Is(again, errors.Unwrap(err)) {
				t.Errorf("a broken client says %v", again)
			}
		})
	}
}

func TestClientReportsFailures(t *testing.T) {
	said := greeting +
		`{"id":1,"error":"open: openat: permission denied","failed":{"op":"open","call":"openat","errno":13}}` + "\n" +
		`{"id":2,"error":"unknown workload"}` + "\n" +
		`{"id":3,"cost":{"n":5,"wall_ns":10,"cpu_ns":9,"instructions":8,"counted":true}}` + "\n" +
		`{"id":4,"errno":1}` + "\n"
	c := cannedWorker(said)
	_, err := c.Run(t.Context(), "open", 5)
	f, ok := errors.AsType[*Failure](err)
	if !ok || !cmp.Equal(*f, Failure{Op: "open", Call: "openat", Errno: syscall.EACCES}) ||
		!errors.Is(err, syscall.EACCES) {
		t.Errorf("got %v, want the failure of openat", err)
	}
	if _, err := c.Run(t.Context(), "nothing", 5); err == nil || !strings.Contains(err.Error(), "unknown workload") {
		t.Errorf("got %v, want an unknown workload", err)
	}
	got, err := c.Run(t.Context(), "open", 5)
	if diff := cmp.Diff(Cost{N: 5, Wall: 10, CPU: 9, Instructions: 8, Counted: true}, got); diff != "" || err != nil {
		t.Errorf("after two refusals: %v %s", err, diff)
	}
	if errno, err := c.Try(t.Context(), "open", "/"); errno != syscall.EPERM || err != nil {
		t.Errorf("got errno %v, %v; want EPERM", errno, err)
	}
}

func TestClientRejectsInvalidRequests(t *testing.T) {
	c := cannedWorker(greeting)
	for _, n := range []int{0, -1, maxCalls + 1} {
		if _, err := c.Run(t.Context(), "open", n); err == nil {
			t.Errorf("%d calls were asked for", n)
		}
	}
	if _, err := c.Command(t.Context(), Command{Name: "x"}, 1); err == nil {
		t.Error("no program was asked for")
	}
	if _, err := c.Command(t.Context(), Command{Name: "x", Run: []string{strings.Repeat("x", maxLine)}}, 1); err == nil {
		t.Error("an endless command line was asked for")
	}
}

// TestClientEndsWithItsContext: the worker says hello and hangs.
func TestClientEndsWithItsContext(t *testing.T) {
	for name, hello := range map[string]string{"hangs at once": "", "hangs after hello": greeting} {
		t.Run(name, func(t *testing.T) {
			in, out, say := silentWorker(t)
			go func() { _, _ = io.WriteString(say, hello) }()
			c := NewClient(in, out)
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
			defer cancel()
			if _, err := c.Run(ctx, "open", 1); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%v; want that time is over", err)
			}
			if _, err := c.Run(t.Context(), "open", 1); err == nil {
				t.Error("a client without streams still works")
			}
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	c := cannedWorker(greeting + `{"id":1,"errno":0}` + "\n")
	if _, err := c.Try(ctx, "open", "/"); !errors.Is(err, context.Canceled) {
		t.Errorf("%v; want that it was cancelled", err)
	}
	if errno, err := c.Try(t.Context(), "open", "/"); errno != 0 || err != nil {
		t.Errorf("a call that was not made broke the client: %v", err)
	}
}

// silentWorker returns pipes to a worker that reads nothing.
func silentWorker(t *testing.T) (in, out, say *os.File) {
	t.Helper()
	_, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	out, say, err = os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = say.Close() })
	return in, out, say
}

// TestServeEndsWithItsContext in a worker within this process.
func TestServeEndsWithItsContext(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = w.Close() }()
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(20*time.Millisecond, cancel)
	if err := Serve(ctx, r, io.Discard, t.TempDir(), Own{}); err != nil {
		t.Error(err)
	}
}

func TestServeRejectsInvalidRequests(t *testing.T) {
	for name, c := range map[string]struct{ in, want string }{
		"no object":       {"run open 5\n", "not an object"},
		"no verb":         {`{"id":1}` + "\n", "unknown verb"},
		"no calls":        {`{"id":1,"verb":"run","op":"open"}` + "\n", "0 calls"},
		"no command":      {`{"id":1,"verb":"command","n":1}` + "\n", "no command"},
		"no program":      {`{"id":1,"verb":"command","n":1,"command":{"name":"x"}}` + "\n", "needs a program"},
		"negative time":   {`{"id":1,"verb":"run","op":"open","n":1,"within_ns":-5}` + "\n", "within -5"},
		"an endless line": {strings.Repeat("x", 2*maxLine), "more than"},
		"half a line":     {`{"id":`, "within a line"},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			err := Serve(t.Context(), strings.NewReader(c.in), &out, t.TempDir(), Own{})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v; want %q", err, c.want)
			}
		})
	}
}

// TestServeContinuesAfterAFailedRequest if the request is well formed.
func TestServeContinuesAfterAFailedRequest(t *testing.T) {
	c, _ := start(t)
	if _, err := c.Run(t.Context(), "execl", 1); err == nil || !strings.Contains(err.Error(), `unknown workload "execl"`) {
		t.Errorf("got %v, want an unknown workload", err)
	}
	for what, args := range map[string][]string{
		"chmod": {"/"}, "open": nil, "connect": {"http"}, "syscall": {"fork"},
		"exec": {"true"}, "socket": {"1"},
	} {
		if _, err := c.Try(t.Context(), what, args...); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("try %s %v: %v", what, args, err)
		}
	}
	if _, err := c.Run(t.Context(), "syscall", 10); err != nil {
		t.Error(err)
	}
}

func FuzzAnswer(f *testing.F) {
	for _, s := range []string{
		`{"id":1,"cost":{"n":5,"wall_ns":10,"cpu_ns":9}}`, `{"id":1,"error":"x","failed":{"op":"a","call":"b","errno":1}}`,
		`{"id":1,"errno":0}`,
		`{"id":1,"status":{"pid":1,"seccomp":2,"seccomp_filters":1,"no_new_privs":true}}`, greeting,
		`{"id":1,"cost":null,"errno":4095}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		defer memtest.Bound(t, len(line))()
		if err := parseHello(line); err == nil && !bytes.Contains(line, []byte("1")) {
			t.Errorf("no version in %q", line)
		}
		for _, r := range []request{{ID: 1, Verb: verbRun, N: 5}, {ID: 1, Verb: verbTry}, {ID: 1, Verb: verbStatus}} {
			a, err := parseAnswer(line, r)
			if err != nil || a.err() != nil {
				continue
			}
			switch r.Verb {
			case verbRun:
				if a.Cost.N != 5 || a.Cost.Wall <= 0 || a.Cost.CPU < 0 {
					t.Errorf("cost %+v", a.Cost)
				}
			case verbTry:
				if *a.Errno < 0 || *a.Errno > maxErrno {
					t.Errorf("errno %d", *a.Errno)
				}
			case verbStatus:
				_ = *a.Status
			}
		}
	})
}

// FuzzClient lets a worker send anything.
func FuzzClient(f *testing.F) {
	f.Add([]byte(greeting + `{"id":1,"cost":{"n":5,"wall_ns":10,"cpu_ns":9}}` + "\n" + `{"id":2,"status":{}}`))
	f.Add([]byte("{}\n"))
	f.Fuzz(func(t *testing.T, said []byte) {
		defer memtest.Bound(t, len(said))()
		c := cannedWorker(string(said))
		cost, err := c.Run(t.Context(), "open", 5)
		if err == nil && (cost.N != 5 || cost.Wall <= 0) {
			t.Errorf("cost %+v of %q", cost, said)
		}
		if _, err := c.Status(t.Context()); err == nil && bytes.Count(said, []byte("\n")) < 3 {
			t.Errorf("two answers in %q", said)
		}
	})
}

func FuzzRequest(f *testing.F) {
	for _, r := range []request{
		{ID: 1, Verb: verbRun, Op: "open", N: 5},
		{ID: 2, Verb: verbTry, Op: "open", Args: []string{"/"}},
		{ID: 3, Verb: verbStatus},
		{ID: 4, Verb: verbCommand, N: 1, Within: time.Second, Command: &Command{
			Name: "x", Run: []string{"true"},
			Prepare: []string{"true"}, Dir: "/",
		}},
	} {
		b, err := json.Marshal(r)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		defer memtest.Bound(t, len(line))()
		r, err := parseRequest(line)
		if err != nil {
			return
		}
		if (r.Verb == verbRun || r.Verb == verbCommand) && (r.N < 1 || r.N > maxCalls) {
			t.Errorf("%d calls", r.N)
		}
		var b bytes.Buffer
		if err := writeLine(&b, r); err != nil {
			return // longer than a line, once escaped
		}
		again, err := parseRequest(b.Bytes())
		if err != nil || fmt.Sprintf("%+v %+v", again.Args, again.Op) != fmt.Sprintf("%+v %+v", r.Args, r.Op) {
			t.Errorf("%+v became %+v: %v", r, again, err)
		}
	})
}

func FuzzReadLine(f *testing.F) {
	f.Add([]byte("a\nb\n\nc"))
	f.Fuzz(func(t *testing.T, data []byte) {
		defer memtest.Bound(t, len(data))()
		r := bufio.NewReaderSize(bytes.NewReader(data), maxLine)
		var got []byte
		for {
			line, err := readLine(r)
			if err != nil {
				if rest := data[len(got):]; len(rest) > 0 && bytes.IndexByte(rest, '\n') >= 0 && len(rest) < maxLine {
					t.Errorf("%v, although there is a line in %q", err, rest)
				}
				return
			}
			got = append(got, line...)
			if !bytes.HasPrefix(data, got) {
				t.Fatalf("%q is no part of %q", got, data)
			}
		}
	})
}

// TestAbandonedBatchEndsTheWorker requests more calls than can be made and abandons the batch; start checks that the
// worker ends.
func TestAbandonedBatchEndsTheWorker(t *testing.T) {
	for _, kind := range []string{"compute", "exec", "switch", "shell"} {
		t.Run(kind, func(t *testing.T) {
			c, _ := start(t)
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			if _, err := c.Run(ctx, kind, maxCalls); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%v; want that time is over", err)
			}
		})
	}
}

// TestClientSerialisesCalls shares a client among goroutines: each gets its own answer.
func TestClientSerialisesCalls(t *testing.T) {
	c, _ := start(t)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for n := 1; n <= 5; n++ {
				cost, err := c.Run(t.Context(), "syscall", 10*i+n)
				if err != nil || cost.N != 10*i+n {
					t.Errorf("%d calls: %+v, %v", 10*i+n, cost, err)
				}
			}
		})
	}
	wg.Wait()
}

// TestRunAt: a batch waits for the common start, and its wall time counts from it.
func TestRunAt(t *testing.T) {
	c, _ := start(t)
	if _, err := c.Run(t.Context(), "compute", 1); err != nil { // the worker is ready
		t.Fatal(err)
	}
	now, err := Now()
	if err != nil {
		t.Fatal(err)
	}
	at := now + 100*time.Millisecond
	cost, err := c.RunAt(t.Context(), "compute", 100, at)
	ended, e := Now()
	if err := errors.Join(err, e); err != nil {
		t.Fatal(err)
	}
	if cost.N != 100 || cost.Wall <= 0 || at+cost.Wall > ended || cost.CPU > 90*time.Millisecond {
		t.Errorf("asked at %v to begin at %v, ended by %v: %+v", now, at, ended, cost)
	}
	_, err = c.RunAt(t.Context(), "compute", 100, now)
	if f, ok := errors.AsType[*Failure](err); !ok || f.Call != CommonStart {
		t.Errorf("a start that has passed: %v", err)
	}
	if _, err := c.Run(t.Context(), "compute", 1); err != nil {
		t.Errorf("after a late start: %v", err)
	}
}

// TestRunAtHalts: a worker whose client is gone does not wait for the common start.
func TestRunAtHalts(t *testing.T) {
	w := &worker{halt: &atomic.Bool{}}
	w.halt.Store(true)
	now, err := Now()
	if err != nil {
		t.Fatal(err)
	}
	if err := w.await("compute", now+3*spinFor); !errors.Is(err, errHalted) {
		t.Errorf("halted: %v", err)
	}
	for _, r := range []request{{Verb: verbTry, Op: "open", At: 5}, {Verb: verbRun, Op: "open", N: 1, At: -5}} {
		if err := r.validate(); err == nil || !strings.Contains(err.Error(), "at ") {
			t.Errorf("%+v: %v", r, err)
		}
	}
}
