package probe

import (
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tare/internal/metric"
	"tare/rigs/memtest"
)

// A counter of a file of performance data: a long, or a text.
type counter struct {
	name string
	long int64
	text string
}

// perfBytes lays counters out as HotSpot does, values aligned to 8.
func perfBytes(order binary.AppendByteOrder, counters ...counter) []byte {
	b := binary.BigEndian.AppendUint32(nil, hsperfMagic)
	little := byte(0)
	if order.String() == binary.LittleEndian.String() {
		little = 1
	}
	b = append(b, little, 2, 0, 1)
	b = append(b, make([]byte, 16)...) // used, overflow, time of the last change
	b = order.AppendUint32(b, hsperfPrologue)
	b = order.AppendUint32(b, uint32(len(counters)))
	for _, c := range counters {
		name := append([]byte(c.name), 0)
		data := (hsperfEntry + len(name) + 7) &^ 7
		kind, vector, value := byte('J'), 0, order.AppendUint64(nil, uint64(c.long))
		if c.text != "" {
			kind, vector, value = 'B', len(c.text)+3, append([]byte(c.text), 0, 'x', 'x') // what follows the terminator is old
		}
		for len(value)%8 != 0 {
			value = append(value, 0)
		}
		for _, n := range []int{data + len(value), hsperfEntry, vector} {
			b = order.AppendUint32(b, uint32(n))
		}
		b = append(b, kind, 0, 1, 3)
		b = order.AppendUint32(b, uint32(data))
		b = append(b, name...)
		b = append(b, make([]byte, data-hsperfEntry-len(name))...)
		b = append(b, value...)
	}
	return b
}

// zgc has the numbering of ZGC: a collector 2 and a generation 1, and none before them.
func zgc(begun int64) []counter {
	return []counter{
		{name: "sun.os.hrt.frequency", long: 1e6},
		{name: "sun.rt.createVmBeginTime", long: begun},
		{name: "sun.gc.collector.2.name", text: "Z concurrent cycle pauses"},
		{name: "sun.gc.collector.2.invocations", long: 72},
		{name: "sun.gc.collector.2.time", long: 1_500_000},
		{name: "sun.gc.generation.1.capacity", long: 1 << 40},
		{name: "sun.gc.generation.1.space.0.used", long: 4 << 20},
		{name: "sun.gc.generation.1.space.0.capacity", long: 64 << 20},
		{name: "sun.gc.generation.1.space.1.used", long: 1 << 20},
		{name: "sun.gc.generation.1.space.1.maxCapacity", long: 1 << 40},
		{name: "sun.gc.metaspace.used", long: 9 << 20},
		{name: "sun.rt.safepoints", long: 75},
		{name: "sun.rt.safepointTime", long: 250_000},
	}
}

var zgcSamples = []metric.Sample{
	{Metric: "gc_count", Part: "Z concurrent cycle pauses", Value: 72},
	{Metric: "gc_time", Part: "Z concurrent cycle pauses", Value: 1.5},
	{Metric: "heap_used", Value: 5 << 20},
	{Metric: "heap_committed", Value: 64 << 20},
	{Metric: "metaspace", Value: 9 << 20},
	{Metric: "safepoints", Value: 75},
	{Metric: "safepoint_time", Value: 0.25},
}

func TestPerfData(t *testing.T) {
	for _, order := range []binary.AppendByteOrder{binary.LittleEndian, binary.BigEndian} {
		p, err := parsePerfData(perfBytes(order, zgc(1)...))
		if err != nil {
			t.Fatalf("%v: %v", order, err)
		}
		out := samples{}
		p.samples(&out)
		if d := cmp.Diff(zgcSamples, out.list); d != "" {
			t.Errorf("%v (-want +got):\n%s", order, d)
		}
	}
}

func TestPerfDataWithoutFrequency(t *testing.T) {
	counters := zgc(1)
	counters[0].long = 0
	p, err := parsePerfData(perfBytes(binary.LittleEndian, counters...))
	if err != nil {
		t.Fatal(err)
	}
	out := samples{}
	p.samples(&out)
	for _, s := range out.list {
		if s.Metric == "gc_time" || s.Metric == "safepoint_time" {
			t.Errorf("%+v from ticks of unknown length", s)
		}
	}
	if len(out.list) != len(zgcSamples)-2 {
		t.Errorf("%d samples, want all but the times", len(out.list))
	}
}

func TestMalformedPerfData(t *testing.T) {
	good := perfBytes(binary.LittleEndian, zgc(1)...)
	if _, err := parsePerfData(good); err != nil {
		t.Fatal(err)
	}
	second := hsperfPrologue + int(binary.LittleEndian.Uint32(good[hsperfPrologue:]))
	for _, c := range []struct {
		name string
		at   int
		u32  uint32
	}{
		{"entry of length 0: a circle", second, 0},
		{"entry of the head's length less one", second, hsperfEntry - 1},
		{"entry beyond the file", second, uint32(len(good))},
		{"entry of 4 GiB", second, math.MaxUint32},
		{"name in the head", second + hsperfName, 3},
		{"name beyond the entry", second + hsperfName, 1 << 31},
		{"value beyond the entry", second + hsperfDataFrom, 1 << 31},
		{"value at the entry's end", second + hsperfDataFrom, binary.LittleEndian.Uint32(good[second:])},
		{"more entries than there are", hsperfCount, 1000},
		{"first entry beyond the file", hsperfFirst, uint32(len(good)) + 1},
		{"first entry in the prologue", hsperfFirst, 4},
	} {
		b := slices.Clone(good)
		binary.LittleEndian.PutUint32(b[c.at:], c.u32)
		if _, err := parsePerfData(b); err == nil {
			t.Errorf("%s: no error", c.name)
		}
	}
	for at, v := range map[int]byte{0: 0, hsperfByteOrder: 2, hsperfMajor: 1} {
		b := slices.Clone(good)
		b[at] = v
		if _, err := parsePerfData(b); err == nil || errors.Is(err, errStarting) {
			t.Errorf("byte %d = %d: %v", at, v, err)
		}
	}
	for n := range good {
		if _, err := parsePerfData(good[:n]); err == nil {
			t.Errorf("the first %d of %d bytes: no error", n, len(good))
		}
	}
	good[hsperfAccessible] = 0
	if _, err := parsePerfData(good); !errors.Is(err, errStarting) {
		t.Errorf("not accessible: %v", err)
	}
}

func FuzzPerfData(f *testing.F) {
	for _, order := range []binary.AppendByteOrder{binary.LittleEndian, binary.BigEndian} {
		f.Add(perfBytes(order, zgc(1)...))
		f.Add(perfBytes(order))
	}
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		defer memtest.Bound(t, len(b))()
		p, err := parsePerfData(b)
		if err != nil {
			return
		}
		out := samples{}
		p.samples(&out)
		for _, s := range out.list {
			check(t, s.Metric, s.Value)
		}
		for name := range p.strings {
			if strings.Contains(name, "\x00") {
				t.Errorf("name %q", name)
			}
		}
	})
}
