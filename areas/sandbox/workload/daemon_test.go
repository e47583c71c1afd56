package workload

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"tare/internal/clock"
	"tare/internal/proc"
	"tare/rigs/hosttest"
)

// launch starts a daemon as its doc says, and ends it with the test.
func launch(t testing.TB, name string, connections int) (*Daemon, *proc.Tree) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), strings.Repeat("a-long-path-", 10)) // beyond what fits into a socket's address
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	d, err := NewDaemon(name, dir, connections)
	if missing, ok := errors.AsType[*Missing](err); ok {
		hosttest.Missing(t, missing.Error(), "install it")
	}
	if err != nil {
		t.Fatal(err)
	}
	line := d.Command
	cmd := exec.Command(line[0], line[1:]...)
	cmd.Dir = d.Dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	errs := &proc.Tail{}
	cmd.Stdout, cmd.Stderr = errs, errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
		_ = cmd.Process.Signal(syscall.SIGTERM)
		stuck := time.AfterFunc(20*time.Second, func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })
		_ = cmd.Wait()
		if !stuck.Stop() {
			t.Errorf("%s does not end by SIGTERM", name)
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if err := d.Ready(ctx, clock.System{}); err != nil {
		t.Fatalf("%v; it says %s", err, errs.LastLine())
	}
	tree, err := proc.NewTree(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	return d, tree
}

func TestDaemonsCostPerRequest(t *testing.T) {
	hosttest.SkipIfShortUnlessRaced(t)
	for _, name := range Daemons() {
		t.Run(name, func(t *testing.T) {
			d, tree := launch(t, name, 1)
			if want := map[string]int{"apache": 2, "nginx": 2, "redis": 1}[name]; len(tree.PIDs()) != want || d.Name != name {
				t.Errorf("%s has the processes %v", d.Name, tree.PIDs())
			}
			perRequest := func(n int) float64 {
				best := 0.0
				for range 3 {
					c, err := Measure(t.Context(), d, tree, Load{Kind: name}, n)
					if err != nil {
						t.Fatal(err)
					}
					if c.N != n || c.Wall <= 0 || c.CPU <= 0 || c.CPU > 2*c.Wall {
						t.Errorf("impossible cost %+v", c)
					}
					if v := float64(c.CPU) / float64(n); best == 0 || v < best {
						best = v
					}
				}
				return best
			}
			few, many := perRequest(200), perRequest(2000)
			if ratio := few / many; ratio < 0.3 || ratio > 3 {
				t.Errorf("%.0f ns a request among 200, %.0f among 2000", few, many)
			}
			t.Logf("%s: %.1f µs of CPU time a request", name, many/1000)
		})
	}
}

// TestDaemonsWriteOnlyInTheirDirectory checks what each has open for writing.
func TestDaemonsWriteOnlyInTheirDirectory(t *testing.T) {
	for _, name := range Daemons() {
		t.Run(name, func(t *testing.T) {
			d, tree := launch(t, name, 1)
			for _, pid := range tree.PIDs() {
				fds, err := filepath.Glob(filepath.Join("/proc", strconv.Itoa(pid), "fd", "*"))
				if err != nil || len(fds) == 0 {
					t.Fatalf("descriptors of %d: %v, %v", pid, fds, err)
				}
				for _, fd := range fds {
					to, err := os.Readlink(fd)
					if info, e := os.Lstat(fd); e != nil || info.Mode()&0o200 == 0 {
						continue // it is closed by now, or open for reading
					}
					if err == nil && strings.HasPrefix(to, "/") && !strings.HasPrefix(to, "/dev/") && !strings.HasPrefix(to, d.Dir) {
						t.Errorf("%s has %s open", name, to)
					}
				}
			}
		})
	}
}

func TestDaemonGoneIsAnError(t *testing.T) {
	for _, name := range Daemons() {
		t.Run(name, func(t *testing.T) {
			d, tree := launch(t, name, 1)
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if _, err := Measure(ctx, d, tree, Load{Kind: name}, 10); !errors.Is(err, context.Canceled) {
				t.Errorf("%v; want that it was cancelled", err)
			}
			if err := d.Ready(t.Context(), clock.System{}); err != nil {
				t.Fatal(err)
			}
			for _, pid := range tree.PIDs() {
				if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := Measure(t.Context(), d, tree, Load{Kind: name}, 100000); err == nil {
				t.Error("a dead daemon was measured")
			}
			ctx, cancel = context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			if err := d.Ready(ctx, clock.System{}); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("a dead daemon is ready: %v", err)
			}
			if _, err := Measure(t.Context(), d, tree, Load{Kind: name}, 0); err == nil {
				t.Error("no requests were measured")
			}
		})
	}
}

func TestMissingNamesItsPackage(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, err := NewProgram("sysbench-cpu")
	m, ok := errors.AsType[*Missing](err)
	if !ok || m.Program != "sysbench" || !strings.Contains(err.Error(), "apt-get install sysbench") {
		t.Errorf("got %v, want that sysbench is missing", err)
	}
	if _, err := newShell(t.TempDir()); err == nil || !strings.Contains(err.Error(), "apt-get install dash") {
		t.Errorf("got %v, want that dash is missing", err)
	}
	if _, err := NewProgram("stress"); err == nil || !strings.Contains(err.Error(), "unknown program") {
		t.Errorf("got %v, want an unknown program", err)
	}
	if _, err := NewDaemon("apache2", t.TempDir(), 1); err == nil || !strings.Contains(err.Error(), "unknown daemon") {
		t.Errorf("got %v, want an unknown daemon", err)
	}
}

func TestProgramsRun(t *testing.T) {
	c, _ := start(t)
	for _, name := range Programs() {
		cmd, err := NewProgram(name)
		if missing, ok := errors.AsType[*Missing](err); ok {
			hosttest.Missing(t, missing.Error(), "install it")
		}
		if err != nil {
			t.Fatal(err)
		}
		cost, err := c.Command(t.Context(), cmd, 1)
		if err != nil || cost.CPU < time.Millisecond {
			t.Errorf("%s: got cost %+v, %v; want at least 1 ms of CPU time", name, cost, err)
		}
		t.Logf("%s: %v of CPU time", name, cost.CPU)
	}
}

func TestFindLoad(t *testing.T) {
	for name, want := range map[string]Load{
		"redis": {Kind: "redis"}, "redis-get": {Kind: "redis-get"}, "redis-50": {"redis", 50},
		"redis-lpop-500": {"redis-lpop", 500}, "apache-1": {"apache", 1}, "nginx-1000": {"nginx", 1000},
	} {
		got, ok := FindLoad(name)
		if !ok || got != want || got.Name() != name {
			t.Errorf("%s: %+v, %v", name, got, ok)
		}
	}
	for _, name := range []string{
		"", "-", "redis-", "redis-0", "redis-1001", "redis-050", "redis--5", "redis-x", "squid-5",
	} {
		if got, ok := FindLoad(name); ok {
			t.Errorf("%q is %+v", name, got)
		}
	}
	for _, kind := range Loads() {
		if d := (Load{Kind: kind}).Daemon(); len(Starts(d)) != 1 {
			t.Errorf("%s: the daemon %s starts %q", kind, d, Starts(d))
		}
	}
}

// TestLoadsOnManyConnections makes every kind of request on 1, 500 and 50 connections of one daemon, and counts the
// connections that the daemon has.
func TestLoadsOnManyConnections(t *testing.T) {
	hosttest.SkipIfShortUnlessRaced(t)
	for _, name := range Daemons() {
		t.Run(name, func(t *testing.T) {
			d, tree := launch(t, name, 500)
			for _, kind := range Loads() {
				for _, connections := range []int{0, 500, 50} {
					l := Load{Kind: kind, Connections: connections}
					if l.Daemon() != name {
						continue
					}
					for _, n := range []int{1, 2*l.Width() + 1} { // the last round is not on all connections
						c, err := Measure(t.Context(), d, tree, l, n)
						if err != nil {
							t.Fatal(err)
						}
						if c.N != n || c.Wall <= 0 || c.CPU < 0 {
							t.Errorf("%s: impossible cost %+v", l.Name(), c)
						}
					}
					if len(d.conns) != l.Width() {
						t.Errorf("%s: %d connections are open", l.Name(), len(d.conns))
					}
				}
			}
			if err := d.Prepare(t.Context(), Load{Kind: "squid"}, 1); name == "redis" && err == nil {
				t.Error("redis has made requests of no kind")
			}
		})
	}
}

// TestRedisPopsEachElement: LPOP takes away what the list was filled with. What another client takes is missed.
func TestRedisPopsEachElement(t *testing.T) {
	d, _ := launch(t, "redis", 50)
	l := Load{Kind: "redis-lpop", Connections: 50}
	if err := d.Prepare(t.Context(), l, 1200); err != nil {
		t.Fatal(err)
	}
	const length = "*2\r\n$4\r\nLLEN\r\n$4\r\nlist\r\n"
	if err := ask(d.conns[0], length, ":1200\r\n"); err != nil {
		t.Error(err)
	}
	if err := d.Load(t.Context(), 1200); err != nil {
		t.Error(err)
	}
	if err := ask(d.conns[0], length, ":0\r\n"); err != nil {
		t.Error(err)
	}
	if err := d.Prepare(t.Context(), l, 10); err != nil {
		t.Fatal(err)
	}
	if err := ask(d.conns[0], redisPop, resp(fmt.Sprintf("%064d", 0))); err != nil {
		t.Error(err)
	}
	if err := d.Load(t.Context(), 10); err == nil || !strings.Contains(err.Error(), `"$-1\r\n" instead of an element`) {
		t.Errorf("%v; want that the list is empty too early", err)
	}
}

// fake returns a Redis of 50 connections that answers PING. answer says what it answers to anything else on the i-th
// connection; "" is no answer.
func fake(t *testing.T, answer func(i int) string) *Daemon {
	t.Helper()
	dir := t.TempDir()
	listener, err := net.Listen("unix", filepath.Join(dir, socketFile))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for i := 0; ; i++ {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { _ = c.Close() })
			go serveFake(c, answer(i))
		}
	}()
	d := &Daemon{Name: "redis", Dir: dir, protocol: &redis{}}
	if err := d.Ready(t.Context(), clock.System{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	return d
}

func serveFake(c io.ReadWriteCloser, answer string) {
	lines := bufio.NewReader(c)
	for {
		line, err := lines.ReadString('\n')
		switch {
		case err != nil:
			return
		case line == "PING\r\n":
			_, _ = io.WriteString(c, "+PONG\r\n")
		case line == "SET\r\n" && answer == "end":
			_ = c.Close()
		case line == "SET\r\n":
			_, _ = io.WriteString(c, answer)
		}
	}
}

// TestOneWrongAnswer: one connection of fifty suffices to fail a load, and the error names it.
func TestOneWrongAnswer(t *testing.T) {
	for answer, want := range map[string]string{
		"-ERR no\r\n": `connection 37 of 50: answer "-ERR no\r\n" instead of "+OK\r\n"`,
		"+OK!\r\n":    "connection 37 of 50: answer",
		"end":         "connection 37 of 50: read answer: ",
		"":            "no answer within",
	} {
		d := fake(t, func(i int) string {
			if i == 36 {
				return answer
			}
			return redisOK
		})
		ctx, cancel := context.WithTimeoutCause(t.Context(), 10*time.Second, errors.New("no answer within 10 s"))
		if answer == "" {
			ctx, cancel = context.WithTimeoutCause(t.Context(), 200*time.Millisecond, errors.New("no answer within 200 ms"))
		}
		err := d.Prepare(ctx, Load{Kind: "redis-set", Connections: 50}, 100)
		if err == nil {
			err = d.Load(ctx, 100)
		}
		cancel()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v; want %q", answer, err, want)
		}
	}
}

