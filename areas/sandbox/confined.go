package sandbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"tare/areas/sandbox/bpflsm"
	"tare/areas/sandbox/workload"
	"tare/internal/proc"
)

const (
	// readyWithin bounds the start of a worker, proofWithin one attempt, batchWithin one batch of a micro-workload. All
	// usually take milliseconds, and seconds in an emulated machine; a worker that exceeds them hangs.
	readyWithin = 30 * time.Second
	proofWithin = 30 * time.Second
	batchWithin = 2 * time.Minute
	// endWithin is how long a worker may take to end by itself after its requests have been closed.
	endWithin = 2 * time.Second
)

// launcher starts confined workers.
type launcher struct {
	self string
	log  string // the file for their stderr
	cpus []int  // their processors, the same in all arms
	// patience bounds every wait for a worker that has a longer bound of its own; 0: it does not.
	patience time.Duration
	observer *observer // nil: processes are confined, not observed
	host     *host     // what Install has made
	server   string    // what a process serves; empty: the shim, which becomes a confined worker
}

// confined is a worker process under a policy that it cannot leave.
type confined struct {
	policy   Policy
	child    *proc.Child
	client   *workload.Client
	patience time.Duration
	profile  *bpflsm.Confined // nil: no BPF program knows it
	threads  *host            // knows the threads that it confined; nil: it confines none
}

// processName names a process in errors.
func processName(what string, p Policy) string { return what + " under " + p.Enforcer }

// start confines a new worker. It calls born with the process before anything happens in it. ctx bounds the start only.
func (l launcher) start(ctx context.Context, p Policy, born func(proc.ID) error) (*confined, error) {
	var requests, answers pipe
	defer requests.close()
	defer answers.close()
	if err := errors.Join(requests.open(), answers.open()); err != nil {
		return nil, fmt.Errorf("open pipe: %w", err)
	}
	child, err := l.begin(ctx, proc.Spec{
		Name: processName("worker", p), Path: l.self, Args: []string{"serve", areaName, cmp.Or(l.server, serverShim)},
		LogFile: l.log, CPUs: l.cpus, Files: []*os.File{requests.r, answers.w}, Born: born, Grace: endWithin,
		ReadyWithin: readyWithin,
	}, shimConfig{Policy: p, Self: l.self})
	if err != nil {
		return nil, err
	}
	c := &confined{
		policy: p, child: child, client: workload.NewClient(requests.keepWrite(), answers.keepRead()), patience: l.patience,
	}
	if l.server != "" {
		c.threads = l.host
		return c, nil
	}
	if c.profile, err = l.host.bpfProfileOf(p, child.PID); err != nil {
		return nil, errors.Join(err, c.stop(context.WithoutCancel(ctx)))
	}
	return c, nil
}

// ask sends the worker a request within a time. A worker that answers with a refusal keeps running. One that ends,
// hangs or answers nonsense is killed, and the error holds the end of its log.
func (c *confined) ask(ctx context.Context, within time.Duration, do func(context.Context) error) error {
	if c.patience > 0 {
		within = min(within, c.patience)
	}
	limited, cancel := context.WithTimeoutCause(ctx, within, fmt.Errorf("no answer within %s", within))
	defer cancel()
	err := do(limited)
	if err == nil || ctx.Err() != nil {
		return err
	}
	if f, ok := errors.AsType[*workload.Failure](err); ok {
		return f
	}
	return fmt.Errorf("%w; %w", err, c.exitError())
}

// exitError waits for the worker's end, kills it if necessary, and describes how it ended.
func (c *confined) exitError() error {
	_ = c.client.Close() // it may be closed already
	ctx, cancel := context.WithTimeout(context.Background(), endWithin)
	defer cancel()
	err := c.child.Wait(ctx)
	if ctx.Err() != nil {
		if err := c.child.Signal(killed); err != nil {
			return err
		}
		err = fmt.Errorf("killed because of it: %w", c.child.Wait(context.Background())) // nothing survives this signal
	}
	if err == nil {
		err = errors.New("it ended with exit status 0, which it should not have yet")
	}
	return err
}

// stop ends the worker and waits for it.
func (c *confined) stop(ctx context.Context) error {
	_ = c.client.Close() // a broken client has closed them
	select {
	case <-c.child.Exited():
	default:
		if err := c.child.Stop(ctx); err != nil {
			return err
		}
	}
	err := errors.Join(forget(c.profile), c.threads.forgetThreads())
	c.profile, c.threads = nil, nil
	return err
}

// prove proves the policy in the worker.
func (c *confined) prove(ctx context.Context, s stack) error {
	return c.ask(ctx, proofWithin, func(ctx context.Context) error { return s.prove(ctx, c.policy, c.client) })
}

// pipe is one direction.
type pipe struct{ r, w *os.File }

func (p *pipe) open() (err error) {
	p.r, p.w, err = os.Pipe()
	return err
}

// keepRead and keepWrite detach an end, so that close leaves it open.
func (p *pipe) keepRead() *os.File {
	r := p.r
	p.r = nil
	return r
}

func (p *pipe) keepWrite() *os.File {
	w := p.w
	p.w = nil
	return w
}

func (p *pipe) close() {
	for _, f := range []*os.File{p.r, p.w} {
		if f != nil {
			_ = f.Close() // nothing is buffered
		}
	}
}
