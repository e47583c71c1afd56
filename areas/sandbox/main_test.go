package sandbox

import (
	"os"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"tare/internal/design"
	"tare/rigs/areatest"
	"tare/rigs/hosttest"
)

// TestMain lets this test binary be its own child, as tare's binary is.
func TestMain(m *testing.M) {
	if name := areatest.ServerOfArgs(areaName); name != "" {
		if what := hostileWorker(); what != "" && name == serverWorker {
			misbehave(what)
		}
		areatest.Serve(Area{}, name)
	}
	serveGuest()
	holdTrial()
	goleak.VerifyTestMain(hosttest.Sharing(m))
}

// treatment shortens the tests' many calls.
var treatment = areatest.Treatment

func baseline() design.Treatment {
	t := treatment("enforcer", "none")
	t.Baseline = true
	return t
}

// prepared opens spec and prepares treatments. At the end of the test it closes the target, which must undo all
// changes.
func prepared(t testing.TB, spec *Spec, treatments ...design.Treatment) (*target, *areatest.Journal) {
	t.Helper()
	tg, j := areatest.Open[*target](t, Area{}, spec, areatest.Env(t))
	for _, tr := range treatments {
		if err := tg.Prepare(t.Context(), tr, j); err != nil {
			t.Fatal(err)
		}
	}
	return tg, j
}

// enter enters the treatment, or skips the test if this kernel cannot enforce it.
func enter(t testing.TB, tg *target, tr design.Treatment) {
	t.Helper()
	requireEnforcer(t, tr.Levels[factorEnforcer])
	if err := tg.Enter(t.Context(), tr); err != nil {
		t.Fatal(err)
	}
}

// requireEnforcer skips the test if the kernel does not have the enforcer. If the kernel has it, failing to enforce is
// an error.
func requireEnforcer(t testing.TB, enforcer string) {
	t.Helper()
	if all := strings.Split(enforcer, design.LevelMark); len(all) > 1 {
		for _, one := range all {
			requireEnforcer(t, one)
		}
		return
	}
	switch enforcer {
	case enforcerLandlock:
		if _, err := landlockRights(); err != nil {
			hosttest.Missing(t, err.Error(), "run on a kernel that has Landlock")
		}
	case enforcerSeccomp:
		if _, err := os.Stat("/proc/sys/kernel/seccomp/actions_avail"); err != nil {
			hosttest.Missing(t, err.Error(), "run on a kernel that has seccomp")
		}
	}
	status, err := os.ReadFile("/proc/self/status")
	if err != nil || !strings.Contains(string(status), "\nSeccomp:\t0\n") {
		hosttest.Missing(t, "the tests run under a seccomp filter, or it cannot be seen", "run them without one")
	}
}
