package importer

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"time"

	"tare/internal/design"
	"tare/internal/metric"
	"tare/internal/unit"
)

// Calls follow one another and are not independent, so that their number says nothing about how sure a result is. A
// stream of calls is cut into consecutive slices of as many calls each, and a slice is what a repetition is elsewhere
// (batch means: Law, Simulation Modeling and Analysis, 5th ed., section 9.5.3).
const (
	mostSlices = 20
	leastCalls = 10 // of a slice
	mostNames  = 50 // operations of a file; URLs with numbers in them have no end
)

// A call is one call of a load generator that keeps single ones. There are millions of them.
type call struct {
	sent  int64   // in nanoseconds since 1970
	timed float64 // seconds from there to the last byte; negative, or −0, of a call that failed
}

// callAt is a call that was sent at an instant. One that no clock of a load generator shows becomes the nearest one
// that can be kept.
func callAt(at time.Time, took float64, failed bool) call {
	c := call{sent: at.UnixNano(), timed: took}
	switch y := at.Year(); {
	case y < 1678:
		c.sent = math.MinInt64
	case y > 2261:
		c.sent = math.MaxInt64
	}
	if failed {
		c.timed = math.Copysign(took, -1)
	}
	return c
}

func (c call) at() time.Time { return time.Unix(0, c.sent).UTC() }

func (c call) took() float64 { return math.Abs(c.timed) }

func (c call) failed() bool { return math.Signbit(c.timed) }

// A stream names calls that belong together: varying levels make treatments.
type stream struct{ level, operation string }

// A sample is a call as a file has it. One of which the file does not say whether it failed is unsaid.
type sample struct {
	stream
	call
	unsaid bool
}

// lineReader reads one line of a format. ok is false where the line is understood and holds no call.
type lineReader interface {
	read(p *parser, line []byte) (x sample, ok bool, err error)
	// level is the name of the level that makes treatments, when it varies.
	level() string
}

// take keeps a call. It fails when the file holds more than can be imported.
func (p *parser) take(x sample) error {
	s := x.stream
	s.level, s.operation = plain(s.level), plain(s.operation)
	if p.names == nil {
		p.names, p.levels = map[string]bool{}, map[string]bool{}
	}
	if p.joined {
		s.operation = everything
	}
	p.names[s.operation], p.levels[s.level] = true, true
	if len(p.names) > mostNames && !p.joined {
		p.joinNames()
		s.operation = everything
	}
	p.all[s] = append(p.all[s], x.call)
	if x.unsaid {
		p.unsaid[s]++
	}
	if p.calls++; p.calls > maxCalls || len(p.levels) > maxTreatments {
		return fmt.Errorf("read %s: %d calls of %d treatments: %w", p.file, p.calls, len(p.levels), errTooLarge)
	}
	return nil
}

// everything is the operation of calls whose names have no end.
const everything = "requests"

// joinNames makes one operation of all, since the file has too many.
func (p *parser) joinNames() {
	p.note("more than %d different names of requests are too many to tell apart; they are one operation, %q",
		mostNames, everything)
	p.joined = true
	for _, s := range slices.SortedFunc(maps.Keys(p.all), byName) {
		if s.operation != everything {
			one := stream{level: s.level, operation: everything}
			p.all[one] = append(p.all[one], p.all[s]...)
			delete(p.all, s)
			p.unsaid[one] += p.unsaid[s]
		}
	}
}

func byName(a, b stream) int {
	return cmp.Or(cmp.Compare(a.level, b.level), cmp.Compare(a.operation, b.operation))
}

// lines reads a format of one call a line.
func (p *parser) lines(src io.Reader, r lineReader) error {
	in := bufio.NewReaderSize(src, maxLine)
	for n := 1; ; n++ {
		line, err := in.ReadSlice('\n')
		last := errors.Is(err, io.EOF)
		if errors.Is(err, bufio.ErrBufferFull) {
			return p.finding(n, "write the file again with "+producers[p.data.Format],
				"the line is longer than %d bytes", maxLine)
		}
		if err != nil && !last {
			return fmt.Errorf("read %s: %w", p.file, err)
		}
		if n == 1 {
			line = bytes.TrimPrefix(line, utf8Mark)
		}
		if line = bytes.TrimSpace(line); len(line) > 0 {
			x, ok, err := r.read(p, line)
			switch {
			case err != nil:
				next := "take the line out, or write the file again with " + producers[p.data.Format]
				if last {
					next = "it seems cut off; nothing but this line is lost"
				}
				p.malformed(n, next, "%v", err)
			case ok:
				if err := p.take(x); err != nil {
					return err
				}
			}
		}
		if last {
			return p.streams(r.level())
		}
	}
}

