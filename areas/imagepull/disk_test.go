package imagepull

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tare/area"
	"tare/internal/design"
)

func TestDiskFindings(t *testing.T) {
	roomy := disk{kind: "ext4", free: 1 << 40, inodes: 1 << 30}
	few := need{bytes: 100 * leastBlock, files: 100}
	for _, c := range []struct {
		title    string
		disk     disk
		need     need
		severity area.Severity
		says     []string // empty: nothing is wrong
	}{
		{title: "room", disk: roomy, need: few},
		{title: "exactly", disk: disk{free: few.bytes, inodes: 100 + spareFiles}, need: few},
		{
			title: "full", disk: disk{free: few.bytes - 1, inodes: 1 << 30}, need: few, severity: area.Error,
			says: []string{"400 KiB free", "take about 400 KiB"},
		},
		{
			title: "no inodes", disk: disk{free: 1 << 40, inodes: 99 + spareFiles}, need: few, severity: area.Error,
			says: []string{"163 more files", "are 100"},
		},
		{title: "inodes without end", disk: disk{free: 1 << 40, inodes: -1}, need: few},
		{
			title: "over the network", disk: disk{kind: "nfs", free: 1 << 40, inodes: -1}, need: few, severity: area.Warning,
			says: []string{"not a node's disk"},
		},
	} {
		found := c.disk.judge("/d", c.need, 1)
		if len(c.says) == 0 {
			if len(found) > 0 {
				t.Errorf("%s: got findings %v, want none", c.title, found)
			}
			continue
		}
		if len(found) != 1 || found[0].Severity != c.severity || found[0].Hint == "" || found[0].Path != "dir" {
			t.Errorf("%s: got %+v, want one finding about dir with a hint", c.title, found)
			continue
		}
		for _, w := range c.says {
			if !strings.Contains(found[0].Message, w) {
				t.Errorf("%s: %q lacks %q", c.title, found[0].Message, w)
			}
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
