package engine_test

import (
	"log/slog"
	"os"
	"slices"
	"testing"

	"tare/areas/admission/engine"
	"tare/internal/build"
	"tare/rigs/hosttest"
)

// TestBinariesAreBuilt really builds, where that is wanted: it takes minutes, and the network where Go's own cache
// lacks something.
func TestBinariesAreBuilt(t *testing.T) {
	if os.Getenv("TARE_TEST_PLANE_BUILD") != "1" {
		hosttest.Missing(t, "it compiles policy engines", hosttest.Plane)
	}
	h := engine.Host{Log: slog.New(slog.DiscardHandler), Getenv: os.LookupEnv}
	for _, k := range engine.Programs() {
		p, err := k.Find(t.Context(), k.Default, h)
		if err != nil {
			t.Error(err)
			continue
		}
		if !build.Executable(p.Path) {
			t.Errorf("%+v", p)
		}
		if info, err := os.Stat(p.Definitions); slices.Contains(engine.Kinds(), k) && (err != nil || !info.IsDir()) {
			t.Errorf("%+v, %v", p, err)
		}
	}
}
