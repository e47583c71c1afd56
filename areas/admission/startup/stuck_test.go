package startup

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"tare/internal/clock"
	"tare/internal/load"
	"tare/rigs/hosttest"
)

func badCA(a *api) *rest.Config {
	c := a.config()
	c.CAData = []byte("no certificate")
	return c
}

// awaitPod waits until so is true of an awaited pod.
func awaitPod(t *testing.T, w *Watch, name string, so func(*await) bool) (out *await) {
	t.Helper()
	eventually(t, "pod "+name, func() bool {
		w.track.mu.Lock()
		defer w.track.mu.Unlock()
		out = w.track.awaits[name]
		return out != nil && so(out)
	})
	return out
}

func answeredPod(t *testing.T, w *Watch, name string) *await {
	t.Helper()
	return awaitPod(t, w, name, func(x *await) bool { return !x.answered.IsZero() })
}

// offerCall makes one call through the load's engine, with its timeout, and returns what the engine recorded.
func offerCall(t *testing.T, o load.Operation, timeout time.Duration) load.Call {
	t.Helper()
	s, err := load.Open(t.Context(), load.Config{
		Engine: load.Std, Operations: []load.Operation{o}, Timeout: timeout,
		MaxConns: 4, KeepCalls: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	if _, err := s.Offer(t.Context(), load.Constant{Rate: 1, Duration: time.Second}, 0,
		func() bool { return s.Progress().Due > 0 }); err != nil {
		t.Fatal(err)
	}
	if err := s.Wait(t.Context(), 2*timeout+10*time.Second, time.Millisecond,
		func() bool { return s.Progress().Ended() > 0 }); err != nil {
		t.Fatal(err)
	}
	calls := s.Calls(0)
	if len(calls) != 1 {
		t.Fatalf("%d calls", len(calls))
	}
	return calls[0]
}

// TestTimeoutsNameThePhase: each way to hang has its own cause, also when the engine gives up the call; nothing is kept
// of a pod that comes too late.
func TestTimeoutsNameThePhase(t *testing.T) {
	hosttest.SkipIfShortUnlessRaced(t)
	const timeout = 700 * time.Millisecond
	for want, prepare := range map[string]func(a *api, w func() *Watch){
		"request to create the pod was not answered": func(a *api, _ func() *Watch) {
			a.onPost = func(_ http.ResponseWriter, r *http.Request) bool { <-r.Context().Done(); return true }
		},
		"created, and never seen":  func(a *api, _ func() *Watch) { a.frozen = true },
		"never scheduled":          func(*api, func() *Watch) {},
		"scheduled, never running": func(a *api, _ func() *Watch) { a.afterPost = a.schedule },
		"nothing could be seen of the p": func(a *api, _ func() *Watch) {
			a.afterPost = func(string) { a.set(true, func() { a.refuseReads = 500 }) }
		},
		"running, never seen": func(a *api, w func() *Watch) {
			a.frozen = true
			a.afterPost = func(name string) {
				a.schedule(name)
				a.start(name)
				answeredPod(a.t, w(), name)
				a.set(false, func() { a.refuseReads = 500 }) // a list would show it
				w().check(context.Background(), answeredPod(a.t, w(), name))
			}
		},
	} {
		t.Run(want, func(t *testing.T) {
			a := newAPI(t)
			var w *Watch
			prepare(a, func() *Watch { return w })
			w = startWatch(t, a)
			o := operation(t, w, a, func(p *Pods) { p.Causes = []string{"one of the judge's"} })
			c := offerCall(t, o, timeout)
			if c.Outcome != load.Timeout || !strings.Contains(c.Cause.Text(o.Causes), want) {
				t.Errorf("by the engine: %v, %q", c.Outcome, c.Cause.Text(o.Causes))
			}
			eventually(t, "nothing awaited", func() bool { return w.Stats().Awaited == 0 })
			if o.Stuck(0) != -1 {
				t.Error("a call that has ended is stuck")
			}
		})
	}
}

// TestCallEndsWithItsContext and reports the same as when the engine gives it up.
func TestCallEndsWithItsContext(t *testing.T) {
	a := newAPI(t)
	w := startWatch(t, a)
	o := operation(t, w, a, nil)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	r := o.Call(ctx, 1)
	if r.Outcome != load.Timeout || !strings.Contains(r.Cause.Text(o.Causes), "never scheduled") {
		t.Errorf("got %v, %q; want a timeout of a pod that was never scheduled", r.Outcome, r.Cause.Text(o.Causes))
	}
	// What comes late concerns nobody.
	a.schedule(nameOf(1))
	a.start(nameOf(1))
	a.afterPost = func(name string) { a.schedule(name); a.start(name) }
	if r := makeCall(t, o, 2); r.Outcome != load.OK {
		t.Errorf("next call: got %+v, want OK", r)
	}
	if n := w.Stats().Awaited; n != 0 {
		t.Errorf("%d pods are kept", n)
	}
}

func TestPodsThatGo(t *testing.T) {
	a := newAPI(t)
	a.afterPost = func(name string) { a.schedule(name); a.put("DELETED", a.pod(name)) }
	w := startWatch(t, a)
	o := operation(t, w, a, nil)
	if r := makeCall(t, o, 1); r.Outcome != load.Failed || !strings.Contains(r.Cause.Text(o.Causes), "deleted") {
		t.Errorf("got %v, %q; want a failure because the pod was deleted", r.Outcome, r.Cause.Text(o.Causes))
	}
}

func TestCloseEndsWaits(t *testing.T) {
	a := newAPI(t)
	w, err := Start(t.Context(), Config{API: a.config(), Namespace: testNamespace, Selector: testSelector})
	if err != nil {
		t.Fatal(err)
	}
	o := operation(t, w, a, nil)
	var all sync.WaitGroup
	all.Go(func() {
		if r := makeCall(t, o, 1); r.Outcome != load.Failed || !strings.Contains(r.Cause.Text(o.Causes), "closed") {
			t.Errorf("got %v, %q; want a failure because the watch was closed", r.Outcome, r.Cause.Text(o.Causes))
		}
	})
	answeredPod(t, w, nameOf(1))
	w.Close()
	all.Wait()
	w.Close() // twice
}

// startUnwatched makes the server start each pod while the watch shows nothing, and then calls thaw and ends the watch.
func startUnwatched(t *testing.T, w *Watch, a *api, thaw func()) {
	a.afterPost = func(name string) {
		awaitPod(t, w, name, func(x *await) bool { return !x.first.IsZero() })
		a.set(false, func() { a.frozen = true })
		a.schedule(name)
		a.start(name)
		a.set(true, thaw)
	}
}

// TestBrokenWatchIsResumed where it ended, without losing a pod.
func TestBrokenWatchIsResumed(t *testing.T) {
	a := newAPI(t)
	w := startWatch(t, a)
	o := operation(t, w, a, nil)
	startUnwatched(t, w, a, func() { a.frozen = false })
	for i := range uint64(5) {
		r := makeCall(t, o, i)
		if r.Outcome != load.OK || len(r.Marks) != 7 {
			t.Errorf("call %d: %+v", i, r)
		}
	}
	if s := w.Stats(); s.Late != 0 || s.Lists != 1 || s.Watches != 6 {
		t.Errorf("statistics %+v, want one list, 6 watches and no late pod", s)
	}
}

// TestWatchesThatEndAtOnce: a server that ends each watch is not asked for another one at once, and what it says of a
// pod then counts as failed.
func TestWatchesThatEndAtOnce(t *testing.T) {
	hosttest.SkipIfShortUnlessRaced(t)
	a := newAPI(t)
	a.hasty = true
	a.put("ADDED", &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "other"}})
	w := startWatch(t, a)
	eventually(t, "no call can be measured", func() bool { _, flaps := w.source.state(); return flaps })
	if s := w.Stats(); s.Short < 5 || s.Watches > 8 || !strings.Contains(fmt.Sprint(s.Notes()), "broke off") {
		t.Errorf("statistics %+v, notes %v; want 6 watches and a note", s, s.Notes())
	}
	a.afterPost = a.start
	o := operation(t, w, a, nil)
	if r := makeCall(t, o, 1); r.Outcome != load.Failed || !strings.Contains(r.Cause.Text(o.Causes), "one watch after") {
		t.Errorf("got %v, %q; want a failure, since no watch lasted", r.Outcome, r.Cause.Text(o.Causes))
	}
}

