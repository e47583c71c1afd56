package pull

import (
	"errors"
	"fmt"
	"slices"

	config "k8s.io/kubernetes/pkg/kubelet/apis/config"

	"tare/plane/batch"
	"tare/plane/driver"
	"tare/plane/sequence"
	"tare/plane/setting"
)

// warmed limits how many checks a cache sees before any is timed: ten times its capacity in v1.36.3.
const warmed = 20_000

// An operation is an operation that can be timed.
type operation struct {
	driver.Operation
	perform func(m *Manager, calls int) (batch.Cost, error)
	draws   bool // its calls continue the sequence of the batch before, over a cache that has seen those calls
	checks  bool // its calls are checks, of which a share are hits
	writes  bool // its calls change the records, and undo the change
}

func isTrespass(name string) bool { return name == foreign || name == foreignPull }

func operations() []operation {
	return []operation{
		{Operation: driver.Operation{
			Name: "empty", Expect: "nothing: the loop of check and the clocks around it",
			Harness: true, Most: 1 << 20,
		}, perform: (*Manager).empty},
		{
			Operation: driver.Operation{
				Name:   "empty-timed",
				Expect: "nothing: the clocks around each call, as pull and new-namespace have them", Harness: true, Most: 10_000,
			},
			perform: (*Manager).emptyTimed,
		},
		{Operation: driver.Operation{
			Name: "check", Overhead: "empty", Expect: "no pull of an image with a record",
			Most: 1 << 20,
		}, perform: (*Manager).check, draws: true, checks: true},
		{Operation: driver.Operation{
			Name: foreign, Trespass: "check", Expect: "a pull: no record of the image names the credential", Most: 1 << 20,
		}, perform: (*Manager).strangers},
		{Operation: driver.Operation{
			Name: foreignPull, Trespass: "pull", Most: 1,
			Expect: "a pull, twice: the credential is good for no image, and the registry refuses it",
		}},
		{
			Operation: driver.Operation{
				Name: "check-cold", Overhead: "empty",
				Expect: "no pull; each image for the first time since a restart", Most: 100,
			}, perform: (*Manager).checkCold,
			checks: true,
		},
		{Operation: driver.Operation{
			Name: "pull", Overhead: "empty-timed",
			Expect: "an intent, and the record of an image without one", Most: 2000,
		}, perform: (*Manager).pull, writes: true},
		{
			Operation: driver.Operation{
				Name: "new-namespace", Overhead: "empty-timed",
				Expect: "no pull; a known credential is recorded for another namespace", Most: 2000,
			},
			perform: (*Manager).newNamespace, draws: true, checks: true, writes: true,
		},
		{Operation: driver.Operation{
			Name: "restart", Overhead: "empty", Expect: "a new pull manager over the records",
			Most: 50,
		}, perform: (*Manager).again},
		{Operation: driver.Operation{
			Name: "prune", Overhead: "empty", Expect: "all records looked at, none removed",
			Most: 50,
		}, perform: (*Manager).prune},
	}
}

// Describe implements driver.Driver.
func (m *Manager) Describe() driver.Description {
	d := driver.Description{
		Protocol: driver.Protocol, Name: "pull-manager", Version: m.version, Factors: map[string][]string{}, AtOnce: atOnce,
		Notes: []string{
			"a batch begins with a heap that was just collected: what its garbage costs to collect is in its CPU time only " +
				"where it is long enough to " +
				"need that, and the bytes that a call allocates stand for the rest",
		},
	}
	for _, name := range setting.Names() {
		d.Factors[name] = []string{}
	}
	d.Factors["accessor"], d.Factors["pattern"] = setting.Accessors(), sequence.Patterns()
	d.Factors["policy"] = setting.Policies()
	for _, o := range operations() {
		d.Operations = append(d.Operations, o.Operation)
	}
	return d
}

