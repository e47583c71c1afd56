package probe

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"tare/internal/metric"
)

// statText is /proc/PID/stat of a process with a start time and a parent.
func statText(parent, start string) string {
	return "1 (ja va) S " + parent + " 1 1 0 -1 4194304 100 0 0 0 7 3 0 0 20 0 4 0 " + start + " 1000000 250 1 1 1\n"
}

func text(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s)} }

// TestJVMFixtures: a JVM is process 500 here and process 7 in its container. The host was booted at 1,000,000 s, and
// the process started 50 s later.
func TestJVMFixtures(t *testing.T) {
	const file = "proc/500/root/tmp/hsperfdata_app/7"
	const mapped = "7f3-7f4 rw-s 00000000 fe:00 99 /tmp/hsperfdata_app/7\n7f4-7f5 r-xp 00000000 fe:00 98 /lib/libc.so\n"
	begun := perfBytes(binary.LittleEndian, zgc(1_000_051_000)...)
	stale := perfBytes(binary.LittleEndian, zgc(1_000_001_000)...)
	for _, c := range []struct {
		name   string
		change func(fstest.MapFS)
		start  uint64
		want   error
	}{
		{"mapped", func(fstest.MapFS) {}, 0, nil},
		{"mapped, guarded", func(fstest.MapFS) {}, 5000, nil},
		{"another process has its number", func(fstest.MapFS) {}, 4999, ErrGone},
		{"ended", func(m fstest.MapFS) { delete(m, "proc/500/stat") }, 0, ErrGone},
		{"no file", func(m fstest.MapFS) { delete(m, file) }, 0, ErrNoJVM},
		{"not mapped: left behind", func(m fstest.MapFS) {
			m["proc/500/maps"] = text("7f4-7f5 r-xp 00000000 fe:00 98 " +
				"/lib/libc.so\n")
		}, 0, ErrNoJVM},
		{"among many folders of others", func(m fstest.MapFS) {
			for i := range 3 * mostEntries {
				m[fmt.Sprintf("proc/500/root/tmp/hsperfdata_%d", i)] = &fstest.MapFile{Mode: fs.ModeDir}
			}
		}, 0, nil},
		{"maps unreadable, among many folders of others", func(m fstest.MapFS) {
			delete(m, "proc/500/maps")
			for i := range 3 * mostEntries {
				m[fmt.Sprintf("proc/500/root/tmp/hsperfdata_%d", i)] = &fstest.MapFile{Mode: fs.ModeDir}
			}
		}, 0, ErrNoJVM},
		{"another's mapped", func(m fstest.MapFS) {
			m["proc/500/maps"] = text("7f3-7f4 rw-s 0 fe:00 99 " +
				"/tmp/hsperfdata_app/77\n")
		}, 0, ErrNoJVM},
		{"maps unreadable, begun with the process", func(m fstest.MapFS) { delete(m, "proc/500/maps") }, 0, nil},
		{"maps unreadable, begun long before", func(m fstest.MapFS) {
			delete(m, "proc/500/maps")
			m[file] = &fstest.MapFile{Data: stale}
		}, 0, ErrNoJVM},
		{"maps unreadable, begun long after", func(m fstest.MapFS) {
			delete(m, "proc/500/maps")
			m[file] = &fstest.MapFile{Data: perfBytes(binary.BigEndian, zgc(1_000_151_000)...)}
		}, 0, ErrNoJVM},
		{"maps and boot unreadable", func(m fstest.MapFS) {
			delete(m, "proc/500/maps")
			delete(m, "proc/stat")
		}, 0, ErrNoJVM},
		{"starting", func(m fstest.MapFS) {
			b := append([]byte(nil), begun...)
			b[hsperfAccessible] = 0
			m[file] = &fstest.MapFile{Data: b}
		}, 0, errStarting},
		{
			"a link", func(m fstest.MapFS) { m[file] = &fstest.MapFile{Data: []byte("/etc/shadow"), Mode: fs.ModeSymlink} }, 0,
			ErrNoJVM,
		},
		{"a pipe", func(m fstest.MapFS) { m[file] = &fstest.MapFile{Mode: fs.ModeNamedPipe} }, 0, ErrNoJVM},
		{"root unreadable, in a container", func(m fstest.MapFS) {
			m["tmp/hsperfdata_app/500"] = m[file]
			delete(m, file)
		}, 0, ErrNoJVM},
		{"root unreadable, on this host", func(m fstest.MapFS) {
			m["tmp/hsperfdata_app/500"] = m[file]
			delete(m, file)
			delete(m, "proc/500/maps")
			m["proc/500/status"] = text("NSpid:\t500\n")
		}, 0, nil},
	} {
		m := fstest.MapFS{
			"proc/stat":       text("cpu 1 2 3 4\nbtime 1000000\n"),
			"proc/500/stat":   text(statText("1", "5000")),
			"proc/500/status": text("Name:\tjava\nNSpid:\t500\t7\n"),
			"proc/500/maps":   text(mapped),
			file:              {Data: begun},
		}
		c.change(m)
		got, err := JVM{PID: 500, StartTicks: c.start, Root: m}.Read(t.Context())
		if !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
		if c.want != nil {
			continue
		}
		if d := cmp.Diff(append(append([]metric.Sample(nil), zgcSamples...), metric.Sample{Metric: "started", Value: 5000}),
			got); d != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, d)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := (JVM{PID: 500}).Read(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want context.Canceled", err)
	}
}
