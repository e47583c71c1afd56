package analyze

import (
	"math"

	"tare/internal/hist"
	"tare/internal/load"
	"tare/internal/record"
	"tare/internal/report"
)

// An ownDelay is the generator's own delay of calls: how late it sent them, and how long answers waited for it.
type ownDelay struct {
	late  []lateShare // by falling delay
	calls float64     // that ended
	// unread is how long answers waited until they were read; nil: their arrival is the kernel's, or not known.
	unread *load.Delays
}

// A lateShare says how many calls were sent later than a delay, in seconds.
type lateShare struct{ delay, calls float64 }

// ownDelayOf reads the delays of ended calls from the histogram of their lateness.
func ownDelayOf(late *hist.Histogram, ended float64, unread *load.Delays) *ownDelay {
	o := &ownDelay{calls: ended, unread: unread}
	if late == nil || late.Count() == 0 || ended == 0 {
		return o
	}
	type cell struct {
		value int64
		count uint64
	}
	var cells []cell
	late.Each(func(value int64, count uint64) { cells = append(cells, cell{value, count}) })
	o.late = append(o.late, lateShare{delay: float64(late.Max()) / 1e9})
	later := 0.0
	for i := len(cells) - 1; i > 0; i-- {
		later += float64(cells[i].count)
		o.late = append(o.late, lateShare{delay: float64(cells[i-1].value) / 1e9, calls: later})
	}
	return o
}

// atMost returns how much of the q-quantile of times, in seconds, can be the generator's own delay at most. If a share
// s of the calls was delayed by more than d, the quantile would have been at least the (q−s)-quantile less d without
// any delay. Each late call counts twice: a call that was sent in time may have queued behind it.
func (o *ownDelay) atMost(times *hist.Histogram, q float64) float64 {
	value := times.Quantile(q) / 1e9
	least := 0.0
	share, wait := o.waits()
	for _, x := range o.late {
		at := q - share - 2*x.calls/o.calls
		if at <= 0 {
			break
		}
		least = max(least, times.Quantile(at)/1e9-x.delay-wait)
	}
	if len(o.late) == 0 && q > share {
		least = max(0, times.Quantile(q-share)/1e9-wait)
	}
	return max(0, value-least)
}

// certainlyOver returns which share of calls at least would have taken longer than a limit, in seconds, without the
// generator's own delay.
func (o *ownDelay) certainlyOver(times *hist.Histogram, limit float64) float64 {
	share, wait := o.waits()
	over := func(than float64) (n float64) {
		times.Each(func(value int64, count uint64) {
			if float64(value)/1e9 > than {
				n += float64(count)
			}
		})
		return n / float64(times.Count())
	}
	if len(o.late) == 0 {
		return max(0, over(limit+wait)-share)
	}
	most := 0.0
	for _, x := range o.late {
		if without := 2 * x.calls / o.calls; without < 1 {
			most = max(most, over(limit+wait+x.delay)-without-share)
		}
	}
	return most
}

// waits returns the share of answers that may have waited longer until they were read, and for how long the others did.
func (o *ownDelay) waits() (share, seconds float64) {
	if o.unread == nil || o.unread.N == 0 || o.unread.P99 <= 0 {
		return 0, 0
	}
	return 0.01, o.unread.P99
}

// inMean returns the same for the mean.
func (o *ownDelay) inMean(late *hist.Histogram) float64 {
	sum := 0.0
	if late != nil && o.calls > 0 {
		sum = 2 * late.Mean() / 1e9 * float64(late.Count()) / o.calls
	}
	if o.unread != nil && o.unread.N > 0 {
		sum += o.unread.Mean
	}
	return sum
}

// atMostAtAll returns the same for single calls.
func (o *ownDelay) atMostAtAll() float64 {
	if len(o.late) == 0 {
		return 0
	}
	return o.late[0].delay
}

// own returns the generator's own delay of the calls of an operation, or of all.
func (s *soak) own(operation string) *ownDelay {
	if known := s.delays[operation]; known != nil {
		return known
	}
	of := s.histogramsOf(operation)
	ended := 0.0
	if h := of[record.Response]; h != nil {
		ended = float64(h.Count())
	}
	var unread *load.Delays
	for i := range s.trial.Generator {
		if e := s.trial.Generator[i].Effort; e != nil {
			unread = e.Unread
		}
	}
	if s.delays == nil {
		s.delays = map[string]*ownDelay{}
	}
	s.delays[operation] = ownDelayOf(of[record.Lateness], ended, unread)
	return s.delays[operation]
}

// histogramsOf are those of an operation, or of all.
func (s *soak) histogramsOf(operation string) map[record.Measure]*hist.Histogram {
	if operation == "" {
		return s.hists.all
	}
	return s.hists.per[operation]
}

// ownIn fills in how much of each response time can be the generator's own.
func (s *soak) ownIn(d *report.Distribution, operation string) {
	h := s.histogramsOf(operation)[record.Response]
	if d == nil || h == nil || h.Count() == 0 || s.hists.lateness.Count() == 0 {
		return
	}
	o := s.own(operation)
	d.OwnAtMost = map[string]float64{"mean": toNanosecond(o.inMean(s.histogramsOf(operation)[record.Lateness]))}
	for name, x := range map[string]struct {
		known *float64
		q     float64
	}{"p50": {d.P50, .5}, "p90": {d.P90, .9}, "p95": {d.P95, .95}, "p99": {d.P99, .99}, "p999": {d.P999, .999}} {
		if x.known != nil {
			d.OwnAtMost[name] = toNanosecond(o.atMost(h, x.q))
		}
	}
}

// toNanosecond rounds seconds to the precision of clocks.
func toNanosecond(s float64) float64 { return math.Round(s*1e9) / 1e9 }
