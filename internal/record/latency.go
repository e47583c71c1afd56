package record

import (
	"bytes"
	"compress/zlib"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"tare/internal/hist"
	"tare/internal/load"
)

// Measure says which of a call's times a histogram holds.
type Measure string

// The measures.
const (
	Response Measure = "response"
	Service  Measure = "service"
	PoolWait Measure = "pool_wait"
	Lateness Measure = "lateness"
)

// phasePrefix begins the measure of a phase.
const phasePrefix = "phase."

// PhaseMeasure returns the measure of the phase of that name; see load.Mark.
func PhaseMeasure(name string) Measure { return Measure(phasePrefix + name) }

// Phase returns the name of the measure's phase; ok is false for the measures that every call has.
func (m Measure) Phase() (name string, ok bool) { return strings.CutPrefix(string(m), phasePrefix) }

// field encodes the measure for a tag: names of phases may hold any character.
func (m Measure) field() string {
	if name, ok := m.Phase(); ok {
		return phasePrefix + url.QueryEscape(name)
	}
	return string(m)
}

// setField decodes what field has encoded.
func (m *Measure) setField(f string) error {
	*m = Measure(f)
	escaped, ok := m.Phase()
	if !ok {
		return nil
	}
	name, err := url.QueryUnescape(escaped)
	*m = PhaseMeasure(name)
	return err
}

// Interval is one cell of the latency file: the distribution, in nanoseconds, of one measure over the calls of one
// operation with one outcome in one trial.
type Interval struct {
	Treatment string
	Block     int
	Operation string
	Outcome   load.Outcome
	Measure   Measure
	Start     time.Time
	Length    time.Duration
	Hist      *hist.Histogram
}

// digits is the precision on disk. A cell of 3 significant digits lies within one cell of package hist, so reading
// restores the original cells.
const digits = 3

// tag encodes the interval's coordinates as the tag of an HdrHistogram log line, which must not hold a comma, space or
// line break.
func (iv *Interval) tag() string {
	return strings.Join([]string{
		url.QueryEscape(iv.Treatment), strconv.Itoa(iv.Block),
		url.QueryEscape(iv.Operation), iv.Outcome.String(), iv.Measure.field(),
	}, "|")
}

func (iv *Interval) setTag(tag string) error {
	f := strings.Split(tag, "|")
	if len(f) != 5 {
		return fmt.Errorf("tag %q has %d fields, not 5", tag, len(f))
	}
	var err1, err2, err3 error
	iv.Treatment, err1 = url.QueryUnescape(f[0])
	iv.Block, err2 = strconv.Atoi(f[1])
	iv.Operation, err3 = url.QueryUnescape(f[2])
	return errors.Join(err1, err2, err3, iv.Outcome.UnmarshalText([]byte(f[3])), iv.Measure.setField(f[4]))
}

// latencyHead returns the head of a latency file in the format of the HdrHistogram tools. Times of lines are seconds
// since the epoch.
func latencyHead(start time.Time) []byte {
	var b bytes.Buffer
	w := hdrhistogram.NewHistogramLogWriter(&b)
	err := errors.Join(
		w.OutputComment("[written by tare; values in nanoseconds, maxima in milliseconds; tag: "+
			"treatment|block|operation|outcome|measure]"),
		w.OutputLogFormatVersion(), w.OutputStartTime(start.UnixMilli()), w.OutputBaseTime(0), w.OutputLegend())
	if err != nil {
		panic(err) // a bytes.Buffer does not fail
	}
	return b.Bytes()
}

// appendInterval encodes iv as one line of the latency file.
func appendInterval(dst []byte, iv *Interval) ([]byte, error) {
	h := hdrhistogram.New(1, max(2, iv.Hist.Max()), digits)
	var failed error
	iv.Hist.Each(func(v int64, n uint64) {
		// The middle of the last cell may exceed the largest value.
		if err := h.RecordValues(min(v, iv.Hist.Max()), int64(n)); err != nil {
			failed = err
		}
	})
	if failed != nil {
		return dst, fmt.Errorf("encode histogram %s: %w", iv.tag(), failed)
	}
	h.SetTag(iv.tag())
	h.SetStartTimeMs(iv.Start.UnixMilli())
	h.SetEndTimeMs(iv.Start.Add(iv.Length).UnixMilli())
	b := bytes.NewBuffer(dst)
	if err := hdrhistogram.NewHistogramLogWriter(b).OutputIntervalHistogram(h); err != nil {
		return dst, fmt.Errorf("encode histogram %s: %w", iv.tag(), err)
	}
	return b.Bytes(), nil
}

