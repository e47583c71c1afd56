package proc_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"tare/internal/proc"
	"tare/rigs/hosttest"
)

// roleEnv turns the test binary into one of the children below.
const roleEnv = "TARE_PROC_TEST_ROLE"

func TestMain(m *testing.M) {
	if role := os.Getenv(roleEnv); role != "" {
		os.Exit(child(role))
	}
	hosttest.Main(m)
}

type config struct {
	Greeting string
	Pad      string
}

func child(role string) int {
	fmt.Fprintln(os.Stderr, "role", role, "starts")
	switch role {
	case "echo": // ready with the config, then until told
		return serve(func(ctx context.Context, c config, ready func(any) error) error {
			if err := ready(map[string]any{"greeting": c.Greeting, "pad": len(c.Pad)}); err != nil {
				return err
			}
			<-ctx.Done()
			return context.Cause(ctx)
		})
	case "fail":
		fmt.Fprintln(os.Stderr, "bind: address already in use")
		return 3
	case "fail-late":
		return serve(func(_ context.Context, _ config, _ func(any) error) error {
			fmt.Fprintln(os.Stderr, "no key")
			os.Exit(4)
			return nil
		})
	case "flood": // fills its log, ready, and goes on with less
		return serve(func(ctx context.Context, _ config, ready func(any) error) error {
			for n := range 400_000 {
				fmt.Fprintf(os.Stderr, "%099d\n", n)
			}
			if err := ready(true); err != nil {
				return err
			}
			for ctx.Err() == nil {
				fmt.Fprintln(os.Stderr, "the last words")
				time.Sleep(10 * time.Millisecond)
			}
			return context.Cause(ctx)
		})
	case "mute":
		return serve(func(ctx context.Context, _ config, _ func(any) error) error {
			<-ctx.Done()
			return nil
		})
	case "chatty":
		fmt.Println("listening on 127.0.0.1:1")
		_, _ = io.Copy(io.Discard, os.Stdin)
	case "stubborn": // ignores SIGTERM and the parent's end
		signal.Ignore(syscall.SIGTERM)
		_ = proc.Ready(os.Stdout, true)
		time.Sleep(time.Minute)
	case "nest": // has a child of its own in its group
		c := exec.Command("/proc/self/exe")
		c.Env = append(os.Environ(), roleEnv+"=stubborn")
		out, err := c.StdoutPipe()
		if err != nil || c.Start() != nil {
			return 5
		}
		_, _ = out.Read(make([]byte, 1)) // by now it ignores SIGTERM
		_ = proc.Ready(os.Stdout, c.Process.Pid)
		_ = c.Wait()
	case "one-cpu":
		return serve(func(_ context.Context, _ config, ready func(any) error) error { return ready(runtime.NumCPU()) })
	case "burn": // burns CPU until told; ready at once
		return serve(burn)
	case "burners": // two threads that burn CPU
		return serve(func(ctx context.Context, c config, ready func(any) error) error {
			var failed error
			var wg sync.WaitGroup
			wg.Go(func() { failed = burn(ctx, c, func(any) error { return nil }) })
			err := burn(ctx, c, ready)
			wg.Wait()
			return errors.Join(err, failed)
		})
	case "parent": // starts a stubborn child, prints its id, then waits to be killed
		return parent()
	}
	return 0
}

