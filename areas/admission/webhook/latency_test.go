package webhook

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"tare/internal/clock"
	"tare/internal/stat"
)

// TestLatencyHasItsShare: the share of the draws above a time lies where Above says that it does.
func TestLatencyHasItsShare(t *testing.T) {
	for _, c := range []struct {
		l    Latency
		d    time.Duration
		want float64 // from a table of the normal distribution
	}{
		{Latency{Median: time.Second, Spread: 1}, time.Second, 0.5},
		{Latency{Median: 500 * time.Millisecond, Spread: 0.5}, time.Second, 0.0828},
		{Latency{Median: 500 * time.Millisecond, Spread: 0.25}, time.Second, 0.00278},
		{Latency{Median: 2 * time.Second}, time.Second, 1},
		{Latency{Median: time.Second}, time.Second, 0},
		{Latency{}, time.Second, 0},
	} {
		if got := c.l.Above(c.d); got < c.want-0.0001 || got > c.want+0.0001 {
			t.Errorf("%v above %v: %v, want %v", c.l, c.d, got, c.want)
		}
		const n = 20_000
		above := uint64(0)
		for range n {
			if c.l.draw() > c.d {
				above++
			}
		}
		e, _ := stat.BinomialInterval(above, n, 0.99999)
		if want := c.l.Above(c.d); want < e.Lo || want > e.Hi {
			t.Errorf("%v: %d of %d draws are above %v, want a share of %v", c.l, above, n, c.d, want)
		}
	}
}

// TestLatencyIsReplaced while the webhook serves; what is out of range is rejected and changes nothing.
func TestLatencyIsReplaced(t *testing.T) {
	c := clock.NewFake(time.Unix(1e9, 0))
	h := newHandler(c, Latency{}, 0)
	for body, code := range map[string]int{
		`{"median":-1}`: 400, `{"median":1,"spread":9}`: 400, `x`: 400, `{"median":60000000000}`: 400,
	} {
		if r := post(h, LatencyPath, body); r.Code != code || *h.latency.Load() != (Latency{}) {
			t.Errorf("%s: status %d, latency %v", body, r.Code, h.latency.Load())
		}
	}
	if r := post(h, LatencyPath, `{"median":7000000}`); r.Code != http.StatusNoContent {
		t.Fatal(r.Code)
	}
	begin := c.Now()
	if r := post(h, "/validate/a", reviewOf(`{}`)); r.Code != http.StatusOK || c.Now().Sub(begin) != 7*time.Millisecond {
		t.Errorf("status %d after %v, want 7ms", r.Code, c.Now().Sub(begin))
	}
	r := httptest.NewRecorder()
	h.ServeHTTP(r, httptest.NewRequest(http.MethodGet, LatencyPath, nil))
	if r.Code != http.StatusMethodNotAllowed {
		t.Errorf("GET: status %d", r.Code)
	}
}

// TestWorkersBoundTheThroughput: reviews beyond the workers wait for their turn.
func TestWorkersBoundTheThroughput(t *testing.T) {
	h := newHandler(clock.System{}, Latency{Median: 20 * time.Millisecond}, 2)
	begin := time.Now()
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if r := post(h, "/validate/a", reviewOf(`{}`)); !strings.Contains(r.Body.String(), `"allowed":true`) {
				t.Error(r.Body)
			}
		})
	}
	wg.Wait()
	if took := time.Since(begin); took < 80*time.Millisecond {
		t.Errorf("8 reviews of 20 ms by 2 workers took %v, want at least 80 ms", took)
	}
}

// TestIdentityOutlivesTheProcess: a webhook that replaces another one is trusted by those who trusted the first, and
// answers at the same path.
func TestIdentityOutlivesTheProcess(t *testing.T) {
	who, err := NewIdentity(time.Now(), nil)
	if err != nil {
		t.Fatal(err)
	}
	first, second := start(t, Config{Identity: who}), start(t, Config{Identity: who})
	if first.Base != second.Base || string(first.CA) != string(second.CA) {
		t.Error("the identities differ")
	}
	client := clientOf(t, first, true)
	ask(t, client, first.URL+"/validate/a")
	ask(t, client, second.URL+"/validate/a")
}