// TestEndlessListOfPods: a list that does not end is given up, and nothing of it is kept.
func TestEndlessListOfPods(t *testing.T) {
	a := newAPI(t)
	a.endless = true
	a.put("ADDED", &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "other"}})
	c, err := connect(a.config())
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	s, err := newSource(c, Config{Namespace: testNamespace, Selector: testSelector}, newTracker(clock.System{}))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.list(t.Context()); err == nil || !strings.Contains(err.Error(), "does not end") {
		t.Errorf("got %v, want that the list does not end", err)
	}
	if n := len(s.track.there); n > 0 {
		t.Errorf("%d pods are kept that nobody waits for", n)
	}
}

// TestListedPodHasNoWatchPhases: a pod that only a list showed has no phases from the watch.
func TestListedPodHasNoWatchPhases(t *testing.T) {
	a := newAPI(t)
	w := startWatch(t, a)
	o := operation(t, w, a, nil)
	a.set(false, func() { a.frozen = true })
	a.afterPost = func(name string) {
		a.schedule(name)
		a.start(name)
		a.set(true, func() { a.frozen, a.oldest = false, len(a.log) })
	}
	r := makeCall(t, o, 1)
	got := phasesOf(r)
	for _, name := range []string{Scheduled, Running, WatchToWatch} {
		if d, ok := got[name]; ok {
			t.Errorf("phase %s lasted %v, and nobody saw it", name, d)
		}
	}
	if r.Outcome != load.OK || got[Startup] <= 0 || len(got) != 4 {
		t.Errorf("%v, phases %v", r.Outcome, got)
	}
}

