package signature

// Traits are what a search has to know of a class to confirm a rate.
type Traits struct {
	// Waits: calls wait beyond the capacity. A rate is judged by whether responses grow or calls fail, after the queue has
	// drained.
	Waits bool
	// Steady: the goodput under overload is the capacity.
	Steady bool
	// Saves: unused capacity is saved up, so that a pause before a confirmation hides the limit.
	Saves bool
	// Strands: calls are left without an answer, and stay open while the target serves others.
	Strands bool
	// Places: calls are refused when all places are taken; the capacity is places ÷ service time. Where that varies,
	// chance takes the last places earlier.
	Places bool
	// Falls: the goodput falls under overload, so that only rates that were held, each from rest, say what the capacity
	// is.
	Falls bool
	// Periodic: answers come in bursts of the period that the verdict names.
	Periodic bool
	// Windowed: calls are accepted in windows of the period that the verdict names.
	Windowed bool
	// Gradual: the share of calls that fails rises little by little around the capacity, as chance has it. It implies
	// Places.
	Gradual bool
	// Served: the capacity is what a service can do, which may change with the time under load, and not a limit that
	// somebody has set.
	Served bool
	// Drops: calls that wait are refused in the end, or when too many wait.
	Drops bool
	// Unaccepted: connections are left that the target never accepts; they keep their places in its queue.
	Unaccepted bool
	// OnlyRate: it says what sets the rate, and nothing of what callers meet above it.
	OnlyRate bool
	// Limiter: the control refuses by design; a target without this trait is short of a resource.
	Limiter bool
}

// Traits returns what a search has to know of c; a class that it does not know is treated as Unknown.
func (c Class) Traits() Traits { return c.definition().traits }

// Method is the class whose traits a search follows: the likely one; that of the verdict; or where neither is known,
// the likeliest one that refuses calls.
func (v Verdict) Method() Class {
	if v.Likely != "" {
		return v.Likely
	}
	if v.Class != Unknown {
		return v.Class
	}
	best, score := Unknown, 0.3
	for _, c := range order {
		if s := v.Scores[c]; s >= score && c.Traits().Limiter && !c.Traits().Falls {
			best, score = c, s
		}
	}
	return best
}
