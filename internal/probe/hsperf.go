package probe

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
)

// The layout of HotSpot's performance data, version 2.0 (perfMemory.hpp: PerfDataPrologue; perfData.cpp:
// PerfDataEntry). The magic number is big-endian whatever the rest is.
const (
	hsperfMagic      = 0xcafec0c0
	hsperfPrologue   = 32
	hsperfByteOrder  = 4 // 1: little-endian, 0: big-endian
	hsperfMajor      = 5
	hsperfMinor      = 6
	hsperfAccessible = 7
	hsperfFirst      = 24 // u32: offset of the first entry
	hsperfCount      = 28 // u32: number of entries

	hsperfEntry    = 20 // length of an entry's head
	hsperfName     = 4  // u32: offset of the name in the entry
	hsperfVector   = 8  // u32: elements; 0: a scalar
	hsperfType     = 12 // the JVM's letter: J long, B byte
	hsperfDataFrom = 16 // u32: offset of the value in the entry

	// hsperfMax bounds how much of a file is read: HotSpot's default is 32 KiB (PerfDataMemorySize), of which all of its
	// counters need some 20.
	hsperfMax = 4 << 20
)

// errStarting means that the JVM has created its file and has not filled it yet.
var errStarting = errors.New("the JVM is still starting: its performance data is not accessible yet")

// perfData holds the counters of one file: longs by name, and strings by name.
type perfData struct {
	longs   map[string]int64
	strings map[string]string
}

// parsePerfData reads a copy of the file. Each entry begins after the end of the one before, so no file can make it
// loop. It fails on an entry that reaches beyond the file, or whose name or value lies outside of it: nothing after it
// can be trusted.
func parsePerfData(b []byte) (perfData, error) {
	if len(b) < hsperfPrologue || binary.BigEndian.Uint32(b) != hsperfMagic {
		return perfData{}, errors.New("no performance data: magic number missing")
	}
	var order binary.ByteOrder
	switch b[hsperfByteOrder] {
	case 0:
		order = binary.BigEndian
	case 1:
		order = binary.LittleEndian
	default:
		return perfData{}, fmt.Errorf("malformed performance data: byte order %d", b[hsperfByteOrder])
	}
	if b[hsperfMajor] != 2 {
		return perfData{}, fmt.Errorf("performance data of version %d.%d, want 2.0", b[hsperfMajor], b[hsperfMinor])
	}
	if b[hsperfAccessible] != 1 {
		return perfData{}, errStarting
	}
	p := perfData{longs: make(map[string]int64), strings: make(map[string]string)}
	n, first := order.Uint32(b[hsperfCount:]), order.Uint32(b[hsperfFirst:])
	if first < hsperfPrologue || uint64(first) > uint64(len(b)) {
		return perfData{}, fmt.Errorf("malformed performance data: entries at %d of %d bytes", first, len(b))
	}
	rest := b[first:]
	for i := range n {
		size, err := p.entry(rest, order)
		if err != nil {
			return perfData{}, fmt.Errorf("malformed performance data: entry %d of %d: %w", i, n, err)
		}
		rest = rest[size:]
	}
	return p, nil
}

// entry parses the entry at the start of b and returns its length, which is at least that of its head.
func (p perfData) entry(b []byte, order binary.ByteOrder) (int, error) {
	if len(b) < hsperfEntry {
		return 0, errors.New("truncated")
	}
	size := uint64(order.Uint32(b))
	if size < hsperfEntry || size > uint64(len(b)) {
		return 0, fmt.Errorf("length %d of %d bytes left", size, len(b))
	}
	e := b[:size]
	nameAt, data := uint64(order.Uint32(e[hsperfName:])), uint64(order.Uint32(e[hsperfDataFrom:]))
	if nameAt < hsperfEntry || nameAt >= size || data < hsperfEntry || data > size {
		return 0, fmt.Errorf("name at %d and value at %d of %d bytes", nameAt, data, size)
	}
	end := bytes.IndexByte(e[nameAt:], 0)
	if end < 0 {
		return 0, errors.New("unterminated name")
	}
	name, value, vector := string(e[nameAt:nameAt+uint64(end)]), e[data:], uint64(order.Uint32(e[hsperfVector:]))
	switch {
	case e[hsperfType] == 'J' && vector == 0:
		if len(value) < 8 {
			return 0, fmt.Errorf("%q: truncated value", name)
		}
		p.longs[name] = int64(order.Uint64(value))
	case e[hsperfType] == 'B' && vector > 0:
		if uint64(len(value)) < vector {
			return 0, fmt.Errorf("%q: truncated text", name)
		}
		text, _, _ := bytes.Cut(value[:vector], []byte{0})
		p.strings[name] = string(text)
	}
	return int(size), nil
}

// count returns a counter; ok is false if it is missing or negative.
func (p perfData) count(name string) (float64, bool) {
	v, ok := p.longs[name]
	return float64(v), ok && v >= 0
}

// seconds returns a counter of ticks of the JVM's high-resolution timer, in seconds.
func (p perfData) seconds(name string) (float64, bool) {
	ticks, ok := p.count(name)
	hz, known := p.longs["sun.os.hrt.frequency"]
	if !ok || !known || hz <= 0 {
		return 0, false
	}
	return ticks / float64(hz), true
}

// sumSpaces adds up a counter over all spaces of the heap. The numbers of generations and spaces have gaps (ZGC has a
// generation 1 and no 0), so it finds them by name; a generation's own counters would count the same bytes again.
func (p perfData) sumSpaces(suffix string) (total float64, found bool) {
	for name, v := range p.longs {
		if strings.HasPrefix(name, "sun.gc.generation.") && strings.Contains(name, ".space.") &&
			strings.HasSuffix(name, suffix) && v >= 0 {
			total += float64(v)
			found = true
		}
	}
	return total, found
}

// samples adds the JVM's counters to out, per collector in the order of their numbers.
func (p perfData) samples(out *samples) {
	const collectors = 8 // HotSpot numbers them 0 to 2: young, old, concurrent
	for i := range collectors {
		base := fmt.Sprintf("sun.gc.collector.%d.", i)
		name := printable(p.strings[base+"name"], partMax)
		if name == "" {
			name = fmt.Sprintf("collector %d", i)
		}
		if v, ok := p.count(base + "invocations"); ok {
			out.part(GCCount, name, v)
		}
		if v, ok := p.seconds(base + "time"); ok {
			out.part(GCTime, name, v)
		}
	}
	add := func(q Quantity, v float64, ok bool) {
		if ok {
			out.add(q, v)
		}
	}
	used, ok := p.sumSpaces(".used")
	add(HeapUsed, used, ok)
	committed, ok := p.sumSpaces(".capacity")
	add(HeapCommitted, committed, ok)
	metaspace, ok := p.count("sun.gc.metaspace.used")
	add(Metaspace, metaspace, ok)
	stops, ok := p.count("sun.rt.safepoints")
	add(Safepoints, stops, ok)
	stopped, ok := p.seconds("sun.rt.safepointTime")
	add(SafepointTime, stopped, ok)
}
