package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"tare/rigs/hosttest"
)

func TestMain(m *testing.M) { hosttest.Main(m) }

// TestStatisticsPage compares the page with what the command prints: the same tables with the same columns.
func TestStatisticsPage(t *testing.T) {
	hosttest.SkipIfShort(t)
	page, err := os.ReadFile("../../../docs/explanation/statistics.md")
	if err != nil {
		t.Fatal(err)
	}
	words := func(s string) string { return strings.Join(strings.Fields(s), " ") } // the page breaks lines
	for _, c := range []struct {
		flag, begins string
		tables       int
	}{
		{"-stat", "1 repetitions of each case, seed 5.\n", 14}, {"-turns", "", 9},
	} {
		var out bytes.Buffer
		if err := run(t.Context(), []string{c.flag, "-n", "1", "-seed", "5"}, &out, io.Discard); err != nil {
			t.Fatal(err)
		}
		heads := regexp.MustCompile(`(?m)^### .*\n\n.*\n\n\|.*\n\| ---`).FindAllString(out.String(), -1)
		if len(heads) != c.tables {
			t.Errorf("%s: %d tables, want %d", c.flag, len(heads), c.tables)
		}
		for _, h := range heads {
			if !strings.Contains(words(string(page)), words(h)) {
				t.Errorf("%s: the page does not have the table\n%s", c.flag, h)
			}
		}
		if !strings.HasPrefix(out.String(), c.begins) {
			t.Errorf("%s: the tables begin %.60q", c.flag, out.String())
		}
	}
}

func TestCapacityTables(t *testing.T) {
	var out bytes.Buffer
	if err := run(t.Context(), []string{"-n", "1", "-only", "token-bucket"}, &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(out.String(), "1 instances of each server, seed 1.\n") ||
		!strings.Contains(out.String(), "token-bucket") {
		t.Errorf("the tables begin %.60q", out.String())
	}
}

func TestWorlds(t *testing.T) {
	hosttest.SkipIfShort(t)
	truths := filepath.Join(t.TempDir(), "truths.json")
	var first string
	for range 2 {
		var out, lines bytes.Buffer
		if err := run(t.Context(), []string{"-worlds", "3", "-seed", "3", "-v", "-truths", truths}, &out,
			&lines); err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(out.String(), "3 composed worlds, seed 3.\n") ||
			!strings.Contains(out.String(), "| class right | ≥ 90 % |") {
			t.Errorf("the tables begin %.60q", out.String())
		}
		if first != "" && out.String() != first {
			t.Errorf("with remembered truths the tables are others:\n%s%s", first, &out)
		}
		first = out.String()
	}
}

func TestOneWorld(t *testing.T) {
	const kept = "../../simulation/testdata/cases/tarpit.json"
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"-case", kept, "-trace"}, "overload"},
		{[]string{"-case", kept}, "due to token-bucket"},
		{[]string{"-i", "3", "-seed", "2"}, "seed 2 index 3"},
	} {
		var out bytes.Buffer
		if err := run(t.Context(), c.args, &out, io.Discard); err != nil || !strings.Contains(out.String(), c.want) {
			t.Errorf("%v: error %v, %.300s", c.args, err, &out)
		}
	}
}

func TestBadFlags(t *testing.T) {
	for _, args := range [][]string{
		{"-only", "nothing"},
		{"-seed", "x"},
		{"-unknown"},
		{"-case", "nothing.json"},
		{"-worlds", "2", "-only", "magic"},
	} {
		if err := run(t.Context(), args, io.Discard, io.Discard); err == nil {
			t.Errorf("%v: no error", args)
		}
	}
}
