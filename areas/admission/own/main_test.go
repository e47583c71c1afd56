package own

import (
	"context"
	"os"
	"slices"
	"testing"

	"tare/internal/proc"
	"tare/rigs/hosttest"
)

// TestMain lets this test binary be its own child, as tare's binary is.
func TestMain(m *testing.M) {
	if slices.Equal(os.Args[1:], []string{"serve", "admission", Builder}) {
		if err := proc.Serve(context.Background(), os.Stdin, os.Stdout, ServeBuild); err != nil {
			panic(err)
		}
		return
	}
	hosttest.Main(m)
}
