package signature

import (
	"fmt"
	"time"
)

// pauses is about a target that stands still now and then.
var pauses = definition{
	class: Pauses, phrase: "a target that stops altogether now and then", least: 0.95,
	traits: Traits{Waits: true, Served: true},
	score: func(f *features) classScore {
		x := classScore{
			// 1.5 % is enough; refusals leave gaps as well
			score: min(1, f.gaps/0.03) * min(1, float64(f.gapCount)/3) * (1 - clamp(f.share(f.rejected)/0.1-1)),
			evidence: fmt.Sprintf("answers stop altogether %d times, up to %s, for %.1f %% of the time", f.gapCount,
				short(f.longest), 100*f.gaps),
		}
		if f.runtimePauses() {
			x.score = max(x.score, 0.6)
		}
		if f.gaps < 0.015 && f.longest > 0 {
			x.against = fmt.Sprintf("the target never went longer than %s without an answer", short(f.longest))
		}
		return x
	},
	doubt: func(f *features) string {
		if f.singly > 0.5 {
			return "single calls take as long, while others are answered"
		}
		return ""
	},
	shown: (*features).runtimePauses,
	seen: func(l Local) string {
		if l.Paused == nil {
			return ""
		}
		return fmt.Sprintf("the target's runtime paused it for %.1f %% of the time", 100**l.Paused)
	},
}

// runtimePauses reports whether the target's runtime paused it for long.
func (f *features) runtimePauses() bool { return f.Local.Paused != nil && *f.Local.Paused > 0.015 }

// measureGaps finds the scheduler's rhythm, and the time in long gaps between answers.
func (f *features) measureGaps() {
	t := f.done
	if len(t) < 3 {
		return
	}
	f.period, f.beat = Beat(t)
	long := 0.03
	if f.Stolen > 0.02 { // shorter gaps may be the hypervisor's
		long = 0.1
	}
	if f.Capacity > 0 {
		long = max(long, 10/f.Capacity)
	}
	sum := 0.0
	for _, g := range gapsOf(t) {
		f.longest = max(f.longest, g)
		if g > long {
			sum += g
			f.gapCount++
		}
	}
	f.gaps = sum / max(t[len(t)-1]-t[0], 1e-9)
	f.slowSingly()
	f.regularity()
}

// slowSingly distinguishes slow calls from a target that stalls: others are answered meanwhile.
func (f *features) slowSingly() {
	slow, overtaken := 0, 0
	var waiting []time.Duration // when slow calls were answered that may still be overtaken, ascending
	for c := range f.all() {
		if c.Done == 0 || c.Sent == 0 || !c.Outcome.Good() || c.Intended >= f.window.Start && c.Intended < f.window.End {
			continue
		}
		for len(waiting) > 0 && waiting[len(waiting)-1] > c.Done {
			waiting = waiting[:len(waiting)-1]
			overtaken++
		}
		for len(waiting) > 0 && waiting[0] <= c.Intended {
			waiting = waiting[1:]
		}
		if c.Service().Seconds() > 0.5*f.longest {
			slow++
			waiting = append(waiting, c.Done)
		}
	}
	if slow >= 3 {
		f.singly = float64(overtaken) / float64(slow)
	}
}
