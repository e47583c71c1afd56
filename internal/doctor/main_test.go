package doctor

import (
	"context"
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"tare/rigs/hosttest"
)

// TestMain lets this test binary run trials as its own child.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == TrialCommand {
		if err := Trial(context.Background(), os.Args[2], os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(hosttest.Sharing(m))
}

func testBinary(t *testing.T) string {
	t.Helper()
	name, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return name
}
