// Package importer reads what other tools measured – Go benchmarks, hyperfine, k6, vegeta, JMH, JMeter – and keeps it
// as a record. Such results were taken one after another and not in interleaved blocks, so the record says that it is
// unblocked: it can be compared, and nothing in it can be called equivalent.
package importer

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"tare/internal/design"
)

// Area stands in the header of every imported record: no area of tare's own measured it.
const Area = "imported"

// Treatment is the arm of a file whose results all belong together.
const Treatment = "imported"

// Format is a tool's form of results.
type Format string

// The formats.
const (
	GoBench       Format = "gobench"        // go test -bench, the format of golang.org/design/14313-benchmark-format
	Hyperfine     Format = "hyperfine"      // hyperfine --export-json, versions 1 and 2
	K6            Format = "k6"             // k6 run --out json: one point a line
	K6Summary     Format = "k6-summary"     // k6 run --summary-export, or handleSummary: no single values
	Vegeta        Format = "vegeta"         // vegeta encode --to json: one result a line
	VegetaSummary Format = "vegeta-summary" // vegeta report -type=json: no single values
	JMH           Format = "jmh"            // JMH -rf json
	JMeter        Format = "jmeter"         // JMeter's JTL, as CSV with a header line or as XML
)

// Formats are all formats, in the order in which they are listed to people.
func Formats() []Format {
	return []Format{GoBench, Hyperfine, K6, K6Summary, Vegeta, VegetaSummary, JMH, JMeter}
}

// The sizes that one file may have. What is beyond them is refused, so that a wrong file costs neither the memory nor
// the disk: whatever the file, an import takes less than 512 MiB of memory. Files of one call a line are read line by
// line.
const (
	maxFile       = 16 << 30 // bytes, after decompression
	maxUnfold     = 250      // bytes that a compressed byte may become; results of load generators come to 50
	freeUnfold    = 64 << 20 // bytes that a compressed file may become in any case
	maxDocument   = 64 << 20 // bytes of a file that is one JSON document
	maxLine       = 1 << 20  // bytes
	maxCalls      = 5_000_000
	maxSeries     = 5_000
	maxRepeats    = 10_000 // of one series
	maxTreatments = 500
	maxFindings   = 20  // that are told one by one
	maxRemarks    = 200 // notes, and warnings
)

// Data is what was understood of a file.
type Data struct {
	Format Format
	// Started is when the results were taken; zero where the file does not say.
	Started time.Time
	// Unit says what one repetition is: "run", "fork", "slice of calls".
	Unit   string
	Series []*Series
	// Notes say what was left out and why; Warnings what limits the results.
	Notes, Warnings []string
	// Findings are malformed places, at most 20 of them; Malformed counts all.
	Findings  []Finding
	Malformed int
}

// A Series is one metric of one operation under one treatment, repetition by repetition in the order in which they were
// taken.
type Series struct {
	Treatment   design.Treatment
	Operation   string
	Metric      string // a name that metric.Find knows
	Repetitions []Repetition
}

// A Repetition is what record.Batches holds of one: Values are per call, in the metric's base unit.
type Repetition struct {
	N      int // calls behind each value
	Values []float64
}

// Values counts the values of all repetitions.
func (s *Series) Values() int {
	n := 0
	for i := range s.Repetitions {
		n += len(s.Repetitions[i].Values)
	}
	return n
}

// A Finding is a place in the file that could not be understood.
type Finding struct {
	File  string
	Line  int
	Cause string
	Next  string // what can be done about it
}

// Error implements error.
func (f *Finding) Error() string {
	return fmt.Sprintf("%s:%d: %s; %s", f.File, f.Line, f.Cause, f.Next)
}

// ErrEmpty says that a file held nothing that can be imported.
var ErrEmpty = errors.New("no result was found")

