package report

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"tare/internal/unit"
)

var (
	exponents = regexp.MustCompile(`(?:^|[\s(\[±×+-])\d+(?:\.\d+)?e[+-]?\d+\b`)
	decimals  = regexp.MustCompile(`\b\d+\.\d+\b`)
)

// hardToRead are the numbers of a text that people do not write: with an exponent, or with more than six significant
// digits.
func hardToRead(text string) []string {
	out := exponents.FindAllString(text, -1)
	for _, s := range decimals.FindAllString(text, -1) {
		if digits := strings.TrimLeft(strings.Replace(s, ".", "", 1), "0"); utf8.RuneCountInString(digits) > 6 {
			out = append(out, s)
		}
	}
	return out
}

// forPeople are the ends of golden files that people read; the others are for programs.
var forPeople = []string{".txt", ".md", ".golden"}

// TestNumbersAreReadable looks at every golden file that shows what people read.
func TestNumbersAreReadable(t *testing.T) {
	seen := 0
	for _, dir := range []string{".", "../config", "../cli", "../analyze", "../chart", "../term"} {
		err := filepath.WalkDir(filepath.Join(dir, "testdata"), func(file string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !slices.Contains(forPeople, filepath.Ext(file)) {
				return err
			}
			text, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			seen++
			if bad := hardToRead(string(text)); len(bad) > 0 {
				t.Errorf("%s: %q", file, bad)
			}
			return nil
		})
		if err != nil && !os.IsNotExist(err) {
			t.Error(err)
		}
	}
	if seen < 50 {
		t.Errorf("only %d golden files were seen", seen)
	}
}

// TestFormsAreReadable holds every form of a number to it, from a billionth to a billion.
func TestFormsAreReadable(t *testing.T) {
	for _, bad := range []string{"2e+04/s", " 16.666666666666668/s", "(1.5e-05"} {
		if len(hardToRead(bad)) == 0 {
			t.Errorf("%q is taken for readable", bad)
		}
	}
	forms := map[string]func(float64) string{
		"seconds": unit.Seconds, "rate": unit.PerSecond, "bytes": unit.Bytes, "share": unit.Share, "number": unit.Number,
		"exactly":         Exactly,
		"decimal":         func(v float64) string { return unit.Decimal(v, 4) },
		"recovers":        RecoversAfter,
		"a minute's rate": func(v float64) string { return (unit.Rate(float64(int(v))) / 60).String() },
	}
	for name, form := range forms {
		for v := 1e-9; v < 1e9; v *= 1.37 {
			for _, x := range []float64{v, -v} {
				if name == "a minute's rate" && (x < 1 || x > 1e6) {
					continue
				}
				if bad := hardToRead(form(x)); len(bad) > 0 {
					t.Errorf("%s of %v: %q", name, x, form(x))
				}
			}
		}
	}
	if got := RecoversAfter(11.5e-6); got != "immediately" {
		t.Errorf("recovers %s", got)
	}
}
