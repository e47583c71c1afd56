package hostile_test

import (
	"bytes"
	"fmt"
	"log" //nolint:depguard // what net/http would log to is under test
	"os"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"tare/internal/load"
	"tare/rigs/hostile"
	"tare/rigs/hosttest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(hosttest.Sharing(m)) }

// An echoCall is a GET of a path that is the call's number; the right answer repeats it.
type echoCall struct{ padding []byte }

func (echoCall) ConnKey(uint64) int { return 0 }

func (w echoCall) Render(dst []byte, i uint64) []byte {
	dst = append(dst, "GET /"...)
	dst = strconv.AppendUint(dst, i, 10)
	dst = append(dst, " HTTP/1.1\r\nHost: target.test\r\n"...)
	dst = append(dst, w.padding...)
	return append(dst, "\r\n"...)
}

func (w echoCall) Check(i uint64, status int, body []byte) load.Outcome {
	switch {
	case status != 200:
		return load.Failed
	case string(body) == strconv.FormatUint(i, 10):
		return load.OK
	}
	return load.Wrong
}

const foreign = "the body is another's"

func (w echoCall) Explain(i uint64, status int, body []byte) int {
	if w.Check(i, status, body) == load.Wrong {
		return 0
	}
	return -1
}

func config(r *hostile.Running, s hostile.Server, engine load.Engine) load.Config {
	w := echoCall{}
	if s.Big {
		w.padding = fmt.Appendf(nil, "X-Padding: %s\r\n", make([]byte, 8<<20))
	}
	timeout := 20 * time.Second // a busy machine may take its time
	if s.Want.Outcomes[0] == load.Timeout {
		timeout = 2 * time.Second
	}
	return load.Config{
		Engine: engine, KeepCalls: true, Shards: 1, Timeout: timeout, MaxConns: 32,
		Endpoint:   load.Endpoint{Addr: r.Addr, Host: hostile.Host, TLS: r.TLS},
		Operations: []load.Operation{{Name: "echo", Weight: 1, Wire: w, Causes: []string{foreign}}},
	}
}

// eachServer runs f against every server with every engine: those that take a whole timeout side by
// side, which costs little, and the others one after another; those of large requests last and two at a time, since
// they keep a processor busy.
func eachServer(t *testing.T, f func(t *testing.T, r *hostile.Running, s hostile.Server, c load.Config)) {
	var all, large sync.WaitGroup
	two := make(chan struct{}, 2)
	quiet := make(chan struct{})
	defer func() {
		all.Wait()
		close(quiet)
		large.Wait()
	}()
	for _, s := range hostile.All() {
		for _, engine := range []load.Engine{load.Fast, load.Std} {
			run := func(t *testing.T) {
				r, err := s.Start(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				defer r.Stop()
				f(t, r, s, config(r, s, engine))
			}
			do := func() { t.Run(s.Name+"/"+string(engine), run) }
			switch {
			case s.Big:
				large.Go(func() {
					<-quiet
					two <- struct{}{}
					do()
					<-two
				})
			case s.Want.Outcomes[0] == load.Timeout:
				all.Go(do)
			default:
				do()
			}
		}
	}
}

func open(t *testing.T, c load.Config) load.Stream {
	t.Helper()
	s, err := load.Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		begun := time.Now()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if took := time.Since(begun); took > 30*time.Second {
			t.Errorf("closing took %v", took)
		}
	})
	return s
}

func drain(t *testing.T, s load.Stream) load.Progress {
	t.Helper()
	if err := s.Wait(t.Context(), 2*time.Minute, time.Millisecond,
		func() bool { return s.Progress().Open() == 0 }); err != nil {
		t.Fatal(err)
	}
	if p := s.Progress(); p.Open() != 0 || p.Ended() != p.Due {
		t.Fatalf("not everything ended: %+v", p)
	}
	return s.Progress()
}

