package servers

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"tare/rigs/hosttest"
)

// TestMain checks that no goroutine leaks. Started by startChild or Fixture.Start, this binary is a server.
func TestMain(m *testing.M) {
	if child, err := ServeChild(os.Stdin, os.Stdout); child {
		if err != nil {
			panic(err)
		}
		return
	}
	if name := os.Getenv(serverVariable); name != "" {
		if err := serveChild(name, os.Stdin, os.Stdout); err != nil {
			panic(err)
		}
		return
	}
	goleak.VerifyTestMain(hosttest.Sharing(m))
}

// start starts f until the test ends.
func start(t *testing.T, f Fixture) *Running {
	t.Helper()
	r, err := f.Start(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Stop(); err != nil {
			t.Errorf("stop %s: %v", f.Name, err)
		}
	})
	return r
}

// get makes one request on a connection of its own. It returns a long answer without its blanks.
func get(ctx context.Context, r *Running) (reply, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+r.Addr.String()+"/token", nil)
	if err != nil {
		return reply{}, err
	}
	c := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	a, err := c.Do(q)
	if err != nil {
		return reply{}, err
	}
	body, err := io.ReadAll(a.Body)
	return reply{a.StatusCode, strings.TrimRight(string(body), " ")}, errors.Join(err, a.Body.Close())
}

// TestFixturesServe calls every fixture that this host can run.
func TestFixturesServe(t *testing.T) {
	hosttest.SkipIfShortUnlessRaced(t)
	for _, f := range All() {
		t.Run(f.Name, func(t *testing.T) {
			if err := f.Missing(); err != nil {
				hosttest.Missing(t, err.Error(), "install it")
			}
			r := start(t, f)
			for range 200 { // a call in a hundred fails at any rate
				if a, err := get(t.Context(), r); err != nil {
					t.Fatal(err)
				} else if a == good {
					return
				}
			}
			t.Error("no call was answered well")
		})
	}
}

// callAtOnce makes n calls at once and counts the replies by status; 0 stands for no reply.
func callAtOnce(t *testing.T, r *Running, n int) map[int]int {
	t.Helper()
	count := map[int]int{}
	var mu sync.Mutex
	var all sync.WaitGroup
	for range n {
		all.Go(func() {
			a, err := get(t.Context(), r)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				a.status = 0
			}
			count[a.status]++
		})
	}
	all.Wait()
	return count
}

// TestProxiesRefuse sends each proxy that rejects calls more calls at once than it lets pass.
func TestProxiesRefuse(t *testing.T) {
	hosttest.SkipIfShortUnlessRaced(t)
	t.Parallel()
	for name, status := range map[string]int{
		"nginx-limit-req-nodelay": 429, "nginx-limit-req-delay": 503, "nginx-limit-conn": 503,
		"haproxy-queue-timeout": 503, "haproxy-stick-table": 429, "haproxy-tarpit": 429,
	} {
		t.Run(name, func(t *testing.T) {
			f := newTrialOf(t, name).f
			if err := f.Missing(); err != nil {
				hosttest.Missing(t, err.Error(), "install it")
			}
			if n := callAtOnce(t, start(t, f), 400); n[200] == 0 || n[status] == 0 || n[200]+n[status] != 400 {
				t.Errorf("replies %v, want some 200 and some %d", n, status)
			}
		})
	}
}

// TestCrashes: a crash resets connections and refuses new ones; then the server is back at the same address.
func TestCrashes(t *testing.T) {
	r := start(t, Fixture{Name: "crashes", build: func(r *rig) part {
		return r.station(&station{servers: 1, service: constant(time.Hour), grown: func(waiting int) {
			if waiting >= 3 {
				r.crash(200 * ms)
			}
		}})
	}})
	idle, err := net.Dial("tcp", r.Addr.String())
	if err != nil {
		t.Fatal(err)
	}
	defer idle.Close() //nolint:errcheck // it is reset
	if n := callAtOnce(t, r, 4); n[0] != 4 {
		t.Errorf("replies %v, want none", n)
	}
	if _, err := idle.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("an idle connection ended with %v, want a reset", err)
	}
	for {
		c, err := net.Dial("tcp", r.Addr.String())
		if err == nil {
			if err := c.Close(); err != nil {
				t.Error(err)
			}
			return
		}
		if !errors.Is(err, syscall.ECONNREFUSED) {
			t.Fatal(err)
		}
	}
}

// TestAcceptLimit: connections above the limit are established, and are served once another one closes.
func TestAcceptLimit(t *testing.T) {
	r := start(t, Fixture{Name: "crowded", conns: 1, backlog: 16, build: func(*rig) part { return serve }})
	first, err := net.Dial("tcp", r.Addr.String())
	if err != nil {
		t.Fatal(err)
	}
	ask := func(c net.Conn) error {
		_, err := io.WriteString(c, "GET /token HTTP/1.1\r\nHost: x\r\n\r\n")
		if err == nil {
			_, err = c.Read(make([]byte, 1))
		}
		return err
	}
	if err := ask(first); err != nil {
		t.Fatal(err)
	}
	second, err := net.Dial("tcp", r.Addr.String())
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close() //nolint:errcheck // read only
	answered := make(chan error, 1)
	go func() { answered <- ask(second) }()
	if _, err := io.WriteString(first, "GET /token HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if n := len(r.listener.(*limited).slots); n != 1 {
		t.Errorf("%d connections are accepted, want 1", n)
	}
	select {
	case err := <-answered:
		t.Fatalf("the second connection was served beside the first: %v", err)
	default:
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-answered; err != nil {
		t.Errorf("the second connection, once the first was closed: %v", err)
	}
}