// TestTooManyConnections: a daemon that accepts fewer connections than are wanted is an error, not a wait.
func TestTooManyConnections(t *testing.T) {
	d, _ := launch(t, "redis", 1)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	err := d.Prepare(ctx, Load{Kind: "redis-get", Connections: 500}, 1)
	if err == nil || !strings.Contains(err.Error(), "max number of clients") {
		t.Errorf("%v; want redis's reason", err)
	}
}

// TestRefusalBeforeRequest: a server that gives its reason and closes the connection before the request is sent is
// quoted.
func TestRefusalBeforeRequest(t *testing.T) {
	listener, err := net.Listen("unix", filepath.Join(t.TempDir(), socketFile))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	client, err := net.Dial("unix", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	server, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(server, "-ERR full\r\n"); err != nil {
		t.Fatal(err)
	}
	_ = server.Close()
	err = ask(&conn{Conn: client, lines: bufio.NewReader(client)}, redisGet, redisOK)
	if err == nil || !strings.Contains(err.Error(), `answer "-ERR full\r\n" instead of`) {
		t.Errorf("%v; want the server's reason", err)
	}
}

// TestApacheModulesAreFound: a program without its modules is reported with the package to install, and its port is
// held until the daemon is closed.
func TestApacheModulesAreFound(t *testing.T) {
	program, err := installed("apache2", apachePackage)
	if err != nil {
		hosttest.Missing(t, err.Error(), "apt-get install apache2-bin")
	}
	modules, err := Opens("apache")
	if err != nil || len(modules) == 0 {
		t.Errorf("%q, %v", modules, err)
	}
	alone := filepath.Join(t.TempDir(), "apache2")
	if err := os.Symlink(program, alone); err != nil {
		t.Fatal(err)
	}
	_, err = apacheFiles(alone)
	if m, ok := errors.AsType[*Missing](err); !ok || m.Package != "apache2-bin" {
		t.Errorf("%v; want that a module is missing", err)
	}
	d, err := NewDaemon("apache", t.TempDir(), 1)
	if err != nil {
		t.Fatal(err)
	}
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(fd) //nolint:errcheck // nothing to lose
	at := &syscall.SockaddrInet4{Port: d.Port, Addr: [4]byte{127, 0, 0, 1}}
	if err := syscall.Bind(fd, at); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("bind the reserved port: %v; want that it is in use", err)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	if err := syscall.Bind(fd, at); err != nil {
		t.Errorf("bind the port that was given back: %v", err)
	}
}

func TestMissingDaemons(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	for name, want := range map[string]string{"redis": "redis-server", "nginx": "nginx-light", "apache": "apache2-bin"} {
		if _, err := os.Stat(filepath.Join("/usr/sbin", Starts(name)[0])); err == nil {
			continue // it is looked up there too
		}
		_, err := NewDaemon(name, t.TempDir(), 1)
		if m, ok := errors.AsType[*Missing](err); !ok || m.Package != want {
			t.Errorf("%s: %v; want that %s is missing", name, err, want)
		}
	}
}
