package probe

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"unicode"

	"tare/internal/metric"
)

// ErrGone says that the subject is not there any more: the process has ended, the group was removed.
var ErrGone = errors.New("the subject of the probe is gone")

// tick is the unit of CPU times in /proc, USER_HZ: 1/100 s on every architecture that Go supports.
const tick = 0.01

// host is the file system of this machine.
func host(root fs.FS) fs.FS {
	if root == nil {
		return os.DirFS("/")
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

// part adds one of several values of a quantity.
func (s *samples) part(q Quantity, part string, v float64) {
	s.list = append(s.list, metric.Sample{Subject: s.subject, Metric: q.Name, Part: part, Value: v})
}

// printable makes a text that the target chose fit for reports: printable, and of a bounded length in bytes.
func printable(s string, longest int) string {
	s = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, s)
	return strings.ToValidUTF8(s[:min(len(s), longest)], "")
}

// read gives the text of a file, or nothing: a file that this kernel does not have, or that we may not read, makes values absent.
func read(root fs.FS, name string) string {
	b, err := fs.ReadFile(root, name)
	if err != nil {
		return ""
	}
	return string(b)
}

// require gives the text of a file that every kernel has. ctx is asked first, so that a probe of many files can be ended.
func require(ctx context.Context, root fs.FS, name string) (string, error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	b, err := fs.ReadFile(root, name)
	if err != nil {
		return "", fmt.Errorf("read /%s: %w", name, err)
	}
	return string(b), nil
}

// number parses a non-negative count as the kernel prints it.
func number(s string) (float64, bool) {
	n, err := strconv.ParseUint(strings.TrimSpace(s), 10, 64)
	return float64(n), err == nil
}

// keyed parses lines of "key value", as in cpu.stat; values that are no numbers are left out.
func keyed(text string) map[string]float64 {
	m := make(map[string]float64)
	for line := range strings.Lines(text) {
		if k, v, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			if n, ok := number(v); ok {
				m[k] = n
			}
		}
	}
	return m
}
