package term_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"tare/internal/term"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("%s: (-want +got)\n%s", name, d)
	}
}

func liveView(width int) (*term.View, *screen, *fakeClock) {
	s := &screen{width: width}
	c := &fakeClock{now: time.Unix(0, 0)}
	return term.NewView(s, true, s.size, c.Now), s, c
}

func block(n int) []string {
	return []string{
		fmt.Sprintf("psp-successors  block %d/20  %s  left 9m10s", n, term.Progress(float64(n)/20, 18)),
		" now   kyverno   20 pods/s Poisson   measuring 31/60s",
		" rate  offered 20   achieved 20   late 0.2%   in flight 14",
		" p99   18.1 ms " + term.Sparkline([]float64{2, 2, 3, 2, 2, 3, 2, 2, 5, 2, 2}) +
			"      errors 0   control verified ✓",
		" 漢字   wide runes take two cells each: 測定中測定中測定中",
	}
}

func TestViewGolden(t *testing.T) {
	for _, width := range []int{100, 60, 24, 3} {
		v, s, c := liveView(width)
		s.print("$\n")
		for n := 6; n < 9; n++ {
			c.Advance(time.Second)
			v.Update(block(n))
		}
		golden(t, fmt.Sprintf("view-%d.txt", width), s.String())
		if !s.hidden || s.unknown != nil {
			t.Errorf("width %d: cursor hidden %v, unknown codes %q", width, s.hidden, s.unknown)
		}
		v.Close()
		s.print("ok\n")
		if got := s.String(); got != "$\nok\n" || s.hidden {
			t.Errorf("width %d: after Close the screen holds %q, cursor hidden %v", width, got, s.hidden)
		}
	}
}

func TestViewFollowsTheBlock(t *testing.T) {
	v, s, c := liveView(40)
	show := func(lines ...string) {
		c.Advance(time.Second)
		v.Update(lines)
	}
	show("a long line that is here", "second", "third")
	show("short")
	if got := s.String(); got != "short\n" {
		t.Errorf("a smaller block leaves %q", got)
	}
	var many []string
	for i := range 20 {
		many = append(many, fmt.Sprint("line ", i))
	}
	show(many...)
	if got := strings.Count(s.String(), "\n"); got != 8 {
		t.Errorf("%d lines are drawn, want 8", got)
	}
	show("abcdefghijklmnopqrstuvwxyz", "second")
	s.resize(10)
	show("after", "resize")
	if got := s.String(); got != "after\nresize\n" {
		t.Errorf("after a resize the screen holds %q", got)
	}
	show("evil \x1b[2J\nname\t\u202e")
	if got := s.String(); !strings.HasPrefix(got, "evil ·[2") || s.unknown != nil || strings.Count(got, "\n") != 1 {
		t.Errorf("control characters got through: %q, %q", got, s.unknown)
	}
}

func TestViewIsSlow(t *testing.T) {
	v, s, c := liveView(40)
	for i := range 100 { // 20 a second for 5 s
		v.Update([]string{fmt.Sprint(i)})
		c.Advance(50 * time.Millisecond)
	}
	if s.writes != 20 {
		t.Errorf("drawn %d times in 5 s, want 20", s.writes)
	}
}

