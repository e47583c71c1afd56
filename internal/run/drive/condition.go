package drive

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"tare/area"
	"tare/internal/guard"
)

// under is a point during which a condition is brought about: some load before it, while it lasts, and after it has
// ended; of an idle one, the load that follows it. The condition is ended even if the load fails.
func (g *guarding) under(ctx context.Context, c area.Condition, rate float64) error {
	title := cmp.Or(c.Title, c.Name)
	p := guard.Point{Name: title, Rate: rate, Condition: &guard.Condition{Name: title, Does: c.Does}}
	if g.capacity > 0 {
		p.Factor = rate / g.capacity
	}
	hold := c.Hold
	if hold == 0 {
		hold = usualHold
	}
	if g.left() < calm+hold+settled {
		p.Segment.Start = g.stream.Now()
		p.Segment.End, p.Read = p.Segment.Start, p.Segment.Start
		p.Condition.Error = fmt.Sprintf("not brought about: the time for the treatment, %s, was over; raise load.max_time",
			g.within)
		return g.Writer.Step(g.Trial.Treatment, g.Trial.Block, guard.StepPoint, p)
	}
	within, cancel := context.WithTimeout(ctx, longestCondition)
	defer cancel()
	i := &imposed{condition: c, hold: hold, now: func() time.Duration { return g.stream.Progress().Now }}
	if c.Idle {
		i.before(within, p.Condition)
	}
	began := g.stream.Now()
	least := guard.Length(calm+hold+settled, rate, g.share)
	err := g.offer(ctx, p, longestCondition+hold+time.Minute, func(p *guard.Point) bool {
		now := g.stream.Now()
		if i.done == nil && now-began >= calm {
			i.begin(within, p.Condition)
		}
		return i.ended() && now >= max(began+least, p.Condition.Ended+settled, p.Condition.Begun+settled)
	})
	cancel()
	return errors.Join(err, i.wait())
}

// imposed is a condition in progress. It is brought about beside the load.
type imposed struct {
	condition area.Condition
	hold      time.Duration
	now       func() time.Duration // on the stream's clock
	done      chan struct{}        // nil: not begun
	failed    error                // of ending it: something is left behind
}

// begin brings the condition about, holds it, and ends it. to is filled in before done is closed.
func (i *imposed) begin(ctx context.Context, to *guard.Condition) {
	i.done = make(chan struct{})
	to.Begun = i.now()
	go func() {
		defer close(i.done)
		lift, err := i.condition.Impose(ctx)
		if err != nil {
			to.Error = err.Error()
		} else {
			to.Imposed = i.now()
		}
		if lift != nil {
			if err == nil {
				i.last(ctx)
			}
			if i.failed = lift(context.WithoutCancel(ctx)); i.failed != nil {
				to.Error = strings.TrimPrefix(to.Error+"; "+i.failed.Error(), "; ")
			}
		}
		if to.Error == "" {
			to.Ended = i.now()
		}
		if i.condition.Figures != nil {
			to.Spans = spansOf(i.condition.Figures())
		}
	}()
}

// spansOf returns what an area measured as a record has it, in which nothing is infinite.
func spansOf(measured map[string][]area.Span) map[string][]guard.Span {
	out := map[string][]guard.Span{}
	for name, spans := range measured {
		for _, x := range spans {
			span := guard.Span{Least: x.Least}
			if !math.IsInf(x.Most, 1) {
				span.Most = &x.Most
			}
			out[name] = append(out[name], span)
		}
	}
	return out
}

// last waits while the condition lasts.
func (i *imposed) last(ctx context.Context) {
	wait := time.NewTimer(i.hold)
	defer wait.Stop()
	select {
	case <-wait.C:
	case <-ctx.Done():
	}
}

// before brings the condition about and ends it. Its instants are when the load may begin.
func (i *imposed) before(ctx context.Context, to *guard.Condition) {
	i.hold = 0
	i.begin(ctx, to)
	<-i.done
	if to.Error == "" {
		to.Begun = i.now()
		to.Imposed, to.Ended = to.Begun, to.Begun
	}
}

// ended reports whether the condition has ended.
func (i *imposed) ended() bool {
	if i.done == nil {
		return false
	}
	select {
	case <-i.done:
		return true
	default:
		return false
	}
}

// wait waits until a condition that was begun has ended, and returns why it could not be ended.
func (i *imposed) wait() error {
	if i.done == nil {
		return nil
	}
	<-i.done
	return i.failed
}

// titled names a point for an error.
func titled(p *guard.Point) string {
	if p.Name != "" {
		return p.Name
	}
	return "a point"
}
