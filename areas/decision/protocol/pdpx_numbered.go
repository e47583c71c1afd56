package protocol

import "tare/internal/load"

// placeholder is what stands for a call's own number in a request.
const placeholder = "{n}"

// A numbered wire is one whose requests differ in the call's number.
type numbered struct {
	wire
	template *load.Template
}

func newNumbered(raw []byte, j judge) *numbered {
	return &numbered{wire: wire{bytes: raw, judge: j}, template: load.NewTemplate(raw)}
}

// Render implements load.Wire.
func (w *numbered) Render(dst []byte, i uint64) []byte { return w.template.AppendTo(dst, i) }
