package importer_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"math"
	"os"
	"path/filepath"
	"runtime/metrics"
	"testing"

	"tare/internal/importer"
	"tare/internal/metric"
)

// fuzzParser feeds a parser. What it accepts must be fit for a record: finite values of known metrics, within limits.
func fuzzParser(f *testing.F, format importer.Format, samples ...string) {
	f.Helper()
	for _, name := range samples {
		b, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b[:min(len(b), 4000)])
		f.Add(b[len(b)/2:])
		var z bytes.Buffer
		w := gzip.NewWriter(&z)
		if _, err := w.Write(b[:min(len(b), 4000)]); err != nil || w.Close() != nil {
			f.Fatal(err)
		}
		f.Add(z.Bytes())
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		before := allocatedBytes()
		d, err := importer.Read(bytes.NewReader(src), "f", format)
		// Buffers take 5 MiB; what is compressed may become 250 times its size.
		if took := allocatedBytes() - before; took > 16<<20+1000*decompressedSize(src) {
			t.Errorf("%d bytes took %d", len(src), took)
		}
		if err != nil {
			return
		}
		if len(d.Series) == 0 || d.Malformed < len(d.Findings) {
			t.Fatalf("%d series, %d findings of %d", len(d.Series), len(d.Findings), d.Malformed)
		}
		for _, s := range d.Series {
			if _, ok := metric.Find(s.Metric); !ok || s.Treatment.ID == "" || s.Operation == "" {
				t.Fatalf("accepted an incomplete series %q %q %q", s.Treatment.ID, s.Operation, s.Metric)
			}
			for _, r := range s.Repetitions {
				if len(r.Values) == 0 || r.N < 1 {
					t.Fatalf("a repetition of %s with N %d has no values", s.Metric, r.N)
				}
				for _, v := range r.Values {
					if !(v >= 0) || math.IsInf(v, 0) {
						t.Fatalf("%s is %v", s.Metric, v)
					}
				}
			}
		}
	})
}

// allocatedBytes returns the bytes that this process has allocated so far.
func allocatedBytes() uint64 {
	s := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}

// decompressedSize returns the length of src or, if it is compressed, that of its content, up to a limit.
func decompressedSize(src []byte) uint64 {
	z, err := gzip.NewReader(bytes.NewReader(src))
	if err != nil {
		return uint64(len(src))
	}
	n, _ := io.Copy(io.Discard, io.LimitReader(z, 1<<30)) // a damaged one ends early
	return uint64(n)
}

func FuzzGoBench(f *testing.F) { fuzzParser(f, importer.GoBench, "go-before.txt") }

func FuzzHyperfine(f *testing.F) {
	fuzzParser(f, importer.Hyperfine, "hyperfine.json", "hyperfine2.json", "hyperfine-scan.json", "hyperfine-summary.json")
}

func FuzzK6(f *testing.F) { fuzzParser(f, importer.K6, "k6.json") }

func FuzzK6Summary(f *testing.F) {
	fuzzParser(f, importer.K6Summary, "k6-export.json", "k6-summary.json")
}

func FuzzVegeta(f *testing.F) { fuzzParser(f, importer.Vegeta, "vegeta.json") }

func FuzzVegetaSummary(f *testing.F) { fuzzParser(f, importer.VegetaSummary, "vegeta-report.json") }

func FuzzJMH(f *testing.F) { fuzzParser(f, importer.JMH, "jmh.json") }

func FuzzJMeter(f *testing.F) { fuzzParser(f, importer.JMeter, "jmeter.jtl", "jmeter.xml") }

// FuzzDetect leaves the format to be found.
func FuzzDetect(f *testing.F) {
	fuzzParser(f, "", "go-before.txt", "hyperfine.json", "k6-export.json", "vegeta-report.json", "jmh.json",
		"jmeter.xml", "jmeter.jtl")
}
