package run

import (
	"context"
	"fmt"
	"time"

	"tare/internal/design"
	"tare/internal/load"
	"tare/internal/record"
)

// A target may be restarting while its counts are requested.
const (
	countTries  = 4
	countWithin = 2 * time.Second
	countPause  = time.Second
)

// An Account compares the answers that the calls of a trial received with those that the target counted.
type Account struct {
	*Arm
	counts counted // nil: the target keeps no counts
	before map[string]float64
	err    error

	seen       map[string]uint64
	unanswered uint64
}

// Account reads the target's counts before any load.
func (a *Arm) Account(ctx context.Context) *Account {
	out := &Account{Arm: a, seen: map[string]uint64{}}
	counts := counted(a.Target.Can().Counted)
	if counts == nil {
		return out
	}
	if out.before, out.err = a.readCounts(ctx, counts); out.before != nil || out.err != nil {
		out.counts = counts
	}
	return out
}

// counted is area.Can.Counted.
type counted func(context.Context, design.Treatment) (map[string]float64, error)

// readCounts reads the counts, and retries a few times.
func (a *Arm) readCounts(ctx context.Context, read counted) (counts map[string]float64, err error) {
	for try := range countTries {
		if try > 0 {
			if err := a.Env.Clock.Sleep(ctx, countPause); err != nil {
				return nil, err
			}
		}
		within, cancel := context.WithTimeout(ctx, countWithin)
		counts, err = read(within, a.Treatment)
		cancel()
		if err == nil {
			return counts, nil
		}
	}
	return nil, fmt.Errorf("read the target's own counts: %w", err)
}

// Count adds the answers to calls that have ended.
func (a *Account) Count(taken []load.Cell) {
	for i := range taken {
		c := &taken[i]
		op := &a.Ops[c.Operation]
		if c.Outcome.Good() {
			a.saw(op.Answer, c.Response.Count())
			continue
		}
		lost := uint64(0)
		for _, n := range c.Causes {
			if k := int(n.Cause) - int(load.OwnCauses); k >= 0 && k < len(op.CauseAnswers) {
				a.saw(op.CauseAnswers[k], n.Count)
			}
			if unanswered(c.Outcome, n) {
				lost += n.Count
			}
		}
		// Calls that were never sent are accounted for. Only calls that were sent have a service time.
		a.unanswered += min(lost, c.Service.Count())
	}
}

func (a *Account) saw(answer string, n uint64) {
	if answer != "" {
		a.seen[answer] += n
	}
}

// unanswered reports whether calls that ended this way got no complete answer.
func unanswered(o load.Outcome, n load.CauseCount) bool {
	switch o {
	case load.Timeout, load.ConnFailed:
		return true
	case load.Failed:
		return n.Status == 0 || (n.Cause > 0 && n.Cause < load.OwnCauses && n.Cause != load.CauseRedirect)
	case load.OK, load.Denied, load.Wrong, load.Refused, load.Permitted:
	}
	return false
}

// Close reads the target's counts again, and records both sides. pending is the number of calls that have not ended:
// nobody saw their answers.
func (a *Account) Close(ctx context.Context, pending int) error {
	if a.counts == nil {
		return nil
	}
	r := record.Answers{
		Treatment: a.Trial.Treatment, Block: a.Trial.Block, Seen: a.seen, Unanswered: a.unanswered + uint64(pending),
		Before: a.before,
	}
	err := a.err
	if err == nil {
		r.After, err = a.readCounts(ctx, a.counts)
	}
	if err != nil {
		r.Error = err.Error()
	}
	return a.Writer.Answers(r)
}
