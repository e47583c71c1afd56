package main

import (
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/sys/unix"

	"tare/internal/clock"
	"tare/internal/design"
	"tare/internal/record"
)

// TestRecordScripts runs the commands that work on records; results/ holds records whose true values are known.
func TestRecordScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir: "testdata/records", UpdateScripts: *update, RequireExplicitExec: true,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": checkExitCode, "terminal": onTerminal},
		Setup: func(e *testscript.Env) error {
			e.Setenv("GOGC", os.Getenv("GOGC"))
			e.Setenv("HOME", filepath.Join(e.WorkDir, ".home")) // not there: nothing of other scripts is in it
			results := filepath.Join(e.WorkDir, "results")
			at := time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)
			return errors.Join(
				fakeRun{name: "enforcers", at: at, seed: 1, cost: map[string]float64{"seccomp": 1.1}}.write(results),
				fakeRun{
					name: "enforcers", at: at.Add(time.Hour), seed: 2, kernel: "Linux 6.9",
					cost: map[string]float64{"seccomp": 1.5},
				}.write(results),
				fakeRun{name: "quiet", at: at, seed: 3, budget: []string{"seccomp: open.cpu <= +5%"}}.write(results),
				fakeRun{name: "unreliable", at: at, seed: 4, cost: map[string]float64{design.AAArm: 1.3}}.write(results),
				os.CopyFS(filepath.Join(e.WorkDir, "files"), os.DirFS(filepath.Join("..", "..", "internal", "importer",
					"testdata"))),
				fakeRun{
					name: "wider", at: at.Add(time.Hour), seed: 5, treatments: []string{"seccomp", "landlock"},
					cost: map[string]float64{"seccomp": 1.3},
				}.write(results),
				fakeRun{
					name: "other", at: at.Add(time.Hour), seed: 6, treatments: []string{"landlock"},
					cost: map[string]float64{"landlock": 1.3},
				}.write(results),
				fakeRun{name: "other2", at: at, seed: 7, treatments: []string{"bpf"}}.write(results),
				copyRecord(e, "capacity"), copyRecord(e, "quota"), copyRecord(e, "soak"),
				copyLater(e, "soak", "soak2"),
			)
		},
	})
}

// copyRecord copies an early record.
func copyRecord(e *testscript.Env, name string) error {
	return os.CopyFS(filepath.Join(e.WorkDir, name),
		os.DirFS(filepath.Join("..", "..", "internal", "analyze", "testdata", "records", "v1-"+name)))
}

// copyLater copies such a record as if another run had written it.
func copyLater(e *testscript.Env, name, as string) error {
	if err := os.Rename(filepath.Join(e.WorkDir, name), filepath.Join(e.WorkDir, as)); err != nil {
		return err
	}
	journal := filepath.Join(e.WorkDir, as, record.JournalFile)
	text, err := os.ReadFile(journal)
	if err != nil {
		return err
	}
	text = regexp.MustCompile(`"seed":\d+`).ReplaceAll(text, []byte(`"seed":12345`))
	return errors.Join(os.WriteFile(journal, text, 0o600), copyRecord(e, name))
}

// fakeRun writes the record of a comparison of none and seccomp: 20 blocks of batches, with noise that the arms of a
// block share.
type fakeRun struct {
	name, kernel string
	at           time.Time
	seed         uint64
	budget       []string
	cost         map[string]float64 // of an arm, relative to the baseline; 0: the same
	treatments   []string           // besides none; nil: seccomp
}

