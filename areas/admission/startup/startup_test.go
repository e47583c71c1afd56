package startup

import (
	"context"
	"encoding/pem"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"

	"tare/internal/load"
	"tare/rigs/hosttest"
)

func TestMain(m *testing.M) {
	if os.Getenv(role) != "" {
		os.Exit(serveNodes())
	}
	goleak.VerifyTestMain(hosttest.Sharing(m))
}

func pemOf(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// startWatch starts a watch at a, and checks at the end of the test that it keeps no pod.
func startWatch(t *testing.T, a *api) *Watch {
	t.Helper()
	w, err := Start(t.Context(), Config{API: a.config(), Namespace: testNamespace, Selector: testSelector})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if n := w.Stats().Awaited; n > 0 {
			t.Errorf("%d pods are still awaited", n)
		}
		w.Close()
	})
	return w
}

func operation(t *testing.T, w *Watch, a *api, change func(*Pods)) load.Operation {
	t.Helper()
	p := Pods{Caller: a.config(), Pod: podJSON("pod-" + load.CallMark)}
	if change != nil {
		change(&p)
	}
	o, err := w.Operation(p)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// makeCall makes call i, with a time limit.
func makeCall(t *testing.T, o load.Operation, i uint64) load.Result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	return o.Call(ctx, i)
}

func nameOf(i uint64) string { return fmt.Sprintf("pod-%016x", i) }

func phasesOf(r load.Result) map[string]time.Duration {
	out := map[string]time.Duration{}
	for _, m := range r.Marks {
		out[m.Name] = m.At.Sub(m.From)
	}
	return out
}

// awaitScheduled waits until the watch has shown that a pod is scheduled: on a busy host that takes a while, by which
// the phase that begins then would be shorter.
func awaitScheduled(t *testing.T, w *Watch, name string) {
	t.Helper()
	for begin := time.Now(); time.Since(begin) < 20*time.Second; time.Sleep(time.Millisecond) {
		w.track.mu.Lock()
		a := w.track.awaits[name]
		seen := a != nil && !a.scheduled.IsZero()
		w.track.mu.Unlock()
		if seen {
			return
		}
	}
	t.Errorf("%s is not seen to be scheduled", name)
}

func TestPhasesOfAPod(t *testing.T) {
	a := newAPI(t)
	const step = 30 * time.Millisecond
	watches := make(chan *Watch, 1)
	a.afterPost = func(name string) {
		time.Sleep(step)
		a.schedule(name)
		awaitScheduled(t, <-watches, name)
		time.Sleep(2 * step)
		a.start(name)
	}
	w := startWatch(t, a)
	watches <- w
	r := makeCall(t, operation(t, w, a, nil), 7)
	if r.Outcome != load.OK || r.Status != http.StatusCreated || r.Cause != 0 {
		t.Fatalf("got %+v, want a good call with status 201", r)
	}
	if r.Sent.IsZero() || r.FirstByte.Before(r.Sent) || r.BytesIn < 300 || r.BytesOut < uint64(len(podJSON(nameOf(7)))) {
		t.Errorf("sent %v, first byte %v, %d bytes in, %d out", r.Sent, r.FirstByte, r.BytesIn, r.BytesOut)
	}
	got := phasesOf(r)
	for name, least := range map[string]time.Duration{
		Post: 0, Scheduled: -time.Second, // it may be seen before the answer has come
		Running: 2*step - 5*time.Millisecond, Startup: 3*step - 5*time.Millisecond,
		WatchToWatch: 2*step - 5*time.Millisecond, CreatedToWatch: 3*step - 5*time.Millisecond, Conditions: 0,
	} {
		if d, ok := got[name]; !ok || d < least {
			t.Errorf("phase %s lasted %v (marked: %t), want at least %v", name, d, ok, least)
		}
	}
	if len(got) != 7 {
		t.Errorf("phases %v", got)
	}
	if sum := got[Post] + got[Scheduled] + got[Running]; sum != got[Startup] {
		t.Errorf("post, scheduled and running last %v together, startup %v", sum, got[Startup])
	}
	if got[WatchToWatch] > got[Startup] || got[CreatedToWatch] < got[Startup]-time.Second ||
		got[CreatedToWatch] > got[Startup]+time.Second {
		t.Errorf("startup %v, by other clocks %v and %v", got[Startup], got[WatchToWatch], got[CreatedToWatch])
	}
	if got[Conditions]%time.Second != 0 {
		t.Errorf("conditions %v: both ends are whole seconds", got[Conditions])
	}
	if s := w.Stats(); s.Lists != 1 || s.Watches != 1 || len(s.Notes()) > 0 {
		t.Errorf("statistics %+v, notes %v; want one list, one watch, no note", s, s.Notes())
	}
}

