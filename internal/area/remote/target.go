package remote

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"tare/internal/area"
	"tare/internal/design"
	"tare/internal/load"
	"tare/internal/probe"
)

// A Peer is a machine with an agent.
type Peer struct {
	Name   string // used in errors: "the lab VM 6.1.0-56"
	Stream io.ReadWriter
	// Exited is closed when the machine has ended, and Failed then says why.
	Exited <-chan struct{}
	Failed func() error
	// Repeat is how many batches the peer makes for one, of which the least counts; 0: one. It suits a machine whose
	// interrupts only ever add to what is measured. None begins later than RepeatWithin after the first.
	Repeat       int
	RepeatWithin time.Duration
	// Patience bounds each request.
	Patience time.Duration
	// Stalled is asked every Check during a request and returns why the machine cannot answer any more; nil: it is not
	// asked.
	Stalled func() error
	Check   time.Duration
}

// Target is an area's target on another machine.
type Target struct {
	peer Peer

	mu   sync.Mutex // one request at a time
	in   *bufio.Reader
	last uint64
	dead error // after which no request is made
}

var _ area.Target = (*Target)(nil)

// New returns the target of a peer. Nothing is asked yet.
func New(p Peer) *Target { return &Target{peer: p, in: bufio.NewReaderSize(p.Stream, maxLine)} }

// Preflight asks the peer to try what the experiment needs.
func (t *Target) Preflight(ctx context.Context, s Setup) ([]area.Finding, error) {
	a, err := t.ask(ctx, request{Do: doPreflight, Setup: &s})
	return a.Findings, err
}

// Open opens the target.
func (t *Target) Open(ctx context.Context, s Setup) error {
	_, err := t.ask(ctx, request{Do: doOpen, Setup: &s})
	return err
}

// ask makes a request. An answer that does not come, or is nonsense, ends the conversation.
func (t *Target) ask(ctx context.Context, q request) (answer, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.dead != nil {
		return answer{}, t.dead
	}
	t.last++
	q.ID = t.last
	done := make(chan reply, 1)
	go func() { done <- t.exchange(q) }()
	r := t.await(ctx, q, done)
	if r.err == nil {
		return r.answer, r.answer.err()
	}
	t.dead = fmt.Errorf("%s: %w", t.peer.Name, r.err)
	return answer{}, t.dead
}

// reply is an answer, or the error that took its place.
type reply struct {
	answer answer
	err    error
}

// exchange sends a request and reads its answer.
func (t *Target) exchange(q request) (r reply) {
	if r.err = writeLine(t.peer.Stream, q); r.err == nil {
		r.err = readLine(t.in, &r.answer)
	}
	if r.err == nil && r.answer.ID != q.ID {
		r.err = fmt.Errorf("it answered request %d instead of %d", r.answer.ID, q.ID)
	}
	return r
}

// await waits for the reply while the peer lives.
func (t *Target) await(ctx context.Context, q request, done <-chan reply) reply {
	limited, cancel := context.WithTimeoutCause(ctx, t.peer.Patience, fmt.Errorf("no answer to %s within %s", q.Do,
		t.peer.Patience))
	defer cancel()
	check := time.NewTicker(cmp.Or(t.peer.Check, time.Minute))
	defer check.Stop()
	for {
		select {
		case r := <-done:
			if errors.Is(r.err, io.EOF) && t.peer.Failed != nil {
				r.err = t.peer.Failed()
			}
			return r
		case <-t.peer.Exited:
			return reply{err: t.peer.Failed()}
		case <-check.C:
			if t.peer.Stalled == nil {
				continue
			}
			if err := t.peer.Stalled(); err != nil {
				return reply{err: fmt.Errorf("no answer to %s: %w", q.Do, err)}
			}
		case <-limited.Done():
			return reply{err: context.Cause(limited)}
		}
	}
}

// about makes a request about a treatment.
func (t *Target) about(ctx context.Context, do string, tr design.Treatment) error {
	_, err := t.ask(ctx, request{Do: do, Treatment: &tr})
	return err
}

// Prepare implements area.Target. What is made on the peer ends with it, so nothing is journaled.
func (t *Target) Prepare(ctx context.Context, tr design.Treatment, _ area.Journal) error {
	return t.about(ctx, doPrepare, tr)
}

// Enter implements area.Target.
func (t *Target) Enter(ctx context.Context, tr design.Treatment) error {
	return t.about(ctx, doEnter, tr)
}

// Verify implements area.Target.
func (t *Target) Verify(ctx context.Context, tr design.Treatment) error {
	return t.about(ctx, doVerify, tr)
}

// Leave implements area.Target. A peer that does not answer any more has nothing to leave: the run has its error.
func (t *Target) Leave(ctx context.Context, tr design.Treatment) error {
	if t.lost() {
		return nil
	}
	return t.about(ctx, doLeave, tr)
}

// Operations implements area.Target.
func (t *Target) Operations(tr design.Treatment) ([]load.Operation, error) {
	a, err := t.ask(context.Background(), request{Do: doList, Treatment: &tr})
	if err != nil {
		return nil, err
	}
	var out []load.Operation
	for _, o := range a.Operations {
		out = append(out, load.Operation{
			Name: o.Name, Weight: o.Weight, Expect: o.Expect, Span: o.Span, Rounds: o.Rounds, Most: o.Most, Whole: o.Whole,
			Negative: o.Negative,
			Batch: func(ctx context.Context, n int) ([]load.BatchSample, error) {
				a, err := t.ask(ctx, request{
					Do: doBatch, Treatment: &tr, Operation: o.Name, Calls: n, Repeat: t.peer.Repeat, RepeatWithin: t.peer.RepeatWithin,
				})
				return a.Samples, err
			},
		})
	}
	return out, nil
}

// Endpoint implements area.Target: it is nil, since the peer makes the calls.
func (*Target) Endpoint(design.Treatment) (*load.Endpoint, error) { return nil, nil }

// Probes implements area.Target: it is nil, since the peer makes the calls.
func (*Target) Probes(design.Treatment) []probe.Probe { return nil }

// Recover implements area.Target: nothing is overloaded, since the peer sets its own pace.
func (*Target) Recover(context.Context, design.Treatment) error { return nil }

// Notes implements area.Target.
func (t *Target) Notes() []string {
	a, err := t.ask(context.Background(), request{Do: doNotes})
	if err != nil {
		return nil
	}
	return a.Notes
}

// lost reports whether the conversation has ended.
func (t *Target) lost() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.dead != nil
}

// Close implements area.Target. A peer that does not answer any more has nothing to close.
func (t *Target) Close(ctx context.Context) error {
	if t.lost() {
		return nil
	}
	_, err := t.ask(ctx, request{Do: doClose})
	return err
}
