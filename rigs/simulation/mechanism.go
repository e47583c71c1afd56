package simulation

import (
	"maps"

	"tare/internal/signature"
)

// mechanism is what the simulator knows of a kind of part.
type mechanism struct {
	// numbers are the names of its numbers. Every one has to be given but those behind "?".
	numbers string
	// add puts part number i into a server.
	add func(s *composed, i int, p Part)
	// allows is the rate that it would allow alone, as far as arithmetic knows it; nil where it sets none. Only the
	// search for the truth starts from it.
	allows func(c Composition, x map[string]float64) float64
	// share is the part of their time in which workers work, or how fast; nil: all of it.
	share func(x map[string]float64) float64
	// limits says that it refuses calls by itself, not because others wait.
	limits bool
	// harmless says that it cannot lower the rate that a warm server sustains.
	harmless bool
	// classes are the right names where it is part number i that ends calls; nil: those of what makes them wait.
	classes func(v view, i int) []signature.Class
}

// mechanisms holds all kinds of parts.
var mechanisms map[PartKind]mechanism

func init() { // the classes refer to the mechanisms
	mechanisms = map[PartKind]mechanism{}
	for _, some := range []map[PartKind]mechanism{
		entranceParts(), admissionParts(), queueParts(), serviceParts(), noiseParts(),
	} {
		maps.Copy(mechanisms, some)
	}
}

// fixed are classes that do not depend on the rest of the server.
func fixed(classes ...signature.Class) func(view, int) []signature.Class {
	return func(view, int) []signature.Class { return classes }
}

// hanging are the classes of a limiter that refuses with an answer, and of one that refuses by silence.
func hanging(answers, silent []signature.Class) func(view, int) []signature.Class {
	return func(v view, i int) []signature.Class {
		if v.composition.Parts[i].Refusal == refuseSilent {
			return silent
		}
		return answers
	}
}

// perRate is the rate of a part that has one.
func perRate(_ Composition, x map[string]float64) float64 { return x["rate"] }

// perPeriod is that of a number of calls in a period.
func perPeriod(_ Composition, x map[string]float64) float64 { return x["calls"] / x["period"] }

// held is how long a call takes when no other waits, in seconds.
func (c Composition) held() float64 {
	if s, ok := c.part(service); ok {
		return s.With["mean"]
	}
	return 0
}

// entranceParts are what a connection goes through.
func entranceParts() map[PartKind]mechanism {
	places := func(name string) func(Composition, map[string]float64) float64 {
		return func(c Composition, x map[string]float64) float64 { return x[name] / (c.held() + 2*c.Latency + 1e-3) }
	}
	return map[PartKind]mechanism{
		acceptLimit: {
			numbers: "slots backlog", allows: places("slots"), classes: fixed(signature.AcceptQueue),
			add: func(s *composed, i int, p Part) {
				x := p.With
				s.entrance.accept = &acceptQueue{
					slots: whole(x["slots"]), backlog: whole(x["backlog"]), part: i, waited: map[*conn]struct{}{},
				}
			},
		},
		connectionLimit: {
			numbers: "limit", allows: places("limit"), limits: true, classes: fixed(signature.ConnectionRefused),
			add: func(s *composed, i int, p Part) { s.entrance.limit, s.entrance.limitPart = whole(p.With["limit"]), i },
		},
		handshake: {
			numbers: "cost",
			add:     func(s *composed, _ int, p Part) { s.entrance.handshake = p.With["cost"] },
		},
	}
}