// TestAllContainersMustBeStarted: a pod is not running until all of its containers have started, whatever its phase.
func TestAllContainersMustBeStarted(t *testing.T) {
	a := newAPI(t)
	half := make(chan struct{})
	a.afterPost = func(name string) {
		p := a.pod(name)
		p.Spec.NodeName, p.Status.Phase = "n1", corev1.PodRunning
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{
			Name:  "a",
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
		}}
		a.put("MODIFIED", p)
		p.Status.ContainerStatuses = append(p.Status.ContainerStatuses,
			corev1.ContainerStatus{Name: "b", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{}}})
		a.put("MODIFIED", p)
		<-half
		// started, and ended since
		p.Status.ContainerStatuses[1].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}
		a.put("MODIFIED", p)
	}
	w := startWatch(t, a)
	o := operation(t, w, a, nil)
	done := make(chan load.Result, 1)
	var all sync.WaitGroup
	all.Go(func() { done <- makeCall(t, o, 1) })
	awaitPod(t, w, nameOf(1), func(x *await) bool { return !x.first.IsZero() })
	select {
	case r := <-done:
		t.Errorf("it ran before its second container was started: %+v", r)
	case <-time.After(100 * time.Millisecond):
	}
	close(half)
	all.Wait()
	if r := <-done; r.Outcome != load.OK {
		t.Errorf("got %+v, want a good call", r)
	}
}

func TestAnswersAreJudged(t *testing.T) {
	a := newAPI(t)
	w := startWatch(t, a)
	code := http.StatusForbidden
	a.onPost = func(rw http.ResponseWriter, _ *http.Request) bool {
		refuse(rw, code, `pods "p" is forbidden: ValidatingAdmissionPolicy 'a-1' denied request`)
		return true
	}
	denies := func(p *Pods) {
		p.Causes, p.CauseAnswers = []string{"not so", "by another policy"}, []string{"admit", "deny"}
		p.Judge = func(status int, body []byte) (load.Outcome, int) {
			if status == http.StatusForbidden && strings.Contains(string(body), "'a-1'") {
				return load.Denied, -1
			}
			return load.Wrong, 1
		}
	}
	for _, c := range []struct {
		code    int
		change  func(*Pods)
		outcome load.Outcome
		cause   string
	}{
		{http.StatusForbidden, nil, load.Wrong, ""},
		{http.StatusForbidden, denies, load.Denied, ""},
		{http.StatusConflict, denies, load.Wrong, "by another policy"},
		{http.StatusTooManyRequests, nil, load.Refused, ""},
		{http.StatusServiceUnavailable, nil, load.Refused, ""},
		{http.StatusInternalServerError, nil, load.Failed, ""},
		{http.StatusOK, nil, load.Wrong, ""},
	} {
		code = c.code
		o := operation(t, w, a, c.change)
		r := makeCall(t, o, 1)
		if r.Outcome != c.outcome || r.Cause.Text(o.Causes) != c.cause || int(r.Status) != c.code {
			t.Errorf("status %d: %v, %q", c.code, r.Outcome, r.Cause.Text(o.Causes))
		}
		if got := phasesOf(r); len(got) != 1 || got[Post] <= 0 {
			t.Errorf("status %d: phases %v, want the request only", c.code, got)
		}
		if o.CauseAnswers != nil && len(o.CauseAnswers) != len(o.Causes) {
			t.Errorf("%d answers for %d causes", len(o.CauseAnswers), len(o.Causes))
		}
	}
}

// TestLongHeadersFailTheCall: HTTP/2 makes megabytes of headers of some kilobytes.
func TestLongHeadersFailTheCall(t *testing.T) {
	a := newAPI(t)
	w := startWatch(t, a)
	a.onPost = func(rw http.ResponseWriter, _ *http.Request) bool {
		rw.Header()["X"] = slices.Repeat([]string{strings.Repeat("x", 1<<10)}, 100)
		refuse(rw, http.StatusTooManyRequests, "")
		return true
	}
	if r := makeCall(t, operation(t, w, a, nil), 1); r.Outcome == load.Refused || r.Status != 0 {
		t.Errorf("%+v", r)
	}
}

