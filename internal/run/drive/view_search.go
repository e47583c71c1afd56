package drive

import (
	"fmt"
	"time"

	"tare/internal/capacity"
	"tare/internal/run"
	"tare/internal/signature"
	"tare/internal/term"
	"tare/internal/unit"
)

// searchView follows a search or a ladder.
type searchView struct {
	*Screen
	goodput []float64     // of the last looks, for the sparkline
	busy    capacity.Step // what keeps a service busy, in one
}

func viewSearch(s *Screen) func(run.Event) { return (&searchView{Screen: s}).show }

func (v *searchView) show(e run.Event) {
	if x, ok := e.Detail.(*Experimenting); ok {
		line := v.Name + "  " + x.text()
		v.Say(line)
		v.Update([]string{line})
		return
	}
	c, ok := e.Detail.(*capacity.Event)
	if !ok {
		v.Phase(e)
		return
	}
	if c.Kind == capacity.StepEnds {
		v.step(c.Step)
	}
	const looks = 40
	if v.goodput = append(v.goodput, c.Goodput); len(v.goodput) > looks {
		v.goodput = v.goodput[1:]
	}
	v.Update(v.lines(e, *c))
}

// text says what an experiment changes.
func (x *Experimenting) text() string {
	out := fmt.Sprintf("experiment: at most %d in flight", x.InFlight)
	if l := x.Lever; l != nil {
		out += fmt.Sprintf(", %s %s instead of %s", l.Kind, l.To, l.From)
	}
	switch {
	case x.Sources > 0:
		out += fmt.Sprintf(", from %d source addresses", x.Sources)
	case x.Operation != "":
		out += ", only " + x.Operation
	case x.Fresh:
		out += ", each with a new connection"
	}
	return out
}

// step prints one line for a step, and one for all the steps that keep a service busy.
func (v *searchView) step(s capacity.Step) {
	if s.Role == capacity.RoleBusy {
		if v.busy.Role == "" {
			v.busy = s
		}
		v.busy.Segment.End = s.Segment.End
		v.busy.Rate = s.Rate
		return
	}
	if v.busy.Role != "" {
		v.Say(plainStep(v.Name, v.busy))
		v.busy = capacity.Step{}
	}
	v.Say(plainStep(v.Name, s))
}

func plainStep(name string, s capacity.Step) string {
	line := fmt.Sprintf("%s  %-12s", name, s.Role)
	if s.Rate > 0 {
		line += fmt.Sprintf(" %8.1f/s", s.Rate)
	} else {
		line += fmt.Sprintf(" %10s", "")
	}
	line += fmt.Sprintf(" %5.1f s", s.Length().Seconds())
	switch {
	case s.ClientLimited:
		line += "  client-limited"
	case s.Passed != nil && *s.Passed:
		line += "  holds"
	case s.Passed != nil:
		line += "  fails"
	}
	return line
}

// lines is the live view: at most five lines.
func (v *searchView) lines(e run.Event, c capacity.Event) []string {
	head := fmt.Sprintf("%s  %s  %s", v.Name, e.Treatment, c.Now.Round(100*time.Millisecond))
	if e.Trials > 1 {
		head += fmt.Sprintf("  treatment %d/%d", e.Trial, e.Trials)
	}
	lines := []string{
		head,
		fmt.Sprintf(" now    %s %s", c.Step.Role, offered(c.Step.Rate)),
		fmt.Sprintf(" rate   goodput %.0f/s %s", c.Goodput, term.Sparkline(v.goodput)),
		fmt.Sprintf(" calls  %d due   %s", c.Progress.Due, endedCalls(c.Progress)),
	}
	if c.Estimate > 0 {
		so := " so far capacity about " + unit.Decimal(c.Estimate, 4) + "/s"
		if c.Hi > 0 {
			so += " [" + unit.Decimal(c.Lo, 4) + ", " + unit.Decimal(c.Hi, 4) + "]"
		}
		switch f := (signature.Failure{Class: c.Signature, Certainty: signature.Likely}); {
		case !f.Known() || f.Class == signature.Client:
		case f.Class == signature.CPUThrottling: // which only sets the rate
			so += "   fails as " + string(signature.Queue)
		default:
			so += "   fails as " + f.Name()
		}
		lines = append(lines, so)
	}
	return lines
}

func offered(rate float64) string {
	if rate == 0 {
		return "no load"
	}
	return "offered " + unit.Decimal(rate, 4) + "/s"
}
