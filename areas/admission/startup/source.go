package startup

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// A watch that ends before it is steady is followed by the next one after a gap that doubles from the least one: a
// reflector waits after errors only, and a server may end each watch in good order. From flapping on, when something
// happened is not known to better than seconds.
const (
	steady   = 5 * time.Second // and the longest gap
	leastGap = 50 * time.Millisecond
	flapping = time.Second
)

// source lists and watches pods into a tracker. It is the reflector of an informer, without the informer's queues,
// which would delay events before their time is read.
type source struct {
	client *rest.RESTClient
	cfg    Config
	track  *tracker

	mu      sync.Mutex
	current watch.Interface // nil: none is open
	err     error           // of the latest list or watch
	began   time.Time       // the latest watch
	gap     time.Duration   // until the next one may begin; 0: the last that ended was steady
	watches uint64
	short   uint64 // watches that were not steady
}

func newSource(c *connection, cfg Config, t *tracker) (*source, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, metav1.AddMetaToScheme} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("register types: %w", err)
		}
	}
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	own := rest.CopyConfig(c.cfg)
	own.QPS, own.GroupVersion, own.APIPath = -1, &corev1.SchemeGroupVersion, "/api"
	own.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	own.ContentType = "application/vnd.kubernetes.protobuf"
	own.AcceptContentTypes = own.ContentType + ",application/json"
	client, err := rest.RESTClientForConfigAndClient(own, &http.Client{Transport: c.wrapped})
	if err != nil {
		return nil, fmt.Errorf("make a client of %s: %w", c.cfg.Host, err)
	}
	return &source{client: client, cfg: cfg, track: t}, nil
}

// run lists and watches until ctx ends.
func (s *source) run(ctx context.Context) {
	logger := logr.FromSlogHandler(s.cfg.Log.Handler())
	r := cache.NewReflectorWithOptions(plain{s.listWatch()}, &corev1.Pod{}, s.track, cache.ReflectorOptions{
		Name: "pod-startup", Logger: &logger,
		Backoff: &wait.Backoff{Duration: 50 * time.Millisecond, Cap: time.Second, Steps: 5, Factor: 2, Jitter: 0.2},
	})
	r.RunWithContext(klog.NewContext(ctx, logger))
}

// plain keeps a reflector from having a list sent as a watch, of which it would keep everything, without a bound.
type plain struct{ *cache.ListWatch }

// IsWatchListSemanticsUnSupported is how a reflector asks.
func (plain) IsWatchListSemanticsUnSupported() bool { return true }

// A list has at most so many pages of so many pods.
const (
	page      = 500
	mostPages = 400
)

// list shows the tracker all pods, page by page. What it returns for the reflector holds none of them.
func (s *source) list(ctx context.Context) (*metav1.List, error) {
	ctx, cancel := context.WithTimeout(ctx, listWithin)
	defer cancel()
	s.track.begin()
	out, o := new(metav1.List), metav1.ListOptions{Limit: page}
	for range mostPages {
		part := new(corev1.PodList)
		if err := s.request(&o).Do(ctx).Into(part); err != nil {
			return nil, err
		}
		s.track.page(part.Items)
		if out.ResourceVersion == "" {
			out.ResourceVersion = part.ResourceVersion
		}
		if o.Continue = part.Continue; o.Continue == "" {
			return out, nil
		}
	}
	return nil, fmt.Errorf("the server's list of pods does not end: it is given up after %d pages", mostPages)
}

func (s *source) listWatch() *cache.ListWatch {
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, _ metav1.ListOptions) (runtime.Object, error) {
			out, err := s.list(ctx)
			s.note(nil, err)
			return out, err
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			if err := s.cfg.Clock.Sleep(ctx, s.wait()); err != nil {
				return nil, err
			}
			o.Watch = true
			w, err := s.request(&o).Watch(ctx)
			if err != nil {
				s.note(nil, err)
				return nil, err
			}
			noted := &noted{Interface: w, source: s}
			s.note(noted, nil)
			return noted, nil
		},
	}
}

func (s *source) request(o *metav1.ListOptions) *rest.Request {
	o.LabelSelector = s.cfg.Selector
	return s.client.Get().Namespace(s.cfg.Namespace).Resource("pods").VersionedParams(o, metav1.ParameterCodec)
}

// note records the open watch, and the error of the last request.
func (s *source) note(w watch.Interface, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
	if w != nil {
		s.current, s.began = w, s.cfg.Clock.Now()
		s.watches++
	}
}

// wait returns for how long no watch may begin.
func (s *source) wait() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.gap - s.cfg.Clock.Now().Sub(s.began)
}

// noted is a watch that reports its end.
type noted struct {
	watch.Interface
	source *source
}

// Stop implements watch.Interface.
func (n *noted) Stop() {
	n.Interface.Stop()
	s := n.source
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current != watch.Interface(n) {
		return
	}
	s.current = nil
	if s.cfg.Clock.Now().Sub(s.began) >= steady {
		s.gap = 0
		return
	}
	s.gap = min(max(2*s.gap, leastGap), steady)
	select {
	case <-s.track.ended: // by tare itself
	default:
		s.short++
	}
}

// restart ends the open watch: the next one begins where it ended, and delivers what it failed to deliver.
func (s *source) restart() {
	s.mu.Lock()
	w := s.current
	s.mu.Unlock()
	if w != nil {
		w.Stop()
	}
}

// state reports whether a watch is open, and whether one after the other ends at once.
func (s *source) state() (open, flaps bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	open = s.current != nil
	return open, s.gap >= flapping && (!open || s.cfg.Clock.Now().Sub(s.began) < steady)
}

func (s *source) lastError() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

func (s *source) counts() (watches, short uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.watches, s.short
}
