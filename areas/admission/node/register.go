package node

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"tare/internal/clock"
)

const (
	// registrars is how many nodes are registered concurrently.
	registrars = 16
	// patience is how long the start waits for a server that does not answer.
	patience = 30 * time.Second
	// defaultMostPods is the default of Config.MostPods.
	defaultMostPods = 5000
	// kubeletPort is a port without a listener: the API server's requests to a kubelet (logs, exec) fail immediately.
	kubeletPort = 1
)

// A fleet is all simulated nodes.
type fleet struct {
	client *client
	cfg    Config
	clock  clock.Clock
	log    *slog.Logger
	nodes  []*node
	pods   *pods
}

// A node is one simulated node. mu guards the fields below it, and is held during requests for this node.
type node struct {
	name       string
	mu         sync.Mutex
	registered bool
	lease      *coordinationv1.Lease // as the server has it
	renewed    time.Time
	posted     time.Time // its status
	// phase is how much earlier than statusEvery the first status is due: all nodes are registered at once, and should not
	// report at once.
	phase time.Duration
}

func newFleet(c *client, cfg Config, k clock.Clock) *fleet {
	f := &fleet{client: c, cfg: cfg, clock: k, log: cfg.Log, nodes: make([]*node, cfg.Nodes)}
	names := make(map[string]bool, cfg.Nodes)
	for i := range f.nodes {
		f.nodes[i] = &node{
			name:  fmt.Sprintf("tare-node-%05d", i),
			phase: statusEvery * time.Duration(i) / time.Duration(cfg.Nodes),
		}
		names[f.nodes[i].name] = true
	}
	f.pods = newPods(c, names, cfg.latency(), k, cfg.Log)
	return f
}

// registerAll registers every node, several concurrently. The first error ends it.
func (f *fleet) registerAll(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	next := make(chan *node)
	var workers sync.WaitGroup
	for range min(registrars, len(f.nodes)) {
		workers.Go(func() {
			for n := range next {
				if err := f.retry(ctx, func(ctx context.Context) error { return f.register(ctx, n) }); err != nil {
					cancel(fmt.Errorf("register node %s: %w", n.name, err))
				}
			}
		})
	}
	for _, n := range f.nodes {
		select {
		case next <- n:
		case <-ctx.Done():
		}
	}
	close(next)
	workers.Wait()
	return context.Cause(ctx)
}

// register makes the node Ready and gives it a lease. It may be repeated.
func (f *fleet) register(ctx context.Context, n *node) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return f.registerLocked(ctx, n)
}

func (f *fleet) registerLocked(ctx context.Context, n *node) error {
	now := f.clock.Now()
	made := new(corev1.Node)
	err := f.client.core.Post().Resource("nodes").Body(f.object(n.name, now)).Do(ctx).Into(made)
	exists := apierrors.IsAlreadyExists(err)
	if err != nil && !exists {
		return fmt.Errorf("create: %w", err)
	}
	if exists || len(made.Spec.Taints) > 0 {
		if err := f.untaint(ctx, n.name); err != nil {
			return err
		}
	}
	if exists {
		if err := f.postStatus(ctx, n, now); err != nil {
			return err
		}
	}
	err = f.createLease(ctx, n, now)
	if apierrors.IsAlreadyExists(err) {
		err = f.renewLease(ctx, n, now)
	}
	if err != nil {
		return err
	}
	n.registered, n.posted = true, now.Add(-n.phase)
	return nil
}

// untaint removes the taint "not ready" that the server gives each new node. The controller would do so too, but later.
func (f *fleet) untaint(ctx context.Context, name string) error {
	patch := []byte(`{"spec":{"taints":null}}`)
	if err := f.client.core.Patch(types.MergePatchType).Resource("nodes").Name(name).Body(patch).Do(
		ctx).Error(); err != nil {
		return fmt.Errorf("take away the taint: %w", err)
	}
	return nil
}

// object returns the node as it is created: Ready immediately.
func (f *fleet) object(name string, now time.Time) *corev1.Node {
	labels := map[string]string{
		corev1.LabelHostname: name, corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64", Label: "true",
	}
	maps.Copy(labels, f.cfg.Labels)
	most := f.cfg.MostPods
	if most == 0 {
		most = defaultMostPods
	}
	capacity := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("1000"), corev1.ResourceMemory: resource.MustParse("16Ti"),
		corev1.ResourceEphemeralStorage: resource.MustParse("16Ti"), corev1.ResourcePods: *resource.NewQuantity(int64(most),
			resource.DecimalSI),
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Status: corev1.NodeStatus{
			Capacity: capacity, Allocatable: capacity, Conditions: conditions(now),
			Addresses: []corev1.NodeAddress{
				{Type: corev1.NodeInternalIP, Address: hostIP},
				{Type: corev1.NodeHostName, Address: name},
			},
			NodeInfo: corev1.NodeSystemInfo{KubeletVersion: "simulated", OperatingSystem: "linux", Architecture: "amd64"},
			DaemonEndpoints: corev1.NodeDaemonEndpoints{
				KubeletEndpoint: corev1.DaemonEndpoint{Port: kubeletPort},
			},
		},
	}
}

// conditions returns those of a healthy node.
func conditions(now time.Time) []corev1.NodeCondition {
	at := metav1.NewTime(now)
	out := []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady"}}
	for _, t := range []corev1.NodeConditionType{
		corev1.NodeMemoryPressure, corev1.NodeDiskPressure,
		corev1.NodePIDPressure,
	} {
		out = append(out, corev1.NodeCondition{Type: t, Status: corev1.ConditionFalse, Reason: "Simulated"})
	}
	for i := range out {
		out[i].LastHeartbeatTime, out[i].LastTransitionTime = at, at
	}
	return out
}

// retry repeats a request of the start for as long as a server may take to answer, unless the failure is permanent.
func (f *fleet) retry(ctx context.Context, request func(context.Context) error) error {
	begin := f.clock.Now()
	for pause := 50 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		err := within(ctx, request)
		if err == nil || permanent(err) || ctx.Err() != nil || f.clock.Now().Sub(begin) > patience {
			return err
		}
		if err := f.clock.Sleep(ctx, pause); err != nil {
			return err
		}
	}
}

func within(ctx context.Context, request func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, requestWithin)
	defer cancel()
	return request(ctx)
}

// permanent reports whether the server has rejected the request. "Not found" is transient: a server that has just
// started creates the leases' namespace a little later.
func permanent(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) || apierrors.IsInvalid(err) ||
		apierrors.IsBadRequest(err) ||
		apierrors.IsMethodNotSupported(err)
}
