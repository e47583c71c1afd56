package admission

import (
	"context"
	"fmt"
	"sync"

	"tare/areas/admission/cluster"
	"tare/areas/admission/mechanism"
	"tare/areas/admission/startup"
	"tare/internal/load"
)

// starts reports whether pod-startup is among the operations.
func (p *arm) starts() bool {
	for _, o := range p.operations {
		if o.startup() {
			return true
		}
	}
	return false
}

// watchPods starts the watch of the pods that pod-startup creates.
func (p *arm) watchPods(ctx context.Context) (err error) {
	if !p.starts() {
		return nil
	}
	p.watch, err = startup.Start(ctx, startup.Config{
		API: p.admin.Paced(), Namespace: p.namespace, Selector: p.admin.Selector(), Clock: p.env.Clock, Log: p.env.Log,
	})
	if err != nil {
		return p.admin.Scrub(err)
	}
	p.starter = p.caller.Config()
	return nil
}

// startup returns the operation that creates a pod and waits until it is seen running.
func (p *arm) startup(name string) (load.Operation, error) {
	m := p.maker
	m.scheduler = "" // the cluster's own
	pod, err := m.object(resources()[0], name+"-"+load.CallMark)
	if err != nil {
		return load.Operation{}, err
	}
	j := p.judgeOf(operation{verb: verbCreate, resource: resources()[0]})
	o, err := p.watch.Operation(startup.Pods{
		Caller: p.starter, Pod: pod, Expect: "the pod is admitted, and seen running", Causes: causes(p.rightless()),
		Judge: func(status int, body []byte) (load.Outcome, int) {
			outcome, why := j.answer(status, body)
			return outcome, int(why)
		},
	})
	if err != nil {
		return load.Operation{}, p.admin.Scrub(err)
	}
	n := numbers{seen: map[uint64]uint64{}}
	call, stuck := o.Call, o.Stuck
	o.Call = func(ctx context.Context, i uint64) load.Result { return call(ctx, n.fresh(i)) }
	o.Stuck = func(i uint64) int { return stuck(n.last(i)) }
	return o, nil
}

// numbers makes calls with the same number distinct: the fresh calls of a search.
type numbers struct {
	mu   sync.Mutex
	seen map[uint64]uint64 // how often a number occurred
}

// fresh returns a number that no call has had.
func (n *numbers) fresh(i uint64) uint64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.seen[i]++
	return again(i, n.seen[i])
}

// last returns the number of the latest call i.
func (n *numbers) last(i uint64) uint64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	return again(i, n.seen[i])
}

// again returns the number of call i when it occurs for the nth time; a stream has fewer than 2^40 calls.
func again(i, nth uint64) uint64 { return i | (max(nth, 1)-1)<<40 }

// checkMetrics checks whether the API server's own metrics can be read. On a cluster of the user's not every user may.
func (p *arm) checkMetrics(ctx context.Context) error {
	_, err := p.admin.Metrics(ctx)
	if err == nil {
		return nil
	}
	if !p.foreign || !cluster.Denied(err) {
		return fmt.Errorf("read the API server's metrics: %w", err)
	}
	p.metricsDenied = err.Error()
	return nil
}

// marks returns the parts of an answer that the policies put into the measured pod.
func (p *arm) marks() [][]byte {
	var out [][]byte
	switch p.kind {
	case mechanism.PSP, mechanism.MAP, mechanism.MutatingWebhook:
		for key, value := range p.policies.proof.Good.Annotations {
			out = append(out, fmt.Appendf(nil, "%q:%q", key, value))
		}
	case mechanism.Own:
		return p.policies.marks
	case mechanism.None, mechanism.PSA, mechanism.VAP, mechanism.Webhook, mechanism.Manifests:
	}
	return out
}
