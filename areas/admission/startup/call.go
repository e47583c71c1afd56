package startup

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"sync"
	"syscall"
	"time"

	"tare/internal/load"
)

// mostJudged bounds the part of an answer that is judged, and mostRead the part that is read, in bytes.
const (
	mostJudged = 1 << 20
	mostRead   = 16 << 20
)

// A starter makes the calls of one operation.
type starter struct {
	watch      *Watch
	client     *connection
	url        string
	body, name *load.Template
	judge      func(status int, body []byte) (load.Outcome, int)
	causes     int // of judge: the operation's own follow them
}

// call creates pod i and waits until the watch has seen it running.
func (s *starter) call(ctx context.Context, i uint64) load.Result {
	t := s.watch.track
	a, free := t.expect(s.nameOf(i))
	if !free {
		return load.Result{Outcome: load.Failed, Cause: s.cause(causeNameTaken)}
	}
	defer t.forget(a)
	r := s.post(ctx, i)
	if !r.answered.IsZero() {
		r.Marks = append(r.Marks, load.Mark{Name: Post, From: r.Sent, At: r.answered})
	}
	if r.Outcome != load.OK {
		return r.Result
	}
	t.answer(a, r.answered)
	select {
	case <-a.done:
	case <-ctx.Done():
	case <-t.ended:
	}
	return s.finish(ctx, a, r)
}

// finish returns the call's result when the wait has ended.
func (s *starter) finish(ctx context.Context, a *await, r posted) load.Result {
	open, flaps := s.watch.source.state()
	t := s.watch.track
	t.mu.Lock()
	defer t.mu.Unlock()
	out := r.Result
	switch {
	case !a.running.IsZero() && flaps:
		out.Outcome, out.Cause = load.Failed, s.cause(causeWatchFlaps)
	case !a.running.IsZero():
		out.Marks = append(out.Marks, a.marks(&r)...)
	case a.gone:
		out.Outcome, out.Cause = load.Failed, s.cause(causeDeleted)
	case ctx.Err() != nil:
		out.Outcome, out.Cause = load.Timeout, s.cause(a.stage(open, flaps))
	default:
		out.Outcome, out.Cause = load.Failed, s.cause(causeClosed)
	}
	return out
}

// marks returns the phases of a pod that was seen running, except those whose beginning was not seen, because a list
// showed both at once. The tracker's lock is held.
func (a *await) marks(r *posted) []load.Mark {
	out := []load.Mark{
		{Name: Startup, From: r.Sent, At: a.running},
		{Name: CreatedToWatch, From: a.created, At: a.running},
	}
	if a.first.Before(a.running) {
		out = append(out, load.Mark{Name: WatchToWatch, From: a.first, At: a.running})
	}
	if !a.scheduled.IsZero() {
		out = append(out, load.Mark{Name: Scheduled, From: r.answered, At: a.scheduled},
			load.Mark{Name: Running, From: a.scheduled, At: a.running})
	}
	if !a.ready.IsZero() {
		out = append(out, load.Mark{Name: Conditions, From: a.created, At: a.ready})
	}
	return out
}

func (s *starter) cause(own int) load.Cause { return load.OwnCauses + load.Cause(s.causes+own) }

// posted is the result of the request.
type posted struct {
	load.Result
	answered time.Time // the answer was complete; zero: it never was
}

// post sends the request once, without a limiter or retries.
func (s *starter) post(ctx context.Context, i uint64) (out posted) {
	phases := &phases{now: s.watch.cfg.Clock.Now}
	ctx = context.WithValue(httptrace.WithClientTrace(ctx, phases.trace()), weightKey{}, &out.BytesOut)
	body := s.body.AppendTo(nil, i)
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url, once{bytes.NewReader(body)})
	if err != nil {
		out.Outcome, out.Cause = load.Failed, load.CauseRequest
		return out
	}
	q.ContentLength = int64(len(body))
	q.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json"}, "User-Agent": {"tare"}}
	answer, err := s.client.wrapped.RoundTrip(q)
	if err == nil {
		defer func() { _ = answer.Body.Close() }()
		out.Status = uint16(answer.StatusCode)
		body, err = read(answer.Body)
		out.answered = phases.now()
		out.BytesIn = answerLength(answer) + uint64(len(body))
	}
	out.Ready, out.Sent, out.FirstByte = phases.read()
	if err != nil {
		out.answered = time.Time{}
		out.Outcome, out.Errno, out.Cause = classify(err, !out.Sent.IsZero(), !out.FirstByte.IsZero())
		return out
	}
	var cause int
	if out.Outcome, cause = s.judge(answer.StatusCode, body); cause >= 0 {
		out.Cause = load.OwnCauses + load.Cause(cause)
	}
	return out
}

// read reads an answer, and keeps the part that is judged.
func read(from io.Reader) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(from, mostJudged))
	if err == nil && len(body) == mostJudged {
		_, err = io.Copy(io.Discard, io.LimitReader(from, mostRead))
	}
	return body, err
}

// once hides the type of a body: net/http resends bodies that it can rewind, and a timed call must never be sent twice.
type once struct{ io.Reader }

// phases are the instants of a request on its connection. net/http reports them from its goroutines.
type phases struct {
	now  func() time.Time
	mu   sync.Mutex
	made time.Time // a new connection was made; zero: an existing one was used, and any delay is the client's own

	sent, first time.Time
}

func (p *phases) trace() *httptrace.ClientTrace {
	return &httptrace.ClientTrace{
		GotConn: func(info httptrace.GotConnInfo) {
			p.mu.Lock()
			defer p.mu.Unlock()
			if !p.sent.IsZero() {
				return
			}
			if p.sent = p.now(); !info.Reused {
				p.made = p.sent
			}
		},
		GotFirstResponseByte: func() {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.first = p.now()
		},
	}
}

func (p *phases) read() (made, sent, first time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.made, p.sent, p.first
}

// classify classifies an error by whether the request was sent and whether any part of an answer had arrived.
func classify(err error, sent, answered bool) (load.Outcome, uint16, load.Cause) {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return load.Timeout, 0, 0
	}
	var (
		errno     syscall.Errno
		authority x509.UnknownAuthorityError
		name      x509.HostnameError
	)
	_ = errors.As(err, &errno) // 0 if there is none
	switch {
	case errors.As(err, &authority):
		return load.ConnFailed, 0, load.CauseUnknownAuthority
	case errors.As(err, &name):
		return load.ConnFailed, 0, load.CauseNameMismatch
	case !sent:
		return load.ConnFailed, uint16(errno), load.CauseConnect
	case answered && errno == 0:
		return load.Failed, 0, load.CauseClosedWithin
	case answered:
		return load.ConnFailed, uint16(errno), load.CauseClosedWithin
	case errno == 0:
		return load.Failed, 0, load.CauseClosedEarly
	}
	return load.ConnFailed, uint16(errno), load.CauseClosedEarly
}
