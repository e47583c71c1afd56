// Package importer imports results of other tools – Go benchmarks, hyperfine, k6, vegeta, JMH, JMeter – as records.
// Such results were measured sequentially, not in interleaved blocks, so the record is marked as unblocked: it can be
// compared, but never proves equivalence.
package importer

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"tare/internal/design"
	"tare/internal/metric"
	"tare/internal/unit"
)

// Area is the area in the header of every imported record.
const Area = "imported"

// Treatment is the only arm of a file without varying levels.
const Treatment = "imported"

// Format is the format of a tool's results.
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

// Formats returns all formats, in the order of the documentation.
func Formats() []Format {
	return []Format{GoBench, Hyperfine, K6, K6Summary, Vegeta, VegetaSummary, JMH, JMeter}
}

// The limits of one file. Larger files are rejected, so that a wrong file exhausts neither memory nor disk: any import
// needs less than 512 MiB of memory. Formats with one call per line are read line by line.
const (
	maxFile       = 16 << 30 // bytes, after decompression
	maxUnfold     = 250      // bytes that a compressed byte may expand to; results of load generators reach 50
	freeUnfold    = 64 << 20 // bytes that a compressed file may always expand to
	maxDocument   = 64 << 20 // bytes of a file that is one JSON document
	maxLine       = 1 << 20  // bytes
	maxCalls      = 5_000_000
	maxSeries     = 5_000
	maxRepeats    = 10_000 // of one series
	maxTreatments = 500
	maxFindings   = 20  // that are listed
	maxRemarks    = 200 // notes, and warnings
)

// Data is the content of a file.
type Data struct {
	Format Format
	// Started is when the results were measured; zero if the file does not say.
	Started time.Time
	// Unit says what one repetition is: "run", "fork", "slice of calls".
	Unit   string
	Series []*Series
	// Made is what the file says of where and with what all of its results were made: "cpu", "JVM".
	Made map[string]string
	// Notes say what was omitted and why; Warnings say what limits the results.
	Notes, Warnings []string
	// Findings are malformed parts, at most 20 of them; Malformed counts all.
	Findings  []Finding
	Malformed int
}

// A Series is one metric of one operation under one treatment, by repetition in the order of measurement.
type Series struct {
	Treatment design.Treatment
	Operation string
	Metric    string // a name that metric.Find knows
	// Step is the clock's resolution, of which all times are multiples, in seconds; 0: none was seen.
	Step        float64
	Repetitions []Repetition
}

// A Repetition corresponds to an entry of record.Batches: Values are per call, in the metric's base unit.
type Repetition struct {
	N      int // calls behind each value
	Unread int // further calls, at most, of which nothing can be read
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

// A Finding is a malformed part of the file.
type Finding struct {
	File  string
	Line  int
	Cause string
	Next  string // what to do about it
}

// Error implements error.
func (f *Finding) Error() string {
	return fmt.Sprintf("%s:%d: %s; %s", f.File, f.Line, f.Cause, f.Next)
}

// ErrEmpty means that a file contained no importable result.
var ErrEmpty = errors.New("no result was found")

// Read reads all of src. file names it in messages. An empty format is detected from the content. A malformed part of a
// line-based format is omitted and becomes a Finding; a malformed document returns a *Finding as the error. The error
// wraps ErrEmpty if there is no result.
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
	for _, s := range p.data.Series {
		s.findStep(f)
	}
	slices.SortStableFunc(p.data.Series,
		func(a, b *Series) int { return cmp.Compare(p.treatments[a.Treatment.ID], p.treatments[b.Treatment.ID]) })
	return p.data, nil
}

// nothing explains why a file gave no result.
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

// decompressed accepts gzip input, which k6 can write. It fails if the file expands more than any tool's results.
func decompressed(in *bufio.Reader) (*bufio.Reader, error) {
	magic, err := in.Peek(2)
	if err != nil || !bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		return in, nil //nolint:nilerr // a file of one byte is not compressed; its content is checked later
	}
	from := &counting{src: in}
	z, err := gzip.NewReader(bufio.NewReader(from))
	if err != nil {
		return nil, fmt.Errorf("decompress: %w", err)
	}
	return bufio.NewReaderSize(&unfolding{src: z, from: from}, maxLine), nil
}

// counting counts the bytes read.
type counting struct {
	src io.Reader
	n   int64
}

