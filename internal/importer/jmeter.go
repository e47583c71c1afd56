package importer

import (
	"bufio"
	"encoding/csv"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
)

// jmeterTimes are JMeter's configurable timestamp formats; the default is milliseconds since 1970.
var jmeterTimes = []string{
	"2006/01/02 15:04:05.000", "2006/01/02 15:04:05", "2006-01-02 15:04:05.000",
	"2006-01-02 15:04:05", "01/02/06 15:04:05",
}

// isJTL reports whether a line is the header of JMeter's CSV.
func isJTL(line string) bool {
	return strings.Contains(line, "timeStamp") && strings.Contains(line, "elapsed") && strings.Contains(line, "label")
}

// jmeter parses a JTL file. One sample is one call; elapsed is from sending to the last byte, in whole milliseconds.
func (p *parser) jmeter(src io.Reader) error {
	limit := &fence{src: src}
	in := bufio.NewReaderSize(limit, maxLine)
	limit.allow(0)
	if mark, err := in.Peek(len(utf8Mark)); err == nil && string(mark) == string(utf8Mark) {
		_, _ = in.Discard(len(utf8Mark)) // it was just read
	}
	read := p.jtlCSV
	if head, err := in.Peek(64); (err == nil || len(head) > 0) &&
		strings.HasPrefix(strings.TrimLeft(string(head), " \t\r\n"), "<") {
		read = p.jtlXML
	}
	if err := read(in, limit); err != nil {
		return err
	}
	return p.streams("")
}

// maxRecord bounds a row of a CSV file, and a tag or a text of an XML file, in bytes: an endless one would fill the
// memory.
const maxRecord = 8 << 20

// maxDepth bounds the nesting of an XML file.
const maxDepth = 1000

// A fence fails if a decoder reads too far without completing a record.
type fence struct {
	src      io.Reader
	at, most int64
}

// allow lets the decoder, which has decoded everything up to offset at, read the next record.
func (f *fence) allow(at int64) { f.most = at + int64(len(utf8Mark)) + 2*maxLine + maxRecord }

func (f *fence) Read(b []byte) (int, error) {
	if f.at >= f.most {
		return 0, fmt.Errorf("there is no end of a row or tag within %d bytes", maxRecord)
	}
	n, err := f.src.Read(b[:min(int64(len(b)), f.most-f.at)])
	f.at += int64(n)
	return n, err
}

// jtlCSV parses the CSV form with a header line, with any delimiter.
func (p *parser) jtlCSV(in *bufio.Reader, limit *fence) error {
	head, err := in.Peek(maxLine)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, bufio.ErrBufferFull) {
		return fmt.Errorf("read %s: %w", p.file, err)
	}
	first, _, _ := strings.Cut(string(head), "\n")
	if !isJTL(first) {
		return p.finding(1, "write the file with jmeter.save.saveservice.print_field_names=true",
			"the header line with timeStamp, elapsed and label is missing")
	}
	r := csv.NewReader(in)
	r.ReuseRecord, r.FieldsPerRecord = true, -1
	for _, d := range ";|\t" {
		if strings.ContainsRune(first, d) {
			r.Comma = d
		}
	}
	names, err := r.Read()
	if err != nil {
		return p.finding(1, "write the file again", "the header cannot be read: %v", err)
	}
	columns := columnsOf(names)
	for {
		limit.allow(r.InputOffset())
		row, err := r.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		var broken *csv.ParseError
		if err != nil && !errors.As(err, &broken) {
			return fmt.Errorf("read %s: %w", p.file, err)
		}
		line, _ := position(r, broken)
		if broken != nil {
			p.malformed(line, "take the line out", "%v", broken.Err)
			continue
		}
		x, err := columns.sample(row)
		if errors.Is(err, errSum) {
			return p.finding(line, unsummed, "%v", err)
		}
		if err != nil {
			p.malformed(line, "take the line out; a last one may be cut off", "%v", err)
			continue
		}
		if err := p.take(x); err != nil {
			return err
		}
	}
}

// position returns where the current row begins.
func position(r *csv.Reader, broken *csv.ParseError) (line, column int) {
	if broken != nil {
		return broken.Line, broken.Column
	}
	return r.FieldPos(0)
}

// columns are the indexes of a JTL's fields.
type columns struct{ at, elapsed, label, success, code, samples, count int }

func columnsOf(names []string) columns {
	find := func(name string) int {
		return slices.IndexFunc(names, func(s string) bool { return strings.TrimSpace(s) == name })
	}
	return columns{
		at: find("timeStamp"), elapsed: find("elapsed"), label: find("label"), success: find("success"),
		code: find("responseCode"), samples: find("SampleCount"), count: len(names),
	}
}

