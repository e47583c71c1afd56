package decision

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"syscall"

	"tare/areas/decision/model"
	"tare/areas/decision/protocol"
	"tare/internal/kit"
	"tare/internal/kit/oneshot"
	"tare/internal/load"
)

// question asks once, outside of the load. The adapter bounds how long that may take.
func (p *arm) question(ctx context.Context, q model.Question) (protocol.Answer, error) {
	a, err := p.adapter.Ask(ctx, p.session, q)
	if err == nil {
		return a, nil
	}
	if f, ok := kit.ExplainTLS(err); ok {
		return a, fmt.Errorf("%s: %s (%w)", f.Message, f.Hint, err)
	}
	return a, fmt.Errorf("ask %s: %w", p.session.Host, err)
}

// await waits until the decision point answers every question: a slow start shows as refused connections, 409 or 503.
// In some only decisions have to wait, and the rest answers at once.
func (p *arm) await(ctx context.Context) error {
	within, cancel := context.WithTimeout(ctx, p.patience)
	defer cancel()
	for _, q := range p.questions {
		last := p.awaitOne(within, q)
		switch {
		case last == nil:
		case ctx.Err() != nil:
			return ctx.Err()
		case within.Err() == nil:
			return last
		default:
			return p.notReady(last)
		}
	}
	return nil
}

// notReady is the error about a decision point that was waited for in vain; last is what came last.
func (p *arm) notReady(last error) error {
	next := "look at its log, and start tare when it is up"
	switch {
	case errors.Is(last, syscall.ECONNREFUSED):
		next = "see that it runs, and that the url has its port"
	case errors.Is(last, errConflict):
		next += ": 409 usually means that its policies have not been deployed yet"
	}
	return fmt.Errorf("the decision point at %s was not ready within %v; last: %w; next: %s", p.session.Host, p.patience,
		last, next)
}

// errConflict is an answer with status 409, and errTLS a server that only understands TLS.
var (
	errConflict = errors.New("the decision point is not ready (409)")
	errTLS      = errors.New("it speaks TLS at this port, and the url is not https: write https:// in url")
)

// awaitOne returns what came last when ctx ends before there is an answer.
func (p *arm) awaitOne(ctx context.Context, q model.Question) error {
	var last error
	plain := p.url != nil && p.session.TLS == nil // it is not known yet whether the server speaks plaintext
	for {
		a, err := p.question(ctx, q)
		if plain && !errors.Is(err, syscall.ECONNREFUSED) && (err != nil || a.Status == http.StatusBadRequest) {
			if plain = false; p.speaksTLS(ctx) {
				return fmt.Errorf("ask %s: %w", p.session.Host, errTLS)
			}
		}
		switch {
		case err == nil && !mayBeStarting(a):
			return nil
		case err == nil && a.Status == http.StatusConflict:
			last = fmt.Errorf("%w: %s", errConflict, a.Text)
		case err == nil:
			last = errors.New(a.Text)
		case wrongTLS(err):
			return err // time does not mend it
		case last == nil || ctx.Err() == nil: // what our own deadline cuts short says nothing
			last = err
		}
		if p.env.Clock.Sleep(ctx, pause) != nil {
			return last
		}
	}
}

// speaksTLS reports whether the server completes a TLS handshake, or ends it in the words of TLS. It is told nothing
// else.
func (p *arm) speaksTLS(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	anybody := &tls.Config{InsecureSkipVerify: true} //nolint:gosec // nothing is sent: whoever it is, it speaks TLS
	conn, err := oneshot.Client{Addr: p.session.Addr, TLS: anybody}.Dial(ctx)
	if err == nil {
		_ = conn.Close()
		return true
	}
	return errors.As(err, new(tls.AlertError)) || strings.Contains(err.Error(), "remote error: tls:")
}

func wrongTLS(err error) bool {
	_, ok := kit.ExplainTLS(err)
	return ok
}

// mayBeStarting reports an answer that a decision point gives while it starts.
func mayBeStarting(a protocol.Answer) bool {
	return a.Decision == model.None && (a.Status == http.StatusConflict || a.Status == http.StatusServiceUnavailable ||
		a.Outcome == load.Refused || a.Outcome == load.ConnFailed)
}

// learnRefusals finds out how the decision point says no to questions of the model. In some languages a policy whose
// condition does not hold is a Deny, in others it does not apply, and either is a refusal. What a file expects is not
// touched.
func (p *arm) learnRefusals(ctx context.Context) error {
	if !p.loose {
		return nil
	}
	p.questions, p.refusals = slices.Clone(p.questions), slices.Clone(p.refusals)
	for _, list := range [][]model.Question{p.questions, p.refusals} {
		for i := range list {
			if list[i].Want == model.Permit {
				continue
			}
			a, err := p.question(ctx, list[i])
			if err != nil {
				return err
			}
			if a.Decision == model.Deny || a.Decision == model.NotApplicable {
				list[i].Want = a.Decision
			}
		}
	}
	return nil
}