// parseInterval reads one line of the latency file.
func parseInterval(line string) (*Interval, error) {
	rest, ok := strings.CutPrefix(line, "Tag=")
	f := strings.SplitN(rest, ",", 5)
	if !ok || len(f) != 5 {
		return nil, errors.New("not a tagged interval")
	}
	iv := &Interval{}
	if err := iv.setTag(f[0]); err != nil {
		return nil, err
	}
	start, err1 := strconv.ParseFloat(f[1], 64)
	length, err2 := strconv.ParseFloat(f[2], 64)
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	iv.Start = time.UnixMilli(int64(start * 1e3)).UTC()
	iv.Length = time.Duration(length * 1e9)
	h, err := decodeHistogram(f[4])
	if err != nil {
		return nil, err
	}
	iv.Hist = h
	return iv, nil
}

// decodeHistogram checks the geometry before the library allocates memory for it.
func decodeHistogram(encoded string) (*hist.Histogram, error) {
	if err := checkGeometry(encoded); err != nil {
		return nil, err
	}
	d, err := hdrhistogram.Decode([]byte(encoded))
	if err != nil {
		return nil, fmt.Errorf("decode histogram: %w", err)
	}
	h, values := hist.Compact(), 0
	eachCount(d.Export(), func(value int64, n uint64) {
		h.RecordN(value, n)
		values++
	})
	if values > mostPerByte*len(encoded)+64 {
		return nil, fmt.Errorf("decode histogram: %d bytes unfold into %d values, which no measurement does",
			len(encoded), values)
	}
	return &h, nil
}

// mostPerByte bounds the number of different values for each byte of an encoded histogram: compression does not exceed
// it for measured values, and reaches a thousand for forged ones.
const mostPerByte = 8

// eachCount calls f with the middle of every cell that is not empty, in ascending order. Unlike Distribution it makes
// no list of all cells: a day's soak has thousands of histograms. The layout is HdrHistogram's: 2048 cells of one unit
// each, then 1024 for each doubling.
func eachCount(s *hdrhistogram.Snapshot, f func(value int64, n uint64)) {
	const half = 1024 // cells for each doubling at 3 significant digits
	unit := bits.Len64(uint64(max(1, s.LowestTrackableValue))) - 1
	for i, n := range s.Counts {
		if n <= 0 {
			continue
		}
		bucket, sub := i/half-1, i%half+half
		if bucket < 0 {
			bucket, sub = 0, i
		}
		shift := bucket + unit
		f(int64(sub)<<shift+(int64(1)<<shift-1)/2, uint64(n))
	}
}

// maxHistogram bounds the decompressed size of one histogram; one of 3 digits over all of int64 needs 9 bytes for each
// of its 57,344 counts.
const maxHistogram = 1 << 20

func checkGeometry(encoded string) error {
	raw, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil || len(raw) < 8 {
		return fmt.Errorf("decode histogram: %w", errTorn)
	}
	z, err := zlib.NewReader(bytes.NewReader(raw[8:]))
	if err != nil {
		return fmt.Errorf("decode histogram: %w", err)
	}
	body, err := io.ReadAll(io.LimitReader(z, maxHistogram+1))
	if err != nil {
		return fmt.Errorf("decode histogram: %w", err)
	}
	if len(body) < hdrhistogram.ENCODING_HEADER_SIZE || len(body) > maxHistogram {
		return fmt.Errorf("decode histogram: %d bytes is not a histogram that tare writes", len(body))
	}
	if n := binary.BigEndian.Uint32(body[12:]); n != digits {
		return fmt.Errorf("decode histogram: %d significant digits, not %d", n, digits)
	}
	return nil
}

type part struct {
	measure Measure
	hist    *hist.Histogram
}

// parts returns the histograms of c, those of its phases last.
func parts(c *load.Cell) []part {
	out := append(make([]part, 0, 4+len(c.Phases)), part{Response, c.Response}, part{Service, c.Service},
		part{PoolWait, c.PoolWait}, part{Lateness, c.Lateness})
	for _, p := range c.Phases {
		out = append(out, part{PhaseMeasure(p.Name), p.Hist})
	}
	return out
}
