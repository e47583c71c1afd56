package run

import (
	"context"
	"errors"
	"fmt"
	"time"

	"tare/internal/load"
)

// ErrAborted is the error of a run that stopped because it harmed its target.
var ErrAborted = errors.New("aborted")

// Abort says when a run harms its target: a sustained share of failing calls.
type Abort struct {
	Share float64       // 0…1
	For   time.Duration // how long the share must be exceeded without interruption
}

// brake watches a stream and ends a segment in which the target fails for too long. It protects targets that are not
// tare's own: a ramp stops by itself, but a fixed rate does not.
type brake struct {
	load.Stream
	abort Abort
	// since is when the failures began; zero: the target does not fail.
	since   time.Duration
	failing bool
	last    load.Progress
}

// Offer implements load.Stream.
func (b *brake) Offer(ctx context.Context, p load.Process, poll time.Duration, stop func() bool) (load.Segment, error) {
	return b.watch(stop, func(stop func() bool) (load.Segment, error) { return b.Stream.Offer(ctx, p, poll, stop) })
}

// Cycle implements load.Stream.
func (b *brake) Cycle(ctx context.Context, c load.Closed, poll time.Duration, stop func() bool) (load.Segment, error) {
	return b.watch(stop, func(stop func() bool) (load.Segment, error) { return b.Stream.Cycle(ctx, c, poll, stop) })
}

func (b *brake) watch(stop func() bool, segment func(func() bool) (load.Segment, error)) (load.Segment, error) {
	var broken error
	s, err := segment(func() bool {
		if broken = b.check(b.Progress()); broken != nil {
			return true
		}
		return stop != nil && stop()
	})
	return s, errors.Join(err, broken)
}

// check judges what happened since the last check. It ignores periods without an ended call: a hanging target shows in
// timeouts, which are counted when they happen.
func (b *brake) check(now load.Progress) error {
	from := b.last
	b.last = now
	return b.judge(&from, &now)
}

// judge judges what happened between two states of the stream.
func (b *brake) judge(from, now *load.Progress) error {
	ended := now.Ended() - from.Ended()
	if ended == 0 {
		return nil
	}
	good := now.Done[load.OK] + now.Done[load.Denied] - from.Done[load.OK] - from.Done[load.Denied]
	share := 1 - float64(good)/float64(ended)
	switch {
	case share < b.abort.Share:
		b.failing = false
	case !b.failing:
		b.failing, b.since = true, now.Now
	case now.Now-b.since >= b.abort.For:
		return fmt.Errorf("%w: at least %.0f %% of the calls failed for %s; the target may be suffering: lower max_rate, "+
			"or raise abort in the file",
			ErrAborted, b.abort.Share*100, b.abort.For)
	}
	return nil
}
