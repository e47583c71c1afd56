package admission

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"

	"tare/area"
	"tare/areas/admission/engine"
	"tare/areas/plane"
	"tare/internal/design"
	"tare/rigs/areatest"
)

// A standing control plane is started by the first test that takes it, serves one test after another, and is ended by
// TestMain. Whoever takes it leaves it as it was.
type standing struct {
	nodes bool // with kube-scheduler and kube-controller-manager
	// For an engine beside it: a treatment under which the engine runs, and a function that returns its bundle.
	engine *engine.Kind
	levels func(dir string) ([]string, error)

	turn   sync.Mutex
	dir    string
	plane  *plane.Plane
	target *target
	with   design.Treatment
	undone areatest.Journal
}

// standings are what TestMain ends.
func standings() []*standing {
	return []*standing{&ownPlane, &clusterOfOthers, &besideKyverno, &besideGatekeeper}
}

var (
	ownPlane, clusterOfOthers = standing{}, standing{nodes: true}
	besideKyverno             = standing{engine: engine.Kyverno, levels: func(dir string) ([]string, error) {
		return []string{"bundle", dir}, errors.Join(os.CopyFS(dir, os.DirFS("testdata/kyverno")),
			os.WriteFile(dir+"/outside.yaml", []byte(outside), 0o600))
	}}
	besideGatekeeper = standing{engine: engine.Gatekeeper, levels: func(string) ([]string, error) {
		return []string{"bundle", "none", "gatekeeper", engine.Gatekeeper.Default}, nil
	}}
)

// take waits for the test's turn, which lasts until the test ends, and skips the test where there is no such control
// plane or engine.
func (s *standing) take(t *testing.T) {
	t.Helper()
	s.turn.Lock()
	t.Cleanup(s.turn.Unlock)
	requireBinary(t, plane.V136)
	if s.engine != nil {
		requireEngine(t, s.engine)
	}
	if s.plane != nil || s.target != nil {
		return
	}
	var err error
	if s.dir, err = os.MkdirTemp("", "tare-standing-"); err != nil { //nolint:usetesting // it outlives the test
		t.Fatal(err)
	}
	if err := s.start(context.WithoutCancel(t.Context()), testEnv(t, "create-pod-dry-run")); err != nil {
		t.Fatal(err)
	}
}

func (s *standing) start(ctx context.Context, env area.Env) (err error) {
	if s.engine == nil {
		s.plane, err = startPlane(ctx, s.dir, s.nodes)
		return err
	}
	levels, err := s.levels(s.dir + "/bundle")
	if err != nil {
		return err
	}
	s.with = treatment(levels...)
	env.Dir, env.Trespasses, env.Treatments = s.dir, true, []area.Treatment{s.with}
	opened, err := Area{}.Open(ctx, &Spec{}, env)
	if err != nil {
		return err
	}
	s.target, _ = opened.(*target)
	return s.target.Prepare(ctx, s.with, &s.undone)
}

// end ends what a test has started, and returns what is left of it.
func (s *standing) end() error {
	var errs []error
	if s.plane != nil {
		errs = append(errs, s.plane.Close(context.Background()))
	}
	if s.target != nil {
		errs = append(errs, s.target.Close(context.Background()))
		if left := s.undone.Pending(); len(left) > 0 {
			errs = append(errs, errors.New("not undone: "+left[0].ID))
		}
	}
	return errors.Join(append(errs, os.RemoveAll(s.dir))...)
}

func startPlane(ctx context.Context, dir string, nodes bool) (*plane.Plane, error) {
	b, err := plane.Find(ctx, plane.V136, plane.Host{Log: slog.New(slog.DiscardHandler), Getenv: os.LookupEnv})
	if err != nil {
		return nil, err
	}
	return plane.Start(ctx, plane.Config{Binary: b, Dir: dir, Nodes: nodes})
}

// openedShared opens spec, as opened does, on the standing control plane: its treatments share that.
func openedShared(t *testing.T, spec *Spec, env area.Env) (*target, *areatest.Journal) {
	t.Helper()
	ownPlane.take(t)
	spec.Embedded = &Embedded{Shared: true}
	tg, j := opened(t, spec, env)
	plan, err := (&Spec{}).plan(treatment())
	if err != nil {
		t.Fatal(err)
	}
	tg.controls.shared[plan.key()] = &control{Plane: ownPlane.plane}
	return tg, j
}

// refused gives the engines that run beside an arm a further bundle, and returns why it is not taken.
func refused(t *testing.T, beside *arm, file string) error {
	t.Helper()
	plan, err := (&Spec{}).plan(treatment("bundle", file))
	if err != nil {
		t.Fatal(err)
	}
	env := testEnv(t)
	env.Run = strings.ToLower(rand.Text()[:12])
	p := &arm{
		plan: plan, env: env, declared: &Spec{}, control: beside.control, engines: beside.engines,
		operations: beside.operations,
	}
	for _, step := range []func(context.Context) error{p.connect, p.render, p.createNamespace} {
		if err := step(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	err = p.applyEach(t.Context())
	x := &p.policies
	if err := x.keeper.RemoveAll(t.Context(), x.rendered.Resources, x.coming...); err != nil {
		t.Error(err)
	}
	if beside.policies.own != nil {
		if err := beside.awaitEngines(t.Context()); err != nil { // what was taken before the refusal is gone by then
			t.Error(err)
		}
	}
	return err
}
