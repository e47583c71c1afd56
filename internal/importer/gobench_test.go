package importer_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tare/internal/importer"
	"tare/rigs/memtest"
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

// TestHostileBenchmarksTakeLittleMemory: what is kept of names, configuration and units does not grow with the file.
func TestHostileBenchmarksTakeLittleMemory(t *testing.T) {
	const most = 48 << 20
	long := strings.Repeat("x", 60_000)
	for name, c := range map[string]struct {
		lines func(b *strings.Builder)
		want  string // in the error
	}{
		"long configuration that changes": {func(b *strings.Builder) {
			for i := range 99 {
				fmt.Fprintf(b, "k%d: %s\n", i, long)
			}
			for range 20 {
				b.WriteString("k: a\nBenchmarkX 1 1 ns/op\nk: b\nBenchmarkX 1 1 ns/op\n")
			}
		}, ""},
		"much configuration that changes": {func(b *strings.Builder) {
			for i := range 99 {
				fmt.Fprintf(b, "k%d: %s\n", i, long[:200])
			}
			for i := range 20_000 {
				fmt.Fprintf(b, "k: %d\nBenchmarkX 1 1 ns/op\n", i)
			}
		}, "500 treatments"},
		"two of much configuration": {func(b *strings.Builder) {
			for i := range 99 {
				fmt.Fprintf(b, "k%d: %s\n", i, long[:200])
			}
			for range 4_000 {
				b.WriteString("k: a\nBenchmarkX 1 1 ns/op\nk: b\nBenchmarkX 1 1 ns/op\n")
			}
		}, ""},
		"long names": {func(b *strings.Builder) {
			for i := range 1000 {
				fmt.Fprintf(b, "BenchmarkX%d%s 1 1 ns/op\n", i, long)
			}
		}, ""},
		"many names": {func(b *strings.Builder) {
			for i := range 200_000 {
				fmt.Fprintf(b, "BenchmarkX%d%s 1 1 ns/op\n", i, long[:200])
			}
		}, "larger than can be imported"},
		"long units": {func(b *strings.Builder) {
			for i := range 1000 {
				fmt.Fprintf(b, "BenchmarkX 1 1 ns/op 1 ns%d%s\n", i, long)
			}
		}, "different units"},
		"units of malformed lines": {func(b *strings.Builder) {
			for i := range 1000 {
				fmt.Fprintf(b, "BenchmarkX 1 1 ns%d%s x\n", i, long)
			}
		}, "different units"},
	} {
		t.Run(name, func(t *testing.T) {
			var b strings.Builder
			c.lines(&b)
			d, err := importer.Read(memtest.Held(t, strings.NewReader(b.String()), most), "f", importer.GoBench)
			if c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%v, want %q", err, c.want)
			}
			if c.want == "" && (err != nil || len(d.Series) == 0) {
				t.Errorf("%+v, %v; want a series", d, err)
			}
		})
	}
}