func (x columns) sample(row []string) (sample, error) {
	if len(row) < x.count {
		return sample{}, fmt.Errorf("it has %d fields where the header has %d", len(row), x.count)
	}
	if x.at < 0 || x.elapsed < 0 || x.label < 0 {
		return sample{}, errors.New("the header has no timeStamp, elapsed or label")
	}
	success, code := "", ""
	if x.success >= 0 {
		success = row[x.success]
	}
	if x.code >= 0 {
		code = row[x.code]
	}
	if x.samples >= 0 && sums(row[x.samples]) {
		return sample{}, errSum
	}
	return jmeterCall(row[x.at], row[x.elapsed], row[x.label], success, code)
}

// errSum reports a sample that is the sum of several calls and lacks their times; unsummed says what to do.
var errSum = errors.New("the sample is the sum of several calls (SampleCount): no call has a time of its own")

const unsummed = "run JMeter with mode=StrippedBatch in place of Statistical"

// sums reports whether a SampleCount is of several calls. JMeter leaves it out or writes 1 where it is of one.
func sums(count string) bool {
	n, err := strconv.Atoi(strings.TrimSpace(count))
	return err == nil && n > 1
}

// jmeterCall parses the relevant fields, from CSV or XML.
func jmeterCall(at, elapsed, label, success, code string) (sample, error) {
	ms, err := strconv.ParseFloat(strings.TrimSpace(elapsed), 64)
	if err != nil || !good(ms) {
		return sample{}, fmt.Errorf("elapsed %q is no number of milliseconds", elapsed)
	}
	t, err := jmeterTime(strings.TrimSpace(at))
	if err != nil {
		return sample{}, err
	}
	if label = strings.TrimSpace(strings.Clone(label)); label == "" {
		label = everything
	}
	failed, said := jmeterFailed(strings.TrimSpace(success), strings.TrimSpace(code))
	return sample{stream: stream{operation: label}, call: callAt(t, ms/1000, failed || !said), unsaid: !said}, nil
}

// jmeterFailed says whether a call failed: by JMeter's own word, or without it by the code, which is a sentence where
// HTTP got no answer.
func jmeterFailed(success, code string) (failed, said bool) {
	if success != "" {
		return !strings.EqualFold(success, "true"), true
	}
	if strings.HasPrefix(code, "Non HTTP response code") {
		return true, true
	}
	status, err := strconv.Atoi(code)
	return status < 200 || status >= 400, err == nil && status >= 100
}

// maxMillis is later than the year 9999.
const maxMillis = 253_402_300_800_000

func jmeterTime(s string) (time.Time, error) {
	if ms, err := strconv.ParseInt(s, 10, 64); err == nil && ms >= 0 && ms < maxMillis {
		return time.UnixMilli(ms).UTC(), nil
	}
	for _, form := range jmeterTimes {
		if t, err := time.Parse(form, s); err == nil {
			return t, nil
		}
	}
	return time.Time{}, fmt.Errorf("timeStamp %q is neither milliseconds since 1970 nor a date like 2006/01/02 "+
		"15:04:05.000", s)
}

// jtlXML parses the XML form. Nested samples are parts of their parents and not counted again.
func (p *parser) jtlXML(in *bufio.Reader, limit *fence) error {
	d := xml.NewDecoder(in)
	depth, total := 0, 0
	for {
		limit.allow(d.InputOffset())
		token, err := d.Token()
		line, _ := d.InputPos()
		if errors.Is(err, io.EOF) && depth == 0 {
			return nil
		}
		if err != nil {
			if total == 0 {
				return p.finding(line, "write the file again with "+producers[JMeter], "it is no XML that JMeter writes: %v", err)
			}
			p.malformed(line, "it seems cut off; what is before this line was taken", "%v", err)
			return nil
		}
		switch e := token.(type) {
		case xml.StartElement:
			if depth++; depth > maxDepth {
				return p.finding(line, "write the file again with "+producers[JMeter],
					"there are more than %d elements in one another", maxDepth)
			}
			if depth != 2 || !isSample(e.Name.Local) {
				continue
			}
			total++
			x, err := sampleOf(e)
			if errors.Is(err, errSum) {
				return p.finding(line, unsummed, "%v", err)
			}
			if err != nil {
				p.malformed(line, "take the sample out", "%v", err)
				continue
			}
			if err := p.take(x); err != nil {
				return err
			}
		case xml.EndElement:
			depth--
		}
	}
}

func isSample(name string) bool {
	return name == "httpSample" || name == "sample" || name == "sampleResult"
}

// sampleOf returns a sample's attributes, with their short names or those before JMeter 2.1.
func sampleOf(e xml.StartElement) (sample, error) {
	get := func(short, long string) string {
		for _, a := range e.Attr {
			if a.Name.Local == short || a.Name.Local == long {
				return a.Value
			}
		}
		return ""
	}
	if sums(get("sc", "sampleCount")) {
		return sample{}, errSum
	}
	return jmeterCall(get("ts", "timeStamp"), get("t", "time"), get("lb", "label"), get("s", "success"),
		get("rc", "responseCode"))
}
