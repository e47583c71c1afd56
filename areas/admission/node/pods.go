package node

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	"tare/internal/clock"
)

const (
	// podWorkers is how many pods are handled concurrently.
	podWorkers = 32
	// resyncEvery is the interval at which every unfinished pod is checked again, whatever events have arrived.
	resyncEvery = 10 * time.Second
	// watchFor bounds a watch. The next one begins where it ended, so an event that the server failed to deliver arrives
	// then at the latest.
	watchFor = time.Minute
)

// pods are the pods that are bound to the simulated nodes. It is the store of a reflector, the part of an informer that
// lists and watches. It keeps little of a pod, and only while the pod exists.
type pods struct {
	client  *client
	nodes   map[string]bool
	latency time.Duration
	clock   clock.Clock
	log     *slog.Logger
	queue   workqueue.TypedRateLimitingInterface[types.NamespacedName] // each pod at most once
	listed  chan struct{}                                              // closed after the first list
	once    sync.Once

	mu      sync.Mutex
	known   map[types.NamespacedName]*pod
	started uint32 // pods reported as running, for addresses
}

var _ cache.ReflectorStore = (*pods)(nil)

func newPods(c *client, nodes map[string]bool, latency time.Duration, k clock.Clock, log *slog.Logger) *pods {
	return &pods{
		client: c, nodes: nodes, latency: latency, clock: k, log: log, listed: make(chan struct{}),
		known: map[types.NamespacedName]*pod{},
		queue: workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[types.NamespacedName](
			10*time.Millisecond, 2*time.Second)),
	}
}

// A pod is what is kept of a pod. It is immutable, except that seen is copied to its successor.
type pod struct {
	uid        types.UID
	seen       time.Time // bound to its node
	wants      want
	containers []container // of a pod that is to run
	inits      []container
}

// container is what a status repeats of a container.
type container struct {
	name, image string
	ends        bool // an init container that completes
}

// want is what a pod waits for.
type want uint8

const (
	nothing want = iota
	toRun
	toEnd
)

// watch lists and watches until ctx ends.
func (p *pods) watch(ctx context.Context) {
	logger := logr.FromSlogHandler(p.log.Handler())
	ctx = klog.NewContext(ctx, logger)
	r := cache.NewReflectorWithOptions(plain{p.source()}, &corev1.Pod{}, p, cache.ReflectorOptions{
		Name: "simulated-nodes", Logger: &logger, ResyncPeriod: resyncEvery,
		Backoff: &wait.Backoff{Duration: 100 * time.Millisecond, Cap: 2 * time.Second, Steps: 5, Factor: 2, Jitter: 0.2},
	})
	r.RunWithContext(ctx)
}

// plain keeps a reflector from having a list sent as a watch, of which it would keep every pod as it is.
type plain struct{ *cache.ListWatch }

// IsWatchListSemanticsUnSupported is how a reflector asks.
func (plain) IsWatchListSemanticsUnSupported() bool { return true }

// A list has at most so many pages of so many pods.
const (
	page      = 500
	mostPages = 400
)

// toNodes selects the pods that are bound to a node.
var toNodes = fields.OneTermNotEqualSelector("spec.nodeName", "").String()

// list lists the pods that are bound to the simulated nodes, page by page, with what newPod reads of them.
func (p *pods) list(ctx context.Context) (runtime.Object, error) {
	out, o := new(corev1.PodList), metav1.ListOptions{FieldSelector: toNodes, Limit: page}
	for range mostPages {
		part := new(corev1.PodList)
		err := p.client.core.Get().Resource("pods").VersionedParams(&o, metav1.ParameterCodec).Do(ctx).Into(part)
		if err != nil {
			return nil, err
		}
		for i := range part.Items {
			if one := &part.Items[i]; p.nodes[one.Spec.NodeName] {
				out.Items = append(out.Items, brief(one))
			}
		}
		if out.ResourceVersion == "" {
			out.ResourceVersion = part.ResourceVersion
		}
		if o.Continue = part.Continue; o.Continue == "" {
			return out, nil
		}
	}
	return nil, fmt.Errorf("the list of pods does not end: it is given up after %d pages", mostPages)
}

// source returns the list and watch of these pods.
func (p *pods) source() *cache.ListWatch {
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, _ metav1.ListOptions) (runtime.Object, error) { return p.list(ctx) },
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.FieldSelector, o.Watch = toNodes, true
			seconds := int64(watchFor.Seconds())
			o.TimeoutSeconds = &seconds
			return p.client.core.Get().Resource("pods").VersionedParams(&o, metav1.ParameterCodec).Watch(ctx)
		},
	}
}

