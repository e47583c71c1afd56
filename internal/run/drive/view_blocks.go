package drive

import (
	"fmt"
	"time"

	"tare/internal/run"
	"tare/internal/term"
	"tare/internal/unit"
)

// blocksView follows a comparison.
type blocksView struct {
	*Screen
	verdict string // of the last look
	hint    string // of the last look
}

func viewBlocks(s *Screen) func(run.Event) { return (&blocksView{Screen: s}).show }

func (v *blocksView) show(e run.Event) {
	b, ok := e.Detail.(*Block)
	switch {
	case ok:
		v.block(e, b)
	case e.Phase != run.Verifying && e.Phase != run.WarmingUp: // of every arm in every block: the block's line is enough
		v.Phase(e)
	}
}

// block follows a comparison: one plain line a block and a look, or a few live ones.
func (v *blocksView) block(e run.Event, b *Block) {
	head := fmt.Sprintf("%s  block %d/%d", v.Name, b.Number, b.Most)
	if b.Hint != "" {
		v.hint = b.Hint
		v.Say(v.Name + "  " + v.hint)
	}
	if l := b.Look; l != nil {
		v.verdict = fmt.Sprintf("%s after %s: %s", lookWord(l.Stop), unit.Count(l.Blocks, "block"), l.Reason)
		v.Say(v.Name + "  " + v.verdict)
	} else if b.Hint == "" {
		v.Say(head)
	}
	if b.Left > 0 {
		done := term.Progress(float64(b.Number-1)/float64(b.Most), 20)
		head += fmt.Sprintf("  %s  at most %s left", done, b.Left.Round(time.Second))
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
	if v.hint != "" {
		lines = append(lines, " hint   "+v.hint)
	}
	v.Update(lines)
}

func lookWord(stop bool) string {
	if stop {
		return "stops"
	}
	return "goes on"
}