// TestMissedEventsAreListed: if the server no longer has the missed events, the pods are listed, and the report says
// so.
func TestMissedEventsAreListed(t *testing.T) {
	a := newAPI(t)
	w := startWatch(t, a)
	o := operation(t, w, a, nil)
	startUnwatched(t, w, a, func() { a.frozen, a.oldest = false, len(a.log) })
	r := makeCall(t, o, 1)
	got := phasesOf(r)
	if r.Outcome != load.OK || got[Startup] <= 0 {
		t.Fatalf("got %+v, want a good call with its startup time", r)
	}
	if _, ok := got[Running]; ok {
		t.Errorf("phases %v: nobody saw when it was scheduled", got)
	}
	s := w.Stats()
	if s.Lists != 2 || s.Late != 1 || len(s.Notes()) != 1 || !strings.Contains(s.Notes()[0], "1 times; 1 calls") {
		t.Errorf("statistics %+v, notes %v; want 2 lists, one late pod and a note", s, s.Notes())
	}
	// One that was seen, and is in no later list, has gone.
	a.afterPost = func(name string) {
		awaitPod(t, w, name, func(x *await) bool { return !x.first.IsZero() })
		a.set(false, func() { a.frozen = true })
		a.put("DELETED", a.pod(name))
		a.set(true, func() { a.frozen, a.oldest = false, len(a.log) })
	}
	if r := makeCall(t, o, 2); r.Outcome != load.Failed || !strings.Contains(r.Cause.Text(o.Causes), "deleted") {
		t.Errorf("got %v, %q; want a failure because the pod was deleted", r.Outcome, r.Cause.Text(o.Causes))
	}
}

// TestSilentWatchIsRestarted: a request finds a running pod that the watch does not show; the watch is then restarted,
// and shows it.
func TestSilentWatchIsRestarted(t *testing.T) {
	a := newAPI(t)
	w := startWatch(t, a)
	eventually(t, "a watch", func() bool { return w.Stats().Watches == 1 }) // one that begins later shows the pod itself
	o := operation(t, w, a, nil)
	a.afterPost = func(name string) {
		a.set(false, func() { a.frozen = true })
		a.schedule(name)
		a.start(name)
	}
	var all sync.WaitGroup
	all.Go(func() {
		if r := makeCall(t, o, 1); r.Outcome != load.OK {
			t.Errorf("got %+v, want a good call", r)
		}
	})
	waits := answeredPod(t, w, nameOf(1))
	eventually(t, "the pod runs", func() bool { return started(a.pod(nameOf(1))) })
	w.check(t.Context(), waits)
	if s := w.Stats(); s.Missed != 1 || !strings.Contains(fmt.Sprint(s.Notes()), "1 pods ran without") {
		t.Errorf("statistics %+v, notes %v; want one missed pod and its note", s, s.Notes())
	}
	a.set(false, func() { a.frozen = false })
	all.Wait()
	if s := w.Stats(); s.Watches < 2 && s.Lists < 2 { // the reflector lists when a watch was short
		t.Errorf("statistics %+v, want a second watch or list", s)
	}
}

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