func TestLogsGoAboveTheBlock(t *testing.T) {
	v, s, _ := liveView(60)
	log := slog.New(slog.NewTextHandler(v, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
	log.Info("before")
	v.Update([]string{"block 1", "more"})
	log.Warn("throttled in process")
	log.Warn("again")
	want := "level=INFO msg=before\nlevel=WARN msg=\"throttled in process\"\nlevel=WARN msg=again\nblock 1\nmore\n"
	if d := cmp.Diff(want, s.String()); d != "" {
		t.Error(d)
	}
	v.Close()
	log.Info("after")
	if d := cmp.Diff(strings.TrimSuffix(want, "block 1\nmore\n")+"level=INFO msg=after\n", s.String()); d != "" {
		t.Error(d)
	}
}

func TestWithoutATerminal(t *testing.T) {
	var out bytes.Buffer
	v := term.New(&out, func(string) string { return "xterm" })
	if v.Live() {
		t.Error("a buffer is no terminal")
	}
	v.Update([]string{"never seen"})
	v.Plain("block 1/20 done\x1b[31m")
	if _, err := io.WriteString(v, "a log line\n"); err != nil {
		t.Error(err)
	}
	v.Plain("block 2/20 done")
	v.Plain("::error::taken for a command in CI")
	v.Close()
	v.Close()
	v.Plain("after")
	if got, want := out.String(), "block 1/20 done·[31m\na log line\nblock 2/20 done\n\\::error::taken for a command "+
		"in CI\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestPlainIsSilentOnATerminal(t *testing.T) {
	v, s, _ := liveView(40)
	v.Plain("line")
	v.Close()
	if s.writes != 0 {
		t.Errorf("screen: %q", s.String())
	}
}

type broken struct{ writes int }

func (b *broken) Write([]byte) (int, error) {
	b.writes++
	return 0, errors.New("gone")
}

func TestABrokenTerminalEndsTheView(t *testing.T) {
	b := &broken{}
	c := &fakeClock{now: time.Unix(0, 0)}
	v := term.NewView(b, true, func() (int, int) { return 0, 0 }, c.Now)
	for range 5 {
		v.Update([]string{"x"})
		c.Advance(time.Second)
	}
	v.Close()
	if b.writes != 1 {
		t.Errorf("%d writes to a broken terminal, want 1", b.writes)
	}
}

func TestConcurrentUse(t *testing.T) {
	v, s, c := liveView(40)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 200 {
				c.Advance(100 * time.Millisecond)
				v.Update([]string{"a", "b"})
				if _, err := io.WriteString(v, "log\n"); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	v.Close()
	if want := strings.Repeat("log\n", 800); s.String() != want || s.hidden {
		t.Errorf("%d lines remain, want 800 log lines and nothing else", strings.Count(s.String(), "\n"))
	}
}

func TestText(t *testing.T) {
	for _, c := range []struct {
		s     string
		width int
		cut   string // to 5 cells
	}{
		{"", 0, ""},
		{"abcde", 5, "abcde"},
		{"abcdef", 6, "abcd…"},
		{"測定中", 6, "測定…"},
		{"a測定中", 7, "a測…"},
		{"e\u0301tude!!", 7, "e\u0301tud…"},
		{"✓ ok", 4, "✓ ok"},
		{"🚀🚀🚀", 6, "🚀🚀…"},
	} {
		if got := term.Width(c.s); got != c.width {
			t.Errorf("Width(%q) = %d, want %d", c.s, got, c.width)
		}
		if got := term.Truncate(c.s, 5); got != c.cut {
			t.Errorf("Truncate(%q, 5) = %q, want %q", c.s, got, c.cut)
		}
	}
	for _, c := range []struct {
		values []float64
		want   string
	}{
		{nil, ""},
		{[]float64{0, 0}, "▁▁"},
		{[]float64{0, 1, 2, 3, 4, 5, 6, 7}, "▁▂▃▄▅▆▇█"},
		{[]float64{100, 100, 50, math.NaN(), 0}, "██▅ ▁"},
		{[]float64{-1, 0, 1}, "▁▅█"},
		{[]float64{math.Inf(1), 1, math.Inf(-1)}, "██▁"},
		{[]float64{math.MaxFloat64, -math.MaxFloat64}, "█▁"},
	} {
		if got := term.Sparkline(c.values); got != c.want {
			t.Errorf("Sparkline(%v) = %q, want %q", c.values, got, c.want)
		}
	}
	for share, want := range map[float64]string{0: "░░░░", 0.5: "██░░", 0.999: "███░", 1: "████", 7: "████", -1: "░░░░"} {
		if got := term.Progress(share, 4); got != want {
			t.Errorf("Progress(%v) = %q, want %q", share, got, want)
		}
	}
	if got := term.Progress(math.NaN(), -3); got != "" {
		t.Errorf("Progress(NaN, -3) = %q", got)
	}
}

func TestAlignGolden(t *testing.T) {
	lines := term.Align([][]string{
		{"", "p50", "CPU/op", "budget", "verdict"},
		{"baseline", "4.02 ms", "1.9 ms"},
		{"VAP (CEL) ×50", "+0.11 ms", "+2%", "≤5 ms", "✓ pass"},
		{"測定", "+12.3 ms", "+58%", "≤5 ms", "✗ FAIL"},
	}, term.Left, term.Right, term.Right)
	golden(t, "align.txt", strings.Join(lines, "\n")+"\n")
}

func FuzzTruncate(f *testing.F) {
	f.Add("測定中 abc", 3)
	f.Add("\xff\x1b[J", 1)
	f.Fuzz(func(t *testing.T, s string, width int) {
		got := term.Truncate(s, width)
		if w := term.Width(got); w > max(width, 0) && w > 0 {
			t.Errorf("Truncate(%q, %d) = %q takes %d cells", s, width, got, w)
		}
		for _, line := range term.Align([][]string{{s, s}, {"x", "y"}}) {
			if strings.ContainsAny(line, "\n\r\x1b") {
				t.Errorf("Align let a control character through: %q", line)
			}
		}
	})
}

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
