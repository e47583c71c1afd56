package reference

import (
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"tare/internal/clock"
)

func newRecorder(t *testing.T, h http.Handler, method, path, body string) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body)))
	return w
}

// anonymousMemory returns the memory of this process that no file backs, in bytes: RssAnon of proc_pid_status(5).
func anonymousMemory(t *testing.T) int64 {
	t.Helper()
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) == 3 && f[0] == "RssAnon:" {
			kib, err := strconv.ParseInt(f[1], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return kib << 10
		}
	}
	t.Fatal("no RssAnon")
	return 0
}

// TestLeakGrowsAtItsRate: over each of ten hours of a fake clock the process grows by the leak of that hour, also
// across the end of a chunk. The test itself allocates far less.
func TestLeakGrowsAtItsRate(t *testing.T) {
	const perSec, hour = 4096, 3600 // 14 MiB an hour
	c := clock.NewFake(time.Unix(0, 0))
	l := &leak{clock: c, began: c.Now(), perSec: perSec, cancel: func() {}}
	before := anonymousMemory(t)
	for i := int64(1); i <= 10; i++ {
		c.Advance(hour * time.Second)
		if err := l.grow(); err != nil {
			t.Fatal(err)
		}
		want := i * perSec * hour
		if l.touched != want {
			t.Errorf("after %d h %d bytes are kept, want %d", i, l.touched, want)
		}
		if got := anonymousMemory(t) - before; got < want-(4<<20) || got > want+(8<<20) {
			t.Errorf("after %d h the process has grown by %d bytes, want %d", i, got, want)
		}
	}
	if len(l.kept) != 3 {
		t.Errorf("%d chunks of 64 MiB for 141 MiB", len(l.kept))
	}
	if err := l.stop(); err != nil {
		t.Error(err)
	}
	if got := anonymousMemory(t) - before; got > 16<<20 {
		t.Errorf("after the end %d bytes are left", got)
	}
}

// TestLeakRuns: the goroutine keeps up with the machine's clock and stops when told to.
func TestLeakRuns(t *testing.T) {
	l := startLeak(clock.System{}, 100<<20)
	before, deadline := anonymousMemory(t), time.Now().Add(30*time.Second)
	for anonymousMemory(t)-before < 20<<20 {
		if time.Now().After(deadline) {
			t.Fatal("the process does not grow")
		}
		time.Sleep(20 * time.Millisecond)
	}
	if err := l.stop(); err != nil {
		t.Error(err)
	}
}
