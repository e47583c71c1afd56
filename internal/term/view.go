// Package term draws a few lines that change in place on a terminal, and prints plain lines without one.
package term

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"
)

const (
	maxLines = 8
	// interval limits redrawing to 4 Hz: more would disturb the measurement.
	interval      = 250 * time.Millisecond
	defaultWidth  = 80
	defaultHeight = 24
)

const (
	hideCursor = "\x1b[?25l"
	showCursor = "\x1b[?25h"
	clearLine  = "\x1b[K" // from the cursor to the end of the line
	clearBelow = "\x1b[J" // from the cursor to the end of the screen
)

// A View is a block of at most eight lines at the bottom of the terminal's output, redrawn in place at most four times
// a second. Without a terminal it draws nothing, and Plain prints instead. It starts no goroutine: nothing changes
// between two Updates. Its methods may be called from any goroutine.
type View struct {
	w    io.Writer
	live bool
	size func() (width, height int)
	now  func() time.Time

	mu     sync.Mutex
	lines  []string // as last given
	drawn  []int    // widths, in cells, of the lines on the screen
	last   time.Time
	hidden bool // the cursor
	closed bool
}

// New returns a view on w, which is live if w is a terminal and the environment does not set CI, or an empty or dumb
// TERM. It uses no colours, so NO_COLOR does not matter.
func New(w io.Writer, getenv func(string) string) *View {
	file, ok := w.(interface{ Fd() uintptr })
	live := ok && term.IsTerminal(int(file.Fd())) && isWanted(getenv)
	size := func() (int, int) { return defaultWidth, defaultHeight }
	if live {
		size = func() (int, int) {
			w, h, err := term.GetSize(int(file.Fd()))
			if err != nil {
				return defaultWidth, defaultHeight
			}
			return w, h
		}
	}
	// Only the pace of drawing depends on this clock, and package clock is in the same layer.
	return NewView(w, live, size, time.Now) //nolint:forbidigo // see above
}

// isWanted reports whether the environment allows a live view.
func isWanted(getenv func(string) string) bool {
	t := getenv("TERM")
	return getenv("CI") == "" && t != "" && t != "dumb"
}

// NewView returns a view with explicit dependencies: size, in character cells, is called before each drawing, and now
// at each Update.
func NewView(w io.Writer, live bool, size func() (width, height int), now func() time.Time) *View {
	return &View{w: w, live: live, size: size, now: now}
}

// Live reports whether the view draws in place.
func (v *View) Live() bool { return v.live }

// Update replaces the block. A call too soon after a drawing is kept for the next one. Lines are cut to the terminal's
// width, and control characters in them replaced. Without a terminal it does nothing.
func (v *View) Update(lines []string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.live || v.closed {
		return
	}
	v.lines = slices.Clone(lines)
	if now := v.now(); v.last.IsZero() || now.Sub(v.last) >= interval {
		v.last = now
		v.redraw(nil)
	}
}

// Plain prints one line if there is no terminal, as in CI, and else nothing, since the block shows the same.
func (v *View) Plain(line string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.live && !v.closed {
		v.emit([]byte(Inert(makeInert(line)) + "\n"))
	}
}

// Write prints text, such as log lines, above the block. So a View can be the io.Writer of a logger on the same
// terminal. Text should end with a line break. After Close it writes directly.
func (v *View) Write(text []byte) (int, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.live || v.closed || len(v.drawn) == 0 {
		return v.w.Write(text)
	}
	if !bytes.HasSuffix(text, []byte("\n")) {
		text = append(slices.Clone(text), '\n')
	}
	v.redraw(text)
	return len(text), nil
}

// Close removes the block from the screen and restores the cursor, so that the result starts on a clean line. It may be
// called repeatedly, and ends all drawing.
func (v *View) Close() {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.closed {
		return
	}
	v.closed = true
	if !v.live {
		return
	}
	var b strings.Builder
	b.WriteString(v.erase())
	if v.hidden {
		b.WriteString(showCursor)
	}
	v.drawn, v.hidden = nil, false
	v.emit([]byte(b.String()))
}

// redraw writes everything at once, so that a half-drawn block is never seen: first the text above, then the block.
func (v *View) redraw(above []byte) {
	width, height := v.size()
	if width < 2 {
		width = defaultWidth
	}
	if height < 2 {
		height = defaultHeight
	}
	var b strings.Builder
	b.WriteString(v.erase())
	if !v.hidden {
		b.WriteString(hideCursor)
		v.hidden = true
	}
	b.Write(above)
	v.drawn = v.drawn[:0]
	for _, line := range v.lines[:min(len(v.lines), maxLines, height-1)] {
		// The last column stays free: terminals differ in when they wrap.
		line = Truncate(makeInert(line), width-1)
		b.WriteString(line + clearLine + "\n")
		v.drawn = append(v.drawn, Width(line))
	}
	v.emit([]byte(b.String()))
}

// erase moves to the block's first row and clears from there. A terminal that became narrower has wrapped the lines
// into more rows.
func (v *View) erase() string {
	width, _ := v.size()
	rows := 0
	for _, w := range v.drawn {
		rows++
		if width > 0 {
			rows += max(0, w-1) / width
		}
	}
	if rows == 0 {
		return ""
	}
	return fmt.Sprintf("\r\x1b[%dA%s", rows, clearBelow)
}

// emit disables the view if the terminal is gone: the view never causes an error.
func (v *View) emit(b []byte) {
	if len(b) == 0 {
		return
	}
	if _, err := v.w.Write(b); err != nil {
		v.closed = true
	}
}
