package simulation

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"
)

// A PartKind names a kind of part.
type PartKind string

// The kinds of parts, from the entrance of a server to its noise.
const (
	acceptLimit     PartKind = "accept-limit"     // takes slots connections; the kernel keeps backlog + 1 more
	connectionLimit PartKind = "connection-limit" // refuses connections beyond limit
	handshake       PartKind = "handshake"        // makes one connection at a time, each in cost seconds
	tokenBucket     PartKind = "token-bucket"     // rate tokens a second, up to burst
	cellRate        PartKind = "gcra"             // rate calls a second, up to tolerance seconds ahead
	fixedWindow     PartKind = "fixed-window"     // calls per period seconds
	slidingWindow   PartKind = "sliding-window"   // calls in any period seconds
	slidingEstimate PartKind = "sliding-counter"  // calls in the last period seconds, estimated from two fixed windows
	concurrency     PartKind = "concurrency"      // limit calls at once
	penalty         PartKind = "penalty"          // calls in the last period seconds; refused calls count as well
	tarpit          PartKind = "tarpit"           // delays refusals by delay seconds
	shedByAge       PartKind = "shed-by-age"      // refuses calls that have waited for age seconds
	shedByLength    PartKind = "shed-by-length"   // refuses calls while length others wait
	earlyDrop       PartKind = "early-drop"       // refuses calls at random, from low waiting calls on, all from high on
	lastInFirstOut  PartKind = "lifo"             // serves the newest call first while more than length wait
	service         PartKind = "service"          // workers, each taking mean seconds for a call
	slower          PartKind = "slower"           // service slows down by slope for each call beyond knee, up to worst
	coldCount       PartKind = "cold-count"       // the first calls are slower by factor
	coldTime        PartKind = "cold-time"        // calls in the first seconds are slower by factor
	autoscaling     PartKind = "autoscaling"      // slower by factor until after seconds of load have passed
	credits         PartKind = "credits"          // slower by factor once seconds of work have been saved up no longer
	cpuQuota        PartKind = "cpu-quota"        // workers run for share of each period seconds only
	pauses          PartKind = "pauses"           // every seconds, all stop for length seconds; growth per waiting call
	dependency      PartKind = "dependency"       // a queue behind the service that serves rate calls a second
	dependencyQuota PartKind = "dependency-quota" // a token bucket behind the service
	stopsForever    PartKind = "stops"            // answers nothing any more once length calls wait
	crash           PartKind = "crash"            // fails all calls once length wait, and is back after down seconds
	errorShare      PartKind = "errors"           // fails a share of all calls
	neighbours      PartKind = "neighbours"       // every seconds, service is slower by factor for length seconds
	drift           PartKind = "drift"            // service time swings by share over period seconds
	jitter          PartKind = "jitter"           // delays requests and answers by up to most seconds
)

// The ways to refuse a call.
const (
	refuse429    = "429"
	refuse503    = "503"
	refuse500    = "500"
	refuseReset  = "reset"
	refuseSilent = "silence"
	refuseFailed = "200-failed" // status 200 and an error document that the check calls a failure
	refuseWrong  = "200-wrong"  // status 200 and an answer that the check calls wrong
)

var refusals = []string{refuse429, refuse503, refuse500, refuseReset, refuseSilent, refuseFailed, refuseWrong}

// The distributions of service times.
const (
	constantTime    = "constant"
	exponentialTime = "exponential"
	logNormalTime   = "log-normal"
	bimodalTime     = "bimodal"
)

var distributions = []string{constantTime, exponentialTime, logNormalTime, bimodalTime}

// A Part is one mechanism of a server with its numbers.
type Part struct {
	Kind PartKind           `json:"kind"`
	With map[string]float64 `json:"with,omitempty"`
	// Refusal is how a part of admission refuses; default 429.
	Refusal string `json:"refusal,omitempty"`
	// Distribution is that of service times; default constant.
	Distribution string `json:"distribution,omitempty"`
}

