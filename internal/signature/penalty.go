package signature

import "fmt"

// penalty is about limiters that let hardly anything pass beyond their limit, because refused calls count as well.
var penalty = definition{
	class: Penalty, phrase: "a limit that counts refused calls as well", least: 0.85, refuses: true,
	traits: Traits{Falls: true, Saves: true, Limiter: true},
	score:  (*features).penaltyScore,
}

// partOfBest is the share of the best goodput from which on a rate that was held tells what a limit allows.
const partOfBest = 0.1

func (f *features) penaltyScore() classScore {
	switch {
	case !(f.Sharp.Held > partOfBest*f.best), f.missesDeadline():
		return classScore{} // a rate that was held when hardly any call passed tells nothing
	case !f.refusesEarly():
		return classScore{against: fmt.Sprintf("before calls were refused, as many had been accepted as %s/s allow: a limit "+
			"on the accepted calls explains it", rate(f.Sharp.Held))}
	}
	left, at := f.Sharp.Goodput/f.Sharp.Held, f.Sharp.Failed
	over := f.late / f.Sharp.Held
	switch {
	case f.window.Rate > f.Sharp.Held:
	case at > 0:
		over = left // it was no overload
	default:
		return classScore{}
	}
	if over < left || at == 0 {
		left, at = over, f.window.Rate
	}
	quick := 1 - clamp((f.rejection.p50-3*f.BaseP50.Seconds()-0.01)/max(0.01, f.BaseP50.Seconds()))
	if f.refusesAfterFixedTime() {
		quick = 1 // a tarpit's delay
	}
	return classScore{
		// a window that was used up before lets nothing pass for a while, and much later on
		score: f.enough() * quick * clamp((0.8-left)/0.6) * (1 - clamp((over-0.4)/0.3)),
		evidence: fmt.Sprintf("at %s/s every call passed; at %s/s only %s/s did, and the others were refused %s: refused "+
			"calls count against the limit as well", rate(f.Sharp.Held), rate(at), rate(left*f.Sharp.Held), f.delayed()),
		against: fmt.Sprintf("%.0f %% of what passed below the limit still passed above it", 100*left),
	}
}
