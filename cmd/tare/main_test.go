package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"tare/area"
	"tare/internal/cli"
	"tare/rigs/hosttest"
)

var update = flag.Bool("update", false, "rewrite the expected output in testdata/script, and what docs and schema show")

func TestMain(m *testing.M) {
	testscript.Main(testRunner{hosttest.Sharing(m)}, map[string]func(){
		"tare":         main,
		"secretdriver": secretDriver,
		killedDriver:   runDriver,
		stoppable:      runStoppable,
	})
}

// testRunner runs the tests with a folder of their own for keys.
type testRunner struct{ hosttest.Tests }

// Run implements testscript.TestingM.
func (b testRunner) Run() int {
	state, err := os.MkdirTemp("", "tare-state-") // tests do not use the user's own key
	if err != nil || os.Setenv("XDG_STATE_HOME", state) != nil {
		panic(fmt.Sprintf("no folder for a key: %v", err))
	}
	// a shell ignores SIGINT for background jobs, and children would inherit that
	if signal.Ignored(os.Interrupt) {
		signal.Notify(make(chan os.Signal, 1), os.Interrupt)
	}
	tarePath, _ = exec.LookPath("tare")                             // before any test sets another PATH
	if os.Getenv("GOGC") == "" && os.Setenv("GOGC", "400") == nil { // for each tare that is started: it takes a third less
		debug.SetGCPercent(400)
	}
	code := b.Tests.Run()
	_ = os.RemoveAll(state)
	return code
}

// tarePath is this binary under the name by which it is tare, for tests that run tare in a process of its own.
var tarePath string

// tareBinary returns the path of tare.
func tareBinary(t *testing.T) string {
	t.Helper()
	if tarePath == "" {
		t.Fatal("testscript has put no tare on the PATH")
	}
	return tarePath
}

// hasArea reports whether this binary has an area: it may be built without some.
func hasArea(name string) bool {
	return slices.ContainsFunc(areas(), func(a area.Area) bool { return a.Name() == name })
}

// areaOf returns the area of an experiment.
func areaOf(experiment string) string {
	if m := areaLine.FindStringSubmatch(experiment); m != nil {
		return m[1]
	}
	return ""
}

var areaLine = regexp.MustCompile(`(?m)^area: +(\w+)`)

// needsAreas skips the test in a binary without one of these areas.
func needsAreas(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		if !hasArea(name) {
			hosttest.Missing(t, "this tare has no area "+name, "build it with the area")
		}
	}
}

// allAreas are those that the product's own files are about.
var allAreas = []string{"identity", "decision", "sandbox", "admission", "imagepull", "exec"}

// areaCondition is the condition [area:NAME] of scripts.
func areaCondition(condition string) (bool, error) {
	name, ok := strings.CutPrefix(condition, "area:")
	if !ok || !slices.Contains(allAreas, name) {
		return false, fmt.Errorf("unknown condition %q", condition)
	}
	return hasArea(name), nil
}

// runTare runs tare in this process and returns everything that it prints, and its exit code.
func runTare(t *testing.T, args ...string) (text string, code int) {
	t.Helper()
	var out bytes.Buffer
	code = cli.Main(t.Context(), cli.Env{
		Args: append([]string{"tare"}, args...), Stdin: strings.NewReader(""), Stdout: &out, Stderr: &out,
		Getenv: os.Getenv, Areas: areas(),
	})
	return out.String(), code
}

// TestScripts runs the command line as a person would: arguments in; streams, files and exit codes out. Scripts that
// wait run beside scripts that compute.
func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		UpdateScripts:       *update,
		RequireExplicitExec: true,
		Condition:           areaCondition,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": checkExitCode, "serve": startServer,
		},
		// Scripts work on copies of the records that every version must be able to read.
		Setup: func(e *testscript.Env) error {
			e.Setenv("XDG_STATE_HOME", filepath.Join(e.WorkDir, ".state"))
			e.Setenv("GOGC", os.Getenv("GOGC"))
			e.Setenv("HOME", filepath.Join(e.WorkDir, ".home")) // not there: nothing is made in it
			return os.CopyFS(filepath.Join(e.WorkDir, "records"),
				os.DirFS(filepath.Join("..", "..", "internal", "analyze", "testdata", "records")))
		},
	})
}

// checkExitCode checks a command's exit code: "exits 2 tare run", or "exits 0|12 tare run" where the host decides
// whether a verdict can be had.
func checkExitCode(ts *testscript.TestScript, _ bool, args []string) {
	want, args := args[0], args[1:]
	err := ts.Exec(args[0], args[1:]...)
	got := "0"
	if err != nil {
		got = err.Error()
	}
	if !slices.Contains(strings.Split(want, "|"), strings.TrimPrefix(got, "exit status ")) {
		ts.Fatalf("%v: %s, want exit status %s", args, got, want)
	}
}
