// Package hosttest says what a test needs of the host, and what it could not try there.
package hosttest

import (
	"fmt"
	"os"
	"runtime/debug"
	"testing"
)

// Main runs the tests of a package while sharing the host with those of other packages, and ends the process. A
// TestMain calls it last.
func Main(m *testing.M) { os.Exit(Sharing(m).Run()) }

// Tests are the tests of a package, to be run by TestMain.
type Tests struct{ m *testing.M }

// Sharing returns the tests of a package that share the host with those of other packages.
func Sharing(m *testing.M) Tests { return Tests{m} }

// Run runs the tests and returns the exit code.
func (t Tests) Run() int {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400) // tests allocate much and keep little: collecting was a fifth of their time
	}
	leave, err := share()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer leave()
	return t.m.Run()
}

// Missing skips t because the host lacks something. The three texts are one row of the table that make test prints:
// what was not tried, why, and how to have it tried.
func Missing(t testing.TB, what, why, remedy string) {
	t.Helper()
	t.Skip(row(what, why, remedy))
}

// Untried notes that t goes on without a part that the host cannot try.
func Untried(t testing.TB, what, why, remedy string) {
	t.Helper()
	t.Log(row(what, why, remedy))
}

// SkipIfShort skips t under -short because it takes seconds.
func SkipIfShort(t testing.TB, what string) {
	t.Helper()
	if testing.Short() {
		Missing(t, what, "-short", "run without -short")
	}
}

// longVariable has the tests run that take minutes.
const longVariable = "TARE_TEST_LONG"

// IsLong reports whether the tests were asked to take their time: larger inputs, more repetitions.
func IsLong() bool { return os.Getenv(longVariable) != "" }

// SkipUnlessLong skips t, which takes minutes, unless the tests were asked to take their time.
func SkipUnlessLong(t testing.TB, what string) {
	t.Helper()
	if !IsLong() {
		Missing(t, what, "it takes minutes", longVariable+"=1")
	}
}