// Read reads all of src. file names it in messages. An empty format is detected by the content. A place of a line-based
// format that is malformed is left out and becomes a Finding; a malformed document is a *Finding as an error. ErrEmpty
// is wrapped when nothing is left.
func Read(src io.Reader, file string, f Format) (*Data, error) {
	in, err := decompressed(bufio.NewReaderSize(src, maxLine))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", file, err)
	}
	if f == "" {
		if f, err = detect(in); err != nil {
			return nil, fmt.Errorf("read %s: %w", file, err)
		}
	}
	p := &parser{file: file, data: &Data{Format: f}, index: map[seriesKey]*Series{}}
	if err := p.read(in, f); err != nil {
		return nil, err
	}
	if len(p.data.Series) == 0 {
		return nil, p.nothing()
	}
	slices.SortStableFunc(p.data.Series,
		func(a, b *Series) int { return cmp.Compare(p.treatments[a.Treatment.ID], p.treatments[b.Treatment.ID]) })
	return p.data, nil
}

// nothing says why a file gave no result.
func (p *parser) nothing() error {
	err := fmt.Errorf("read %s as %s: %w", p.file, p.data.Format, ErrEmpty)
	if len(p.data.Findings) > 0 {
		return fmt.Errorf("%w: %w", err, &p.data.Findings[0])
	}
	if len(p.data.Notes) > 0 {
		return fmt.Errorf("%w: %s", err, strings.Join(p.data.Notes, "; "))
	}
	return fmt.Errorf("%w; if it is of another tool, name it with --format", err)
}

// decompressed looks through gzip, which k6 writes when asked to. It fails where so much comes of a file as no tool
// writes.
func decompressed(in *bufio.Reader) (*bufio.Reader, error) {
	magic, err := in.Peek(2)
	if err != nil || !bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		return in, nil //nolint:nilerr // a file of one byte is not compressed; what it is shows later
	}
	from := &counting{src: in}
	z, err := gzip.NewReader(bufio.NewReader(from))
	if err != nil {
		return nil, fmt.Errorf("decompress: %w", err)
	}
	return bufio.NewReaderSize(&unfolding{src: z, from: from}, maxLine), nil
}

// counting counts what is read.
type counting struct {
	src io.Reader
	n   int64
}

func (c *counting) Read(b []byte) (int, error) {
	n, err := c.src.Read(b)
	c.n += int64(n)
	return n, err
}

// unfolding fails where a compressed file becomes far larger than any tool's results.
type unfolding struct {
	src  io.Reader
	from *counting
	n    int64
}

func (u *unfolding) Read(b []byte) (int, error) {
	n, err := u.src.Read(b)
	if u.n += int64(n); u.n > freeUnfold+maxUnfold*u.from.n {
		return 0, fmt.Errorf("decompress: %d bytes become more than %d, which no tool's results do; decompress it first "+
			"if it is one", u.from.n, u.n-int64(n))
	}
	return n, err
}

// parser gathers the series of one file.
type parser struct {
	file       string
	data       *Data
	index      map[seriesKey]*Series
	treatments map[string]int // in the order in which they came
	ignored    map[string]int
	order      []string // of ignored

	all           map[stream][]call // of formats of single calls
	calls         int               // in all
	names, levels map[string]bool   // of all
	joined        bool              // all names are one
}

type seriesKey struct{ treatment, operation, metric string }

func (p *parser) read(in *bufio.Reader, f Format) error {
	src := &bounded{src: in, left: maxFile}
	var err error
	p.all = map[stream][]call{}
	switch f {
	case GoBench:
		err = p.goBench(src)
	case Hyperfine:
		err = document(p, src, p.hyperfine)
	case K6:
		err = p.lines(src, new(k6Lines))
	case K6Summary:
		err = document(p, src, p.k6Summary)
	case Vegeta:
		err = p.lines(src, new(vegetaLines))
	case VegetaSummary:
		err = document(p, src, p.vegetaSummary)
	case JMH:
		err = document(p, src, p.jmh)
	case JMeter:
		err = p.jmeter(src)
	default:
		names := make([]string, 0, len(Formats()))
		for _, f := range Formats() {
			names = append(names, string(f))
		}
		return fmt.Errorf("there is no format %q; there are: %s", f, strings.Join(names, ", "))
	}
	if err != nil {
		return err
	}
	p.tellIgnored()
	return nil
}

