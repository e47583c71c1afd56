package term_test

import (
	"fmt"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"tare/internal/term"
)

// screen is as much of a terminal as a View uses: it wraps, moves up and clears. Codes that it does not know are kept
// as errors.
type screen struct {
	width    int
	rows     [][]rune
	row, col int
	hidden   bool
	unknown  []string
	writes   int
}

func (s *screen) Write(b []byte) (int, error) {
	s.writes++
	for rest := string(b); rest != ""; {
		if strings.HasPrefix(rest, "\x1b") {
			rest = s.escape(rest)
			continue
		}
		r, n := utf8.DecodeRuneInString(rest)
		rest = rest[n:]
		s.put(r)
	}
	return len(b), nil
}

func (s *screen) escape(text string) string {
	n := 2 + strings.IndexAny(text[2:], "ABCDEFGHJKlhm")
	code := text[1 : n+1]
	var k int
	switch {
	case code == "[?25l" || code == "[?25h":
		s.hidden = code == "[?25l"
	case code == "[K":
		s.line(s.row)
		s.rows[s.row] = s.rows[s.row][:min(s.col, len(s.rows[s.row]))]
	case code == "[J":
		s.line(s.row)
		s.rows = s.rows[:s.row+1]
		s.rows[s.row] = s.rows[s.row][:min(s.col, len(s.rows[s.row]))]
	case scan(code, "[%dA", &k):
		s.row = max(0, s.row-k)
	default:
		s.unknown = append(s.unknown, code)
	}
	return text[n+1:]
}

func scan(code, format string, k *int) bool {
	n, err := fmt.Sscanf(code, format, k)
	return n == 1 && err == nil
}

func (s *screen) put(r rune) {
	switch r {
	case '\r':
		s.col = 0
	case '\n':
		s.row, s.col = s.row+1, 0
	default:
		if s.col >= s.width {
			s.row, s.col = s.row+1, 0
		}
		s.line(s.row)
		for len(s.rows[s.row]) <= s.col {
			s.rows[s.row] = append(s.rows[s.row], ' ')
		}
		s.rows[s.row][s.col] = r
		s.col++
		if term.Width(string(r)) == 2 {
			s.rows[s.row] = append(s.rows[s.row][:s.col], second)
			s.col++
		}
	}
}

// second marks the second cell of a wide rune.
const second = 0

func (s *screen) print(text string) {
	for _, r := range text {
		s.put(r)
	}
}

func (s *screen) line(n int) {
	for len(s.rows) <= n {
		s.rows = append(s.rows, nil)
	}
}

// resize wraps long rows again, as terminals do. The cursor stays at the end.
func (s *screen) resize(width int) {
	var rows [][]rune
	for _, r := range s.rows {
		for len(r) > width {
			rows, r = append(rows, r[:width]), r[width:]
		}
		rows = append(rows, r)
	}
	s.row += len(rows) - len(s.rows)
	s.rows, s.width = rows, width
}

func (s *screen) String() string {
	var lines []string
	for _, r := range s.rows {
		lines = append(lines, strings.TrimRight(string(r), " "))
	}
	return strings.ReplaceAll(strings.TrimRight(strings.Join(lines, "\n"), "\n")+"\n", string(rune(second)), "")
}

type fakeClock struct {
	mu  sync.Mutex
	now time.Time
}

func (f *fakeClock) Now() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.now
}

func (f *fakeClock) Advance(d time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.now = f.now.Add(d)
}

func (s *screen) size() (int, int) { return s.width, 24 }
