package startup

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
)

const (
	// auditEvery is how often long waits are looked into, and auditAfter how long a wait is then: longer than the service level objective allows, so
	// that nothing is asked of a server that does well.
	auditEvery = time.Second
	auditAfter = 6 * time.Second
	// auditWithin bounds the question.
	auditWithin = 2 * time.Second
)

// audit asks the server, one pod at a time, about the pod that has waited longest. If it runs, the watch has failed to tell: it is begun again.
func (w *Watch) audit(ctx context.Context) {
	for w.cfg.Clock.Sleep(ctx, auditEvery) == nil {
		if a := w.track.longest(); a != nil {
			w.look(ctx, a)
		}
	}
}

// longest is the pod that was created longest ago and not asked about, if that is long.
func (t *tracker) longest() (out *await) {
	now := t.clock.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, a := range t.awaits {
		waits := !a.answered.IsZero() && a.running.IsZero() && !a.gone
		if waits && now.Sub(a.answered) > auditAfter && now.Sub(a.asked) > auditAfter && (out == nil || a.answered.Before(out.answered)) {
			out = a
		}
	}
	if out != nil {
		out.asked = now
	}
	return out
}

// look asks the server about a pod.
func (w *Watch) look(ctx context.Context, a *await) {
	ctx, cancel := context.WithTimeout(ctx, auditWithin)
	defer cancel()
	var pod corev1.Pod
	if w.source.client.Get().Namespace(w.cfg.Namespace).Resource("pods").Name(a.name).Do(ctx).Into(&pod) != nil || !started(&pod) {
		return
	}
	if w.track.miss(a) {
		w.source.again()
	}
}

// miss notes that a pod runs that the watch has not shown.
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

// Stats is what became of the watch since its start.
type Stats struct {
	// Lists is how often everything was listed, the first time included; Watches how often a watch was begun.
	Lists, Watches uint64
	// Late is how many calls learned from a list, after a watch had failed, that their pod runs: they are later than they would have been.
	Late uint64
	// Missed is how many pods ran, as the server said when asked, more than 6 s after they were created, without the watch having shown it.
	Missed uint64
	// Awaited is how many calls wait now.
	Awaited int
}

// Stats tells what became of the watch.
func (w *Watch) Stats() Stats {
	out := Stats{Watches: w.source.started()}
	w.track.mu.Lock()
	defer w.track.mu.Unlock()
	out.Lists, out.Late, out.Missed, out.Awaited = w.track.lists, w.track.late, w.track.missed, len(w.track.awaits)
	return out
}

// Notes are what a report must say of the watch; none when it did what it should.
func (s Stats) Notes() (out []string) {
	if s.Lists > 1 {
		out = append(out, fmt.Sprintf("pod startup: the watch broke off and all pods were listed again %d times; %d calls learned from a list that their pod runs, later than a watch would have told",
			s.Lists-1, s.Late))
	}
	if s.Missed > 0 {
		out = append(out, fmt.Sprintf("pod startup: %d pods ran without the watch having shown it, so that it was begun anew: these calls are slower than their pods", s.Missed))
	}
	return out
}
