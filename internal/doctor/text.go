package doctor

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"tare/internal/term"
	"tare/internal/unit"
)

// width is the length of the longest line of Write, unless a single word is longer.
const width = 110

// JSON writes the diagnosis as indented JSON.
func JSON(w io.Writer, d *Diagnosis) error {
	b, err := json.MarshalIndent(d, "", "  ")
	if err != nil {
		return fmt.Errorf("encode diagnosis: %w", err)
	}
	_, err = io.WriteString(w, term.JSON(string(b))+"\n")
	return err
}

// Write writes the diagnosis for a person: one or more lines for each check, the noise floor, and a summary. paint may
// colour a state.
func Write(w io.Writer, d *Diagnosis, paint func(State) string) error {
	var b bytes.Buffer
	title := []string{"tare doctor"}
	for _, s := range []string{d.Host, d.Kernel, unit.Count(d.CPUs, "CPU"), unit.Seconds(d.Seconds)} {
		if s != "" {
			title = append(title, term.Plain(s))
		}
	}
	fmt.Fprintln(&b, strings.Join(title, " · "))
	group := ""
	for i := range d.Checks {
		c := &d.Checks[i]
		if c.Group != group {
			group = c.Group
			fmt.Fprintf(&b, "\n%s\n", group)
		}
		writeCheck(&b, c, paint)
	}
	if d.Noise != nil {
		d.Noise.text(&b)
	}
	d.Stalls.forecast(&b)
	fmt.Fprintf(&b, "\n%s\n", d.summary())
	_, err := io.WriteString(w, term.Inert(b.String()))
	return err
}

// indent is the column where a check's text begins.
const indent = 2 + 9 + 20

func writeCheck(b *bytes.Buffer, c *Check, paint func(State) string) {
	state := term.PadRight(string(c.State), 8)
	state = strings.Replace(state, string(c.State), paint(c.State), 1)
	fmt.Fprintf(b, "  %s %-19s %s\n", state, c.Name, wrap(c.Found, indent))
	for _, part := range []struct{ label, text string }{{"cause", c.Cause}, {"next", c.Next}} {
		if part.text != "" {
			fmt.Fprintf(b, "%*s%-7s%s\n", indent, "", part.label, wrap(part.text, indent+7))
		}
	}
}

func (n *Noise) text(b *bytes.Buffer) {
	fmt.Fprintf(b, "\nnoise floor: the smallest difference that shows in a run of %s\n", minutes(n.RunSeconds))
	fmt.Fprintf(b, "  (by %s of equal work, in pairs in random order, seed %d)\n", unit.Seconds(n.Seconds), n.Seed)
	fmt.Fprintf(b, "  %-29s %10s %10s %7s\n", "", "wall time", "CPU time", "pairs")
	for _, w := range n.Work {
		fmt.Fprintf(b, "  %-29s %10s %10s %7d\n", w.Name, w.Wall.show(), w.CPU.show(), w.Pairs)
		if w.Error != "" {
			fmt.Fprintf(b, "    %s\n", wrap(term.Plain(w.Error), 4))
		}
		for _, m := range []struct {
			name string
			f    *Floor
		}{{"wall", w.Wall}, {"CPU", w.CPU}} {
			if m.f != nil && m.f.Differs {
				fmt.Fprintf(b, "    %s\n", wrap(fmt.Sprintf("its equal arms differed by %s of %s time, which is more than "+
					"chance explains: do not trust small differences here",
					unit.Share(m.f.Difference), m.name), 4))
			}
		}
	}
	fmt.Fprintln(b)
	if n.Wall == nil || n.CPU == nil {
		fmt.Fprintln(b, "no noise floor can be stated: some work failed or had too few pairs; --time gives it more time")
		return
	}
	fmt.Fprintf(b, "on this host, differences under %s of wall time cannot be seen in %s; CPU time: %s\n",
		unit.Share(*n.Wall), minutes(n.RunSeconds), unit.Share(*n.CPU))
}

func minutes(s float64) string {
	if s == 120 {
		return "2 minutes"
	}
	return unit.Seconds(s)
}

func (f *Floor) show() string {
	if f == nil {
		return unit.Unknown
	}
	return unit.Share(f.Ratio)
}

// summary summarizes all checks in one sentence.
func (d *Diagnosis) summary() string {
	names := map[State][]string{}
	for _, c := range d.Checks {
		names[c.State] = append(names[c.State], c.Name)
	}
	var parts []string
	for _, s := range []State{Broken, Missing, Limited} {
		if len(names[s]) > 0 {
			parts = append(parts, fmt.Sprintf("%s: %s", s, strings.Join(names[s], ", ")))
		}
	}
	verdict := "this host can run tare"
	if d.Broken() {
		verdict = "this host cannot run tare"
	}
	return wrap(strings.Join(append([]string{verdict}, parts...), "; "), 0)
}

// wrap breaks text at spaces into lines of width, and indents all but the first by in blanks.
func wrap(text string, in int) string {
	var b strings.Builder
	n := in
	for i, word := range strings.Fields(term.Plain(text)) {
		size := utf8.RuneCountInString(word)
		switch {
		case i == 0:
		case n+1+size > width:
			fmt.Fprintf(&b, "\n%*s", in, "")
			n = in
		default:
			b.WriteByte(' ')
			n++
		}
		b.WriteString(word)
		n += size
	}
	return b.String()
}
