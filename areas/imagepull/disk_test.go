package imagepull

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tare/area"
	"tare/internal/design"
	"tare/rigs/areatest"
)

func TestDiskFindings(t *testing.T) {
	few := need{bytes: 100 * leastBlock, files: 100}
	for _, c := range []struct {
		title    string
		disk     disk
		severity area.Severity
		says     string // empty: nothing is wrong
	}{
		{"room", disk{kind: "ext4", free: 1 << 40, inodes: 1 << 30}, 0, ""},
		{"exactly", disk{free: few.bytes, inodes: 100 + spareFiles}, 0, ""},
		{"full", disk{free: few.bytes - 1, inodes: 1 << 30}, area.Error, "400 KiB free, take about 400 KiB"},
		{"no inodes", disk{free: 1 << 40, inodes: 99 + spareFiles}, area.Error, "163 more files, are 100"},
		{"inodes without end", disk{free: 1 << 40, inodes: -1}, 0, ""},
		{"over the network", disk{kind: "nfs", free: 1 << 40, inodes: -1}, area.Warning, "not a node's disk"},
	} {
		found := c.disk.judge("/d", few, 1)
		for says := range strings.SplitSeq(c.says, ", ") {
			areatest.WantFinding(t, c.title, found, area.Finding{Path: "dir", Severity: c.severity, Message: says})
		}
		if len(found) > 0 && found[0].Hint == "" {
			t.Errorf("%s: %+v has no hint", c.title, found)
		}
	}
}

// TestDiskNeedAddsUp: the disk space of treatments adds up; one without records needs none.
func TestDiskNeedAddsUp(t *testing.T) {
	s := &Spec{Records: new(1000)}
	one := s.need(nil)
	if one.files != 1000 || one.bytes != 1000*leastBlock {
		t.Errorf("1000 records need %+v", one)
	}
	all := s.need([]design.Treatment{
		treatment("accessor", "disabled"), treatment("accessor", "directfs"),
		treatment("records", "10", "secrets", "100"),
	})
	if all.files != 1010 || all.bytes <= one.bytes+10*100*secretBytes-1 || all.bytes%leastBlock != 0 {
		t.Errorf("three treatments need %+v", all)
	}
}

// TestPreflightRejectsUnwritableFolders: Preflight reports a folder that cannot be written, and leaves nothing behind.
func TestPreflightRejectsUnwritableFolders(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	bad := map[string]string{
		filepath.Join(dir, "none"): "no such file", file: "is no folder",
		unwritableFolder(t): "no record can be written there",
	}
	for path, says := range bad {
		found := (&Spec{Dir: path}).judgeFolder(nil)
		if len(found) != 1 || found[0].Severity != area.Error || !strings.Contains(found[0].Message, says) ||
			found[0].Hint == "" {
			t.Errorf("%s: %+v, want %q", path, found, says)
		}
	}
	if found := (&Spec{Dir: dir}).judgeFolder(nil); len(found) > 0 {
		t.Errorf("got findings %v, want none", found)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("%v is left: %v", entries, err)
	}
}

// unwritableFolder returns a folder in which not even root can create a file.
func unwritableFolder(t testing.TB) string {
	t.Helper()
	if os.Geteuid() == 0 {
		return "/proc"
	}
	dir := filepath.Join(t.TempDir(), "closed")
	if err := os.Mkdir(dir, 0o500); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestTooManyRecords: Preflight rejects more records than the disk has space for.
func TestTooManyRecords(t *testing.T) {
	dir := t.TempDir()
	d, err := lookAt(dir)
	if err != nil || d.kind == "" || d.free <= 0 {
		t.Fatalf("free space of a folder: %+v: %v", d, err)
	}
	var many []design.Treatment
	for range int(math.Ceil(float64(d.free)/float64(mostFilled*secretBytes))) + 1 {
		many = append(many, treatment("records", "1000", "secrets", "1000"))
	}
	found := (&Spec{Dir: dir}).judgeFolder(many)
	if len(found) == 0 || found[0].Severity != area.Error ||
		!strings.Contains(found[0].Message, "free, and the records of") {
		t.Errorf("got %+v, want an error about the free space", found)
	}
}

// TestMemory: Preflight compares the memory of all processes together with what is free. Too little is only a warning,
// since the kernel may free some.
func TestMemory(t *testing.T) {
	file := filepath.Join(t.TempDir(), "meminfo")
	arms := []design.Treatment{treatment("accessor", "cached"), treatment("accessor", "directfs", "records", "1000",
		"secrets", "10")}
	s := &Spec{}
	need, processes := s.memory(arms)
	if want := int64(2*processBytes + 100*(heldBytes+heldSecret) + 1000*(heldBytes+10*heldSecret)); need != want ||
		processes != 2 {
		t.Fatalf("%d processes need %d bytes, want 2 and %d", processes, need, want)
	}
	for _, c := range []struct {
		meminfo string
		warns   bool
	}{
		{"MemTotal:       100000000 kB\nMemAvailable:   99000000 kB\n", false},
		{"MemTotal:       100000000 kB\nMemAvailable:   40000 kB\n", true},
		{"MemTotal:       100000000 kB\n", false},
	} {
		if err := os.WriteFile(file, []byte(c.meminfo), 0o600); err != nil {
			t.Fatal(err)
		}
		found := s.judgeMemory(arms, file)
		if warns := len(found) == 1 && found[0].Severity == area.Warning &&
			strings.Contains(found[0].Message, "39.1 MiB are free"); warns != c.warns || len(found) > 1 {
			t.Errorf("%q: got %+v, want warning %t", c.meminfo, found, c.warns)
		}
	}
	if free, err := available("/proc/meminfo"); err != nil || free <= 0 {
		t.Errorf("%d bytes are free here: %v", free, err)
	}
}

// TestForecast: processes start once and in each block; records are written once and read in each block, if there are
// any.
func TestForecast(t *testing.T) {
	t.Parallel()
	const took = 100 * time.Millisecond
	const heavy = recordBytes + 12*secretBytes // a record with many secrets
	for _, c := range []struct {
		section, levels string
		once, block     time.Duration
		says            string
	}{
		{
			"", "accessor=disabled records=1000", took, took,
			"each process takes 100ms to start and to end, as just now: 1 process at",
		},
		{
			"", "accessor=disabled records=1000 | accessor=cached records=1000", 2*took + 1000*writing, 2*took + 1000*finding,
			": 2 processes at the beginning",
		},
		{
			"operations: [check, restart], rounds: 3", "accessor=cached records=1000", took + 1000*writing,
			took + 1000*finding + 4*1000*reading, "reading all",
		},
		{"secrets: 12", "accessor=cached records=704", took + heavy*writing, took + heavy*finding, "assumed"},
	} {
		var arms []design.Treatment
		for _, l := range levelsOf(c.levels) {
			arms = append(arms, treatment(l...))
		}
		once, block, counts := specOf(t, c.section).starts(arms, took, "as just now")
		if !near(once, c.once) || !near(block, c.block) || !strings.Contains(counts, c.says) {
			t.Errorf("%s, %s: %v and %v, %q; want %v and %v, %q", c.section, c.levels, once, block, counts, c.once, c.block,
				c.says)
		}
	}
}

// near reports whether two times differ by rounding only.
func near(a, b time.Duration) bool { return (a - b).Abs() < time.Microsecond }
