// Package servers holds HTTP servers whose capacity is known from their configuration and that break in known ways.
// They listen on loopback, so that a search meets them as it meets any other target: through real sockets. What they do
// takes place on a timeline, on which services end exactly when they should: their capacity does not depend on how busy
// the host is.
package servers

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"tare/internal/capacity"
	"tare/internal/clock"
	"tare/internal/limit"
	"tare/internal/signature"
)

// A Fixture is a server of known capacity.
type Fixture struct {
	Name  string
	Truth Truth
	// Callers is how many source addresses must take turns with the calls. Default 1.
	Callers int
	// MaxRate is what a search should be allowed to offer, in 1/s. Default 2000.
	MaxRate float64
	// Timeout is when callers should give up. Default 5 s.
	Timeout time.Duration

	build func(*rig) part
	// conns is how many connections are accepted at a time, backlog how many wait for that in the kernel; 0: no limit.
	conns, backlog int
	proxy          *proxy // nil: calls come to the fixture directly
	// bandwidth is how many bytes a second its answers may have, which are long; 0: any number.
	bandwidth float64
	// computes says that it uses processor time, so that it needs a process of its own, under a quota in processors; 0:
	// none.
	computes bool
	quota    float64
	// syncs says that it waits for a disk, in a process of its own.
	syncs bool
}

// Truth is what is known of a server.
type Truth struct {
	// Rate is the highest rate, in 1/s, that the server sustains for ten minutes once it is warm. Formula says from
	// which configuration it follows.
	Rate    float64
	Formula string
	// AtMost says that it may be lower: on a busy host, or for a client that opens a connection too many.
	AtMost bool
	// Burst is how many calls it takes at once from a full allowance, 0: it has none.
	Burst float64
	// Classes are the right names of its failure, the best first.
	Classes []signature.Class
	// Limits are the right names of what sets its rate; none: nothing that has a name.
	Limits []limit.Kind
	// Slots is how many calls are served at a time where that sets the rate; 0: that is not so, or it varies.
	Slots float64
	// Seen says that the limit can be named: by what the process that listens uses up, by how the rate grows with the
	// calls in flight, or by how calls are refused.
	Seen bool
	// Findings must be told beside the class.
	Findings []capacity.FindingKind
}

// StaysDown reports whether the server does not come back after an overload.
func (t Truth) StaysDown() bool { return slices.Contains(t.Findings, capacity.StaysDown) }

// All are all fixtures. Their names are unique.
func All() []Fixture {
	all := slices.Concat(limiters(), queues(), failures(), twofold(), work(), proxies())
	for i := range all {
		f := &all[i]
		f.Callers = max(f.Callers, 1)
		if f.MaxRate == 0 {
			f.MaxRate = 2000
		}
		if f.Timeout == 0 {
			f.Timeout = 5 * time.Second
		}
	}
	return all
}

// Missing says what the fixture needs and this host does not have; nil: nothing.
func (f Fixture) Missing() error {
	if f.quota > 0 {
		return canLimit()
	}
	if f.syncs {
		return canWaitForDisk()
	}
	if f.proxy == nil {
		return nil
	}
	return f.proxy.missing()
}

// Start starts the fixture on an address of its own. Seed draws what it leaves to chance. A fixture that computes or
// waits for a disk runs in a child process, for which the program must call ServeChild first of all.
func (f Fixture) Start(ctx context.Context, seed uint64) (*Running, error) {
	if f.computes || f.syncs {
		return f.startProcess(ctx, seed)
	}
	return f.start(ctx, seed)
}

// start starts the fixture in this process.
func (f Fixture) start(ctx context.Context, seed uint64) (*Running, error) {
	r := newRunning(f, seed)
	err := r.open(ctx)
	if err == nil && f.proxy != nil {
		err = r.front(ctx, f.proxy)
	}
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", f.Name, errors.Join(err, r.Stop()))
	}
	return r, nil
}

// A rig is what a fixture's parts are built on.
type rig struct {
	*timeline

	rng *rand.Rand
}

func newRig(c clock.Clock, seed uint64) *rig {
	return &rig{timeline: newTimeline(c), rng: rand.New(rand.NewPCG(seed, 0x5e2e2))}
}

// limits lists them.
func limits(k ...limit.Kind) []limit.Kind { return k }

// classes lists them; the best first.
func classes(c ...signature.Class) []signature.Class { return c }
