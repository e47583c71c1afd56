package startup

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
)

const (
	// auditEvery is the interval at which long waits are checked, and auditAfter how long such a wait is: longer than the
	// service level objective, so that a healthy server gets no extra requests.
	auditEvery = time.Second
	auditAfter = 6 * time.Second
	// auditWithin bounds the request.
	auditWithin = 2 * time.Second
)

// audit asks the server, one pod at a time, about the pod that has waited longest. If that runs, the watch has missed
// it and is restarted.
func (w *Watch) audit(ctx context.Context) {
	for w.cfg.Clock.Sleep(ctx, auditEvery) == nil {
		if a := w.track.longest(); a != nil {
			w.check(ctx, a)
		}
	}
}

// longest returns the pod with the longest wait that has not been checked, if that is long.
func (t *tracker) longest() (out *await) {
	now := t.clock.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, a := range t.awaits {
		waits := !a.answered.IsZero() && a.running.IsZero() && !a.gone
		if waits && now.Sub(a.answered) > auditAfter && now.Sub(a.asked) > auditAfter &&
			(out == nil || a.answered.Before(out.answered)) {
			out = a
		}
	}
	if out != nil {
		out.asked = now
	}
	return out
}

// check asks the server about a pod.
func (w *Watch) check(ctx context.Context, a *await) {
	ctx, cancel := context.WithTimeout(ctx, auditWithin)
	defer cancel()
	var pod corev1.Pod
	if w.source.client.Get().Namespace(w.cfg.Namespace).Resource("pods").Name(a.name).Do(ctx).Into(&pod) != nil ||
		!started(&pod) {
		return
	}
	if w.track.miss(a) {
		w.source.restart()
	}
}

// miss records that a pod runs that the watch has not shown.
func (t *tracker) miss(a *await) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !a.running.IsZero() || a.gone || a.unseen {
		return false
	}
	a.unseen = true
	t.missed++
	return true
}

// Stats are the watch's counts since its start.
type Stats struct {
	// Lists is how often everything was listed, including the first time; Watches how often a watch was started, and Short
	// how many of them ended within 5 s.
	Lists, Watches, Short uint64
	// Late is how many calls learned from a list, after a watch had failed, that their pod runs: later than from the
	// watch.
	Late uint64
	// Missed is how many pods ran, according to the server, more than 6 s after their creation without the watch having
	// shown it.
	Missed uint64
	// Awaited is how many calls wait now.
	Awaited int
}

// Stats returns the watch's counts.
func (w *Watch) Stats() Stats {
	var out Stats
	out.Watches, out.Short = w.source.counts()
	w.track.mu.Lock()
	defer w.track.mu.Unlock()
	out.Lists, out.Late, out.Missed, out.Awaited = w.track.lists, w.track.late, w.track.missed, len(w.track.awaits)
	return out
}

// Notes returns what a report must say of the watch; none if it worked.
func (s Stats) Notes() (out []string) {
	if s.Short >= s.Lists && s.Short > 0 { // else a list followed each
		out = append(out, fmt.Sprintf("pod startup: the watch broke off %d times within %v of its beginning, and was begun "+
			"anew up to %v later: what happened between was seen late, and is counted as failed where this went on",
			s.Short, steady, steady))
	}
	if s.Lists > 1 {
		out = append(out, fmt.Sprintf("pod startup: the watch broke off and all pods were listed again %d times; %d calls "+
			"learned from a list that their pod runs, later than a watch would have told",
			s.Lists-1, s.Late))
	}
	if s.Missed > 0 {
		out = append(out, fmt.Sprintf("pod startup: %d pods ran without the watch having shown it, so that it was begun "+
			"anew: these calls are slower than their pods", s.Missed))
	}
	return out
}
