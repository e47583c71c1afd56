package run

import (
	"context"
	"os"
	"sync"
	"time"

	"tare/internal/limit"
	"tare/internal/load"
	"tare/internal/probe"
)

const (
	// lookEvery is the pause between two looks at the states of the target's threads. It is longer where a look costs more
	// than one part in lookCost of it.
	lookEvery = 20 * time.Millisecond
	lookCost  = 50
)

// WatchUse follows what the target's processes use. The returned function ends that, and returns the account; nil: they
// do not run on this host, or tare may not look.
func (a *Arm) WatchUse(ctx context.Context) (end func() *limit.Account) {
	none := func() *limit.Account { return nil }
	endpoint, t, ok := a.tree()
	if !ok {
		return none
	}
	before, err := t.Read(ctx)
	if err != nil {
		return none
	}
	from := a.Env.Clock.Now()
	waited := a.lookForDiskWaits(ctx, t, before)
	return func() *limit.Account {
		out := limit.Account{DiskWait: waited()}
		after, err := t.Read(context.WithoutCancel(ctx))
		if err != nil {
			return nil
		}
		out.Seconds = a.Env.Clock.Now().Sub(from).Seconds()
		out.ListenQueue = queueDepth(ctx, endpoint)
		use := after.Since(before)
		out.CPU, out.Busiest, out.Processors = use.CPU, use.Busiest, use.Processors
		out.HostBusy, out.Stolen = use.HostBusy, use.Stolen
		out.Throttled, out.Quota = use.Throttled, use.Quota
		if use.Stopped != nil && out.Seconds > 0 {
			out.Collecting = new(min(1, *use.Stopped/out.Seconds))
		}
		out.Descriptors, out.DescriptorLimit = t.Descriptors(after)
		return &out
	}
}

// tree are the target's processes, which listen at its address; ok is false where they do not run on this host, or tare
// may not look.
func (a *Arm) tree() (e *load.Endpoint, t probe.Tree, ok bool) {
	e, err := a.endpoint()
	if err != nil || e == nil || !e.Addr.IsValid() || !isLocal(e.Addr.Addr()) {
		return e, t, false
	}
	pid, start, err := probe.Listener(nil, e.Addr)
	if err != nil || pid == os.Getpid() { // tare only forwards
		return e, t, false
	}
	return e, probe.Tree{PID: pid, StartTicks: start}, true
}

// WatchCPU follows what the target's processes use of this host's processors: nothing if they run on another. The
// returned function returns that, in seconds; nil: it is not known.
func (a *Arm) WatchCPU(ctx context.Context) (end func() *float64) {
	e, t, ok := a.tree()
	if !ok {
		elsewhere := e != nil && e.Addr.IsValid() && !isLocal(e.Addr.Addr())
		return func() *float64 {
			if elsewhere {
				return new(0.0)
			}
			return nil
		}
	}
	before, err := t.Read(ctx)
	return func() *float64 {
		after, failed := t.Read(context.WithoutCancel(ctx))
		if err != nil || failed != nil {
			return nil
		}
		return after.Since(before).CPU
	}
}

// lookForDiskWaits looks at the states of the target's threads until the returned function is called, which returns the
// share of looks in which one waited for a disk; nil: there was none.
func (a *Arm) lookForDiskWaits(ctx context.Context, t probe.Tree, r probe.TreeReading) (end func() *float64) {
	ctx, cancel := context.WithCancel(ctx)
	looks, waits := 0, 0
	var done sync.WaitGroup
	done.Go(func() {
		for pause := lookEvery; a.Env.Clock.Sleep(ctx, pause) == nil; {
			began := a.Env.Clock.Now()
			waiting, ok := t.WaitsForDisk(r)
			if !ok {
				return
			}
			looks++
			if waiting {
				waits++
			}
			pause = max(lookEvery, lookCost*a.Env.Clock.Now().Sub(began))
		}
	})
	return func() *float64 {
		cancel()
		done.Wait()
		if looks == 0 {
			return nil
		}
		return new(float64(waits) / float64(looks))
	}
}

// queueDepth returns how many connections wait to be accepted; nil: not known.
func queueDepth(ctx context.Context, e *load.Endpoint) *int {
	samples, err := probe.ListenQueue{Port: e.Addr.Port()}.Read(ctx)
	if err != nil {
		return nil
	}
	depth, ok := probe.Find(samples, "", probe.ListenQueueDepth)
	if !ok {
		return nil
	}
	return new(int(depth))
}
