package limit

import (
	"fmt"

	"tare/internal/signature"
	"tare/internal/unit"
)

// words says of each kind how sentences name it, and what to do about it.
var words = map[Kind]struct{ name, set, advice string }{
	CPUQuota: {
		"the CPU quota", "the CPU quota of %s",
		"Raise the quota, or make a call cost less processor time: the rate follows in proportion. More " +
			"connections, more threads or a longer listen queue change only what callers meet above the rate.",
	},
	Processors: {
		"the processors", "its %s",
		"Give the target more processors, add instances on other hosts, or make a call cost less processor " +
			"time. More threads or connections only add to the queue.",
	},
	OneThread: {
		"one thread", "one thread",
		"Spread the work over several threads or instances, or make what this thread does cheaper. More " +
			"processors or a higher CPU quota change nothing: one thread uses one processor at most.",
	},
	Slots: {
		"a fixed number of slots", "slots, %s",
		"Raise the number of workers, the size of the pool, or what the lock lets in, in the target or " +
			"behind it; or make a call hold its slot for less time. More processors change nothing while slots " +
			"are short.",
	},
	Connections: {
		"a limit on connections", "a limit on connections, %s",
		"Raise the limit on connections, or answer faster on each. A longer listen queue only lets more " +
			"callers wait, and does not raise the rate.",
	},
	RateLimit: {
		"a rate limit", "a rate limit of %s",
		"Raise the limit where it is set, or send fewer calls: cache answers, batch calls, spread them in " +
			"time. More processors or connections change nothing.",
	},
	Bandwidth: {
		"bandwidth", "a bandwidth of %s",
		"Make answers smaller (compress them, send fewer fields), or raise the bandwidth of the link or " +
			"proxy. More processors or connections change nothing.",
	},
	Collector: {
		"garbage collection", "garbage collection",
		"Give the target a larger heap, allocate less for each call, or choose another collector. More " +
			"threads only allocate faster.",
	},
	Disk: {
		"the disk", "the disk",
		"Write less often (batch, fewer syncs), use a faster disk, or keep what is read in memory. More " +
			"processors or threads change little.",
	},
}

// Kinds are all kinds that a verdict may name.
func Kinds() []Kind {
	return []Kind{
		CPUQuota, Processors, OneThread, Slots, Connections, RateLimit, Bandwidth, Collector, Disk, Unknown,
	}
}

// Advice says what to change about a limit, and what changes nothing; "" where it is not known.
func (k Kind) Advice() string { return words[k].advice }

// Known reports whether the verdict names a limit.
func (v *Verdict) Known() bool { return words[v.Kind].name != "" && v.Certainty.Supports() }

// Name names the limit with its setting, and the operations that it refuses where it is one on some of them: "the CPU
// quota of 100m"; "" where it is not known. The rate of all callers is no setting of a limit that counts each of them.
func (v *Verdict) Name() string {
	w := words[v.Kind]
	switch {
	case !v.Known():
		return ""
	case v.counts() && v.Scope == EachCaller:
		w.name += " on each caller"
		if on := v.on(); on != "" {
			w.name += "," + on
		}
		return w.name
	case v.Value != "" && w.set != w.name:
		w.name = fmt.Sprintf(w.set, v.Value)
	}
	w.name += v.on()
	if v.counts() && v.Scope == AllCallers {
		w.name += " for all callers together"
	}
	return w.name
}

// on says which operations the limit refuses; "" where it is one on all of them.
func (v *Verdict) on() string {
	if len(v.Operations) == 0 {
		return ""
	}
	return " on " + several(v.Operations)
}

// Statement names the limit with its certainty: "the CPU quota of 100m (shown)", "not known from outside".
func (v *Verdict) Statement() string {
	if !v.Known() {
		return string(signature.NotKnown)
	}
	return v.Name() + " (" + string(v.Certainty) + ")"
}

// Clause says what sets the rate, as surely as it is known: "the CPU quota of 100m likely sets the rate".
func (v *Verdict) Clause() string {
	switch {
	case !v.Known():
		return "what sets the rate is " + string(signature.NotKnown)
	case v.Certainty == signature.Likely:
		return v.Name() + " likely " + v.verb() + " the rate"
	}
	return v.Name() + " " + v.verb() + " the rate"
}

// Outcome compares what was measured with what was predicted: "with 200m it was 325/s [318, 331], where 326/s were
// predicted". The prediction must have been tried.
func (p *Prediction) Outcome() string {
	said := fmt.Sprintf("with %s it was %s", p.Change, within(p.Tried.Rate, p.Tried.Lo, p.Tried.Hi))
	switch t := p.Tried; {
	case t.Came:
		return fmt.Sprintf("%s, where %s were predicted", said, perSecond(p.Rate))
	case t.Lo <= p.Hi && p.Lo <= t.Hi:
		return fmt.Sprintf("%s, which is too uncertain to tell whether %s came about", said, perSecond(p.Rate))
	}
	return fmt.Sprintf("%s, but %s were predicted", said, perSecond(p.Rate))
}

// Expected says what is predicted: "326/s [317, 335] are predicted with twice the CPU quota".
func (p *Prediction) Expected() string {
	return within(p.Rate, p.Lo, p.Hi) + " are predicted with " + p.Change
}

// within prints a rate with its interval.
func within(rate, lo, hi float64) string {
	return fmt.Sprintf("%s [%s, %s]", perSecond(rate), unit.Decimal(lo, 3), unit.Decimal(hi, 3))
}

// counts reports whether the limit counts calls or connections, so that it matters whose.
func (v *Verdict) counts() bool {
	return v.Kind == RateLimit || v.Kind == Slots || v.Kind == Connections
}

func (v *Verdict) verb() string {
	if v.Kind == Processors || v.Kind == Slots && v.Value != "" && v.Scope != EachCaller {
		return "set"
	}
	return "sets"
}
