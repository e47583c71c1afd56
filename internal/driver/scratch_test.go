package driver

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"tare/rigs/hosttest"
)

// TestTryLeavesNothing: no journal exists yet while a program is tried, so a kill at this moment must leave nothing.
func TestTryLeavesNothing(t *testing.T) {
	hosttest.SkipIfShortUnlessRaced(t)
	a := &actor{At: DoDescribe, How: "hang"}
	p := a.program(t)
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	done := make(chan error, 1)
	go func() {
		_, err := Try(t.Context(), p, 2*time.Second)
		done <- err
	}()
	for {
		if text, _ := os.ReadFile(filepath.Join(a.World, "trace")); string(text) == "describe\n" {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	found, err := os.ReadDir(temp)
	if err != nil || len(found) > 0 {
		t.Errorf("while a program is tried there are %v (%v), want nothing", found, err)
	}
	wantError(t, <-done, "no answer to describe")
}