// Operate implements driver.Driver.
func (m *Manager) Operate(name string, calls int) (out driver.Cost, err error) {
	if m.station == nil {
		return out, errors.New("nothing is prepared")
	}
	all := operations()
	i := slices.IndexFunc(all, func(o operation) bool { return o.Name == name })
	if i < 0 {
		return out, fmt.Errorf("there is no operation %q", name)
	}
	o := all[i]
	if m.node != nil && calls == 1 {
		return m.single(o)
	}
	if o.perform == nil {
		return out, fmt.Errorf("%s is made for guard alone, one call at a time", name)
	}
	if calls > o.Most {
		return out, fmt.Errorf("%d calls of %s: %d at most", calls, name, o.Most)
	}
	from := m.others // so that no other operation continues a sequence of which the cache has missed a part
	if o.draws {
		if err := m.warmUp(); err != nil {
			return out, blame(m.folder, err)
		}
		from = m.draws
	}
	m.draw(from, calls)
	m.readers = 0
	c, err := o.perform(m, calls)
	if err := errors.Join(err, m.errs.take()); err != nil {
		return out, blame(m.folder, err)
	}
	if err := m.complete(o); err != nil {
		return out, err
	}
	total := map[string]float64{
		"wall": c.Wall, "cpu": c.CPU, "allocations": float64(c.Allocations),
		"allocated": float64(c.Allocated),
	}
	if o.checks {
		total["hits"], total["cache-hits"] = float64(c.Hits), float64(int64(calls)-m.readers)
	}
	out.Total = total
	if o.Trespass != "" {
		out.Refused, out.Permitted = c.Hits, calls-c.Hits
	}
	return out, nil
}

// complete counts the records after a batch that writes, so that the next batch runs over the number of records that
// the treatment names.
func (m *Manager) complete(o operation) error {
	if !o.writes || m.accessor == nil {
		return nil
	}
	n, err := m.count()
	if err != nil {
		return damaged(err)
	}
	if n != m.s.Records {
		return damaged(fmt.Errorf("%d record files lie in %s after %s, want %d", n, m.folder, o.Name, m.s.Records))
	}
	return nil
}

// warmUp shows the cache the sequence, because a new cache holds what upstream lists first.
func (m *Manager) warmUp() error {
	if m.warm {
		return nil
	}
	m.warm = true
	if m.size() == 0 {
		return nil
	}
	m.draw(m.draws, min(4*m.s.Records, warmed))
	for i := range m.image {
		if _, err := m.ask(i); err != nil {
			return err
		}
	}
	return m.errs.take()
}

func (m *Manager) draw(from *sequence.Sequence, calls int) {
	if cap(m.image) < calls {
		m.image, m.secret = make([]int32, calls), make([]int32, calls)
	}
	m.image, m.secret = m.image[:calls], m.secret[:calls]
	from.Fill(m.image, m.secret)
}

// ask performs the i-th check of the batch.
func (m *Manager) ask(i int) (bool, error) {
	of := &m.images[m.image[i]]
	must, err := m.manager.MustAttemptImagePull(m.ctx, of.name, of.ref, m.known[m.secret[i]])
	return !must, err
}

// idle is ask without the check.
func (m *Manager) idle(i int) (bool, error) {
	of := &m.images[m.image[i]]
	return of.name != "" && of.ref != "" && m.known[m.secret[i]] != nil, nil
}

func (m *Manager) empty(calls int) (batch.Cost, error) {
	return batch.Together(calls, m.s.Concurrency, m.idle)
}

func (m *Manager) emptyTimed(calls int) (batch.Cost, error) {
	return batch.Apart(calls, m.s.Concurrency, m.idle, func(int, int) error { return nil })
}

func (m *Manager) check(calls int) (batch.Cost, error) {
	before := m.reads.Load()
	c, err := batch.Together(calls, m.s.Concurrency, m.ask)
	m.readers = m.reads.Load() - before // a check reads the directory at most once
	return c, err
}

func (m *Manager) again(calls int) (batch.Cost, error) {
	m.warm = false
	return batch.Together(calls, 1, func(int) (bool, error) { return true, m.restart() })
}

func (m *Manager) prune(calls int) (batch.Cost, error) {
	return batch.Together(calls, m.s.Concurrency, func(int) (bool, error) {
		m.manager.PruneUnknownRecords(m.ctx, m.inUse, m.began)
		return true, nil
	})
}

// credentials returns those of the pod for which an image is pulled.
func (m *Manager) credentials() *config.ImagePullCredentials {
	return &config.ImagePullCredentials{KubernetesSecrets: m.secrets[:1]}
}