func (f fakeRun) write(results string) (err error) {
	if f.kernel == "" {
		f.kernel = "Linux 6.1"
	}
	h := record.Header{
		Tool: record.Tool{Version: "0.1.0"}, Experiment: record.Experiment{Name: f.name, Seed: f.seed}, Area: "sandbox",
		Question: design.Compare,
		Started:  f.at, Host: record.Host{Name: "host", Kernel: f.kernel, CPUs: 2},
	}
	w, err := record.Create(results, h, nil, clock.System{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	all := []design.Treatment{{ID: "none", Baseline: true}}
	if f.treatments == nil {
		f.treatments = []string{"seccomp"}
	}
	for _, id := range f.treatments {
		all = append(all, design.Treatment{ID: id})
	}
	arms := design.Arms(all)
	trials := design.Plan(design.Experiment{Treatments: arms, Blocks: 20, Seed: f.seed})
	plan := record.Plan{
		Treatments: arms, Trials: trials, Budget: f.budget, Margin: .02, Blocks: 20,
		Looks: design.Looks(20),
	}
	if err := w.Plan(plan); err != nil {
		return err
	}
	rng := rand.New(rand.NewPCG(f.seed, 0))
	var shared float64
	for i, t := range trials {
		if i%len(arms) == 0 {
			shared = math.Exp(.2 * rng.NormFloat64())
		}
		if err := f.trial(w, t, shared, rng); err != nil {
			return err
		}
	}
	return w.Finish(record.Finish{Status: record.Complete, Seconds: 60})
}

func (f fakeRun) trial(w *record.Writer, t design.Trial, shared float64, rng *rand.Rand) error {
	factor := f.cost[t.Treatment]
	if factor == 0 {
		factor = 1
	}
	var values []float64
	for range 8 {
		values = append(values, 1e-6*factor*shared*math.Exp(.01*rng.NormFloat64()))
	}
	return errors.Join(
		w.TrialBegin(record.TrialBegin{Trial: t, Operations: []string{"open"}}),
		w.Verify(record.Verify{Treatment: t.Treatment, Block: t.Block, OK: true}),
		w.Batches(record.Batches{
			Treatment: t.Treatment, Block: t.Block, Operation: "open", Metric: "cpu", N: 5000,
			Values: values,
		}),
		w.TrialEnd(record.TrialEnd{Treatment: t.Treatment, Block: t.Block, Status: record.Complete}),
	)
}

// onTerminal runs a program whose standard output is a terminal, and writes what stands there into a file: "terminal
// FILE PROGRAM ARGUMENT…". (The scripts' own ttyout closes the terminal before it has read all that was written.)
func onTerminal(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: terminal FILE PROGRAM ARGUMENT...")
	}
	screen, line, err := openTerminal()
	ts.Check(err)
	defer screen.Close() //nolint:errcheck // it is only read
	cmd := exec.Command("/bin/sh", append([]string{"-c", `exec "$@"`, "sh"}, args[1:]...)...)
	cmd.Dir, cmd.Stdout = ts.MkAbs("."), line
	for _, name := range []string{"PATH", "HOME", "TERM", "NO_COLOR", "XDG_STATE_HOME"} {
		if v := ts.Getenv(name); v != "" {
			cmd.Env = append(cmd.Env, name+"="+v)
		}
	}
	ts.Check(cmd.Start())
	ts.Check(line.Close())
	text, err := io.ReadAll(screen)
	if !errors.Is(err, syscall.EIO) { // no one has the terminal open any more, and all was read
		ts.Check(err)
	}
	ts.Check(cmd.Wait())
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), text, 0o600))
}

// openTerminal returns both ends of a new terminal: what is written to line stands on screen.
func openTerminal() (screen, line *os.File, err error) {
	if screen, err = os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0); err != nil {
		return nil, nil, err
	}
	var n int
	raw, err := screen.SyscallConn()
	if err == nil {
		err = errors.Join(raw.Control(func(fd uintptr) {
			if err = unix.IoctlSetPointerInt(int(fd), unix.TIOCSPTLCK, 0); err == nil {
				n, err = unix.IoctlGetInt(int(fd), unix.TIOCGPTN)
			}
		}), err)
	}
	if err == nil {
		line, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	}
	if err != nil {
		return nil, nil, errors.Join(err, screen.Close())
	}
	return screen, line, nil
}
