package design

import (
	"fmt"
	"math"
	"time"
)

// Turns lay out a block in which treatments that are called at a rate take turns.
type Turns struct {
	Length time.Duration `json:"length"` // of one turn
	Rounds int           `json:"rounds"` // in each of which every treatment has one turn
	// Settle is the begin of a turn, which does not count: its calls meet a server at rest.
	Settle time.Duration `json:"settle"`
}

// A TurnLoad is the load of a comparison, as far as it decides whether treatments can take turns.
type TurnLoad struct {
	Rate    float64 // of an open loop, 1/s
	Workers int     // of a closed loop; 0: the loop is open
	Ramp    bool    // the rate rises within a trial
	Arms    int
	// Time is how long each treatment is measured in a block; 0: not given.
	Time time.Duration
	// Afresh is how long it takes to start the servers of all treatments afresh for a block; 0: that is no matter.
	Afresh time.Duration
}

const (
	// usualTurn is the length of a turn, unless that is too short for callsPerTurn calls; longestTurn bounds it.
	usualTurn    = 50 * time.Millisecond
	longestTurn  = time.Second
	callsPerTurn = 9
	// turnBlock is how long the turns of a block last, unless that is too short for leastRounds rounds: with what comes
	// before and after them, a block takes about 3 s.
	turnBlock   = 2600 * time.Millisecond
	leastRounds = 5
	// Servers that start for long get turns that last afreshTimes as long, so that they can be started afresh for each
	// block, but at most afreshBlock.
	afreshTimes = 2
	afreshBlock = 20 * time.Second
	// settleShare is the part of a turn that does not count.
	settleShare = 10
)

// LayTurns lays out the turns of a block; why says why the treatments cannot take turns, and must have trials.
func LayTurns(l TurnLoad) (t Turns, why string) {
	switch {
	case l.Arms < 2:
		return t, "there is one treatment only"
	case l.Workers > 1:
		return t, fmt.Sprintf("%d workers keep a standing load, which a turn would interrupt", l.Workers)
	case l.Ramp:
		return t, "the rate rises within a trial"
	}
	t.Length = usualTurn
	if l.Workers == 0 {
		t.Length = max(t.Length, time.Duration(math.Ceil(callsPerTurn/l.Rate*1e3))*time.Millisecond)
	}
	if t.Length > longestTurn {
		return Turns{}, fmt.Sprintf("at %.3g/s a turn of %v has less than %d calls", l.Rate, longestTurn, callsPerTurn)
	}
	t.Settle = t.Length / settleShare
	block := max(turnBlock, min(afreshTimes*l.Afresh, afreshBlock))
	if l.Time > 0 {
		block = l.Time * time.Duration(l.Arms)
	}
	round := t.Length * time.Duration(l.Arms)
	t.Rounds = max(leastRounds, int((block+round-1)/round))
	return t, ""
}

// Block returns how long the turns of a block last.
func (t Turns) Block(arms int) time.Duration { return t.Length * time.Duration(t.Rounds*arms) }
