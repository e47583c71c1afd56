package importer

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"tare/internal/design"
	"tare/internal/metric"
	"tare/internal/stat"
)

// Calls follow one another and are not independent, so that their number says nothing about how sure a result is. A stream of calls is
// cut into consecutive slices of as many calls each, and a slice is what a repetition is elsewhere (batch means: Law, Simulation Modeling
// and Analysis, 5th ed., section 9.5.3).
const (
	mostSlices = 20
	leastCalls = 10 // of a slice
	mostNames  = 50 // operations of a file; URLs with numbers in them have no end
)

// A call is one call of a load generator that keeps single ones.
type call struct {
	at     time.Time // when it was sent
	took   float64   // seconds from there to the last byte
	failed bool
}

// A stream names calls that belong together: varying levels make treatments.
type stream struct{ level, operation string }

// lineReader reads one line of a format. ok is false where the line is understood and holds no call.
type lineReader interface {
	read(p *parser, line []byte) (s stream, c call, ok bool, err error)
	// level is the name of the level that makes treatments, when it varies.
	level() string
}

// calls reads a format of one call a line.
func (p *parser) calls(src io.Reader, r lineReader) error {
	in := bufio.NewReaderSize(src, maxLine)
	all := map[stream][]call{}
	total := 0
	for n := 1; ; n++ {
		line, err := in.ReadSlice('\n')
		last := errors.Is(err, io.EOF)
		if errors.Is(err, bufio.ErrBufferFull) {
			return p.finding(n, "write the file again with "+producers[p.data.Format], "the line is longer than %d bytes", maxLine)
		}
		if err != nil && !last {
			return fmt.Errorf("read %s: %w", p.file, err)
		}
		if n == 1 {
			line = bytes.TrimPrefix(line, utf8Mark)
		}
		if line = bytes.TrimSpace(line); len(line) > 0 {
			s, c, ok, err := r.read(p, line)
			switch {
			case err != nil:
				next := "take the line out, or write the file again with " + producers[p.data.Format]
				if last {
					next = "it seems cut off; nothing but this line is lost"
				}
				p.malformed(n, next, "%v", err)
			case ok:
				all[s] = append(all[s], c)
				total++
			}
		}
		if total > maxCalls {
			return fmt.Errorf("read %s: %w", p.file, errTooLarge)
		}
		if last {
			return p.streams(all, r.level())
		}
	}
}

// streams turns calls into series.
func (p *parser) streams(all map[stream][]call, level string) error {
	p.data.Unit = "slice of consecutive calls"
	all = p.fewNames(all)
	levels := map[string]bool{}
	for s := range all {
		levels[s.level] = true
	}
	keys := slices.SortedFunc(maps.Keys(all), func(a, b stream) int {
		return cmp.Or(cmp.Compare(a.level, b.level), cmp.Compare(a.operation, b.operation))
	})
	for _, s := range keys {
		t := treatment(nil)
		if len(levels) > 1 {
			t = treatment(map[string]string{level: s.level})
		}
		if err := p.slices(t, s.operation, all[s]); err != nil {
			return err
		}
	}
	if len(keys) > 0 {
		p.warn("the first slice may hold warm-up: %s does not say where it ends", p.data.Format)
	}
	return nil
}

// everything is the operation of calls whose names have no end.
const everything = "requests"

// fewNames joins the operations of a file that has too many.
func (p *parser) fewNames(all map[stream][]call) map[stream][]call {
	names := map[string]bool{}
	for s := range all {
		names[s.operation] = true
	}
	if len(names) <= mostNames {
		return all
	}
	p.note("%d different names of requests are too many to tell apart; they are one operation, %q", len(names), everything)
	joined := map[stream][]call{}
	for s, calls := range all {
		s.operation = everything
		joined[s] = append(joined[s], calls...)
	}
	return joined
}

// slices cuts the calls of a stream into repetitions: service times, the share that failed, and good calls a second.
func (p *parser) slices(t design.Treatment, operation string, calls []call) error {
	slices.SortStableFunc(calls, func(a, b call) int { return a.at.Compare(b.at) })
	if p.data.Started.IsZero() || calls[0].at.Before(p.data.Started) {
		p.data.Started = calls[0].at
	}
	count := min(max(len(calls)/leastCalls, 1), mostSlices)
	if count < mostSlices {
		p.warn("%s has %d calls only, which make %d slice(s) of %d", operation, len(calls), count, mostSlices)
	}
	rateLess := false
	for i := range count {
		part := calls[i*len(calls)/count : (i+1)*len(calls)/count]
		rest := calls[(i+1)*len(calls)/count:]
		values, bad := make([]float64, len(part)), 0
		for j, c := range part {
			values[j] = c.took
			if c.failed {
				bad++
			}
		}
		share := float64(bad) / float64(len(part))
		seconds := lasted(part, rest)
		rateLess = rateLess || !(seconds > 0)
		if err := errors.Join(
			p.add(t, operation, metric.Service.Name, Repetition{N: 1, Values: values}),
			p.add(t, operation, metric.Error.Name, Repetition{N: len(part), Values: []float64{share}}),
		); err != nil {
			return err
		}
		if seconds > 0 && !rateLess {
			if err := p.add(t, operation, metric.Goodput.Name, Repetition{N: len(part), Values: []float64{float64(len(part)-bad) / seconds}}); err != nil {
				return err
			}
		}
	}
	p.mixed(operation, calls)
	return nil
}

// mixed warns where failed calls are among the times.
func (p *parser) mixed(operation string, calls []call) {
	bad := 0
	took := make([]float64, len(calls))
	for i, c := range calls {
		took[i] = c.took
		if c.failed {
			bad++
		}
	}
	if bad > 0 {
		p.warn("%s: %d of %d calls failed; their times count like those of the others", operation, bad, len(calls))
	}
	// JMeter's clock has steps of 1 ms: what is not far above them is rounded.
	if m := stat.Quantile(took, 0.5); p.data.Format == JMeter && m < 0.020 {
		p.warn("%s: JMeter keeps whole milliseconds, which is coarse for a median of %.0f ms", operation, m*1000)
	}
}

// lasted is how long a slice went on: to the next one's first call or, at the end, as long as its own calls' spacing says.
func lasted(part, rest []call) float64 {
	first, last := part[0].at, part[len(part)-1].at
	if len(rest) > 0 {
		return rest[0].at.Sub(first).Seconds()
	}
	if len(part) < 2 {
		return 0
	}
	return last.Sub(first).Seconds() * float64(len(part)) / float64(len(part)-1)
}
