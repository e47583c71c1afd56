package startup

import (
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"

	"tare/internal/clock"
)

// tracker is the store behind the reflector. It keeps only the instants of pods that a call waits for. The time of an
// event is read first, right after the event was decoded.
type tracker struct {
	clock  clock.Clock
	listed chan struct{} // closed after the first list
	ended  chan struct{} // closed when no more events will come
	once   sync.Once
	over   sync.Once

	mu      sync.Mutex
	awaits  map[string]*await // by name
	there   map[string]bool   // those of them that the latest list has
	counted bool              // whether lists counts the latest
	lists   uint64
	late    uint64 // pods seen running in a list, after a watch had failed
	missed  uint64 // pods found running without an event
}

var _ cache.ReflectorStore = (*tracker)(nil)

func newTracker(c clock.Clock) *tracker {
	return &tracker{clock: c, listed: make(chan struct{}), ended: make(chan struct{}), awaits: map[string]*await{}}
}

func (t *tracker) close() { t.over.Do(func() { close(t.ended) }) }

// An await is a pod that a call waits for. The tracker's lock guards it until done is closed.
type await struct {
	name     string
	done     chan struct{} // closed when it was seen running, or deleted
	answered time.Time     // the request that created it

	first, scheduled, running time.Time // when it was seen so
	created, ready            time.Time // by the clocks of the server and of the node
	gone                      bool      // it was deleted before it was seen running
	unseen                    bool      // it runs, according to the server, and the watch has not shown it
	asked                     time.Time
}

// expect registers the wait for a pod before the pod is created; false: another call waits for that name.
func (t *tracker) expect(name string) (*await, bool) {
	a := &await{name: name, done: make(chan struct{})}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.awaits[name] != nil {
		return nil, false
	}
	t.awaits[name] = a
	return a, true
}

// forget ends the wait. Later events of the pod are ignored.
func (t *tracker) forget(a *await) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.awaits[a.name] == a {
		delete(t.awaits, a.name)
	}
}

// answer records that the pod has been created.
func (t *tracker) answer(a *await, at time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	a.answered = at
}

// seen records an event that arrived at that instant. t.mu is held.
func (t *tracker) seen(o *corev1.Pod, at time.Time, listed bool) {
	a := t.awaits[o.Name]
	if a == nil || !a.running.IsZero() || a.gone {
		return
	}
	if a.first.IsZero() {
		a.first = at
	}
	runs := started(o)
	// A list may show a pod that is scheduled and runs: when it was scheduled is then unknown.
	if a.scheduled.IsZero() && o.Spec.NodeName != "" && !runs {
		a.scheduled = at
	}
	if !runs {
		return
	}
	a.running, a.created, a.ready = at, o.CreationTimestamp.Time, readySince(o)
	if listed {
		t.late++
	}
	close(a.done)
}

// started reports whether all containers of a pod have started.
func started(o *corev1.Pod) bool {
	if o.Status.Phase != corev1.PodRunning && o.Status.Phase != corev1.PodSucceeded {
		return false
	}
	if len(o.Status.ContainerStatuses) < len(o.Spec.Containers) {
		return false
	}
	for i := range o.Status.ContainerStatuses {
		if s := &o.Status.ContainerStatuses[i].State; s.Running == nil && s.Terminated == nil {
			return false
		}
	}
	return true
}

// readySince returns since when the pod has been Ready, by its node's clock; zero: it is not.
func readySince(o *corev1.Pod) time.Time {
	for i := range o.Status.Conditions {
		if c := &o.Status.Conditions[i]; c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
			return c.LastTransitionTime.Time
		}
	}
	return time.Time{}
}

// Add implements cache.ReflectorStore.
func (t *tracker) Add(obj any) error {
	at := t.clock.Now()
	o, ok := obj.(*corev1.Pod)
	if !ok {
		return fmt.Errorf("an object of type %T is no pod", obj)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.seen(o, at, false)
	return nil
}

// Update implements cache.ReflectorStore.
func (t *tracker) Update(obj any) error { return t.Add(obj) }

// Delete implements cache.ReflectorStore.
func (t *tracker) Delete(obj any) error {
	o, ok := obj.(*corev1.Pod)
	if !ok {
		return fmt.Errorf("an object of type %T is no pod", obj)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lose(t.awaits[o.Name])
	return nil
}

// lose records that a pod has gone that was never seen running. t.mu is held.
func (t *tracker) lose(a *await) {
	if a == nil || !a.running.IsZero() || a.gone {
		return
	}
	a.gone = true
	close(a.done)
}

// begin begins a list: after the start, and after a watch that could not be resumed.
func (t *tracker) begin() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.there, t.counted = map[string]bool{}, false
}

// page records a page of it. A list counts with its first page, so that no pod is seen by one that does not count.
func (t *tracker) page(all []corev1.Pod) {
	at := t.clock.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.counted {
		t.lists, t.counted = t.lists+1, true
	}
	for i := range all {
		if o := &all[i]; t.awaits[o.Name] != nil {
			t.there[o.Name] = true
			t.seen(o, at, true)
		}
	}
}

// Replace implements cache.ReflectorStore: a list has ended, all pages of which were recorded.
func (t *tracker) Replace([]any, string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	for name, a := range t.awaits {
		if !t.there[name] && !a.first.IsZero() { // one that was never seen may have been created after the list
			t.lose(a)
		}
	}
	t.once.Do(func() { close(t.listed) })
	return nil
}

// Resync implements cache.ReflectorStore. It does nothing, since events are never postponed.
func (t *tracker) Resync() error { return nil }