func serve(work func(context.Context, config, func(any) error) error) int {
	err := proc.Serve(context.Background(), os.Stdin, os.Stdout, func(ctx context.Context, raw json.RawMessage,
		ready func(any) error,
	) error {
		var c config
		if err := json.Unmarshal(raw, &c); err != nil {
			return err
		}
		return work(ctx, c, ready)
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func burn(ctx context.Context, _ config, ready func(any) error) error {
	b, err := newBurner()
	if err != nil {
		return err
	}
	if err := ready(true); err != nil {
		return err
	}
	for ctx.Err() == nil {
		if _, err := b.Burn(time.Millisecond); err != nil {
			return err
		}
	}
	return context.Cause(ctx)
}

func parent() int {
	runtime.LockOSThread() // keeps the main thread, which never ends, from being the one that forks
	c, err := proc.Start(context.Background(), proc.Spec{
		Name: "stubborn", Path: "/proc/self/exe",
		Env: append(os.Environ(), roleEnv+"="+os.Getenv("TARE_PROC_TEST_GRANDCHILD")),
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	// Threads that come and go: a death signal bound to one of them would strike here.
	for range 20 {
		done := make(chan struct{})
		go func() {
			runtime.LockOSThread() // the thread ends with the goroutine
			close(done)
		}()
		<-done
	}
	time.Sleep(50 * time.Millisecond)
	select {
	case <-c.Exited():
		fmt.Fprintln(os.Stderr, "child ended before its parent")
		return 2
	default:
	}
	if err := json.NewEncoder(os.Stdout).Encode(c.ID); err != nil {
		return 1
	}
	time.Sleep(time.Minute)
	return 0
}

func spec(t *testing.T, role string) proc.Spec {
	t.Helper()
	return proc.Spec{
		Name: role, Path: "/proc/self/exe", Env: append(os.Environ(), roleEnv+"="+role), Config: config{Greeting: "hello"},
		LogFile: filepath.Join(t.TempDir(), "child.log"), ReadyWithin: 20 * time.Second,
	}
}

func start(t *testing.T, s proc.Spec) *proc.Child {
	t.Helper()
	c, err := proc.Start(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return c
}

func TestStartPassesConfigAndReady(t *testing.T) {
	s := spec(t, "echo")
	s.Config = config{Greeting: "grüezi", Pad: strings.Repeat("x", 1<<20)} // more than a pipe holds
	var born proc.ID
	s.Born = func(id proc.ID) error { born = id; return nil }
	c := start(t, s)
	if got, want := string(c.Ready), `{"greeting":"grüezi","pad":1048576}`; got != want {
		t.Errorf("Ready = %s, want %s", got, want)
	}
	if born != c.ID || born.PID <= 1 || born.StartTicks == 0 {
		t.Errorf("Born got %+v, child is %+v", born, c.ID)
	}
	if log, err := os.ReadFile(s.LogFile); err != nil || !strings.Contains(string(log), "role echo starts") {
		t.Errorf("log = %q, %v", log, err)
	}
	if err := c.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	if err := c.Wait(t.Context()); err == nil {
		t.Error("Wait after SIGTERM = nil, want its status") // the echo child does not handle SIGTERM
	}
	if err := c.Stop(t.Context()); err != nil {
		t.Errorf("second Stop: %v", err)
	}
}

func TestStartErrors(t *testing.T) {
	for _, c := range []struct {
		role  string
		edit  func(*proc.Spec)
		wants []string
	}{
		{role: "fail", wants: []string{"start fail", "exit status 3", "address already in use", "run it manually"}},
		{role: "fail-late", wants: []string{"exit status 4", "no key", "child.log"}},
		{role: "chatty", wants: []string{`got "listening on 127.0.0.1:1`, "must log to stderr", "role chatty starts"}},
		{
			role: "mute", edit: func(s *proc.Spec) { s.ReadyWithin = 300 * time.Millisecond },
			wants: []string{"not ready within 300ms", "role mute starts"},
		},
		{
			role: "echo", edit: func(s *proc.Spec) { s.Path = "/no/such/binary" },
			wants: []string{"start echo", "no such file"},
		},
		{role: "echo", edit: func(s *proc.Spec) { s.LogFile = "/no/such/dir/log" }, wants: []string{"open log"}},
		{role: "echo", edit: func(s *proc.Spec) { s.Config = func() {} }, wants: []string{"encode config"}},
		{role: "echo", edit: func(s *proc.Spec) { s.CPUs = []int{1000} }, wants: []string{"pin to CPUs [1000]"}},
		{
			role: "echo", edit: func(s *proc.Spec) { s.Born = func(proc.ID) error { return errors.New("journal is full") } },
			wants: []string{"journal is full"},
		},
		{role: "fail", edit: func(s *proc.Spec) { s.LogFile = "" }, wants: []string{"exit status 3", "no log was kept"}},
	} {
		s := spec(t, c.role)
		if c.edit != nil {
			c.edit(&s)
		}
		child, err := proc.Start(t.Context(), s)
		if err == nil {
			_ = child.Stop(t.Context())
			t.Errorf("%s: no error, want %q", c.role, c.wants)
			continue
		}
		for _, want := range c.wants {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: error %q lacks %q", c.role, err, want)
			}
		}
	}
}

func TestStartHonoursContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s := spec(t, "mute")
	var id proc.ID
	s.Born = func(b proc.ID) error { id = b; cancel(); return nil }
	if _, err := proc.Start(ctx, s); !errors.Is(err, context.Canceled) {
		t.Fatalf("err = %v, want context.Canceled", err)
	}
	if alive(id) {
		t.Error("the child outlived a cancelled start")
	}
}

func TestStopKillsTheStubborn(t *testing.T) {
	s := spec(t, "stubborn")
	s.Grace = 100 * time.Millisecond
	c := start(t, s)
	if err := c.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := c.Wait(t.Context()); err == nil || !strings.Contains(err.Error(), "signal: killed") {
		t.Errorf("Wait = %v, want signal: killed", err)
	}
}

func TestStopEndsTheWholeGroup(t *testing.T) {
	s := spec(t, "nest")
	c := start(t, s)
	var pid int
	if err := json.Unmarshal(c.Ready, &pid); err != nil {
		t.Fatal(err)
	}
	ticks, err := proc.StartTicks(pid)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the grandchild ends", func() bool { return !alive(proc.ID{PID: pid, StartTicks: ticks}) })
}

func TestExitedTellsOfAnUnexpectedEnd(t *testing.T) {
	c := start(t, spec(t, "echo"))
	if err := c.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	select {
	case <-c.Exited():
	case <-time.After(20 * time.Second):
		t.Fatal("Exited was not closed")
	}
	if err := c.Wait(t.Context()); err == nil || !strings.Contains(err.Error(), "role echo starts") {
		t.Errorf("Wait = %v, want the log's end", err)
	}
}

func TestPinning(t *testing.T) {
	s := spec(t, "one-cpu")
	s.CPUs = []int{0}
	if c := start(t, s); string(c.Ready) != "1" {
		t.Errorf("pinned child sees %s CPUs, want 1", c.Ready)
	}
	if n := runtime.NumCPU(); n > 1 {
		if c := start(t, spec(t, "one-cpu")); string(c.Ready) != fmt.Sprint(n) {
			t.Errorf("unpinned child sees %s CPUs, want %d: the pin leaked", c.Ready, n)
		}
	}
}

// TestChildEndsWithParent kills the parent with SIGKILL. The stubborn child ignores its stdin: only the death signal
// can end it. TestServeEndsWithStdin proves the other safeguard.
func TestChildEndsWithParent(t *testing.T) {
	for _, grandchild := range []string{"stubborn", "echo"} {
		p := exec.Command("/proc/self/exe")
		p.Env = append(os.Environ(), roleEnv+"=parent", "TARE_PROC_TEST_GRANDCHILD="+grandchild)
		p.Stderr = os.Stderr
		out, err := p.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Start(); err != nil {
			t.Fatal(err)
		}
		var id proc.ID
		err = json.NewDecoder(out).Decode(&id)
		if killErr := p.Process.Kill(); killErr != nil {
			t.Error(killErr)
		}
		_ = p.Wait()
		if err != nil {
			t.Fatal(err)
		}
		eventually(t, grandchild+" ends with its parent", func() bool { return !alive(id) })
	}
}

func alive(id proc.ID) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", id.PID))
	if err != nil {
		return false
	}
	ticks, err := proc.StartTicks(id.PID)
	zombie := strings.Contains(string(stat), ") Z ")
	return err == nil && ticks == id.StartTicks && !zombie
}

func eventually(t *testing.T, what string, f func() bool) {
	t.Helper()
	for range 2000 {
		if f() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("waited in vain: %s", what)
}

// TestLogsAreBounded: of what a child writes without an end its log keeps the beginning and the end, beside what others
// have written before.
func TestLogsAreBounded(t *testing.T) {
	hosttest.SkipIfShort(t)
	t.Parallel()
	s := spec(t, "flood")
	if err := os.WriteFile(s.LogFile, []byte("an earlier child\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := start(t, s)
	const most = 17 << 20
	begin := fmt.Sprintf("an earlier child\nrole flood starts\n%099d\n", 0)
	eventually(t, "the log is cut", func() bool {
		log, err := os.ReadFile(s.LogFile)
		return err == nil && len(log) < most && strings.HasPrefix(string(log), begin) &&
			strings.Contains(string(log), "\n(tare has left out ") && strings.HasSuffix(string(log), "\nthe last words\n")
	})
	if tail := c.Tail(); !strings.HasSuffix(tail, "the last words") {
		t.Errorf("errors quote %q", tail)
	}
}

// TestChildrenGetNoSecretsOfTheEnvironment: a child may reveal its environment.
func TestChildrenGetNoSecretsOfTheEnvironment(t *testing.T) {
	t.Setenv("PLANTED_TOKEN", "planted-secret")
	t.Setenv("LANG", "C.UTF-8")
	for name, c := range map[string]struct {
		env        []string
		want, lack string
	}{
		"by default": {nil, "LANG=C.UTF-8", "planted-secret"},
		"none":       {[]string{}, "", "LANG="},
		"as said":    {[]string{"A=b"}, "A=b", "LANG="},
	} {
		child, err := proc.Start(t.Context(), proc.Spec{
			Name: "sleep", Path: "/bin/sleep", Args: []string{"30"},
			Env: c.env, Talk: true,
		})
		if err != nil {
			t.Fatal(err)
		}
		var env []byte
		for range 200 { // until it has become sleep
			if env, err = os.ReadFile(fmt.Sprintf("/proc/%d/environ", child.PID)); err != nil ||
				bytes.Contains(env, []byte(c.want)) && !bytes.Contains(env, []byte(c.lack)) {
				break
			}
			time.Sleep(5 * time.Millisecond)
		}
		if err != nil || !bytes.Contains(env, []byte(c.want)) || bytes.Contains(env, []byte(c.lack)) {
			t.Errorf("%s: environment %q, %v", name, env, err)
		}
		if err := child.Stop(t.Context()); err != nil {
			t.Log(err)
		}
	}
}
