// Package startup measures the time from the request that creates a pod until a watch has seen all its containers
// started: pod startup as Kubernetes' service level objective defines it, but including admission.
package startup

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"

	"tare/internal/clock"
)

// listWithin bounds the wait for the first list of pods.
const listWithin = 30 * time.Second

// Config says which pods are watched.
type Config struct {
	API *rest.Config // the watching user; it needs the rights to get, list and watch pods in Namespace
	// Namespace and Selector choose the pods: "tare.dev/run=1f2e". The server does not send others.
	Namespace string
	Selector  string
	Clock     clock.Clock  // nil: the system's
	Log       *slog.Logger // nil: failures are not logged
}

// A Watch observes the pods of one namespace. It keeps nothing of pods that no call waits for. Close ends it.
type Watch struct {
	cfg      Config
	selector labels.Selector
	track    *tracker
	source   *source
	client   *connection
	cancel   context.CancelFunc
	all      sync.WaitGroup

	mu      sync.Mutex
	callers map[*rest.Config]*connection
}

// Start starts the watch, and returns when the first list has arrived. ctx bounds the start only.
func Start(ctx context.Context, cfg Config) (*Watch, error) {
	if cfg.Clock == nil {
		cfg.Clock = clock.System{}
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Namespace == "" {
		return nil, errors.New("watch pods: no namespace is named")
	}
	selector, err := labels.Parse(cfg.Selector)
	if err != nil {
		return nil, fmt.Errorf("watch pods: selector %q: %w", cfg.Selector, err)
	}
	w := &Watch{cfg: cfg, selector: selector, track: newTracker(cfg.Clock), callers: map[*rest.Config]*connection{}}
	if w.client, err = connect(cfg.API); err != nil {
		return nil, fmt.Errorf("watch pods: %w", err)
	}
	if w.source, err = newSource(w.client, cfg, w.track); err != nil {
		return nil, fmt.Errorf("watch pods: %w", err)
	}
	own, cancel := context.WithCancel(context.WithoutCancel(ctx))
	w.cancel = cancel
	w.all.Go(func() { w.source.run(own) })
	if err := w.awaitList(ctx); err != nil {
		w.Close()
		return nil, fmt.Errorf("watch pods of namespace %s: %w", cfg.Namespace, err)
	}
	w.all.Go(func() { w.audit(own) })
	return w, nil
}

func (w *Watch) awaitList(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, listWithin, fmt.Errorf("no list came within %v", listWithin))
	defer cancel()
	select {
	case <-w.track.listed:
		return nil
	case <-ctx.Done():
	}
	if err := w.source.lastError(); err != nil {
		return fmt.Errorf("%w: %w", context.Cause(ctx), err)
	}
	return context.Cause(ctx)
}

// Close ends the watch and the connections. Calls that still wait fail.
func (w *Watch) Close() {
	w.track.close()
	w.cancel()
	w.all.Wait()
	w.client.close()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.callers {
		c.close()
	}
	w.callers = map[*rest.Config]*connection{}
}

// caller returns the connection that creates pods: one for each configuration, for as long as the watch lives.
func (w *Watch) caller(cfg *rest.Config) (*connection, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if c := w.callers[cfg]; c != nil {
		return c, nil
	}
	c, err := connect(cfg)
	if err != nil {
		return nil, err
	}
	w.callers[cfg] = c
	return c, nil
}