// bounded fails beyond a size, where io.LimitReader would seem to end.
type bounded struct {
	src  io.Reader
	left int64
}

var errTooLarge = errors.New("the file is larger than can be imported; import a part of it")

func (b *bounded) Read(buf []byte) (int, error) {
	if b.left <= 0 {
		return 0, errTooLarge
	}
	n, err := b.src.Read(buf[:min(int64(len(buf)), b.left)])
	b.left -= int64(n)
	return n, err
}

// malformed keeps a finding.
func (p *parser) malformed(line int, next, format string, args ...any) {
	p.data.Malformed++
	if len(p.data.Findings) < maxFindings {
		p.data.Findings = append(p.data.Findings, *p.finding(line, next, format, args...))
	}
}

func (p *parser) finding(line int, next, format string, args ...any) *Finding {
	return &Finding{File: p.file, Line: line, Cause: plain(fmt.Sprintf(format, args...)), Next: next}
}

// ignore counts what is understood and has no place in a record.
func (p *parser) ignore(what string) {
	if p.ignored == nil {
		p.ignored = map[string]int{}
	}
	if _, seen := p.ignored[what]; !seen {
		if len(p.order) == maxFindings {
			return
		}
		p.order = append(p.order, what)
	}
	p.ignored[what]++
}

func (p *parser) tellIgnored() {
	for _, what := range p.order {
		p.note("left out: %s (%d)", what, p.ignored[what])
	}
	if n := p.data.Malformed; n > 0 {
		p.warn("%d malformed place(s) in %s were left out, the first: %v", n, p.file, &p.data.Findings[0])
	}
}

func (p *parser) note(format string, args ...any) { once(&p.data.Notes, format, args...) }

func (p *parser) warn(format string, args ...any) { once(&p.data.Warnings, format, args...) }

func once(list *[]string, format string, args ...any) {
	s := plain(fmt.Sprintf(format, args...))
	if len(*list) == maxRemarks {
		s = "there is more of that kind"
	}
	if len(*list) <= maxRemarks && !slices.Contains(*list, s) {
		*list = append(*list, s)
	}
}

// add appends a repetition to its series. It fails when the file holds more than a record should.
func (p *parser) add(t design.Treatment, operation, metric string, r Repetition) error {
	t.ID, operation = plain(t.ID), plain(operation)
	key := seriesKey{t.ID, operation, metric}
	s := p.index[key]
	if s == nil {
		if _, seen := p.treatments[t.ID]; !seen {
			if p.treatments == nil {
				p.treatments = map[string]int{}
			}
			p.treatments[t.ID] = len(p.treatments)
		}
		if len(p.treatments) > maxTreatments || len(p.index) >= maxSeries {
			return fmt.Errorf("read %s: %d treatments and %d series are more than can be imported; import a part of the file",
				p.file, len(p.treatments), len(p.index))
		}
		s = &Series{Treatment: t, Operation: operation, Metric: metric}
		p.index[key] = s
		p.data.Series = append(p.data.Series, s)
	}
	if len(s.Repetitions) >= maxRepeats {
		return fmt.Errorf("read %s: %s of %s has more than %d repetitions; import a part of the file", p.file, metric,
			operation, maxRepeats)
	}
	s.Repetitions = append(s.Repetitions, r)
	return nil
}

// longest is how many characters of a name or a remark are kept.
const longest = 300

// plain makes text from a file fit to be shown: one line, without control characters, and not too long.
func plain(s string) string {
	s = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) || r == utf8.RuneError {
			return '·'
		}
		return r
	}, s)
	if len(s) <= longest {
		return s
	}
	if r := []rune(s); len(r) > longest {
		s = string(r[:longest-1]) + "…"
	}
	return s
}

// treatment is the arm with these levels; without any it is Treatment.
func treatment(levels map[string]string) design.Treatment {
	if len(levels) == 0 {
		return design.Treatment{ID: Treatment}
	}
	shown := map[string]string{}
	for k, v := range levels {
		shown[plain(k)] = plain(v)
	}
	return design.Treatment{ID: design.ID(shown), Levels: shown}
}
