package config

import (
	"time"

	"tare/internal/area"
	"tare/internal/design"
)

// leastSoak is the shortest soak: a shorter one has fewer windows than a trend needs.
const leastSoak = 20 * time.Second

// maxSpin bounds how long a shard may spin before each send.
const maxSpin = time.Millisecond

// load checks the load section.
func (c *checker) load() {
	c.positive()
	c.bounds()
	c.conflicts()
	switch c.e.Question {
	case design.Capacity:
		c.capacity()
	case design.Compare, design.Scale, design.Soak:
		c.trials()
	}
}

// positive rejects zeros: the default applies if a field is omitted.
func (c *checker) positive() {
	l := &c.e.Load
	for _, x := range []struct {
		path string
		ok   bool
	}{
		{"load.rate", l.Rate > 0},
		{"load.duration", l.Duration > 0},
		{"load.timeout", l.Timeout > 0},
		{"load.max_rate", l.MaxRate > 0},
		{"load.max_time", l.MaxTime > 0},
		{"load.spin", l.Spin >= 0},
		{"load.closed.ramp", l.Closed == nil || l.Closed.Ramp >= 0},
		{"load.abort.for", l.Abort == nil || l.Abort.For > 0},
		{"load.slo.limit", l.SLO == nil || l.SLO.Limit > 0},
	} {
		if c.isValid(x.path) && !x.ok {
			c.fail(x.path, "%swant more than zero; leave it out for the default", label(x.path))
		}
	}
	if l.Abort != nil {
		c.share("load.abort.error", float64(l.Abort.Error), 1)
	}
	if l.SLO != nil {
		c.share("load.slo.share", float64(l.SLO.Share), 0.5)
	}
	c.share("margin", float64(c.e.Margin), 1)
	for i, r := range l.Rates {
		if path := index("load.rates", i); c.isValid(path) && r <= 0 {
			c.fail(path, "a rate must be more than zero")
		}
	}
}

// share checks that a percentage is above 0 and at most most.
func (c *checker) share(path string, value, most float64) {
	if c.isValid(path) && (value <= 0 || value > most) {
		c.fail(path, "%swant more than 0%% and at most %v%%", label(path), most*100)
	}
}

// bounds checks fields against each other.
func (c *checker) bounds() {
	l := &c.e.Load
	if c.isValid("load.max_rate") {
		if c.isValid("load.rate") && l.Rate > l.MaxRate {
			c.fail("load.rate", "the rate is above max_rate (%v)", l.MaxRate)
		}
		for i, r := range l.Rates {
			if path := index("load.rates", i); c.isValid(path) && r > l.MaxRate {
				c.fail(path, "the rate is above max_rate (%v)", l.MaxRate)
			}
		}
	}
	if c.isValid("load.spin") && time.Duration(l.Spin) > maxSpin {
		c.fail("load.spin", "spinning for more than %v before each send would only burn CPU", maxSpin)
	}
	if c.isValid("load.slo.limit") && !c.broken("load.timeout") && l.SLO.Limit >= l.timeout() {
		c.fail("load.slo.limit", "no call can be slower than its timeout (%v)", l.timeout())
	}
	if c.isValid("load.abort.for") && c.isValid("load.duration") && l.Abort.For >= l.Duration {
		c.warn("load.abort.for", "a trial ends (%v) before this can happen", l.Duration)
	}
	if c.e.Target != nil && !c.broken("target") && !c.given("load.max_rate") && !area.Loopback(c.e.Target, c.known) {
		c.missing("load.max_rate", "target",
			"the target is not on this machine, so load.max_rate must say how much it may be sent")
	}
}

// conflicts rejects two conflicting descriptions of the load.
func (c *checker) conflicts() {
	if !c.given("load.closed") {
		return
	}
	for _, path := range []string{"load.rate", "load.rates", "load.workloads", "load.arrivals"} {
		if c.given(path) {
			c.errorAt(path, c.key(path), "closed workers send when the last call has ended; %q is for an open loop",
				path[len("load."):])
		}
	}
}

// capacity checks that a ladder has rates and a duration, and a search neither.
func (c *checker) capacity() {
	if c.given("load.closed") {
		c.errorAt("load.closed", c.key("load.closed"),
			"capacity needs an open loop: closed workers slow down with the target")
	}
	if c.e.Load.Arrivals == Ramp {
		c.fail("load.arrivals", "a capacity experiment sets its own rates; use constant or poisson")
	}
	if c.given("load.workloads") {
		c.workloads()
		return
	}
	if !c.given("load.rates") {
		if c.given("load.duration") {
			c.warn("load.duration", "has no effect: a search ends when it has an answer (max_time bounds it)")
		}
		return
	}
	c.missing("load.duration", "load.rates", "a ladder needs load.duration, the time at each rate")
	if c.given("load.rate") {
		c.errorAt("load.rate", c.key("load.rate"), "rates make a ladder; rate is where a search starts: keep one")
	}
	c.noMaxTime()
}

// noMaxTime rejects max_time for a ladder: each of its points has its own length.
func (c *checker) noMaxTime() {
	if c.given("load.max_time") {
		c.warn("load.max_time", "has no effect on a ladder, only on a search")
	}
}

// trials checks the other questions: they offer one rate, or have workers.
func (c *checker) trials() {
	only := []string{"load.rates", "load.workloads", "load.slo"}
	if c.e.Question == design.Soak {
		only = append(only, "load.max_time") // its duration bounds the trial
	}
	for _, path := range only {
		if c.given(path) {
			c.errorAt(path, c.key(path), "%q belongs to capacity, not to %s", path[len("load."):], c.e.Question)
		}
	}
	if _, ok := c.e.Target.(area.Batcher); ok {
		c.ownPace()
		return
	}
	if !c.given("load") {
		example := map[bool]string{true: "10m", false: "10s"}[c.e.Question == design.Soak]
		c.missing("load", "question", string(c.e.Question)+" needs a load: load: {rate: 10/s, duration: "+example+"}")
		return
	}
	if !c.given("load.closed") && !c.given("load.rates") && !c.broken("load") {
		c.missing("load.rate", "load", "load needs a rate (open loop) or closed workers")
	}
	if c.e.Question == design.Soak {
		c.soak()
		return
	}
	if c.e.Load.Arrivals == Ramp {
		c.fail("load.arrivals", "every trial of %s has one rate; use constant or poisson", c.e.Question)
	}
}

// soak checks that a soak has a duration and is not repeated.
func (c *checker) soak() {
	l := &c.e.Load
	c.missing("load.duration", "load", "soak needs load.duration, the time that it lasts")
	if c.isValid("load.duration") && time.Duration(l.Duration) < leastSoak {
		c.fail("load.duration", "a soak of less than %v shows no trend; want more", leastSoak)
	}
	if c.isValid("load.closed.ramp") && c.isValid("load.duration") && l.Closed.Ramp > l.Duration {
		c.fail("load.closed.ramp", "the workers start over a longer time than the soak lasts (%v)", l.Duration)
	}
	if c.given("blocks") {
		c.warn("blocks", "has no effect: a soak is one long trial")
	}
}

// ownPace checks the load of an area that paces itself: only the time for the whole run can be bounded.
func (c *checker) ownPace() {
	for _, name := range []string{
		"rate", "arrivals", "duration", "timeout", "max_rate", "max_connections", "engine", "closed", "operations", "abort",
		"precise", "spin", "shards",
	} {
		if path := "load." + name; c.given(path) {
			c.errorAt(path, c.key(path), "the workloads of area %s run at their own pace: nothing is offered to them; of "+
				"load, only max_time applies", c.e.Area)
		}
	}
}
