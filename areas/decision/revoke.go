package decision

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"tare/area"
	"tare/areas/decision/model"
	"tare/internal/metric"
)

const (
	// withdrawals is how many permissions are withdrawn, one every withdrawEvery: as many as a 99th percentile needs.
	withdrawals   = 100
	withdrawEvery = 100 * time.Millisecond
	// askEvery bounds the rate at which it is asked whether they are still granted.
	askEvery = 5 * time.Millisecond
	// quietFor is how long a permission must be refused to count as gone; quietEvery is how often it is asked meanwhile.
	quietFor   = time.Second
	quietEvery = 300 * time.Millisecond
	// stillGranted is how long a withdrawn permission is asked for.
	stillGranted = time.Minute
)

// A withdrawal is a permission that is taken away under load.
type withdrawal struct {
	question model.Question
	// at is when its withdrawal was acknowledged, asked when the last question was asked since, and last when the last was
	// that was permitted.
	at, asked, last time.Time
	quiet           time.Time // since when it is refused; zero: it was permitted last
	refused         time.Time // when the first refusal since then was received
	gone            bool      // it is not asked for any more
}

// revocation measures for how long withdrawn permissions are still granted.
type revocation struct {
	arm   *arm
	count int // permissions to withdraw

	mu  sync.Mutex
	all []*withdrawal
}

// revokeCondition is the condition in which permissions are withdrawn, one after another.
func (p *arm) revokeCondition() area.Condition {
	r := &revocation{arm: p, count: withdrawals}
	return area.Condition{
		Name: area.Revoke, Does: fmt.Sprintf("%d permissions are withdrawn, one every %v", withdrawals, withdrawEvery),
		Impose:  func(ctx context.Context) (func(context.Context) error, error) { return nil, r.run(ctx) },
		Figures: func() map[string][]area.Span { return map[string][]area.Span{metric.Revoke.Name: r.spans()} },
	}
}

// run grants the permissions, withdraws them, and asks for them until they are refused.
func (r *revocation) run(ctx context.Context) error {
	p := r.arm
	set := p.set
	for i := range r.count {
		n := p.set.N + 1 + i // number N stays the one that no policy is about
		set.Beyond = append(set.Beyond, n)
		r.all = append(r.all, &withdrawal{question: p.set.Granted(n)})
	}
	if err := p.replace(ctx, set); err != nil {
		return err
	}
	within, stop := context.WithCancel(ctx)
	defer stop()
	asked := make(chan struct{})
	go func() { defer close(asked); r.ask(within) }()
	err := r.withdraw(within, set)
	if err != nil {
		stop()
	}
	<-asked
	if ctx.Err() != nil || err != nil {
		err = errors.Join(err, p.replace(context.WithoutCancel(ctx), p.set)) // what is still granted
	}
	return errors.Join(err, ctx.Err())
}

// withdraw takes one permission after another away, each after it has been seen to be granted.
func (r *revocation) withdraw(ctx context.Context, set model.Set) error {
	p := r.arm
	for _, w := range r.all {
		if err := r.granted(ctx, w.question); err != nil {
			return err
		}
		set.Beyond = set.Beyond[1:]
		if err := p.replace(ctx, set); err != nil {
			return err
		}
		r.mu.Lock()
		w.at = p.env.Clock.Now()
		r.mu.Unlock()
		if err := p.env.Clock.Sleep(ctx, withdrawEvery); err != nil {
			return err
		}
	}
	return nil
}

// granted asks until a permission is granted, for a while.
func (r *revocation) granted(ctx context.Context, q model.Question) error {
	p := r.arm
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	for {
		a, err := p.question(ctx, q)
		if err == nil && a.Decision == model.Permit {
			return nil
		}
		if p.env.Clock.Sleep(ctx, askEvery) != nil {
			return errors.Join(fmt.Errorf("a permission that was granted is not in force after %v: %s", callTimeout, a.Text),
				err)
		}
	}
}

// ask asks for the withdrawn permissions in turn, until the last is gone.
func (r *revocation) ask(ctx context.Context) {
	p := r.arm
	for p.env.Clock.Sleep(ctx, askEvery) == nil && !r.done() {
		asked := p.env.Clock.Now()
		w := r.next(asked)
		if w == nil {
			continue
		}
		if a, err := p.question(ctx, w.question); err == nil {
			r.note(w, asked, a.Decision)
		}
	}
}

// next returns the permission that is withdrawn, may still be granted, and was not asked for the longest; nil: none is
// to be asked for now.
func (r *revocation) next(now time.Time) (next *withdrawal) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, w := range r.all {
		waits := !w.quiet.IsZero() && now.Sub(w.asked) < quietEvery
		if w.at.IsZero() || w.gone || waits {
			continue
		}
		if next == nil || w.asked.Before(next.asked) {
			next = w
		}
	}
	if next != nil {
		next.asked = now
	}
	return next
}

// note keeps what was answered to a question that was asked after the withdrawal.
func (r *revocation) note(w *withdrawal, asked time.Time, d model.Decision) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case d == model.Permit:
		w.last, w.quiet = asked, time.Time{}
		if asked.Sub(w.at) > stillGranted {
			w.gone = true
		}
	case d != model.Deny && d != model.NotApplicable: // it decides nothing
	case w.quiet.IsZero():
		w.quiet, w.refused = asked, r.arm.env.Clock.Now()
	default:
		w.gone = asked.Sub(w.quiet) >= quietFor
	}
}

// done reports whether all permissions are gone.
func (r *revocation) done() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, w := range r.all {
		if !w.gone {
			return false
		}
	}
	return true
}

// spans returns for how long each permission that was withdrawn was still granted. Where its refusal was not seen to
// last, the span has no end.
func (r *revocation) spans() (out []area.Span) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, w := range r.all {
		if w.at.IsZero() {
			continue
		}
		span := area.Span{Least: max(0, w.last.Sub(w.at).Seconds()), Most: math.Inf(1)}
		if w.gone && !w.quiet.IsZero() {
			span.Most = w.refused.Sub(w.at).Seconds()
		}
		out = append(out, span)
	}
	return out
}
