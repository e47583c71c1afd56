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

	"tare/area"
	"tare/internal/design"
	"tare/internal/kit"
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

	writing sync.Mutex // one line at a time
	calls   *kit.Callers[struct{}]

	mu      sync.Mutex
	in      *bufio.Reader
	last    uint64
	waiting map[uint64]chan<- reply // by request
	reading bool                    // while one is waiting
	dead    error                   // after which no request is made
}

// mostCalls bounds the calls under way: what a serial line receives while nobody reads is lost beyond some kilobytes.
const mostCalls = 32

var _ area.Target = (*Target)(nil)

// New returns the target of a peer. Nothing is asked yet.
func New(p Peer) *Target {
	return &Target{
		peer: p, in: bufio.NewReaderSize(p.Stream, maxLine), waiting: map[uint64]chan<- reply{},
		calls: kit.NewCallers(make([]struct{}, mostCalls)...),
	}
}

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
	done := make(chan reply, 1)
	t.mu.Lock()
	if t.dead != nil {
		defer t.mu.Unlock()
		return answer{}, t.dead
	}
	t.last++
	q.ID = t.last
	t.waiting[q.ID] = done
	if !t.reading {
		t.reading = true
		go t.read()
	}
	t.mu.Unlock()
	go t.send(q)
	r := t.await(ctx, q, done)
	if r.err == nil {
		return r.answer, r.answer.err()
	}
	return answer{}, t.lose(r.err)
}

// reply is an answer, or the error that took its place.
type reply struct {
	answer answer
	err    error
}

func (t *Target) send(q request) {
	t.writing.Lock()
	defer t.writing.Unlock()
	if err := writeLine(t.peer.Stream, q); err != nil {
		_ = t.lose(err) // whoever waits is told
	}
}

// read reads answers until no request waits for one.
func (t *Target) read() {
	for {
		var a answer
		err := readLine(t.in, &a)
		if errors.Is(err, io.EOF) && t.peer.Failed != nil {
			err = t.peer.Failed()
		}
		t.mu.Lock()
		done := t.waiting[a.ID]
		if err == nil && done == nil && t.dead == nil {
			err = fmt.Errorf("it answered request %d, which does not wait for an answer", a.ID)
		}
		if err == nil && t.dead == nil {
			delete(t.waiting, a.ID)
			done <- reply{answer: a}
		}
		t.reading = err == nil && len(t.waiting) > 0
		more := t.reading
		t.mu.Unlock()
		if err != nil {
			_ = t.lose(err) // whoever waits is told
		}
		if !more {
			return
		}
	}
}

// lose ends the conversation, and returns why it ended: the first cause.
func (t *Target) lose(cause error) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.dead == nil {
		t.dead = fmt.Errorf("%s: %w", t.peer.Name, cause)
	}
	for id, done := range t.waiting {
		done <- reply{err: cause}
		delete(t.waiting, id)
	}
	return t.dead
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
	return t.listed(doList, tr)
}

func (t *Target) listed(do string, tr design.Treatment) (out []load.Operation, err error) {
	a, err := t.ask(context.Background(), request{Do: do, Treatment: &tr})
	if err != nil {
		return nil, err
	}
	for _, o := range a.Operations {
		op := load.Operation{
			Name: o.Name, Weight: o.Weight, Expect: o.Expect, Span: o.Span, Rounds: o.Rounds, Most: o.Most, Whole: o.Whole,
			Negative: o.Negative, Twin: o.Twin, Causes: o.Causes,
		}
		if o.Batches {
			op.Batch = func(ctx context.Context, n int) ([]load.BatchSample, error) {
				a, err := t.ask(ctx, request{
					Do: doBatch, Treatment: &tr, Operation: o.Name, Calls: n, Repeat: t.peer.Repeat, RepeatWithin: t.peer.RepeatWithin,
				})
				return a.Samples, err
			}
		} else {
			t.called(&op, o.Number)
		}
		out = append(out, op)
	}
	return out, nil
}

// Endpoint implements area.Target: it is nil, since the peer makes the calls.
func (*Target) Endpoint(design.Treatment) (*load.Endpoint, error) { return nil, nil }

// Probes implements area.Target: it is nil, since the peer makes the calls.
func (*Target) Probes(design.Treatment) []probe.Probe { return nil }

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

// Can implements area.Target.
func (t *Target) Can() area.Can {
	return area.Can{Enter: t.Enter, Leave: t.Leave, Notes: t.Notes, Trespass: t.Trespasses, Conditions: t.Conditions}
}
