package startup

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"tare/internal/clock"
	"tare/internal/load"
)

// TestMarksFollowEvents: half of the pods are marked within 100 ms after the server wrote the event that they run,
// however busy the machine, and none before. The test logs this machine's delay, which includes loopback, TLS, HTTP/2
// and decoding.
func TestMarksFollowEvents(t *testing.T) {
	a := newAPI(t)
	a.afterPost = func(name string) { a.schedule(name); a.start(name) }
	w := startWatch(t, a)
	o := operation(t, w, a, nil)
	var lags []time.Duration
	for i := range uint64(100) {
		r := makeCall(t, o, i)
		if r.Outcome != load.OK {
			t.Fatalf("got %+v, want a good call", r)
		}
		a.mu.Lock()
		written := a.written[nameOf(i)]
		a.mu.Unlock()
		for _, m := range r.Marks {
			if m.Name == Startup {
				lags = append(lags, m.At.Sub(written))
			}
		}
	}
	slices.Sort(lags)
	t.Logf("from the server's write to the mark: p50 %v, p99 %v", lags[50], lags[98])
	if lags[0] < 0 || lags[50] > 100*time.Millisecond {
		t.Errorf("from %v, half within %v", lags[0], lags[50])
	}
}

// BenchmarkEvent is what an event costs the tracker while a thousand pods are awaited: of a pod that is one of them,
// and of another.
func BenchmarkEvent(b *testing.B) {
	for _, of := range []string{"an awaited pod", "another"} {
		b.Run(of, func(b *testing.B) {
			t := newTracker(clock.System{})
			for i := range 1000 {
				if _, ok := t.expect(fmt.Sprint("pod-", i)); !ok {
					b.Fatal(i)
				}
			}
			p := new(corev1.Pod)
			if p.Name = "pod-500"; of == "another" {
				p.Name = "other"
			}
			b.ReportAllocs()
			for b.Loop() {
				if err := t.Add(p); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
