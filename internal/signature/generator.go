package signature

import (
	"fmt"
	"math"
	"strings"

	"tare/internal/load"
	"tare/internal/unit"
)

// GeneratorVerdict is the generator's possible part in a result. Its word is the same in all outputs.
type GeneratorVerdict string

// The verdicts.
const (
	// RuledOut: the evidence excludes that the generator affected the result.
	RuledOut GeneratorVerdict = "ruled-out"
	// Possible: the evidence neither excludes the generator nor shows that it was the limit.
	Possible GeneratorVerdict = "possible"
	// Limiting: the generator was the limit, and the result is not the target's.
	Limiting GeneratorVerdict = "limit"
)

// Conduct is the evidence about the generator in a segment of load. Times in seconds; a float of 0 is unknown.
type Conduct struct {
	// Workers is the number of workers of a closed loop; 0: it was an open loop.
	Workers int
	// Rate is the number of calls that ended per second, Mean and P99 are their response times.
	Rate, Mean, P99 float64
	// Times says that response times are reported, not only a rate.
	Times bool
	// LatenessP99 is the quantile of sent − max(intended, ready), LatenessLimit its limit, AchievedRatio the share of the
	// possible calls that were sent.
	LatenessP99, LatenessLimit, AchievedRatio float64
	// Idle says that workers of a closed loop paused on purpose, after failed connections or because of a rate limit, so
	// that Little's law does not hold.
	Idle bool
	// Effort is what its threads did; nil: unknown.
	Effort *load.Effort
	// Shared is the number of processors that both generator and target may use; 0: none. Effort.Host is about them.
	Shared int
}

// MostQueued is the largest share of the time that a thread of the generator may wait for a processor in any loop: what
// it measures of waiting is unreliable beyond it.
const MostQueued = 0.25

// Limits for ruling out the generator, as shares of the segment unless noted.
const (
	mostBusy      = 0.90 // the largest share that a thread may run: beyond it, work begins to wait
	mostQueued    = 0.05 // the largest share that a thread may wait for a processor in a closed loop
	mostThrottled = 0.01 // the largest share of throttled time
	mostStolen    = 0.05 // the largest share of its processors' time that the hypervisor may steal
	mostOwn       = 0.10 // the largest share of a response, or of the workers, that the generator itself may account for
	limitOwn      = 0.50 // of the workers: if more of them wait for the generator than for the target, it is the limit
	hostFull      = 0.90 // of shared processors: fuller ones limit both
	leastUse      = 0.05 // of shared processors: the least use by the generator that matters
	mostTail      = 0.20 // of the slowest responses: the largest delay by the generator that is as rare as they are
	// Delays, in seconds, of every thread that sleeps until there is work: mean, and 99th percentile.
	leastDelay, leastTail = 25e-6, 200e-6
)

// Unrecorded is the doubt about a generator without recorded threads, as in early records or of another tool.
const Unrecorded = "its CPU time was not recorded"

// GeneratorOpinion is the verdict with its reasons.
type GeneratorOpinion struct {
	Verdict GeneratorVerdict
	// Doubts are why the generator is not ruled out, Evidence is what was measured of its threads.
	Doubts, Evidence []string
	// Crowded says that one of the doubts is sharing processors with the target, which pinning would avoid.
	Crowded bool
}

// Worse reports whether o is more unfavourable to the generator than p.
func (o *GeneratorOpinion) Worse(p *GeneratorOpinion) bool {
	rank := map[GeneratorVerdict]int{RuledOut: 1, Possible: 2, Limiting: 3}
	if a, b := rank[o.Verdict], rank[p.Verdict]; a != b {
		return a > b
	}
	return len(o.Doubts) > len(p.Doubts)
}

// Judge judges the generator; every statement of a report about it follows from the result. An open loop is ruled out
// by sending calls on time; a closed loop, which is never late, by threads that were free to read each answer
// immediately.
func (c *Conduct) Judge() GeneratorOpinion {
	o := GeneratorOpinion{Verdict: RuledOut, Evidence: c.evidence()}
	c.judgeSending(&o)
	if c.Workers > 0 {
		c.judgeReading(&o)
	}
	if c.Effort == nil {
		o.doubt(Unrecorded)
		return o
	}
	c.judgeThreads(&o)
	c.judgeHost(&o)
	return o
}

func (o *GeneratorOpinion) doubt(format string, args ...any) {
	o.Doubts = append(o.Doubts, fmt.Sprintf(format, args...))
	if o.Verdict == RuledOut {
		o.Verdict = Possible
	}
}

func (o *GeneratorOpinion) limit(format string, args ...any) {
	o.Verdict = Limiting
	o.Doubts = append([]string{fmt.Sprintf(format, args...)}, o.Doubts...)
}

// judgeSending judges by the lateness of sends: being on time only counts for an open loop, being late counts against
// both.
func (c *Conduct) judgeSending(o *GeneratorOpinion) {
	switch {
	case c.AchievedRatio > 0 && c.AchievedRatio < LeastAchieved:
		o.limit("%s", SentTooLittle(c.AchievedRatio))
	case c.LatenessLimit > 0 && c.LatenessP99 > c.LatenessLimit:
		o.limit("%s", sentLate(c.LatenessP99, c.LatenessLimit))
	case c.Workers == 0 && c.Times && c.P99 > 0 && c.LatenessP99 > max(leastTail, mostTail*c.P99):
		o.doubt("it sent up to %s late (p99), which is in the response times: their p99 is %s",
			short(c.LatenessP99), short(c.P99))
	}
	if e := c.Effort; c.Workers == 0 && e != nil && e.Unread != nil {
		c.judgeTail(o)
	}
}

