// Package hosttest says what a test needs of the host, and what it could not try there.
package hosttest

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strconv"
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
	if err == nil {
		defer leave()
		// Tests that run in parallel mostly wait. The flag of the command line is read later, and overrides this.
		err = flag.Set("test.parallel", strconv.Itoa(4*runtime.GOMAXPROCS(0)))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return t.m.Run()
}

// What several tests lack, and how to have it.
const (
	Root  = "run as root"
	Quiet = "run where nothing else takes the processors"
	Plane = "make plane"
)

// Missing skips t because the host lacks something: why, and how to have it. The two texts and the test's name are in
// the table that make test prints.
func Missing(t testing.TB, why, remedy string) {
	t.Helper()
	t.Skip(row(why, remedy))
}

// Untried notes that t goes on without a part that the host cannot try.
func Untried(t testing.TB, why, remedy string) {
	t.Helper()
	t.Log(row(why, remedy))
}

// NeedsRoot skips t for an ordinary user.
func NeedsRoot(t testing.TB) {
	t.Helper()
	if os.Geteuid() != 0 {
		Missing(t, "only root may", Root)
	}
}

// Program returns the path of a program, or skips t where there is none. packages are those of Debian that have it.
func Program(t testing.TB, name, packages string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		Missing(t, name+" is not installed", "apt-get install "+packages)
	}
	return path
}

// SkipIfShort skips t under -short, because it takes a second or more.
func SkipIfShort(t testing.TB) {
	t.Helper()
	if testing.Short() {
		Missing(t, "-short", "run without -short")
	}
}

// SkipIfShortUnlessRaced skips t under -short, unless the race detector is on, for which make race uses -short: t takes
// a second or more, of which it waits for most.
func SkipIfShortUnlessRaced(t testing.TB) {
	t.Helper()
	if !raced {
		SkipIfShort(t)
	}
}

// longVariable has the tests run that take minutes.
const longVariable = "TARE_TEST_LONG"

// IsLong reports whether the tests were asked to take their time: larger inputs, more repetitions.
func IsLong() bool { return os.Getenv(longVariable) != "" }

// SkipUnlessLong skips t, which takes minutes, unless the tests were asked to take their time.
func SkipUnlessLong(t testing.TB) {
	t.Helper()
	if !IsLong() {
		Missing(t, "it takes minutes", longVariable+"=1")
	}
}
