package probe

import (
	"encoding/binary"
	"math"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"tare/rigs/memtest"
)

func seed(f *testing.F, names ...string) {
	f.Helper()
	for _, n := range names {
		b, err := os.ReadFile("testdata/root/" + n)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(b))
	}
	f.Add("")
	f.Add(") \n:")
}

// check refuses what no probe may report: a negative value, or none at all.
func check(t *testing.T, what string, v float64) {
	t.Helper()
	if v < 0 || math.IsNaN(v) || math.IsInf(v, 0) {
		t.Errorf("%s = %v", what, v)
	}
}

func FuzzStat(f *testing.F) {
	seed(f, "proc/100/stat", "proc/101/stat")
	f.Fuzz(func(t *testing.T, text string) {
		defer memtest.Bound(t, len(text))()
		s, err := parseStat(text)
		if err != nil {
			return
		}
		check(t, "cpu", s.self+s.waited)
		check(t, "threads", s.threads)
		if s.parent < 0 {
			t.Errorf("parent %d", s.parent)
		}
	})
}

func FuzzTables(f *testing.F) {
	seed(f, "proc/stat", "proc/pressure/cpu", "proc/self/net/tcp", "proc/self/net/tcp6", "proc/self/net/sockstat",
		"proc/self/net/netstat",
		"proc/self/net/snmp", "sys/fs/cgroup/limited/cpu.stat", "proc/100/smaps_rollup", "proc/100/status")
	f.Fuzz(func(t *testing.T, text string) {
		defer memtest.Bound(t, len(text))()
		for _, m := range []map[string]float64{parseKeyed(text), parseColonLines(text)} {
			for k, v := range m {
				check(t, k, v)
			}
		}
		if c, err := parseHostCPU(text); err == nil {
			check(t, "busy", c.busy)
			if c.busy > c.all*(1+1e-9) || c.steal > c.all*(1+1e-9) {
				t.Errorf("parts exceed the whole: %+v", c)
			}
		}
		if v, ok := parsePressure(text); ok {
			check(t, "pressure", v)
		}
		if v, ok := parseListenQueue(text, 0x4D58); ok {
			check(t, "queue", v)
		}
	})
}

func FuzzDiag(f *testing.F) {
	msg := make([]byte, unix.SizeofNlMsghdr+diagMessageLen)
	binary.NativeEndian.PutUint32(msg, uint32(len(msg)))
	binary.NativeEndian.PutUint16(msg[4:], diagByFamily)
	binary.BigEndian.PutUint16(msg[unix.SizeofNlMsghdr+diagPortAt:], 8080)
	binary.NativeEndian.PutUint32(msg[unix.SizeofNlMsghdr+diagWqueueAt:], 1024)
	binary.NativeEndian.PutUint32(msg[unix.SizeofNlMsghdr+diagRqueueAt:], 3)
	if sum, done := parseDiag(append(msg, msg...), 8080); sum != (acceptQueues{6, 2048, true}) || done {
		f.Fatalf("two sockets: %v %v, want 6 of 2048", sum, done)
	}
	if sum, _ := parseDiag(msg, 8081); sum.found {
		f.Fatal("found another port")
	}
	f.Add(msg)
	f.Add(msg[:40])
	f.Fuzz(func(t *testing.T, b []byte) {
		defer memtest.Bound(t, len(b))()
		if sum, _ := parseDiag(b, 8080); !sum.found && sum != (acceptQueues{}) {
			t.Errorf("nothing found, sums %v", sum)
		}
	})
}

func FuzzExposition(f *testing.F) {
	for _, name := range []string{"micrometer.prom", "javaclient.prom", "openmetrics.txt"} {
		b, err := os.ReadFile("testdata/expositions/" + name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(b), `decisions_total{rule="a"}`)
	}
	f.Add("# TYPE a histogram\na_bucket{le=\"1\",} 3 1 # {} 1\n{\"a\"} 1", `{"a"}`)
	f.Fuzz(func(t *testing.T, text, series string) {
		defer memtest.Bound(t, len(text)+len(series))()
		if _, err := parseSelector(series); err != nil {
			series = "a"
		}
		sum, err := newTally([]ruleSet{goRules, jvmRules, processRules}, []string{series})
		if err != nil {
			t.Fatal(err)
		}
		types, err := parseExposition(strings.NewReader(text), func(e exposed) {
			if e.name == "" || strings.Contains(text, "\n") && len(e.labels) > labelsMax {
				t.Errorf("%+v", e)
			}
			sum.add(e)
		})
		if err != nil {
			return
		}
		out := samples{}
		sum.samples(types, &out)
		for _, s := range out.list {
			if s.Metric != SeriesValue.Name {
				check(t, s.Metric, s.Value)
			} else if !finite(s.Value) {
				t.Errorf("%+v", s)
			}
		}
	})
}

func TestParseSelector(t *testing.T) {
	for text, good := range map[string]bool{
		"a":                      true,
		` a_b:c{d="e"} `:         true,
		`a{d="e",}`:              true,
		`a{}`:                    true,
		`{"a.b"}`:                true,
		`a_bucket{le="0.5"}`:     true,
		"":                       false,
		"{}":                     false,
		`{d="e"}`:                false,
		`a{d=~"e"}`:              false,
		`a{d="e"`:                false,
		`a b`:                    false,
		`a{d="e"} 1`:             false,
		`rate(a[5m])`:            false,
		"1a":                     false,
		"a_bucket":               false,
		`a_bucket{d="e"}`:        false,
		`a{"quoted" , b="c"}`:    false,
		`a{b="unfinished \`:      false,
		`{"a.b", "c.d"="e"} x`:   false,
		`{"a.b", "second name"}`: false,
	} {
		if _, err := parseSelector(text); (err == nil) != good {
			t.Errorf("%q: %v, want good: %v", text, err, good)
		}
	}
}