// judgeReading judges a closed loop by how long answers waited for it, and by Little's law.
func (c *Conduct) judgeReading(o *GeneratorOpinion) {
	if c.Effort == nil {
		return
	}
	if c.Effort.Unread == nil {
		o.doubt("how long answers waited to be read is not known")
	} else {
		// By Little's law this many calls are at the generator at any time.
		own := c.Rate * c.Effort.Unread.Mean
		switch share := own / float64(c.Workers); {
		case share >= limitOwn:
			o.limit("on average %.3g of %d calls had been answered and waited until it read the answer",
				min(own, float64(c.Workers)), c.Workers)
		case share > mostOwn && c.Effort.Unread.Mean > leastDelay:
			o.doubt("on average %.2g of %d calls had been answered and waited until it read the answer", own, c.Workers)
		}
		if o.Verdict != Limiting {
			c.judgeTail(o)
		}
	}
	if inTarget := c.Rate * c.Mean; inTarget > 0 && !c.Idle && inTarget < (1-mostOwn)*float64(c.Workers) {
		o.doubt("rate × mean response is %.3g calls in progress with %s: the rest of the workers' time went to the generator",
			inTarget, unit.Count(c.Workers, "worker"))
	}
}

// judgeTail compares how long answers waited with the slowest responses, which include that wait.
func (c *Conduct) judgeTail(o *GeneratorOpinion) {
	if u := c.Effort.Unread; c.Times && c.P99 > 0 && u.P99 > max(leastTail, mostTail*c.P99) {
		o.doubt("answers waited up to %s (p99) until it read them, which is in the response times: their p99 is %s",
			short(u.P99), short(c.P99))
	}
}

// judgeThreads judges by the kernel's times of the generator's threads.
func (c *Conduct) judgeThreads(o *GeneratorOpinion) {
	e := c.Effort
	if e.Busy >= mostBusy {
		o.doubt("%s", c.ran())
	}
	switch {
	case e.Queued == nil || e.Loops == 0 && c.Workers == 0:
	case e.Loops > 0 && *e.Queued > mostQueued && (c.Workers > 0 || *e.Queued > MostQueued):
		o.doubt("it was ready to run and had no processor for %s of the time", Percent(*e.Queued))
	case e.Loops == 0 && c.Workers > 0 && *e.Queued > mostOwn*float64(c.Workers):
		o.doubt("on average %.2g of its threads were ready to run and had no processor, with %s", *e.Queued,
			unit.Count(c.Workers, "worker"))
	}
	if c.Workers > 0 && e.Queued == nil && e.Unread == nil {
		o.doubt("how long its threads waited for a processor is not known")
	}
	if h := e.Host; h != nil && e.Seconds > 0 && h.Throttled > mostThrottled*e.Seconds {
		o.doubt("the CPU quota of its control group held it back for %s of %s", short(h.Throttled), short(e.Seconds))
	}
	if h := e.Host; h != nil && h.All > 0 && h.Stolen > mostStolen*h.All {
		o.doubt("the hypervisor took %s of its processors' time", Percent(h.Stolen/h.All))
	}
}

// judgeHost judges by the processors that the generator took from the target.
func (c *Conduct) judgeHost(o *GeneratorOpinion) {
	h := c.Effort.Host
	if c.Shared == 0 {
		return
	}
	if h == nil || h.All <= 0 {
		o.doubt("it shared processors with the target, and how busy they were is not known")
		return
	}
	busy, own := (h.Busy+h.Stolen)/h.All, c.Effort.CPU/h.All
	if busy >= hostFull && own >= leastUse {
		o.Crowded = true
		o.doubt("it shared %s with the target, %s busy, of which it used %s: with processors of its own the target may do "+
			"more", unit.Count(c.Shared, "processor"), Percent(busy), Percent(own))
	}
}

// ran describes how busy its threads were.
func (c *Conduct) ran() string {
	if c.Effort.Loops == 0 {
		return "it used " + Percent(c.Effort.Busy) + " of the processors that it may use"
	}
	return "its busiest thread ran " + Percent(c.Effort.Busy) + " of the time"
}

// Percent prints a share in whole per cent, at most 100.
func Percent(share float64) string { return fmt.Sprintf("%.0f %%", math.Min(100, 100*share)) }

// evidence describes what was measured of its threads, in terms of the loop.
func (c *Conduct) evidence() []string {
	e := c.Effort
	if e == nil {
		return nil
	}
	out := []string{c.ran()}
	if c.Workers == 0 {
		return out
	}
	switch {
	case e.Queued == nil:
	case e.Loops > 0:
		out = append(out, fmt.Sprintf("waited for a processor %.1f %% of it", 100**e.Queued))
	default:
		out = append(out, fmt.Sprintf("%.2g threads waited for a processor", *e.Queued))
	}
	if e.Unread != nil {
		out = append(out, "answers waited "+short(e.Unread.Mean)+" to be read (p99 "+short(e.Unread.P99)+")")
	}
	return out
}

// Because joins the doubts into one sentence; empty if there are none.
func (o *GeneratorOpinion) Because() string { return strings.Join(o.Doubts, "; ") }
