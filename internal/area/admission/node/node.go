// Package node simulates kubelets: nodes that are Ready, renew their leases, and say of each pod that is bound to them that it runs, although no
// container is ever started. What is measured with them is the control plane, and only it.
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

// MostNodes is how many nodes one process simulates at most: the most that Kubernetes itself is made for.
const MostNodes = 5000

// Label is on each simulated node, with value "true", so that nobody takes it for a real one.
const Label = "tare.dev/simulated"

// Config is what the simulator is told. It reaches the child on standard input, as it may hold a token.
type Config struct {
	// Kubeconfig is the path of a file whose current context is the control plane. Where it is empty, Server, CA and Token are used.
	Kubeconfig string `json:"kubeconfig,omitempty"`
	Server     string `json:"server,omitempty"` // "https://127.0.0.1:6443"
	CA         []byte `json:"ca,omitempty"`     // certificates of the authority that signed the server's, PEM
	Token      string `json:"token,omitempty"`
	// Nodes is how many there are, 1 to MostNodes.
	Nodes int `json:"nodes"`
	// Latency is how many seconds a pod waits on its node before it is said to run: a fixed time in place of the work of a real node.
	Latency float64 `json:"latency,omitempty"`
	// MostPods is how many pods each node offers to hold; 0: 5000, so that the nodes' capacity is no part of the result.
	MostPods int `json:"most_pods,omitempty"`
	// Labels are further labels of the nodes and their leases.
	Labels map[string]string `json:"labels,omitempty"`
	// Log is told what fails for a while. Nil: nobody is.
	Log *slog.Logger `json:"-"`
}

// Ready is what the simulator answers when every node is registered and pods are awaited.
type Ready struct {
	Nodes   int     `json:"nodes"`
	Seconds float64 `json:"seconds"` // from its start
	// Note says in one line what the nodes are: it belongs beside each result that was got with them.
	Note string `json:"note"`
}

// Note says in one line what the nodes are.
func (c Config) Note() string {
	text := fmt.Sprintf("control plane only: the %d nodes are simulated, no container is started", c.Nodes)
	if c.Latency > 0 {
		text += fmt.Sprintf("; a pod runs a fixed %v after its node has seen it", c.latency())
	}
	return text
}

func (c Config) latency() time.Duration { return time.Duration(c.Latency * float64(time.Second)) }

// Validate reports what is wrong with c.
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

// Run registers the nodes, calls ready once, and keeps them alive until ctx ends; it then returns ctx's error. It outlives restarts of the API
// server. In the end it only ends: nodes, leases and pods stay in the control plane, which is made for one run and thrown away.
//
// It refuses a server that is not on a loopback address, and one that has other nodes than simulated ones: a scheduler would bind real pods to
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

// run is Run with everything at hand. All its goroutines have ended when it returns.
func run(ctx context.Context, f *fleet, ready func(Ready) error) error {
	begin := f.clock.Now()
	if err := f.checkOthers(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	var all sync.WaitGroup
	defer all.Wait()
	defer cancel(nil)
	all.Go(func() { f.beat(ctx) })
	if err := f.registerAll(ctx); err != nil {
		return err
	}
	all.Go(func() { f.pods.watch(ctx) })
	all.Go(func() { f.pods.work(ctx) })
	if err := f.pods.awaitList(ctx); err != nil {
		return err
	}
	if err := ready(Ready{Nodes: len(f.nodes), Seconds: f.clock.Now().Sub(begin).Seconds(), Note: f.cfg.Note()}); err != nil {
		return err
	}
	<-ctx.Done()
	return context.Cause(ctx)
}
