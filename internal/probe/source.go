package probe

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"unicode"

	"tare/internal/files"
	"tare/internal/metric"
)

// ErrGone means that the subject no longer exists: the process has ended, or the group was removed.
var ErrGone = errors.New("the subject of the probe is gone")

// tick is the unit of CPU times in /proc, USER_HZ: 1/100 s on every architecture that Go supports.
const tick = 0.01

// rootFS returns root or, if that is nil, the file system of this machine.
func rootFS(root fs.FS) fs.FS {
	if root == nil {
		return files.Host()
	}
	return root
}

// samples collects values about one subject.
type samples struct {
	subject string
	list    []metric.Sample
}

func (s *samples) add(q Quantity, v float64) {
	s.part(q, "", v)
}

// part adds one of several values of a quantity, which part names.
func (s *samples) part(q Quantity, part string, v float64) {
	s.list = append(s.list, metric.Sample{Subject: s.subject, Metric: q.Name, Part: part, Value: v})
}

// printable replaces unprintable characters in a text that the target chose, and cuts it to a number of bytes, for
// reports.
func printable(s string, longest int) string {
	s = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, s)
	return strings.ToValidUTF8(s[:min(len(s), longest)], "")
}

// readText returns the text of a file, or "" if it does not exist or is not readable: the values are then absent.
func readText(root fs.FS, name string) string {
	b, err := fs.ReadFile(root, name)
	if err != nil {
		return ""
	}
	return string(b)
}

// readRequired returns the text of a file that every kernel has. It fails first when ctx has ended, so that a probe of
// many files can be cancelled.
func readRequired(ctx context.Context, root fs.FS, name string) (string, error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	b, err := fs.ReadFile(root, name)
	if err != nil {
		return "", fmt.Errorf("read /%s: %w", name, err)
	}
	return string(b), nil
}

// parseNumber parses a non-negative count as the kernel prints it.
func parseNumber(s string) (float64, bool) {
	n, err := strconv.ParseUint(strings.TrimSpace(s), 10, 64)
	return float64(n), err == nil
}

// parseKeyed parses lines of "key value", as in cpu.stat, and ignores values that are no numbers.
func parseKeyed(text string) map[string]float64 {
	m := make(map[string]float64)
	for line := range strings.Lines(text) {
		if k, v, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			if n, ok := parseNumber(v); ok {
				m[k] = n
			}
		}
	}
	return m
}
