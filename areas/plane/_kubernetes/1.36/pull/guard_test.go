package pull

import (
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"tare/plane/driver"
)

// alone runs the test in a process of its own, which may write to no file for a while, and reports whether this is it.
func alone(t *testing.T) bool {
	t.Helper()
	const mark = "PULL_TEST_ALONE"
	if os.Getenv(mark) != "" {
		signal.Ignore(syscall.SIGXFSZ)
		return true
	}
	c := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.v", "-test.run=^"+t.Name()+"$")
	c.Env = append(os.Environ(), mark+"=1")
	out, err := c.CombinedOutput()
	if t.Logf("%s", out); err != nil {
		t.Error(err)
	}
	return false
}

// guarding returns a manager that is prepared for guard and verified.
func guarding(t *testing.T, folder, levels string) (*Manager, driver.Prepared) {
	t.Helper()
	p := preparation(folder, strings.Fields(levels)...)
	p.Operations = []string{"check", "pull", foreign, foreignPull}
	m := &Manager{}
	out, err := m.Prepare(p)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.Verify(); err != nil {
		t.Fatal(err)
	}
	return m, out
}

// tally is how calls of an operation ended.
type tally struct{ refused, permitted, neither, failed int }

// many makes calls of all operations of guard, many at once, until the function that it returns is called.
func many(m *Manager) func() map[string]tally {
	out, mu, all, stop := map[string]tally{}, sync.Mutex{}, sync.WaitGroup{}, make(chan struct{})
	for k := range 48 {
		all.Go(func() {
			for name := []string{"check", "pull", foreign, foreignPull}[k%4]; ; time.Sleep(rand.N(2 * time.Millisecond)) {
				select {
				case <-stop:
					return
				default:
				}
				c, err := m.Operate(name, 1)
				mu.Lock()
				x := out[name]
				switch {
				case err != nil:
					x.failed++
				case c.Refused > 0:
					x.refused++
				case c.Permitted > 0:
					x.permitted++
				default:
					x.neither++
				}
				out[name] = x
				mu.Unlock()
			}
		})
	}
	return func() map[string]tally {
		close(stop)
		all.Wait()
		return out
	}
}

// during makes calls before, while and after a condition holds.
func during(t *testing.T, m *Manager, condition string) map[string]tally {
	t.Helper()
	stop := many(m)
	time.Sleep(300 * time.Millisecond)
	if err := m.Impose(condition); err != nil {
		t.Error(err)
	}
	time.Sleep(300 * time.Millisecond)
	if err := m.Lift(condition); err != nil {
		t.Error(err)
	}
	time.Sleep(500 * time.Millisecond)
	return stop()
}

// TestGuard: with AlwaysVerify the pull manager permits no trespass, under concurrency, from a cache that evicts, and on
// a full disk, where it refuses pods with the right to pull; without a check each is permitted.
func TestGuard(t *testing.T) {
	if !alone(t) {
		return
	}
	for levels, conditions := range map[string][]string{
		"accessor=disabled records=50":                         nil,
		"accessor=directfs records=50 concurrency=3 stripes=4": {fullDisk},
		"accessor=cached records=50":                           {evict, fullDisk},
		"accessor=lru size=10 records=50":                      {evict, fullDisk},
	} {
		m, p := guarding(t, t.TempDir(), levels)
		for _, c := range []string{evict, fullDisk} {
			if (p.Conditions[c] != "") != slices.Contains(conditions, c) {
				t.Errorf("%s: conditions %v, notes %q", levels, p.Conditions, p.Notes)
			}
		}
		for _, c := range append(conditions, "") {
			if c == "" && conditions != nil {
				break
			}
			got := map[string]tally{}
			if c != "" {
				got = during(t, m, c)
			} else {
				stop := many(m)
				time.Sleep(300 * time.Millisecond)
				got = stop()
			}
			t.Logf("%s, %s: %+v", levels, c, got)
			for name, x := range got {
				trespass, open := isTrespass(name), conditions == nil
				if x.failed > 0 || trespass && (x.permitted > 0) != open || trespass && (x.refused > 0) == open ||
					!trespass && x.permitted == 0 || name == "pull" && (x.refused > 0) != (c == fullDisk) {
					t.Errorf("%s, %s: %s %+v", levels, c, name, x)
				}
			}
		}
		if _, err := m.Verify(); err != nil {
			t.Errorf("%s: afterwards: %v", levels, err)
		}
	}
}

// TestLostIntent is what upstream v1.36.3 does with a kubelet's default policy: a pull whose record could not be
// written leaves an intent, which protects the image until the kubelet has started anew and a pod without the right has
// tried to pull it: that failed pull removes the intent, and then the image counts as preloaded. If this fails,
// Kubernetes has been mended.
func TestLostIntent(t *testing.T) {
	if !alone(t) {
		return
	}
	for policy, want := range map[string]bool{"NeverVerifyPreloadedImages": false, "AlwaysVerify": true} {
		m, _ := guarding(t, t.TempDir(), "accessor=directfs records=5 policy="+policy)
		of := &m.node.images[3]
		if err := m.node.remove(3, m.accessor); err != nil {
			t.Fatal(err)
		}
		if err := m.manager.RecordPullIntent(m.logger, of.name); err != nil {
			t.Fatal(err)
		}
		m.node.add(3)
		if err := setFull(true); err != nil {
			t.Fatal(err)
		}
		m.manager.RecordImagePulled(m.ctx, of.name, of.ref, m.credentials())
		err := m.replace()
		if e := setFull(false); e != nil || err != nil {
			t.Fatal(e, err)
		}
		if err := written(m.errs.take()); err != nil {
			t.Fatal(err)
		}
		for k, want := range []bool{true, want} {
			must, err := m.manager.MustAttemptImagePull(m.ctx, of.name, of.ref, stranger)
			if err != nil || must != want {
				t.Errorf("%s: attempt %d of a pod without the right: must pull %v, want %v: %v", policy, k, must, want, err)
			}
			if err := m.manager.RecordPullIntent(m.logger, of.name); err != nil {
				t.Fatal(err)
			}
			m.manager.RecordImagePullFailed(m.ctx, of.name)
		}
	}
}

// TestGuardRestarted: a later process finds the images that pods have pulled, and their records.
func TestGuardRestarted(t *testing.T) {
	if !alone(t) {
		return
	}
	folder := t.TempDir()
	m, _ := guarding(t, folder, "accessor=cached records=20")
	of := &m.node.images[5]
	if err := m.node.remove(5, m.accessor); err != nil {
		t.Fatal(err)
	}
	if err := m.manager.RecordPullIntent(m.logger, of.name); err != nil { // and it is killed
		t.Fatal(err)
	}
	m, _ = guarding(t, folder, "accessor=cached records=20")
	for _, i := range []int{4, 5} {
		must, err := m.manager.MustAttemptImagePull(m.ctx, m.node.images[i].name, m.node.images[i].ref, stranger)
		if err != nil || !must || !m.node.there[i].is {
			t.Errorf("image %d: must pull %v, on the node %v: %v", i, must, m.node.there[i].is, err)
		}
	}
	mine, err := m.manager.MustAttemptImagePull(m.ctx, m.node.images[4].name, m.node.images[4].ref, m.known[0])
	if err != nil || mine {
		t.Errorf("the pod that has pulled: must pull %v, %v", mine, err)
	}
}
