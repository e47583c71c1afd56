package signature

import (
	"cmp"
	"fmt"
	"slices"
	"syscall"
	"time"

	"tare/internal/load"
)

// The classes of calls that cannot connect, which their error numbers tell apart.
var (
	connectionRefused = notConnecting(definition{
		class: ConnectionRefused, phrase: "connections that the target refuses", least: 0.8,
		traits: Traits{Steady: true, Places: true},
		doubt: func(f *features) string {
			if f.newestFirst && f.overtaking > 0.5 {
				return "calls that connect wait for long: connections run out because calls do not end"
			}
			return ""
		},
	}, "the target refused the connection")
	portExhaustion = notConnecting(definition{
		class: PortExhaustion, phrase: "a client without free ports", traits: Traits{Steady: true},
	}, "the client had no ephemeral port left")
	fdExhaustion = notConnecting(definition{
		class: FDExhaustion, phrase: "a client without free file descriptors", traits: Traits{Steady: true, Places: true},
	}, "the client had no file descriptor left")
)

// notConnecting completes the definition of a class of calls that cannot connect, for a cause.
func notConnecting(d definition, cause string) definition {
	d.score = func(f *features) classScore {
		share := f.share(f.dial[d.class])
		x := classScore{
			// 5 % is enough; where nothing is served, nothing listens
			score:    share / 0.1 * min(1, 10*f.late/max(f.best, 1e-9)) * (1 - clamp((f.away-0.1)/0.2)),
			evidence: fmt.Sprintf("%.1f %% of the calls could not connect (%s)", 100*share, cause),
		}
		switch {
		case f.away > 0.1:
			x.against = fmt.Sprintf("no call could connect for %.0f %% of the time: the target was away", 100*f.away)
		case share != 0:
			x.against = fmt.Sprintf("only %.1f %% of the calls could not connect", 100*share)
		}
		return x
	}
	d.shown = func(f *features) bool { return f.share(f.dial[d.class]) > 0.05 }
	return d
}

// dialClass is the class of calls that could not connect for an error number; Unknown for others.
func dialClass(errno uint16) Class { return cmp.Or(dialClasses[syscall.Errno(errno)], Unknown) }

var dialClasses = map[syscall.Errno]Class{
	syscall.EADDRNOTAVAIL: PortExhaustion, syscall.EADDRINUSE: PortExhaustion,
	syscall.EMFILE: FDExhaustion, syscall.ENFILE: FDExhaustion, syscall.ECONNREFUSED: ConnectionRefused,
}

// unconnected is how many calls of the window did not connect, or were cut off.
func (f *features) unconnected() int {
	n := 0
	for _, x := range f.dial {
		n += x
	}
	return n
}

// addDisconnected sums the periods of at least half a second and ten calls in which no call could connect, and hardly
// one was answered.
func (f *features) addDisconnected() {
	var from, to, sum time.Duration
	n := 0
	end := func() {
		i, _ := slices.BinarySearch(f.done, from.Seconds())
		j, _ := slices.BinarySearch(f.done, to.Seconds())
		if n >= 10 && to-from >= 500*time.Millisecond && 10*(j-i) <= n {
			sum += to - from
		}
		n = 0
	}
	for c := range f.due() {
		if c.Outcome != load.ConnFailed {
			end()
			continue
		}
		class := dialClass(c.Errno)
		own := class == PortExhaustion || class == FDExhaustion // the client's own lack
		if c.Sent == 0 && !own && !c.Outstanding(f.window.End) {
			if n++; n == 1 {
				from = c.Intended
			}
			to = c.Intended
		}
	}
	end()
	f.away = sum.Seconds() / max(1e-9, f.seconds())
}
