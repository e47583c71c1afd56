package kyverno_test

import (
	"io"
	"log/slog"
	"os"
	"testing"

	"tare/areas/admission/kyverno"
	"tare/internal/build"
	"tare/rigs/hosttest"
)

// TestBinariesAreBuilt really builds, where that is wanted: it takes minutes, and the network where Go's own cache
// lacks something.
func TestBinariesAreBuilt(t *testing.T) {
	if os.Getenv("TARE_TEST_PLANE_BUILD") != "1" {
		hosttest.Missing(t, "it compiles Kyverno", hosttest.Plane)
	}
	h := kyverno.Host{Log: slog.New(slog.NewTextHandler(io.Discard, nil)), Getenv: os.LookupEnv}
	p, err := kyverno.Find(t.Context(), kyverno.Default, h)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(p.Definitions); err != nil || !info.IsDir() || !build.Executable(p.Path) {
		t.Errorf("%+v, %v", p, err)
	}
}
