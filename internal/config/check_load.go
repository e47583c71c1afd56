package config

import (
	"slices"
	"strings"
	"time"

	"tare/internal/kit"
	"tare/internal/question"
	"tare/internal/spelling"
)

// maxSpin bounds how long a shard may spin before each send.
const maxSpin = time.Millisecond

// load checks the load section.
func (c *checker) load() {
	c.positive()
	c.bounds()
	c.conflicts()
	c.conditions()
	question.Of(c.e.Question).CheckLoad(questioned{c})
	c.turns()
	c.operations()
}

// operations rejects operations that the target does not have under every treatment.
func (c *checker) operations() {
	if !c.isValid("load.operations") || c.known == nil || !c.isValid("question") || c.e.Target == nil ||
		c.broken("target") || c.e.Target.Says().Forecast == nil {
		return
	}
	for _, t := range c.e.Treatments() {
		f := c.e.Target.Says().Forecast(question.Of(c.e.Question).Asked(), t)
		if f.Operations == nil || f.More {
			continue
		}
		for i, o := range c.e.Load.Operations {
			path := index("load.operations", i) + "." + o.Name
			if slices.Contains(f.Operations, o.Name) || c.broken(path) {
				continue
			}
			hint := spelling.DidYouMean(o.Name, f.Operations)
			if hint == "" {
				hint = "; it has " + strings.Join(f.Operations, ", ")
			}
			c.errorAt(path, c.key(path), "the target has no operation %s%s", quote(o.Name), hint)
		}
		if c.broken("load.operations") {
			return
		}
	}
}

// turns checks that the treatments can take turns if they must.
func (c *checker) turns() {
	if !c.isValid("load.turns") || c.e.Load.Turns != TurnsOn || !c.decoded {
		return
	}
	if _, why := c.e.WithDefaults().LayTurns(); why != "" {
		c.fail("load.turns", "the treatments cannot take turns: %s; leave it out, and each has a trial of its own", why)
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
	c.share("load.trespass", float64(l.Trespass), 0.5)
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
	if c.decoded && !c.unplaced && !c.given("load.max_rate") && !kit.Loopback(c.e.Target, c.known) {
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

// ownPace checks the load of an area that paces itself: only the time for the whole run can be bounded.
func (c *checker) ownPace() {
	for _, name := range []string{
		"rate", "arrivals", "duration", "timeout", "max_rate", "max_connections", "engine", "closed", "operations", "abort",
		"precise", "spin", "shards", "turns",
	} {
		if path := "load." + name; c.given(path) {
			c.errorAt(path, c.key(path), "the workloads of area %s run at their own pace: nothing is offered to them; of "+
				"load, only max_time applies", c.e.Area)
		}
	}
}

// pins warns if the generator and the target share a CPU.
func (c *checker) pins() {
	if !c.isValid("pin.generator") || !c.isValid("pin.target") {
		return
	}
	generator, _ := c.e.Pin.Generator.List()
	target, _ := c.e.Pin.Target.List()
	for _, cpu := range generator {
		if slices.Contains(target, cpu) {
			c.warn("pin", "generator and target share CPU %d: they will disturb each other", cpu)
			return
		}
	}
}
