package signature

import "slices"

// A definition says what a class is and what distinguishes it from others. Each has its own file.
type definition struct {
	class Class
	// phrase says what callers meet, in a few words; "" where that is no failure of the target.
	phrase string
	// least is the score from which the class can be chosen where others resemble it at lower ones; 0: wins.
	least  float64
	traits Traits
	// refuses: the class is scored only where calls were rejected.
	refuses bool
	// byTimes: what contradicts the class rests on how long calls took, or on how evenly they passed.
	byTimes bool
	score   func(*features) classScore
	// doubt says why the class is withheld whatever other classes score; "" where it is not.
	doubt func(*features) string
	// shown reports whether the failure was observed itself, and no other one resembles it; nil: it never is.
	shown func(*features) bool
	// seen describes what a probe on the target's host saw of it; "" where nothing was read.
	seen func(Local) string
}

// definitions are those of all classes, in the order in which they are tried; Unknown is the last.
var definitions = []definition{
	client, connectionRefused, portExhaustion, fdExhaustion, acceptQueue, shedding, concurrencyLimit, penalty, fixedWindow,
	tokenBucket, collapse, quotaHang, cpuThrottling, pauses, queue, unknown,
}

var client = definition{class: Client, score: func(f *features) classScore {
	if f.audit.Valid {
		return classScore{}
	}
	return classScore{score: 1, evidence: f.audit.Reason}
}}

var unknown = definition{class: Unknown, traits: Traits{Waits: true, Served: true, MaySave: true}}

// order is that in which classes are tried.
var order = Classes()[:len(definitions)-1]

// Classes lists all classes, in the order in which they are tried; Unknown is the last.
func Classes() []Class {
	all := make([]Class, len(definitions))
	for i, d := range definitions {
		all[i] = d.class
	}
	return all
}

// definition is that of c, or of Unknown where c is no class.
func (c Class) definition() definition {
	if i := slices.IndexFunc(definitions, func(d definition) bool { return d.class == c }); i >= 0 {
		return definitions[i]
	}
	return definitions[len(definitions)-1]
}

// wins is the score from which a class can be chosen.
const wins = 0.5

// minScore is the score from which c can be chosen.
func (c Class) minScore() float64 { return max(wins, c.definition().least) }
