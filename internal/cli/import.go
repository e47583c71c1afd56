package cli

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"tare/internal/clock"
	"tare/internal/importer"
	"tare/internal/kit"
	"tare/internal/metric"
	"tare/internal/record"
	"tare/internal/report"
	"tare/internal/stat"
	"tare/internal/unit"
)

func (a *app) importCommand() *cobra.Command {
	var name, format, results string
	c := &cobra.Command{
		Use: "import FILE", Short: "Convert another tool's results to a record", Args: exactly("FILE"),
		Long: "Reads results of Go benchmarks, hyperfine, k6, vegeta, JMH or JMeter ('-' is standard input) and\n" +
			"writes a record of them below results/. These tools do not interleave treatments in blocks, so 'tare\n" +
			"diff' can find differences between such records, but never calls them equivalent.\n\n" +
			"Formats: " + formatNames(),
		RunE: func(_ *cobra.Command, args []string) error {
			if f := importer.Format(format); f != "" && !slices.Contains(importer.Formats(), f) {
				return usage("--format %s: unknown format; formats are: %s", format, formatNames())
			}
			return a.importFile(args[0], name, importer.Format(format), results)
		},
	}
	c.Flags().StringVar(&name, "name", "", "name of the run (default: the file's)")
	c.Flags().StringVar(&format, "format", "", "format of the file (default: detected from its content)")
	resultsFlag(c, &results)
	return c
}

func formatNames() string {
	var names []string
	for _, f := range importer.Formats() {
		names = append(names, string(f))
	}
	return strings.Join(names, ", ")
}

// importFile writes a record of the file and prints its contents. A file without results is a usage error.
func (a *app) importFile(file, name string, format importer.Format, results string) (err error) {
	src, shown := a.Stdin, "standard input"
	if file != "-" {
		f, err := kit.OpenText(file)
		if err != nil {
			return usage("import: %w", err)
		}
		defer func() { err = errors.Join(err, f.Close()) }()
		src, shown = f, file
	}
	sum := sha256.New()
	d, err := importer.Read(io.TeeReader(src, sum), shown, format)
	if err != nil {
		return usage("import: %w", err)
	}
	if name == "" {
		name = baseName(file)
	}
	dir, err := d.Write(results, importHeader(name, file, sum), clock.System{})
	if err != nil {
		return fmt.Errorf("import %s: %w", shown, err)
	}
	a.describe(dir, d)
	return nil
}

// baseName returns the file's name without its folder and endings.
func baseName(file string) string {
	base := filepath.Base(file)
	if i := strings.IndexByte(base, '.'); i > 0 {
		base = base[:i]
	}
	if base == "-" {
		return "imported"
	}
	return base
}

// importHeader names the file. It describes no host, because the file does not say where its results were measured.
func importHeader(name, file string, sum hash.Hash) record.Header {
	v, commit := buildVersion()
	return record.Header{
		Tool:       record.Tool{Version: v, Commit: commit},
		Experiment: record.Experiment{Name: name, File: file, SHA256: hex.EncodeToString(sum.Sum(nil))},
	}
}

// describe prints what was imported, and on stderr what was malformed.
func (a *app) describe(dir string, d *importer.Data) {
	a.print("%s\n", dir)
	a.print("format   %s\n", d.Format)
	for _, s := range d.Series {
		m, _ := metric.Find(s.Metric)
		a.print("series   %s · %s · %s: %s, %s\n", s.Treatment.ID, s.Operation, s.Metric, countText(s),
			typicalText(s, m.Unit))
	}
	for _, n := range d.Notes {
		a.print("note     %s\n", n)
	}
	for _, w := range d.Warnings {
		a.print("warning  %s\n", w)
	}
	for i := range d.Findings {
		a.tell("%v\n", &d.Findings[i])
	}
	if n := d.Malformed - len(d.Findings); n > 0 {
		a.tell("and %d more malformed entries\n", n)
	}
}

// countText returns the number of repetitions of a series, and of values if the two differ.
func countText(s *importer.Series) string {
	n, values := len(s.Repetitions), s.Values()
	if n == values {
		return unit.Count(n, "repetition")
	}
	return unit.Count(n, "repetition") + " of " + unit.Count(values, "value")
}

// typicalText returns the median over repetitions of their medians, or of shares the mean, as reports do.
func typicalText(s *importer.Series, u metric.Unit) string {
	var medians []float64
	for i := range s.Repetitions {
		medians = append(medians, stat.Median(s.Repetitions[i].Values))
	}
	show := report.Quantity(u)
	if u == metric.Ratio {
		return "mean " + show(stat.Mean(medians))
	}
	return "median " + show(stat.Median(medians))
}
