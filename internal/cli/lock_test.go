package cli

import (
	"errors"
	"testing"

	"tare/internal/record"
)

// TestLocksHoldInEveryEnvironment: runs of one user whose environments name other folders exclude each other, too.
func TestLocksHoldInEveryEnvironment(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	t.Setenv("XDG_CACHE_HOME", "")
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	free, err := lock("target", record.Holder{Run: "a"})
	if err != nil {
		t.Fatal(err)
	}
	for _, other := range []string{"", t.TempDir(), "/nowhere"} {
		t.Setenv("XDG_RUNTIME_DIR", other)
		if _, err := lock("target", record.Holder{Run: "b"}); !errors.As(err, new(*record.HeldError)) {
			t.Errorf("with %q a second run got %v", other, err)
		}
	}
	free()
	free, err = lock("target", record.Holder{Run: "b"})
	if err != nil {
		t.Fatal(err)
	}
	free()
}
