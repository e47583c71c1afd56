package drive

import (
	"fmt"
	"time"

	"tare/internal/capacity"
	"tare/internal/load"
	"tare/internal/run"
	"tare/internal/unit"
)

// guardView follows a search, and then the points of a guard.
type guardView struct {
	*Screen
	search func(run.Event)
	began  load.Progress // of the current point
	point  int
}

func viewGuarded(s *Screen) func(run.Event) {
	return (&guardView{Screen: s, search: viewSearch(s)}).show
}

func (v *guardView) show(e run.Event) {
	if _, ok := e.Detail.(*capacity.Event); ok {
		v.search(e)
		return
	}
	g, ok := e.Detail.(*Guarded)
	if !ok {
		v.Phase(e)
		return
	}
	if g.Step != v.point {
		v.point, v.began = g.Step, g.Progress
	}
	denied := g.Progress.Done[load.Denied] - v.began.Done[load.Denied]
	permitted := g.Progress.Done[load.Permitted] - v.began.Done[load.Permitted]
	if g.Seen != nil {
		denied, permitted = g.Seen.Trespasses.Refused, g.Seen.Trespasses.Permitted
	}
	line := fmt.Sprintf("%s  %-16s %10s  trespasses: %d refused, %d permitted", v.Name, g.title(),
		unit.PerSecond(g.Point.Rate), denied, permitted)
	if g.Seen != nil {
		v.Say(line + g.rest())
		v.point = 0
	}
	elapsed := g.Progress.Now - g.Point.Segment.Start
	v.Update([]string{
		fmt.Sprintf("%s  %s  %s", v.Name, e.Treatment, elapsed.Round(time.Second)), line,
		fmt.Sprintf(" calls  %s", endedCalls(g.Progress)),
	})
}

// rest is what else became of the calls of a point that has ended.
func (g *Guarded) rest() (text string) {
	if n := g.Seen.Trespasses.Undecided + g.Seen.Trespasses.Unsent; n > 0 {
		text = fmt.Sprintf(", %d undecided", n)
	}
	if n := g.Seen.Legitimate.Foreign; n > 0 {
		text += fmt.Sprintf("; %d other calls mixed up", n)
	}
	return text
}

// title names a point for a line.
func (g *Guarded) title() string {
	if g.Point.Name == "" {
		return "rate"
	}
	return g.Point.Name
}
