package signature

import "slices"

// A definition is what is known of a class before any target is looked at.
type definition struct {
	class Class
	// phrase says what callers meet, in a few words; "" where that is no failure of the target.
	phrase string
	// least is the score from which the class can be chosen where others resemble it at lower ones; 0: wins.
	least  float64
	traits Traits
}

// definitions are those of all classes, in the order in which they are tried; Unknown is the last.
var definitions = []definition{
	{
		class: Client,
	},
	{
		class: ConnectionRefused, phrase: "connections that the target refuses", least: 0.8,
		traits: Traits{Steady: true, Places: true},
	},
	{
		class: PortExhaustion, phrase: "a client without free ports",
		traits: Traits{Steady: true},
	},
	{
		class: FDExhaustion, phrase: "a client without free file descriptors",
		traits: Traits{Steady: true, Places: true},
	},
	{
		class: AcceptQueue, phrase: "connections that are never accepted",
		traits: Traits{Unaccepted: true, Steady: true, Strands: true},
	},
	{
		class: Shedding, phrase: "a queue that drops calls",
		traits: Traits{Drops: true, Waits: true, Served: true, Limiter: true},
	},
	{
		class: ConcurrencyLimit, phrase: "a limit on the calls in flight",
		traits: Traits{Places: true, Gradual: true, Limiter: true},
	},
	{
		class: Penalty, phrase: "a limit that counts refused calls as well", least: 0.85,
		traits: Traits{Falls: true, Saves: true, Limiter: true},
	},
	{
		class: FixedWindow, phrase: "a limit per window of time",
		traits: Traits{Steady: true, Saves: true, Windowed: true, Limiter: true},
	},
	{
		class: TokenBucket, phrase: "a steady limit on the rate", least: 0.75,
		traits: Traits{Steady: true, Saves: true, Limiter: true},
	},
	{
		class: Collapse, phrase: "a service that does less under load",
		traits: Traits{Waits: true, Falls: true, Served: true},
	},
	{
		class: QuotaHang, phrase: "a limit that leaves calls unanswered", least: 0.8,
		traits: Traits{Steady: true, Saves: true, Strands: true, Limiter: true},
	},
	{
		class: CPUThrottling, least: 0.7,
		traits: Traits{OnlyRate: true, Waits: true, Periodic: true, Served: true},
	},
	{
		class: Pauses, phrase: "a target that stops altogether now and then", least: 0.95,
		traits: Traits{Waits: true, Served: true},
	},
	{
		class: Queue, phrase: "a queue that drops nothing",
		traits: Traits{Waits: true, Served: true},
	},
	{
		class:  Unknown,
		traits: Traits{Waits: true, Served: true},
	},
}

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
