package importer_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tare/internal/importer"
)

// TestGoAllocations: bytes and objects are read from each line, also from lines without a time.
func TestGoAllocations(t *testing.T) {
	const src = `BenchmarkOpen-4 20 200 ns/op 12345678 B/op 3 allocs/op
BenchmarkOpen-4 20 210.7 ns/op 0 B/op 0 allocs/op
BenchmarkClose-4 20 5 B/op 1 allocs/op
BenchmarkClose-4 20 -5 B/op 1 allocs/op
`
	d, err := importer.Read(strings.NewReader(src), "x", "")
	if err != nil {
		t.Fatal(err)
	}
	got := map[string][]float64{}
	for _, s := range d.Series {
		for _, r := range s.Repetitions {
			got[s.Operation+" "+s.Metric] = append(got[s.Operation+" "+s.Metric], r.Values...)
		}
	}
	want := map[string][]float64{
		"Open wall": {200e-9, 210.7e-9}, "Open allocated": {12345678, 0}, "Open allocations": {3, 0}, "Close allocated": {5},
		"Close allocations": {1},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if d.Malformed != 1 || !strings.Contains(d.Findings[0].Cause, "-5 B/op is no cost of a call") {
		t.Errorf("of a negative number of bytes: %d, %+v", d.Malformed, d.Findings)
	}
}

// TestEndlessConfigurationIsBounded: what benchfmt keeps of a hostile file is bounded, and the results in it are read.
func TestEndlessConfigurationIsBounded(t *testing.T) {
	var b strings.Builder
	b.WriteString("goos: linux\nBenchmarkX 1 1 ns/op\n")
	for i := range 100_000 {
		fmt.Fprintf(&b, "k%d: v\nUnit k%d a=b\n", i, i)
	}
	if d, err := importer.Read(strings.NewReader(b.String()), "f", importer.GoBench); err != nil || len(d.Series) != 1 {
		t.Errorf("got %+v, %v; want one series", d, err)
	}
	b.WriteString("BenchmarkX 1 1 ns/op\n")
	if _, err := importer.Read(strings.NewReader(b.String()), "f", importer.GoBench); err == nil ||
		!strings.Contains(err.Error(), "lines of configuration") {
		t.Errorf("a thousand keys: %v", err)
	}
}