// awaitList waits for the first list.
func (p *pods) awaitList(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("no list of pods came within %v", patience))
	defer cancel()
	select {
	case <-p.listed:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Add implements cache.ReflectorStore.
func (p *pods) Add(obj any) error {
	o, ok := obj.(*corev1.Pod)
	if !ok {
		return fmt.Errorf("an object of type %T is no pod", obj)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.update(o)
	return nil
}

// Update implements cache.ReflectorStore.
func (p *pods) Update(obj any) error { return p.Add(obj) }

// update records what o says. p.mu is held.
func (p *pods) update(o *corev1.Pod) {
	if !p.nodes[o.Spec.NodeName] {
		return
	}
	key := types.NamespacedName{Namespace: o.Namespace, Name: o.Name}
	next := newPod(o, p.clock.Now())
	if last := p.known[key]; last != nil && last.uid == next.uid {
		next.seen = last.seen
	}
	p.known[key] = next
	if next.wants != nothing {
		p.queue.Add(key)
	}
}

// Delete implements cache.ReflectorStore.
func (p *pods) Delete(obj any) error {
	o, ok := obj.(*corev1.Pod)
	if !ok {
		return fmt.Errorf("an object of type %T is no pod", obj)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.known, types.NamespacedName{Namespace: o.Namespace, Name: o.Name})
	return nil
}

// Replace implements cache.ReflectorStore.
func (p *pods) Replace(all []any, _ string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	last := p.known
	p.known = make(map[types.NamespacedName]*pod, len(all))
	for _, obj := range all {
		o, ok := obj.(*corev1.Pod)
		if !ok {
			return fmt.Errorf("an object of type %T is no pod", obj)
		}
		key := types.NamespacedName{Namespace: o.Namespace, Name: o.Name}
		if l := last[key]; l != nil {
			p.known[key] = l
		}
		p.update(o)
	}
	p.once.Do(func() { close(p.listed) })
	return nil
}

// Resync implements cache.ReflectorStore: it checks all unfinished pods again.
func (p *pods) Resync() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for key, one := range p.known {
		if one.wants != nothing {
			p.queue.Add(key)
		}
	}
	return nil
}

// work handles pods until ctx ends.
func (p *pods) work(ctx context.Context) {
	var workers sync.WaitGroup
	for range podWorkers {
		workers.Go(func() {
			for {
				key, ended := p.queue.Get()
				if ended {
					return
				}
				p.handle(ctx, key)
				p.queue.Done(key)
			}
		})
	}
	<-ctx.Done()
	p.queue.ShutDown()
	workers.Wait()
}

// handle gives a pod what it waits for. It retries failures with a growing delay.
func (p *pods) handle(ctx context.Context, key types.NamespacedName) {
	p.mu.Lock()
	one := p.known[key]
	p.mu.Unlock()
	if one == nil || ctx.Err() != nil {
		p.queue.Forget(key)
		return
	}
	var err error
	switch one.wants {
	case toRun:
		if left := p.latency - p.clock.Now().Sub(one.seen); left > 0 {
			p.queue.AddAfter(key, left)
			return
		}
		err = within(ctx, func(ctx context.Context) error { return p.start(ctx, key, one) })
	case toEnd:
		err = within(ctx, func(ctx context.Context) error { return p.end(ctx, key, one) })
	case nothing:
	}
	if err == nil || apierrors.IsNotFound(err) {
		p.markDone(key, one)
		return
	}
	if ctx.Err() == nil {
		p.log.Warn("a simulated pod could not be driven", slog.String("pod", key.String()), slog.Any("error", err))
	}
	p.queue.AddRateLimited(key)
}

// markDone records that a pod needs nothing more, unless it has changed meanwhile.
func (p *pods) markDone(key types.NamespacedName, one *pod) {
	p.queue.Forget(key)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.known[key] == one {
		p.known[key] = &pod{uid: one.uid, seen: one.seen}
	}
}

// end confirms a deletion, as a kubelet does when the containers have ended.
func (p *pods) end(ctx context.Context, key types.NamespacedName, one *pod) error {
	now := int64(0)
	body := &metav1.DeleteOptions{GracePeriodSeconds: &now, Preconditions: &metav1.Preconditions{UID: &one.uid}}
	return p.client.core.Delete().Namespace(key.Namespace).Resource("pods").Name(key.Name).Body(body).Do(ctx).Error()
}

// start reports that the pod runs.
func (p *pods) start(ctx context.Context, key types.NamespacedName, one *pod) error {
	p.mu.Lock()
	p.started++
	address := podIP(p.started)
	p.mu.Unlock()
	body, err := running(one, address, p.clock.Now())
	if err != nil {
		return err
	}
	return p.client.core.Patch(types.StrategicMergePatchType).Namespace(key.Namespace).Resource("pods").Name(
		key.Name).SubResource("status").
		Body(body).Do(ctx).Error()
}
