package drive

import (
	"fmt"

	"tare/internal/design"
	"tare/internal/load"
	"tare/internal/question"
	"tare/internal/run"
	"tare/internal/term"
)

// A Screen is where the live view of a run draws: a few lines on a terminal, one plain line a step elsewhere.
type Screen struct {
	*term.View
	Name string // of the run
	said string // last plain line, which is not repeated
}

// NewView returns a live view of the events of a run that asks q. The runner calls it up to 20 times a second.
func NewView(q design.Question, name string, v *term.View) func(run.Event) {
	s := &Screen{View: v, Name: name}
	d, ok := known[question.Of(q).Drive]
	if !ok {
		return s.Phase
	}
	return d.View(s)
}

// Say prints one line where there is no terminal to draw on.
func (s *Screen) Say(line string) {
	if line != s.said {
		s.said = line
		s.Plain(line)
	}
}

// Phase shows an event of the stage.
func (s *Screen) Phase(e run.Event) {
	line := fmt.Sprintf("%s  %s %s", s.Name, e.Phase, e.Treatment)
	s.Say(line)
	s.Update([]string{line})
}

// endedCalls says how many calls have ended, and how.
func endedCalls(p load.Progress) string {
	bad := p.Ended() - p.Done[load.OK] - p.Done[load.Denied]
	return fmt.Sprintf("%d ended   %d of them badly   %d in flight   %d waiting", p.Ended(), bad, p.InFlight, p.Waiting)
}
