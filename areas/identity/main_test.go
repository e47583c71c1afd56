package identity

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"tare/area"
	"tare/areas/identity/reference"
	"tare/internal/design"
	"tare/internal/load"
	"tare/internal/proc"
	"tare/rigs/areatest"
	"tare/rigs/hosttest"
)

// TestMain lets this test binary be its own child, as tare's binary is.
func TestMain(m *testing.M) {
	if name := areatest.ServerOfArgs(areaName); name != "" {
		areatest.Serve(Area{}, name)
	}
	if len(os.Args) == 2 && os.Args[1] == sweeper {
		sweepGroups(os.Getppid())
		os.Exit(0)
	}
	swept, err := startSweeper()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := hosttest.Sharing(m).Run()
	swept()
	os.Exit(code)
}

// sweeper is the argument that makes this binary remove the control groups of its parent, when that has ended. Tests
// remove their groups themselves, but for one that panics, and with it all others, as at a time-out.
const sweeper = "sweep-groups"

// testRun begins the names of all runs of a process of tests.
func testRun(pid int) string { return fmt.Sprintf("p%dx", pid) }

// startSweeper starts one for this process. done ends it.
func startSweeper() (done func(), err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c := exec.Command(self, sweeper)
	in, err := c.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := c.Start(); err != nil {
		return nil, err
	}
	return func() { _ = in.Close(); _ = c.Wait() }, nil
}

// sweepGroups waits until standard input ends, which is when the process pid ends, and removes that process's control
// groups.
func sweepGroups(pid int) {
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT) // they are meant for the tests
	_, _ = io.Copy(io.Discard, os.Stdin)
	path, err := proc.PlanCgroup(proc.CgroupName(testRun(pid), serverEndpoint))
	if err != nil {
		return // this host has no groups
	}
	for range 100 { // the processes in them end with their parent, a moment later
		left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), "tare-"+testRun(pid)+"*"))
		for _, group := range left {
			_ = os.Remove(group)
		}
		if len(left) == 0 {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
}

var standard = design.Treatment{ID: "default"}

func testEnv(t testing.TB) area.Env {
	t.Helper()
	env := areatest.Env(t)
	env.Run = testRun(os.Getpid()) + env.Run[:6]
	return env
}

// prepared opens spec and prepares one treatment. At the end of the test it closes the target, which must undo all
// changes.
func prepared(t testing.TB, spec *Spec, tr design.Treatment, adjust ...func(*target)) (*target, *areatest.Journal) {
	t.Helper()
	if tr.ID == "" {
		tr.ID = design.ID(tr.Levels)
	}
	tg, j := areatest.Open[*target](t, Area{}, spec, testEnv(t))
	for _, a := range adjust {
		a(tg)
	}
	if err := tg.Prepare(t.Context(), tr, j); err != nil {
		t.Fatal(err)
	}
	return tg, j
}

// unprepared prepares spec, which must fail, and returns why.
func unprepared(t testing.TB, spec *Spec) error {
	t.Helper()
	tg, j := areatest.Open[*target](t, Area{}, spec, testEnv(t))
	err := tg.Prepare(t.Context(), standard, j)
	if err == nil {
		t.Errorf("%+v was prepared", spec)
		err = errors.New("no error")
	}
	return err
}

// served prepares and verifies spec against a server that is not ours, and makes n calls, which must succeed.
func served(t testing.TB, spec *Spec, n int) *target {
	t.Helper()
	tg, j := prepared(t, spec, standard)
	if len(j.Changes()) != 0 {
		t.Errorf("a URL target made changes: %v", j.Changes())
	}
	if err := errors.Join(tg.Enter(t.Context(), standard), tg.Verify(t.Context(), standard)); err != nil {
		t.Fatal(err)
	}
	wantGoodCalls(t, tg, n)
	return tg
}

// onlyOp is the only operation of a treatment.
func onlyOp(t testing.TB, tg *target, tr design.Treatment) load.Operation {
	t.Helper()
	ops, err := tg.Operations(tr)
	if err != nil || len(ops) != 1 {
		t.Fatal(ops, err)
	}
	return ops[0]
}

// endpointOf is where a treatment's calls go.
func endpointOf(t testing.TB, tg *target, tr design.Treatment) *load.Endpoint {
	t.Helper()
	end, err := tg.Endpoint(tr)
	if err != nil {
		t.Fatal(err)
	}
	return end
}

// countersOf are those of a treatment's embedded endpoint.
func countersOf(t testing.TB, p *arm) reference.Counters {
	t.Helper()
	c, err := p.endpoint.admin.Counters(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// calls makes n calls of the standard treatment, each on a new connection, and returns how they ended.
func calls(t testing.TB, tg *target, n int) (out []load.Outcome, why []string) {
	t.Helper()
	op := onlyOp(t, tg, standard)
	for i := range uint64(n) {
		o, err := tg.arm(standard.ID).call(t.Context(), op.Wire, i, 2*callTimeout)
		text := ""
		if err != nil {
			text = err.Error()
		}
		if o == load.OK != (err == nil) {
			t.Errorf("call %d: %v with error %v", i, o, err)
		}
		out, why = append(out, o), append(why, text)
	}
	return out, why
}

func wantGoodCalls(t testing.TB, tg *target, n int) {
	t.Helper()
	out, why := calls(t, tg, n)
	for i, o := range out {
		if o != load.OK {
			t.Errorf("call %d: %v: %s", i, o, why[i])
		}
	}
}

func embedded(preset string) *Spec {
	return &Spec{Adapter: "gce-metadata", Embedded: &Embedded{Preset: &preset}}
}

// arm is what Prepare made for a treatment.
func (t *target) arm(id string) *arm {
	a, _ := t.arms.Of(design.Treatment{ID: id})
	return a
}

func serve(t testing.TB, h http.Handler) string {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	return srv.URL
}

// secretFile writes a secret as a file that the test may change.
func secretFile(t testing.TB, name, value string) area.Secret {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(value+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return area.Secret{File: path}
}

// started ends a fixture with the test.
func started[S interface{ Close() error }](t *testing.T, s S, err error) S {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close the fixture: %v", err)
		}
	})
	return s
}
