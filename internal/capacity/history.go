package capacity

import (
	"sort"
	"time"

	"tare/internal/load"
)

// moment is what was known at an instant.
type moment struct {
	at                       time.Duration
	due, good, bad, rejected uint64
	turned                   uint64 // away, in whatever form: refused, or answered with something else
	open                     int
}

// history is a list of moments, for questions about the recent past that need no call records.
type history struct{ moments []moment }

func (h *history) add(p load.Progress) {
	m := moment{at: p.Now, due: p.Due, open: p.Open(), rejected: p.Done[load.Refused]}
	for o, n := range p.Done {
		switch outcome := load.Outcome(o); {
		case outcome.Good():
			m.good += n
			continue
		case outcome == load.Refused, outcome == load.Failed, outcome == load.Wrong:
			m.turned += n
		}
		m.bad += n
	}
	if n := len(h.moments); n > 0 && h.moments[n-1].at == m.at {
		h.moments[n-1] = m
		return
	}
	h.moments = append(h.moments, m)
}

func (h *history) last() moment {
	if len(h.moments) == 0 {
		return moment{}
	}
	return h.moments[len(h.moments)-1]
}

// at is the last moment not after t, or the first there is.
func (h *history) at(t time.Duration) moment {
	i := sort.Search(len(h.moments), func(i int) bool { return h.moments[i].at > t })
	if len(h.moments) == 0 {
		return moment{}
	}
	return h.moments[max(0, i-1)]
}

// over is the last moment, and the change over the last d.
func (h *history) over(d time.Duration) (now, change moment) {
	now = h.last()
	then := h.at(now.at - d)
	return now, moment{
		at: now.at - then.at, due: now.due - then.due, good: now.good - then.good, bad: now.bad - then.bad,
		rejected: now.rejected - then.rejected, turned: now.turned - then.turned, open: now.open - then.open,
	}
}

// goodput is calls that ended well per second over the last d.
func (h *history) goodput(d time.Duration) float64 {
	_, c := h.over(d)
	if c.at <= 0 {
		return 0
	}
	return float64(c.good) / c.at.Seconds()
}

// recent is the goodput over the last 0.3 s, or over as much of the last limit as holds ten calls.
func (h *history) recent(limit time.Duration) float64 {
	d := 300 * time.Millisecond
	for ; d < limit; d *= 2 {
		if _, c := h.over(d); c.good >= 10 {
			break
		}
	}
	return h.goodput(min(d, max(limit, 300*time.Millisecond)))
}

// waiting is how many calls were open on average over the last d.
func (h *history) waiting(d time.Duration) float64 {
	sum, n := 0.0, 0
	for i := len(h.moments) - 1; i >= 0 && h.moments[i].at >= h.last().at-d; i-- {
		sum += float64(h.moments[i].open)
		n++
	}
	return sum / float64(max(1, n))
}
