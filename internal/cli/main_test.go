package cli

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

var update = flag.Bool("update", false, "rewrite the expected output in testdata/script")

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"tare": func() {
			os.Exit(Main(context.Background(), Env{
				Args: os.Args, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Getenv: os.Getenv,
			}))
		},
	})
}

// TestScripts runs the command line as a person would: arguments in, streams, files and exit codes out.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		UpdateScripts:       *update,
		RequireExplicitExec: true,
		Cmds:                map[string]func(*testscript.TestScript, bool, []string){"exits": exits},
		// The records that must be readable for ever are a script's to write to.
		Setup: func(e *testscript.Env) error {
			return os.CopyFS(filepath.Join(e.WorkDir, "records"), os.DirFS(filepath.Join("..", "analyze", "testdata", "records")))
		},
	})
}

// exits checks a command's exit code: "exits 2 tare run".
func exits(ts *testscript.TestScript, _ bool, args []string) {
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
