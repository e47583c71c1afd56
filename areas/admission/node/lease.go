package node

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// The kubelets' defaults: nodeLeaseDurationSeconds 40, renewed every quarter of it, and nodeStatusReportFrequency 5
// min.
const (
	leaseSeconds = 40
	leaseEvery   = leaseSeconds * time.Second / 4
	statusEvery  = 5 * time.Minute
	// heartbeats bounds the concurrent lease requests.
	heartbeats = 16
)

// leases is the namespace of the nodes' leases.
const leases = corev1.NamespaceNodeLease

// renewLeases renews each node's lease every leaseEvery, evenly spread over that time, until ctx ends. If the server is
// slower, nodes wait: there are never more than heartbeats requests.
func (f *fleet) renewLeases(ctx context.Context) {
	due := make(chan *node)
	var workers sync.WaitGroup
	for range min(heartbeats, len(f.nodes)) {
		workers.Go(func() {
			for n := range due {
				f.renew(ctx, n)
			}
		})
	}
	f.pace(ctx, func(n *node) bool {
		select {
		case due <- n:
			return true
		case <-ctx.Done():
			return false
		}
	})
	close(due)
	workers.Wait()
}

// pace calls each for one node after another, all within leaseEvery.
func (f *fleet) pace(ctx context.Context, each func(*node) bool) {
	step := leaseEvery / time.Duration(len(f.nodes))
	next := f.clock.Now()
	for {
		for _, n := range f.nodes {
			next = next.Add(step)
			now := f.clock.Now()
			if now.Sub(next) > leaseEvery { // a whole round late: missed renewals are skipped
				next = now
			}
			if f.clock.Sleep(ctx, next.Sub(now)) != nil || !each(n) {
				return
			}
		}
	}
}

// renew renews a node's lease, and posts its status if due: periodically, and after a time without a lease, when the
// controller may have declared the node lost.
func (f *fleet) renew(ctx context.Context, n *node) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.registered {
		return
	}
	now := f.clock.Now()
	lost := now.Sub(n.renewed) > 2*leaseEvery
	err := within(ctx, func(ctx context.Context) error { return f.renewLease(ctx, n, now) })
	if err == nil && (lost || now.Sub(n.posted) > statusEvery) {
		err = within(ctx, func(ctx context.Context) error { return f.postStatus(ctx, n, now) })
		if apierrors.IsNotFound(err) { // the node was deleted
			err = within(ctx, func(ctx context.Context) error { return f.registerLocked(ctx, n) })
		}
	}
	if err != nil && ctx.Err() == nil {
		f.log.Warn("a simulated node could not report", slog.String("node", n.name), slog.Any("error", err))
	}
}

// renewLease creates or renews the node's lease. n.mu is held.
func (f *fleet) renewLease(ctx context.Context, n *node, now time.Time) error {
	lease := n.lease
	if lease == nil {
		lease = new(coordinationv1.Lease)
		err := f.client.coordination.Get().Namespace(leases).Resource("leases").Name(n.name).Do(ctx).Into(lease)
		switch {
		case apierrors.IsNotFound(err):
			return f.createLease(ctx, n, now)
		case err != nil:
			return fmt.Errorf("read the lease: %w", err)
		}
	}
	at := metav1.NewMicroTime(now)
	lease.Spec.RenewTime = &at
	out := new(coordinationv1.Lease)
	err := f.client.coordination.Put().Namespace(leases).Resource("leases").Name(n.name).Body(lease).Do(ctx).Into(out)
	if err != nil {
		n.lease = nil // read it again
		return fmt.Errorf("renew the lease: %w", err)
	}
	n.keep(out, now)
	return nil
}

func (f *fleet) createLease(ctx context.Context, n *node, now time.Time) error {
	holder, seconds, at := n.name, int32(leaseSeconds), metav1.NewMicroTime(now)
	lease := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: n.name, Namespace: leases, Labels: maps.Clone(f.cfg.Labels)},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: &seconds, RenewTime: &at},
	}
	out := new(coordinationv1.Lease)
	if err := f.client.coordination.Post().Namespace(leases).Resource("leases").Body(lease).Do(ctx).Into(out); err != nil {
		return fmt.Errorf("create the lease: %w", err)
	}
	n.keep(out, now)
	return nil
}

// keep records the server's version of the lease, without what a renewal does not need.
func (n *node) keep(lease *coordinationv1.Lease, now time.Time) {
	lease.ManagedFields = nil
	n.lease, n.renewed = lease, now
}

// postStatus reports a healthy node. n.mu is held.
func (f *fleet) postStatus(ctx context.Context, n *node, now time.Time) error {
	body, err := json.Marshal(map[string]any{"status": map[string]any{"conditions": conditions(now)}})
	if err != nil {
		return fmt.Errorf("encode the status: %w", err)
	}
	err = f.client.core.Patch(types.StrategicMergePatchType).Resource("nodes").Name(n.name).SubResource("status").Body(
		body).Do(ctx).Error()
	if err != nil {
		return fmt.Errorf("post the status: %w", err)
	}
	n.posted = now
	return nil
}