// A Composition is a server made of parts, with the client's settings. It is a plain value: the same composition is the
// same server.
type Composition struct {
	Name string `json:"name,omitempty"`
	Note string `json:"note,omitempty"`
	// Seed is that of all random numbers.
	Seed uint64 `json:"seed"`
	// MaxRate is the highest rate that the search may offer, Timeout the client's in seconds.
	MaxRate float64 `json:"max_rate"`
	Timeout float64 `json:"timeout"`
	// Latency is that of the network and of work without limit, in seconds.
	Latency float64 `json:"latency"`
	Parts   []Part  `json:"parts"`
}

// part returns the first part of a kind.
func (c Composition) part(k PartKind) (Part, bool) {
	i := slices.IndexFunc(c.Parts, func(p Part) bool { return p.Kind == k })
	if i < 0 {
		return Part{}, false
	}
	return c.Parts[i], true
}

func (c Composition) has(k PartKind) bool { _, ok := c.part(k); return ok }

// without returns the composition less its part number i.
func (c Composition) without(i int) Composition {
	c.Parts = slices.Delete(slices.Clone(c.Parts), i, i+1)
	return c
}

func (c Composition) timeout() time.Duration { return instant(c.Timeout) }

// String lists the parts with their numbers.
func (c Composition) String() string {
	var text []string
	for _, p := range c.Parts {
		text = append(text, p.String())
	}
	return fmt.Sprintf("%s; timeout %gs, latency %.3gms, max %.4g/s",
		strings.Join(text, " + "), c.Timeout, 1000*c.Latency, c.MaxRate)
}

// String is the part's kind with its numbers.
func (p Part) String() string {
	var text []string
	for _, name := range slices.Sorted(maps.Keys(p.With)) {
		text = append(text, fmt.Sprintf("%s=%.4g", name, p.With[name]))
	}
	for _, word := range []string{p.Refusal, p.Distribution} {
		if word != "" {
			text = append(text, word)
		}
	}
	return fmt.Sprintf("%s(%s)", p.Kind, strings.Join(text, " "))
}

// Validate reports what is wrong with a composition that was read from a file.
func (c Composition) Validate() error {
	if !(c.MaxRate > 0) || !(c.Timeout > 0) || c.Latency < 0 {
		return fmt.Errorf("max_rate %v and timeout %v must be positive, latency %v not negative",
			c.MaxRate, c.Timeout, c.Latency)
	}
	for i, p := range c.Parts {
		if err := p.validate(); err != nil {
			return fmt.Errorf("part %d: %w", i, err)
		}
	}
	return nil
}

func (p Part) validate() error {
	m, ok := mechanisms[p.Kind]
	if !ok {
		return fmt.Errorf("unknown kind %q", p.Kind)
	}
	needed, optional, _ := strings.Cut(m.numbers, "?")
	for name := range strings.FieldsSeq(needed) {
		if x, ok := p.With[name]; !ok || !(x >= 0) || math.IsInf(x, 0) {
			return fmt.Errorf("%s needs %q, a number of at least 0", p.Kind, name)
		}
	}
	known := strings.Fields(needed + optional)
	for name := range p.With {
		if !slices.Contains(known, name) {
			return fmt.Errorf("%s has no %q", p.Kind, name)
		}
	}
	if p.Refusal != "" && !slices.Contains(refusals, p.Refusal) {
		return fmt.Errorf("unknown refusal %q", p.Refusal)
	}
	if p.Distribution != "" && !slices.Contains(distributions, p.Distribution) {
		return fmt.Errorf("unknown distribution %q", p.Distribution)
	}
	return nil
}

// ceiling is the rate that the parts allow, as far as arithmetic knows it.
func (c Composition) ceiling() float64 {
	least := math.Inf(1)
	for _, p := range c.Parts {
		if allows := mechanisms[p.Kind].allows; allows != nil {
			least = min(least, allows(c, p.With))
		}
	}
	return least
}

// share is the part of their time in which workers work.
func (c Composition) share() float64 {
	share := 1.0
	for _, p := range c.Parts {
		if of := mechanisms[p.Kind].share; of != nil {
			share *= of(p.With)
		}
	}
	return share
}
