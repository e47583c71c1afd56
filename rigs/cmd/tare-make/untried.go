package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"tare/rigs/hosttest"
)

// untried reads what go test -json wrote into a file and says, in one table, what the tests could not try, why, and how
// to have it tried. It ends with the count of tests.
func untried(_ context.Context, args []string, out io.Writer) error {
	if len(args) != 1 {
		return errors.New("name the file that go test -json wrote")
	}
	written, err := os.ReadFile(args[0])
	if err != nil {
		return err
	}
	r, err := readResults(bytes.NewReader(written))
	if err != nil {
		return fmt.Errorf("%s: %w", args[0], err)
	}
	return r.print(out)
}

// results are those of all tests.
type results struct {
	passed, failed, skipped int
	rows                    map[hosttest.Row]map[string]bool // the tests that were not tried, by what was lacking
	failing                 map[string]bool                  // packages with a failed test
	took                    time.Duration
}

// event is a line of go test -json.
type event struct {
	Time                  time.Time
	Action, Package, Test string
	Output                string
}

// readResults reads the events. A subtest is a test: it has a result of its own.
func readResults(from io.Reader) (results, error) {
	r := results{rows: map[hosttest.Row]map[string]bool{}, failing: map[string]bool{}}
	var first, last time.Time
	in := bufio.NewScanner(from)
	in.Buffer(nil, 64<<20)
	for n := 1; in.Scan(); n++ {
		var e event
		if err := json.Unmarshal(in.Bytes(), &e); err != nil {
			return r, fmt.Errorf("line %d: %w", n, err)
		}
		if !e.Time.IsZero() {
			first, last = cmp.Or(first, e.Time), e.Time
		}
		r.add(e)
	}
	r.took = last.Sub(first)
	return r, in.Err()
}

func (r *results) add(e event) {
	switch {
	case e.Action == "output":
		if row, ok := hosttest.ParseRow(e.Output); ok {
			r.note(row, strings.TrimPrefix(e.Package, "tare/")+"."+e.Test)
		}
	case e.Action == "fail" && (e.Test != "" || !r.failing[e.Package]): // a package fails with its tests, or without
		r.failed++
		r.failing[e.Package] = true
	case e.Test == "":
	case e.Action == "pass":
		r.passed++
	case e.Action == "skip":
		r.skipped++
	}
}

func (r *results) note(row hosttest.Row, test string) {
	if r.rows[row] == nil {
		r.rows[row] = map[string]bool{}
	}
	r.rows[row][test] = true
}

func (r *results) print(to io.Writer) error {
	out := &bytes.Buffer{}
	if len(r.rows) > 0 {
		fmt.Fprintln(out, "\nNot tried on this host, why, and how to have it tried:")
	}
	byText := func(a, b hosttest.Row) int { return cmp.Or(cmp.Compare(a.Why, b.Why), cmp.Compare(a.Remedy, b.Remedy)) }
	for _, row := range slices.SortedFunc(maps.Keys(r.rows), byText) {
		fmt.Fprintf(out, "  %s: %s\n", row.Why, row.Remedy)
		for line := range strings.Lines(wrap(slices.Sorted(maps.Keys(r.rows[row])), 110)) {
			fmt.Fprintf(out, "    %s", line)
		}
	}
	fmt.Fprintf(out, "\n%d tests passed, %d failed, %d skipped, in %s\n", r.passed, r.failed, r.skipped,
		r.took.Round(time.Second))
	_, err := out.WriteTo(to)
	return err
}

// wrap joins texts with commas, in lines of at most width bytes where a text is not longer.
func wrap(texts []string, width int) string {
	var b strings.Builder
	at := 0
	for i, t := range texts {
		if i < len(texts)-1 {
			t += ","
		}
		switch {
		case at == 0:
		case at+1+len(t) > width:
			b.WriteString("\n")
			at = 0
		default:
			b.WriteString(" ")
			at++
		}
		b.WriteString(t)
		at += len(t)
	}
	b.WriteString("\n")
	return b.String()
}