func (c *counting) Read(b []byte) (int, error) {
	n, err := c.src.Read(b)
	c.n += int64(n)
	return n, err
}

// unfolding fails if a compressed file expands far more than any tool's results.
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

// parser collects the series of one file.
type parser struct {
	file       string
	data       *Data
	index      map[seriesKey]*Series
	treatments map[string]int // in order of appearance
	ignored    map[string]int
	order      []string // of ignored

	all           map[stream][]call // of formats of single calls
	unsaid        map[stream]int    // calls of all of which the file does not say whether they failed
	calls         int               // in all
	names, levels map[string]bool   // of all
	joined        bool              // all names have been joined to one
}

type seriesKey struct{ treatment, operation, metric string }

func (p *parser) read(in *bufio.Reader, f Format) error {
	src := &bounded{src: in, left: maxFile}
	var err error
	p.all, p.unsaid = map[stream][]call{}, map[stream]int{}
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

// bounded fails beyond a size, where io.LimitReader would report an end.
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

// malformed adds a finding.
func (p *parser) malformed(line int, next, format string, args ...any) {
	p.data.Malformed++
	if len(p.data.Findings) < maxFindings {
		p.data.Findings = append(p.data.Findings, *p.finding(line, next, format, args...))
	}
}

func (p *parser) finding(line int, next, format string, args ...any) *Finding {
	return &Finding{File: p.file, Line: line, Cause: plain(fmt.Sprintf(format, args...)), Next: next}
}

// ignore counts valid parts that a record cannot hold.
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
		p.warn("left out of %s: %s, the first: %v", p.file, unit.Count(n, "malformed place"), &p.data.Findings[0])
	}
}

func (p *parser) note(format string, args ...any) { once(&p.data.Notes, format, args...) }

func (p *parser) warn(format string, args ...any) { once(&p.data.Warnings, format, args...) }

// made keeps what the file says of where or with what its results were made. Of several values it keeps all.
func (p *parser) made(key, value string) {
	key, value = plain(key), plain(value)
	known := p.data.Made[key]
	if slices.Contains(strings.Split(known, ", "), value) {
		return
	}
	if known != "" {
		value = plain(known + ", " + value)
	}
	if p.data.Made == nil {
		p.data.Made = map[string]string{}
	}
	p.data.Made[key] = value
}

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

// longest is the maximum length of a name or a remark, in characters.
const longest = 300

// plain makes text from a file printable: one line, without control characters and the passwords of URLs, and not too
// long.
func plain(s string) string {
	s = withoutUsers(s)
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

// withoutUsers takes the user and the password out of the URLs in a text.
func withoutUsers(s string) string {
	const begins = "://"
	before, rest, found := strings.Cut(s, begins)
	if !found {
		return s
	}
	var out strings.Builder
	for found {
		out.WriteString(before + begins)
		host := rest
		if end := strings.IndexAny(rest, "/?#\"' \t\r\n"); end >= 0 {
			host = rest[:end]
		}
		before, rest, found = strings.Cut(rest[strings.LastIndex(host, "@")+1:], begins)
	}
	return out.String() + before
}

// treatment returns the arm with these levels; without any it is Treatment.
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

// leastStep is the least part of a time that a clock's step must be to be kept.
const leastStep = 1e-4

// findStep looks for the step of the clock of which all times of a series are multiples. JMeter's is known.
func (s *Series) findStep(f Format) {
	steps := []float64{1, 1e-3, 1e-6, 1e-9}
	if f == JMeter {
		steps = []float64{1e-3}
	}
	if m, ok := metric.Find(s.Metric); !ok || m.Unit != metric.Seconds && m.Unit != metric.CPUSeconds {
		return
	}
	for _, step := range steps {
		if s.isIn(step, f == JMeter) {
			s.Step = step
			return
		}
	}
}

// isIn reports whether all times are multiples of a step, and half of them at least are not very much longer than it.
// Nothing but zeros shows no step, unless it is known.
func (s *Series) isIn(step float64, known bool) bool {
	const slack = 1e-6 // of a step: what is read was divided
	long, all, seen := 0, 0, known
	for i := range s.Repetitions {
		for _, v := range s.Repetitions[i].Values {
			n := v / step
			if math.Abs(n-math.Round(n)) > slack+1e-12*n || v != 0 && n < 0.5 {
				return false
			}
			if all++; n > 1/leastStep {
				long++
			}
			seen = seen || v != 0
		}
	}
	return seen && 2*long < all
}
