package simulation

// workClock counts the time in which workers work, without that in which all of them stand still: pauses, or the rest
// of a period of the CPU scheduler after its quota is used up.
type workClock struct {
	worked float64 // seconds of work until at
	at     float64
	// stalled is when the standstill ends that lasts at the moment; not after at: none does.
	stalled float64
	// every, length and growth are those of pauses; next is when one begins, vary draws how regular they are.
	every, length, growth, next float64
	vary                        func() float64
	// period, quota and left are those of the CPU scheduler: CPU seconds per period, and what is left of them.
	period, quota, left, end float64
}

// advance lets time pass up to t, with so many workers busy and calls waiting since the last time.
func (c *workClock) advance(t float64, busy, waiting int) {
	for c.at < t {
		if c.stalled > c.at {
			c.at = min(t, c.stalled)
			continue
		}
		if c.period > 0 {
			c.throttle(t, busy)
			continue
		}
		end := min(t, c.next)
		c.worked += end - c.at
		c.at = end
		if c.at == c.next {
			c.stalled = c.at + c.length*c.vary()*(1+c.growth*float64(waiting))
			c.next = c.stalled + c.every*c.vary()
		}
	}
	if c.period > 0 && c.at >= c.end {
		c.left, c.end = c.quota, c.end+c.period
	}
}

func (c *workClock) throttle(t float64, busy int) {
	if c.at >= c.end {
		c.left, c.end = c.quota, c.end+c.period
		return
	}
	end := min(t, c.end)
	if busy > 0 && c.left < (end-c.at)*float64(busy) {
		x := c.left / float64(busy)
		c.worked += x
		c.at += x
		c.left, c.stalled = 0, c.end
		if c.at >= c.stalled {
			c.at = c.stalled
		}
		return
	}
	c.worked += end - c.at
	c.left -= (end - c.at) * float64(busy)
	c.at = end
}

// earliest is when the clock can show target at the earliest.
func (c *workClock) earliest(now, target float64) float64 {
	return max(now, c.stalled) + max(1e-9, target-c.worked)
}
