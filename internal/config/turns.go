package config

import (
	"time"

	"tare/internal/design"
)

// LayTurns lays out the turns of the treatments within a block; nil: they have trials of their own, and why says why.
// It is empty where the question has no blocks, or where operations have a clock of their own.
func (e *Experiment) LayTurns() (t *design.Turns, why string) {
	if !e.blocked() || e.OwnPace() {
		return nil, ""
	}
	if e.Load.Turns == TurnsOff {
		return nil, "the file says load: {turns: off}"
	}
	if alone := e.alone(); alone != "" {
		return nil, alone
	}
	l := design.TurnLoad{
		Rate: float64(e.Load.Rate), Ramp: e.Load.Arrivals == Ramp, Arms: len(e.Arms()), Afresh: e.Afresh(),
	}
	if e.Load.Closed != nil {
		l.Workers = e.Load.Closed.Workers
	}
	if !e.Load.DefaultDuration {
		l.Time = time.Duration(e.Load.Duration)
	}
	laid, why := design.LayTurns(l)
	if why != "" {
		return nil, why
	}
	return &laid, ""
}

// Afresh is about how long it takes to start afresh what the target starts for the arms; 0: that is no matter.
func (e *Experiment) Afresh() time.Duration {
	if e.Target == nil || !e.blocked() {
		return 0
	}
	if afresh := e.Target.Says().Afresh; afresh != nil {
		return afresh(e.Arms())
	}
	return 0
}

// alone says why the treatments cannot be in force together; empty: they can.
func (e *Experiment) alone() string {
	if e.Target == nil {
		return ""
	}
	if alone := e.Target.Says().Alone; alone != nil {
		return alone(e.Treatments(), e.Load.Operations.Names())
	}
	return ""
}
