package cli

import (
	"context"
	"flag"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"tare/rigs/hosttest"
	"tare/rigs/toy"
)

var update = flag.Bool("update", false, "rewrite the expected output in testdata/script")

func TestMain(m *testing.M) {
	testscript.Main(testRunner{hosttest.Sharing(m)}, map[string]func(){
		"tare": func() {
			os.Exit(Main(context.Background(), Env{
				Args: os.Args, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Getenv: os.Getenv, Areas: toy.Areas(),
			}))
		},
	})
}

// testRunner runs the tests with a key of their own.
type testRunner struct{ hosttest.Tests }

// Run implements testscript.TestingM.
func (b testRunner) Run() int {
	state, err := os.MkdirTemp("", "tare-state-") // tests do not use the user's own key
	if err != nil || os.Setenv("XDG_STATE_HOME", state) != nil {
		panic(fmt.Sprintf("no folder for a key: %v", err))
	}
	code := b.Tests.Run()
	_ = os.RemoveAll(state)
	return code
}

// TestToyScripts runs the command line as a person would, with toy areas: arguments in; streams, files and exit codes
// out.
func TestToyScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script", UpdateScripts: *update, RequireExplicitExec: true,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": checkExitCode, "serve": startServer},
		Setup: func(e *testscript.Env) error {
			e.Setenv("XDG_STATE_HOME", filepath.Join(e.WorkDir, ".state"))
			e.Setenv("HOME", filepath.Join(e.WorkDir, ".home")) // not there: nothing is made in it
			e.Setenv("TARE_CACHE", filepath.Join(e.WorkDir, "cache"))
			e.Setenv("TMPDIR", filepath.Join(e.WorkDir, "tmp"))
			return os.Mkdir(filepath.Join(e.WorkDir, "tmp"), 0o700)
		},
	})
}

// startServer is a command of scripts: "serve VARIABLE" starts a toy server and sets its address.
func startServer(ts *testscript.TestScript, _ bool, args []string) {
	s := httptest.NewServer(toy.Server(0))
	ts.Defer(s.Close)
	ts.Setenv(args[0], s.URL)
}

// checkExitCode checks a command's exit code: "exits 2 tare run".
func checkExitCode(ts *testscript.TestScript, _ bool, args []string) {
	want, args := args[0], args[1:]
	err := ts.Exec(args[0], args[1:]...)
	got := "0"
	if err != nil {
		got = err.Error()
	}
	if got != want && got != "exit status "+want {
		ts.Fatalf("%v: %s, want exit status %s", args, got, want)
	}
}
