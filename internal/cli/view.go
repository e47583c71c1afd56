package cli

import (
	"fmt"
	"time"

	"tare/internal/capacity"
	"tare/internal/config"
	"tare/internal/load"
	"tare/internal/run"
	"tare/internal/term"
	"tare/internal/unit"
)

// view turns the events of a run into the live view on stderr: a few lines on a terminal, one plain line a step elsewhere.
type view struct {
	name    string
	term    *term.View
	goodput []float64     // of the last looks, for the sparkline
	said    string        // last plain line, which is not repeated
	verdict string        // of the last look
	blocks  bool          // a comparison
	busy    capacity.Step // what keeps a service busy, in one
	long    soakView      // of a soak
}

func (a *app) newView(e *config.Experiment) *view {
	return &view{name: e.Name, term: term.New(a.Stderr, a.Getenv), blocks: len(e.Arms()) > len(e.Treatments())}
}

func (v *view) close() { v.term.Close() }

// event is called by the runner, up to 20 times a second.
func (v *view) event(e run.Event) {
	if e.Block != nil {
		v.block(e)
		return
	}
	if e.Soak != nil {
		v.soak(e)
		return
	}
	if v.blocks && e.Block == nil && (e.Phase == run.Verifying || e.Phase == run.WarmingUp) {
		return // of every arm in every block: the block's own line is enough
	}
	if e.Capacity == nil {
		v.say(fmt.Sprintf("%s  %s %s", v.name, e.Phase, e.Treatment))
		v.term.Update([]string{fmt.Sprintf("%s  %s %s", v.name, e.Phase, e.Treatment)})
		return
	}
	c := *e.Capacity
	if c.Kind == capacity.StepEnds {
		v.step(c.Step)
	}
	const looks = 40
	if v.goodput = append(v.goodput, c.Goodput); len(v.goodput) > looks {
		v.goodput = v.goodput[1:]
	}
	v.term.Update(v.lines(e, c))
}

// step prints one line for a step, and one for all the steps that keep a service busy.
func (v *view) step(s capacity.Step) {
	if s.Role == capacity.RoleBusy {
		if v.busy.Role == "" {
			v.busy = s
		}
		v.busy.Segment.End = s.Segment.End
		v.busy.Rate = s.Rate
		return
	}
	if v.busy.Role != "" {
		v.say(plainStep(v.name, v.busy))
		v.busy = capacity.Step{}
	}
	v.say(plainStep(v.name, s))
}

// say prints one line where there is no terminal to draw on.
func (v *view) say(line string) {
	if line != v.said {
		v.said = line
		v.term.Plain(line)
	}
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
func (v *view) lines(e run.Event, c capacity.Event) []string {
	head := fmt.Sprintf("%s  %s  %s", v.name, e.Treatment, c.Now.Round(100*time.Millisecond))
	if e.Trials > 1 {
		head += fmt.Sprintf("  treatment %d/%d", e.Trial, e.Trials)
	}
	p := c.Progress
	bad := p.Ended() - p.Done[load.OK] - p.Done[load.Denied]
	lines := []string{
		head,
		fmt.Sprintf(" now    %s %s", c.Step.Role, offered(c.Step.Rate)),
		fmt.Sprintf(" rate   goodput %.0f/s %s", c.Goodput, term.Sparkline(v.goodput)),
		fmt.Sprintf(" calls  %d due   %d ended, %d of them badly   %d in flight   %d waiting", p.Due, p.Ended(), bad, p.InFlight, p.Waiting),
	}
	if c.Estimate > 0 {
		so := " so far capacity about " + unit.Decimal(c.Estimate, 4) + "/s"
		if c.Hi > 0 {
			so += " [" + unit.Decimal(c.Lo, 4) + ", " + unit.Decimal(c.Hi, 4) + "]"
		}
		if c.Signature != "" {
			so += "   " + string(c.Signature)
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

// block follows a comparison: one plain line a block and a look, or a few live ones.
func (v *view) block(e run.Event) {
	b := e.Block
	head := fmt.Sprintf("%s  block %d/%d", v.name, b.Number, b.Most)
	if l := e.Look; l != nil {
		v.verdict = fmt.Sprintf("%s after %d blocks: %s", lookWord(l.Stop), l.Blocks, l.Reason)
		v.say(v.name + "  " + v.verdict)
	} else {
		v.say(head)
	}
	if b.Left > 0 {
		head += fmt.Sprintf("  %s  at most %s left", term.Progress(float64(b.Number-1)/float64(b.Most), 20), b.Left.Round(time.Second))
	}
	lines := []string{head, " now    " + string(e.Phase)}
	switch {
	case b.Operation != "":
		lines[1] += fmt.Sprintf(" %s  round %d/%d of all arms in turn", b.Operation, b.Round, b.Rounds)
	case e.Treatment != "":
		lines[1] += "  " + e.Treatment
	}
	if v.verdict != "" {
		lines = append(lines, " so far "+v.verdict)
	}
	v.term.Update(lines)
}

func lookWord(stop bool) string {
	if stop {
		return "stops"
	}
	return "goes on"
}
