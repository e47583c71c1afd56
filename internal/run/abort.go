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

// aborter watches a stream and ends a segment in which the target fails for too long. It protects targets that are not
// tare's own: a ramp stops by itself, but a fixed rate does not.
type aborter struct {
	load.Stream
	abort Abort
	// since is when the failures began; zero: the target does not fail.
	since   time.Duration
	failing bool
	last    load.Progress
}

// Offer implements load.Stream.
func (g *aborter) Offer(ctx context.Context, p load.Process, poll time.Duration, stop func() bool) (load.Segment, error) {
	return g.watch(stop, func(stop func() bool) (load.Segment, error) { return g.Stream.Offer(ctx, p, poll, stop) })
}

// Cycle implements load.Stream.
func (g *aborter) Cycle(ctx context.Context, c load.Closed, poll time.Duration, stop func() bool) (load.Segment, error) {
	return g.watch(stop, func(stop func() bool) (load.Segment, error) { return g.Stream.Cycle(ctx, c, poll, stop) })
}

func (g *aborter) watch(stop func() bool, segment func(func() bool) (load.Segment, error)) (load.Segment, error) {
	var broken error
	s, err := segment(func() bool {
		if broken = g.check(g.Progress()); broken != nil {
			return true
		}
		return stop != nil && stop()
	})
	return s, errors.Join(err, broken)
}

// check judges what happened since the last check. It ignores periods without an ended call: a hanging target shows in
// timeouts, which are counted when they happen.
func (g *aborter) check(now load.Progress) error {
	ended := now.Ended() - g.last.Ended()
	if ended == 0 {
		return nil
	}
	good := now.Done[load.OK] + now.Done[load.Denied] - g.last.Done[load.OK] - g.last.Done[load.Denied]
	share := 1 - float64(good)/float64(ended)
	g.last = now
	switch {
	case share < g.abort.Share:
		g.failing = false
	case !g.failing:
		g.failing, g.since = true, now.Now
	case now.Now-g.since >= g.abort.For:
		return fmt.Errorf("%w: at least %.0f %% of the calls failed for %s; the target may be suffering: lower max_rate, "+
			"or raise abort in the file",
			ErrAborted, g.abort.Share*100, g.abort.For)
	}
	return nil
}
