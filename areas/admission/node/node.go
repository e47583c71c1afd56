// Package node simulates kubelets: nodes that are Ready, renew their leases, and report that each pod bound to them
// runs, although no container is started. So only the control plane is measured.
package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"tare/internal/clock"
)

// MostNodes bounds the nodes of one process: the most that Kubernetes is designed for.
const MostNodes = 5000

// Label marks each simulated node, with value "true".
const Label = "tare.dev/simulated"

// Config is the simulator's configuration. It reaches the child on standard input, as it may hold a token.
type Config struct {
	// Kubeconfig is the path of a file whose current context is the control plane. If empty, Server, CA and Token are
	// used.
	Kubeconfig string `json:"kubeconfig,omitempty"`
	Server     string `json:"server,omitempty"` // "https://127.0.0.1:6443"
	CA         []byte `json:"ca,omitempty"`     // certificates of the authority that signed the server's, PEM
	Token      string `json:"token,omitempty"`
	// Nodes is the number of nodes, 1 to MostNodes.
	Nodes int `json:"nodes"`
	// Latency is how many seconds a pod waits on its node before it is reported as running: a fixed time in place of a
	// real node's work.
	Latency float64 `json:"latency,omitempty"`
	// MostPods is each node's capacity for pods; 0: 5000, so that the capacity does not affect the result.
	MostPods int `json:"most_pods,omitempty"`
	// Labels are further labels of the nodes and their leases.
	Labels map[string]string `json:"labels,omitempty"`
	// Log receives lasting failures; nil: they are not logged.
	Log *slog.Logger `json:"-"`
}

// Ready is the simulator's ready message, sent when every node is registered and pods are watched.
type Ready struct {
	Nodes   int     `json:"nodes"`
	Seconds float64 `json:"seconds"` // since its start
	// Note describes the nodes in one line, to accompany each result.
	Note string `json:"note"`
}

// Note describes the nodes in one line.
func (c Config) Note() string {
	text := fmt.Sprintf("control plane only: the %d nodes are simulated, no container is started", c.Nodes)
	if c.Latency > 0 {
		text += fmt.Sprintf("; a pod runs a fixed %v after its node has seen it", c.latency())
	}
	return text
}

func (c Config) latency() time.Duration { return time.Duration(c.Latency * float64(time.Second)) }

// Validate returns an error unless c is valid.
func (c Config) Validate() error {
	switch {
	case c.Nodes < 1 || c.Nodes > MostNodes:
		return fmt.Errorf("nodes: %d is not within 1 to %d", c.Nodes, MostNodes)
	case c.Latency < 0 || c.Latency > time.Hour.Seconds():
		return fmt.Errorf("latency: %g s is not within 0 to 3600 s", c.Latency)
	case c.MostPods < 0:
		return fmt.Errorf("most_pods: %d is negative", c.MostPods)
	case (c.Kubeconfig == "") == (c.Server == ""):
		return errors.New("name either a kubeconfig or a server")
	}
	return nil
}

// Run registers the nodes, calls ready once, and keeps them alive until ctx ends; it then returns ctx's error. It
// survives restarts of the API server. It does not clean up: nodes, leases and pods stay in the control plane, which is
// discarded after the run.
//
// It rejects a server that is not on a loopback address, and one with real nodes: a scheduler would bind real pods to
// nodes that do not exist.
func Run(ctx context.Context, cfg Config, ready func(Ready) error) error {
	if err := cfg.Validate(); err != nil {
		return fmt.Errorf("simulate nodes: %w", err)
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	client, err := dial(cfg)
	if err != nil {
		return fmt.Errorf("simulate nodes: %w", err)
	}
	if err := run(ctx, newFleet(client, cfg, clock.System{}), ready); err != nil {
		return fmt.Errorf("simulate nodes: %w", err)
	}
	return nil
}

// run is Run with its dependencies. All its goroutines have ended when it returns.
func run(ctx context.Context, f *fleet, ready func(Ready) error) error {
	begin := f.clock.Now()
	if err := f.checkOthers(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	var all sync.WaitGroup
	defer all.Wait()
	defer cancel(nil)
	all.Go(func() { f.renewLeases(ctx) })
	if err := f.registerAll(ctx); err != nil {
		return err
	}
	all.Go(func() { f.pods.watch(ctx) })
	all.Go(func() { f.pods.work(ctx) })
	if err := f.pods.awaitList(ctx); err != nil {
		return err
	}
	if err := ready(Ready{
		Nodes: len(f.nodes), Seconds: f.clock.Now().Sub(begin).Seconds(),
		Note: f.cfg.Note(),
	}); err != nil {
		return err
	}
	<-ctx.Done()
	return context.Cause(ctx)
}
