//go:build linux

package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"tare/internal/load"
	"tare/rigs/hosttest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(hosttest.Sharing(m)) }

// begin starts a server in this process.
func begin(t *testing.T, s Server) Ready {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	out, in := io.Pipe()
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, in) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	var r Ready
	if err := json.NewDecoder(out).Decode(&r); err != nil {
		t.Fatal(err)
	}
	return r
}

func TestJobs(t *testing.T) {
	fast := begin(t, Server{Mode: Quick})
	limited := begin(t, Server{Mode: Limit, Rate: 200})
	secure := begin(t, Server{Mode: Quick, TLS: true})
	for name, j := range map[string]Job{
		"closed fast": {
			Engine: load.Fast, Port: fast.Port, Workers: 4, Length: 100 * time.Millisecond,
			Timeout: 5 * time.Second,
		},
		"closed std": {
			Engine: load.Std, Port: fast.Port, Workers: 4, Length: 100 * time.Millisecond,
			Timeout: 5 * time.Second,
		},
		"closed fast, TLS": {
			Engine: load.Fast, Port: secure.Port, TLS: true, Workers: 4, Length: 100 * time.Millisecond,
			Timeout: 5 * time.Second,
		},
		"open std, TLS": {
			Engine: load.Std, Port: secure.Port, TLS: true, Rate: 500, Length: 100 * time.Millisecond, Timeout: 5 * time.Second,
			Keep: true,
		},
		"open": {
			Engine: load.Fast, Port: fast.Port, Rate: 500, Length: 100 * time.Millisecond, Timeout: 5 * time.Second,
			Keep: true,
		},
		"limited": {
			Engine: load.Fast, Port: limited.Port, Rate: 1000, Length: 100 * time.Millisecond,
			Timeout: 5 * time.Second, Keep: true,
		},
	} {
		r, err := j.Run(t.Context())
		if err != nil || r.Offered == 0 || r.Good != r.Ended || r.Ended < r.Offered {
			t.Errorf("%s: got %+v, %v; want that every call ended well", name, r, err)
		}
		if j.Keep && (r.Recorded != r.Offered || r.Ended != r.Offered ||
			r.Offered != int(math.Round(j.Rate*j.Length.Seconds()))) {
			t.Errorf("%s: got %+v, want a record of every call", name, r)
		}
		// 100 calls at 200/s are a queue of half a second; the warm-up at 100/s leaves none.
		if name == "limited" && (r.Response[1] < 0.3 || r.Response[1] > 3) {
			t.Errorf("%s: p99 is %g s, want 0.3 to 3 s", name, r.Response[1])
		}
	}
}

func TestStallSchedule(t *testing.T) {
	s := Server{Mode: Stall, Period: 10 * time.Second, StallFor: 2 * time.Second}
	for at, want := range map[time.Duration]time.Duration{
		0:                       base,
		7999 * time.Millisecond: 7999*time.Millisecond + base,
		8 * time.Second:         10*time.Second + base,
		9999 * time.Millisecond: 10*time.Second + base,
		19 * time.Second:        20*time.Second + base,
	} {
		if got := s.Due(at); got != want {
			t.Errorf("due at %v: %v, want %v", at, got, want)
		}
	}
	// A fifth of the calls wait for 0 … 2 s, evenly: the 99th percentile is 1.9 s, the 99.9th 1.99 s.
	j := Job{Rate: 1000, Length: 20 * time.Second, Stall: &s}
	truth, err := j.truth(0)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []float64{0.001, 1.901, 1.991} {
		if math.Abs(truth[i]-want) > want*0.005 {
			t.Errorf("p%g is %g s, want %g", Quantiles[i]*100, truth[i], want)
		}
	}
}

func TestTableIsMarkdown(t *testing.T) {
	var b bytes.Buffer
	w := &table{out: &b}
	w.rows([][]string{{"a", "µs"}, {"long", "1"}})
	want := "| a    | µs |\n| ---- | -- |\n| long | 1  |\n\n"
	if d := cmp.Diff(want, b.String()); d != "" || w.err != nil {
		t.Error(d, w.err)
	}
}

func TestRatiosArePaired(t *testing.T) {
	mid, lo, hi := ratios([]float64{2, 30, 4}, []float64{1, 10, 8})
	if mid != 2 || lo != 0.5 || hi != 3 {
		t.Errorf("%g in %g … %g", mid, lo, hi)
	}
}

func TestPinningSaysWhy(t *testing.T) {
	server, client, why := pinning()
	if (server < 0) != strings.Contains(why, "not pinned") || (server >= 0 && server == client) {
		t.Errorf("server %d, client %d: %s", server, client, why)
	}
}
