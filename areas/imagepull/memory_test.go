package imagepull

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tare/area"
	"tare/internal/design"
)

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