// TestCallsAreNotLimited: a limit of one request a second does not slow down a hundred calls, which use HTTP/2 on
// another connection than the watch.
func TestCallsAreNotLimited(t *testing.T) {
	a := newAPI(t)
	a.afterPost = func(name string) { a.schedule(name); a.start(name) }
	w := startWatch(t, a)
	o := operation(t, w, a, nil)
	begin := time.Now()
	var all sync.WaitGroup
	for i := range uint64(100) {
		all.Go(func() {
			if r := makeCall(t, o, i); r.Outcome != load.OK {
				t.Errorf("call %d: %+v", i, r)
			}
		})
	}
	all.Wait()
	if took := time.Since(begin); took > 50*time.Second {
		t.Errorf("100 calls took %v", took)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, p := range append(a.posts, a.watchers...) {
		if !strings.HasPrefix(p, "HTTP/2.0 ") {
			t.Fatalf("a request came over %s", p)
		}
	}
	for _, p := range a.posts {
		if p == a.watchers[0] {
			t.Fatal("pods are created on the connection that watches them")
		}
	}
	if len(a.posts) != 100 {
		t.Errorf("%d requests for 100 calls", len(a.posts))
	}
}

// TestNoRequestIsRepeated: requests that net/http would retry are sent once.
func TestNoRequestIsRepeated(t *testing.T) {
	a := newAPI(t)
	a.onPost = func(http.ResponseWriter, *http.Request) bool { panic(http.ErrAbortHandler) }
	w := startWatch(t, a)
	o := operation(t, w, a, nil)
	for i := range uint64(5) {
		if r := makeCall(t, o, i); r.Outcome != load.Failed && r.Outcome != load.ConnFailed {
			t.Errorf("got %+v, want a failed call", r)
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.posts) != 5 {
		t.Errorf("%d requests for 5 calls", len(a.posts))
	}
}

func TestUnusablePods(t *testing.T) {
	a := newAPI(t)
	w := startWatch(t, a)
	good := Pods{Caller: a.config(), Pod: podJSON(load.CallMark)}
	for want, change := range map[string]func(*Pods){
		"number of the call": func(p *Pods) { p.Pod = podJSON("same") },
		"would not see":      func(p *Pods) { p.Pod = []byte(strings.Replace(string(p.Pod), "r1", "r2", 1)) },
		"of namespace other": func(p *Pods) {
			p.Pod = []byte(strings.Replace(string(p.Pod), `"labels"`, `"namespace":"other","labels"`, 1))
		},
		"no user is named": func(p *Pods) { p.Caller = nil },
		"read the pod":     func(p *Pods) { p.Pod = []byte("{") },
		"as many answers":  func(p *Pods) { p.Causes, p.CauseAnswers = []string{"a", "b"}, []string{"x"} },
	} {
		p := good
		change(&p)
		if _, err := w.Operation(p); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want it to say %q", err, want)
		}
	}
	if _, err := w.Operation(good); err != nil {
		t.Error(err)
	}
}

func TestStartFails(t *testing.T) {
	hosttest.SkipIfShortUnlessRaced(t)
	a := newAPI(t)
	a.refuseReads = http.StatusForbidden
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	_, err := Start(ctx, Config{API: a.config(), Namespace: testNamespace, Selector: testSelector})
	if err == nil || !strings.Contains(err.Error(), "not now") {
		t.Errorf("a list that is refused: %v", err)
	}
	for want, cfg := range map[string]Config{
		"no namespace":         {API: a.config()},
		"selector":             {API: a.config(), Namespace: "a", Selector: "a in"},
		"no server is named":   {Namespace: "a"},
		"credentials for http": {API: badCA(a), Namespace: "a"},
	} {
		if _, err := Start(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want it to say %q", err, want)
		}
	}
}

// TestDuplicateWaitIsRejected: two waits for one name would take each other's events.
func TestDuplicateWaitIsRejected(t *testing.T) {
	a := newAPI(t)
	w := startWatch(t, a)
	o := operation(t, w, a, nil)
	x, ok := w.track.expect(nameOf(3))
	if !ok {
		t.Fatal("the name is free")
	}
	r := makeCall(t, o, 3)
	if r.Outcome != load.Failed || !strings.Contains(r.Cause.Text(o.Causes), "another call waits") {
		t.Errorf("got %+v, want a failure because another call waits", r)
	}
	if len(a.posts) != 0 {
		t.Error("the second pod of that name was created")
	}
	w.track.forget(x)
	if d := cmp.Diff(0, w.Stats().Awaited); d != "" {
		t.Error(d)
	}
}