// streams turns calls into series.
func (p *parser) streams(level string) error {
	p.data.Unit = "slice of consecutive calls"
	keys := slices.SortedFunc(maps.Keys(p.all), byName)
	for _, s := range keys {
		t := treatment(nil)
		if len(p.levels) > 1 {
			t = treatment(map[string]string{level: s.level})
		}
		if err := p.slices(t, s.operation, p.all[s], p.unsaid[s]); err != nil {
			return err
		}
		delete(p.all, s) // its times are in the series
	}
	if len(keys) > 0 {
		p.warn("the first slice may hold warm-up: %s does not say where it ends", p.data.Format)
	}
	return nil
}

// slices cuts the calls of a stream into repetitions: service times, the share that failed, and good calls a second.
// Where the file does not say of any call whether it failed, it has times alone. A line that cannot be read may be a
// call of any stream, at any time: each stream counts all of them, as many in each slice.
func (p *parser) slices(t design.Treatment, operation string, calls []call, unsaid int) error {
	slices.SortStableFunc(calls, func(a, b call) int { return cmp.Compare(a.sent, b.sent) })
	if at := calls[0].at(); p.data.Started.IsZero() || at.Before(p.data.Started) {
		p.data.Started = at
	}
	count := min(max(len(calls)/leastCalls, 1), mostSlices)
	if count < mostSlices {
		p.warn("%s has only %s, enough for %s of %d", operation, unit.Count(len(calls), "call"), unit.Count(count, "slice"),
			mostSlices)
	}
	rateLess := false
	for i := range count {
		part := calls[i*len(calls)/count : (i+1)*len(calls)/count]
		rest := calls[(i+1)*len(calls)/count:]
		values, bad := make([]float64, len(part)), 0
		for j, c := range part {
			values[j] = c.took()
			if c.failed() {
				bad++
			}
		}
		share := float64(bad) / float64(len(part))
		unread := (i+1)*p.data.Malformed/count - i*p.data.Malformed/count
		seconds := lasted(part, rest)
		rateLess = rateLess || !(seconds > 0)
		if err := p.add(t, operation, metric.Service.Name, Repetition{N: 1, Unread: unread, Values: values}); err != nil {
			return err
		}
		if unsaid == len(calls) {
			continue
		}
		if err := p.add(t, operation, metric.Error.Name,
			Repetition{N: len(part), Unread: unread, Values: []float64{share}}); err != nil {
			return err
		}
		if seconds > 0 && !rateLess {
			if err := p.add(t, operation, metric.Goodput.Name,
				Repetition{N: len(part), Values: []float64{float64(len(part)-bad) / seconds}}); err != nil {
				return err
			}
		}
	}
	p.mixed(operation, calls, unsaid)
	return nil
}

// mixed warns where failed calls are among the times, or may be.
func (p *parser) mixed(operation string, calls []call, unsaid int) {
	bad := 0
	for _, c := range calls {
		if c.failed() {
			bad++
		}
	}
	switch {
	case unsaid == len(calls):
		p.warn("%s: the file does not say which calls failed: it has no error and no goodput, and times may be those of "+
			"calls that failed", operation)
		bad = 0
	case unsaid > 0:
		p.warn("%s: of %d of %d calls the file does not say whether they failed: they count as failed", operation, unsaid,
			len(calls))
	}
	if bad > 0 {
		p.warn("%s: %d of %d calls failed; their times count like those of the others", operation, bad, len(calls))
	}
}

// lasted is how long a slice went on: to the next one's first call or, at the end, as long as its own calls' spacing
// says.
func lasted(part, rest []call) float64 {
	first, last := part[0].at(), part[len(part)-1].at()
	if len(rest) > 0 {
		return rest[0].at().Sub(first).Seconds()
	}
	if len(part) < 2 {
		return 0
	}
	return last.Sub(first).Seconds() * float64(len(part)) / float64(len(part)-1)
}