// TestCallsEndForTheRightCause and in time; once the server behaves, calls succeed.
func TestCallsEndForTheRightCause(t *testing.T) {
	hosttest.SkipIfShortUnlessRaced(t)
	eachServer(t, func(t *testing.T, r *hostile.Running, s hostile.Server, c load.Config) {
		stream := open(t, c)
		offer(t, stream, load.Constant{Rate: 100, Duration: 100 * time.Millisecond})
		drain(t, stream)
		unsent := 0
		for i, call := range stream.Calls(0) {
			if isStalled(call, s) {
				unsent++
				continue
			}
			judge(t, fmt.Sprintf("call %d", i), call, s, c)
		}
		if unsent > 4 {
			t.Errorf("%d of 10 calls never came so far as to be sent", unsent)
		}
		judge(t, "a fresh call", stream.Fresh(t.Context(), 0, 7, c.Timeout), s, c)
		if s.Name == "redirects in a loop" && r.Requests() != 11 {
			t.Errorf("%d requests for 11 calls: redirects were followed", r.Requests())
		}
		wantRecovery(t, r, s, stream)
	})
}

func offer(t *testing.T, s load.Stream, p load.Process) load.Segment {
	t.Helper()
	g, err := s.Offer(t.Context(), p, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// isStalled reports whether a call was not sent within its whole timeout to a server that would not have prevented it.
// The cause is then this machine, not the server.
func isStalled(call load.Call, s hostile.Server) bool {
	return call.Outcome == load.Timeout && call.Sent == 0 && !slices.Contains(s.Want.Causes, call.Cause)
}

func judge(t *testing.T, what string, call load.Call, s hostile.Server, c load.Config) {
	t.Helper()
	text := call.Cause.Text(c.Operations[0].Causes)
	if !slices.Contains(s.Want.Outcomes, call.Outcome) || !slices.Contains(s.Want.Causes, call.Cause) {
		t.Errorf("%s: %v, status %d, errno %d, %q; want %v for %v", what, call.Outcome, call.Status, call.Errno, text,
			s.Want.Outcomes, s.Want.Causes)
	}
	if call.Outcome == s.Want.Outcomes[0] && call.Status != s.Want.Status {
		t.Errorf("%s: status %d, want %d", what, call.Status, s.Want.Status)
	}
	if (text == "") != (call.Outcome.Good() || call.Status == 204) {
		t.Errorf("%s: %v for the cause %q", what, call.Outcome, text)
	}
	if most := c.Timeout + 2*time.Microsecond; call.Done == 0 ||
		(call.Response() > most && call.Sent <= call.Intended+c.Timeout) {
		t.Errorf("%s ended after %v, the timeout is %v", what, call.Response(), c.Timeout)
	}
}

// wantRecovery makes the server behave and wants good answers on the same stream. Connections that were closed under
// the client may cost it a call each before that.
func wantRecovery(t *testing.T, r *hostile.Running, s hostile.Server, stream load.Stream) {
	t.Helper()
	if err := r.Mend(); err != nil {
		t.Fatal(err)
	}
	if s.Big {
		return // its requests are too large for anybody
	}
	for end := time.Now().Add(time.Minute); ; {
		g := offer(t, stream, load.Constant{Rate: 200, Duration: 50 * time.Millisecond})
		drain(t, stream)
		calls := stream.Calls(g.Start)
		bad := slices.IndexFunc(calls, func(c load.Call) bool { return c.Outcome != load.OK })
		if bad < 0 && len(calls) == 10 {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("no recovery: %d calls, %+v", len(calls), calls[max(bad, 0)])
		}
	}
	if c := stream.Fresh(t.Context(), 0, 3, time.Minute); c.Outcome != load.OK {
		t.Errorf("a fresh call to the mended server: %+v", c)
	}
}

// TestAnswersAreNeverSwapped: a second answer is never taken for that of the next call, however soon that follows.
func TestAnswersAreNeverSwapped(t *testing.T) {
	hosttest.SkipIfShortUnlessRaced(t)
	for _, s := range hostile.All() {
		if !slices.Contains([]string{
			"two answers at once", "TLS, two answers at once", "length too short",
			"length and chunks", "no content, with some",
		}, s.Name) {
			continue
		}
		for _, engine := range []load.Engine{load.Fast, load.Std} {
			t.Run(s.Name+"/"+string(engine), func(t *testing.T) {
				r, err := s.Start(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				defer r.Stop()
				stream := open(t, config(r, s, engine))
				if _, err := stream.Cycle(t.Context(), load.Closed{Workers: 8, Duration: 200 * time.Millisecond}, 0,
					nil); err != nil {
					t.Fatal(err)
				}
				p := drain(t, stream)
				want := s.Want.Outcomes[0]
				if p.Done[load.Wrong] > 0 || p.Done[want] != p.Due || p.Due < 8 {
					t.Errorf("%d calls: %v", p.Due, p.Done)
				}
			})
		}
	}
}

// TestEndlessServerCostsBoundedResources: thousands of calls to a server that never ends need no more memory,
// descriptors or bytes than a few.
func TestEndlessServerCostsBoundedResources(t *testing.T) {
	hosttest.SkipIfShort(t)
	worst := []string{
		"never accepts", "hangs after accept", "hangs in the body", "closes in the body", "resets in the body",
		"drips the header", "huge header line",
		"endless header", "endless interim answers", "endless body", "endless chunks", "endless small chunks",
		"endless chunk extension", "endless trailer",
		"handshake hangs", "TLS, endless body",
	}
	for _, s := range hostile.All() {
		if !slices.Contains(worst, s.Name) {
			continue
		}
		worst = slices.DeleteFunc(worst, func(name string) bool { return name == s.Name })
		for _, engine := range []load.Engine{load.Fast, load.Std} {
			t.Run(s.Name+"/"+string(engine), func(t *testing.T) { wantNoGrowth(t, s, engine) })
		}
	}
	if len(worst) > 0 {
		t.Errorf("there are no servers %q", worst)
	}
}

func wantNoGrowth(t *testing.T, s hostile.Server, engine load.Engine) {
	r, err := s.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer r.Stop()
	calls := 2000
	if slices.Contains(s.Want.Causes, load.CauseTooLong) && s.Want.Status == 200 {
		calls = 60 // 16 MiB each
	}
	c := config(r, s, engine)
	c.Timeout, c.KeepCalls = 200*time.Millisecond, false
	if calls == 60 {
		c.Timeout = 10 * time.Second
	}
	stream := open(t, c)
	offer(t, stream, load.Constant{Rate: 1000, Duration: 20 * time.Millisecond})
	drain(t, stream)
	before, files := heap(), descriptors(t, r)
	read := stream.Progress().BytesIn
	offer(t, stream, load.Constant{Rate: float64(calls) * 4, Duration: 250 * time.Millisecond})
	p := drain(t, stream)
	if p.Due != uint64(20+calls) {
		t.Errorf("%d calls, want %d", p.Due, 20+calls)
	}
	if after := heap(); after > before+16<<20 {
		t.Errorf("the heap grew from %d to %d KiB", before>>10, after>>10)
	}
	// The server's own are left out, as far as it knows of them.
	n := 0
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if n = descriptors(t, r); n <= files+c.MaxConns+8 {
			break
		}
	}
	if n > files+c.MaxConns+8 {
		t.Errorf("%d descriptors, %d before", n, files)
	}
	if each := (p.BytesIn - read) / uint64(calls); each > 17<<20 {
		t.Errorf("%d bytes were read for each call", each)
	}
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapInuse
}

func descriptors(t *testing.T, r *hostile.Running) int {
	t.Helper()
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		hosttest.Missing(t, err.Error(), "run on Linux")
	}
	return len(fds) - r.Connections()
}

// TestUnrequestedTextIsNotLogged: what a server sends unrequested may be a token.
func TestUnrequestedTextIsNotLogged(t *testing.T) {
	var said bytes.Buffer
	log.SetOutput(&said)
	defer log.SetOutput(os.Stderr)
	for _, s := range hostile.All() {
		if !slices.Contains([]string{
			"two answers at once", "TLS, two answers at once", "length too short", "garbage",
			"TLS where plaintext was asked for",
		}, s.Name) {
			continue
		}
		r, err := s.Start(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		stream := open(t, config(r, s, load.Std))
		offer(t, stream, load.Constant{Rate: 200, Duration: 50 * time.Millisecond})
		drain(t, stream)
		if err := stream.Close(); err != nil {
			t.Error(err)
		}
		r.Stop()
	}
	if said.Len() > 0 {
		t.Errorf("logged: %s", said.String())
	}
}

// TestServersAreDistinct: unique names, enough servers, each with a described end.
func TestServersAreDistinct(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range hostile.All() {
		if seen[s.Name] || len(s.Want.Outcomes) == 0 || len(s.Want.Causes) == 0 {
			t.Errorf("duplicate name, or no outcome or cause: %+v", s.Want)
		}
		seen[s.Name] = true
	}
	if len(seen) < 30 {
		t.Errorf("%d servers", len(seen))
	}
}
