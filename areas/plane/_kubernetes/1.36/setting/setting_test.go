package setting

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"tare/plane/driver"
)

func TestParse(t *testing.T) {
	got, err := Parse(map[string]string{
		"accessor": "lru", "size": "200", "records": "10000", "hits": "75%", "pattern": "zipf", "exponent": "1.5",
		"window": "20", "turnover": "0.5",
		"concurrency": "8", "stripes": "31", "secrets": "100", "policy": "NeverVerifyPreloadedImages",
	})
	want := Setting{
		Accessor: LRU, Size: 200, Records: 10_000, Hits: 0.75, Pattern: "zipf", Exponent: 1.5, Window: 20, Turnover: 0.005,
		Concurrency: 8, Stripes: 31, Secrets: 100, Policy: NeverVerifyPreloadedImages,
	}
	if err != nil || got != want {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := Parse(nil); err != nil || got != Default() {
		t.Errorf("%+v, %v", got, err)
	}
	if names := Names(); len(names) != 12 || !slices.IsSorted(names) {
		t.Errorf("names %v", names)
	}
}

// TestRefuses: what is out of range is named, with what to do.
func TestRefuses(t *testing.T) {
	for _, c := range []struct{ level, value, says string }{
		{"accessor", "Cached", `accessor: "Cached": want one of disabled, directfs, cached, lru`},
		{"records", "0", "records: \"0\": want a whole number from 1 to 100000"},
		{"records", "100001", "from 1 to 100000"},
		{"records", "1e3", "whole number"},
		{"hits", "101", "hits: \"101\": want a percentage"},
		{"hits", "NaN", "percentage"},
		{"hits", "-1%", "percentage"},
		{"exponent", "1", "above 1"},
		{"exponent", "NaN", "above 1"},
		{"pattern", "", "one of uniform"},
		{"secrets", "5001", "from 1 to 5000"},
		{"concurrency", "1000", "from 1 to 256"},
		{"stripes", "32", "https://github.com/kubernetes/kubernetes/issues/138935"},
		{"stripes", "0", "stripes: \"0\""},
		{"moo", "1", `level "moo" is none of accessor, concurrency, exponent,`},
	} {
		s, err := Parse(map[string]string{c.level: c.value})
		var f *driver.Failure
		if !errors.As(err, &f) || f.Next == "" || !strings.Contains(err.Error(), c.says) || s != (Setting{}) {
			t.Errorf("%s=%s: %+v, %v, want %q", c.level, c.value, s, err, c.says)
		}
	}
	if _, err := Parse(map[string]string{"records": "100000", "secrets": "11"}); err == nil ||
		!strings.Contains(err.Error(), "1100000 secrets") {
		t.Error(err)
	}
}

func FuzzParse(f *testing.F) {
	for name, value := range map[string]string{
		"hits": "10%", "stripes": "99999999999999999999", "exponent": "+Inf",
		"accessor": "lru:100",
	} {
		f.Add(name, value)
	}
	f.Fuzz(func(t *testing.T, name, value string) {
		s, err := Parse(map[string]string{name: value})
		if err != nil {
			return
		}
		if s.Records < 1 || s.Secrets < 1 || s.Size < 1 || s.Window < 1 || s.Concurrency < 1 || s.Stripes < 1 ||
			s.Stripes > mostStripes ||
			!(s.Hits >= 0 && s.Hits <= 1) || !(s.Turnover >= 0 && s.Turnover <= 1) || !(s.Exponent > 1 && s.Exponent <= 10) {
			t.Errorf("%s=%q: %+v", name, value, s)
		}
	})
}
