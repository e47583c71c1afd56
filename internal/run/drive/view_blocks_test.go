package drive

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"tare/internal/design"
	"tare/internal/record"
	"tare/internal/run"
	"tare/internal/term"
)

// TestBlocksViewHints: what spoils a comparison is said while it runs, once.
func TestBlocksViewHints(t *testing.T) {
	var out bytes.Buffer
	show := NewView(design.Compare, "toy", term.NewView(&out, false, nil, time.Now))
	const hint = "8 of 10 blocks so far are without times"
	for range 2 {
		show(run.Event{Phase: run.Looking, Detail: &Block{Number: 10, Most: 40, Hint: hint}})
	}
	look := &record.Look{Blocks: 10, Reason: "not decided"}
	show(run.Event{Phase: run.Looking, Detail: &Block{Number: 10, Most: 40, Look: look}})
	got := out.String()
	if strings.Count(got, hint) != 1 || !strings.Contains(got, "goes on after 10 blocks: not decided") {
		t.Errorf("%s", got)
	}
}
