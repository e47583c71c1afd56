package pull

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"syscall"
	"time"

	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/kubelet/images/pullmanager"

	"tare/plane/batch"
	"tare/plane/driver"
)

// The trespasses: a pod asks for an image with a credential that no record names.
const (
	foreign     = "foreign"      // an image with a record
	foreignPull = "foreign-pull" // an image that is pulled again and again by pods with the right to it
)

const (
	// atOnce is how many single calls may be under way at once.
	atOnce = 256
	// pulling is how long a pull takes that guard does not make.
	pulling = 200 * time.Millisecond
	// retries is how often a pod asks: a kubelet tries again after a refusal.
	retries = 2
)

// stranger is the pod that has no right to any image.
var stranger = presents(strange())

// askStranger performs the i-th check of the batch for a pod without the right. A hit is a refusal.
func (m *Manager) askStranger(i int) (bool, error) {
	of := &m.images[m.image[i]]
	return m.manager.MustAttemptImagePull(m.ctx, of.name, of.ref, stranger)
}

func (m *Manager) strangers(calls int) (batch.Cost, error) {
	return batch.Together(calls, m.s.Concurrency, m.askStranger)
}

// Together implements driver.Driver.
func (m *Manager) Together() bool { return m.station != nil && m.node != nil }

// single performs one call of guard, without clocks, over whatever heap there is, and beside others.
func (m *Manager) single(o operation) (driver.Cost, error) {
	m.node.manager.RLock()
	defer m.node.manager.RUnlock()
	c := &call{Manager: m}
	c.logger = klog.New(&c.errs)
	c.ctx = klog.NewContext(context.Background(), c.logger)
	perform := map[string]func() (driver.Cost, error){
		"check": c.check, foreign: c.check, "pull": c.pull, foreignPull: c.foreignPull,
	}[o.Name]
	if perform == nil {
		return driver.Cost{}, fmt.Errorf("guard does not ask for %s", o.Name)
	}
	c.foreign = o.Trespass != ""
	out, err := perform()
	if err := errors.Join(err, written(c.errs.take())); err != nil {
		return driver.Cost{}, blame(m.folder, err)
	}
	return out, nil
}

// written drops the error of a write under the condition full-disk: the manager goes on without the record.
func written(err error) error {
	if errors.Is(err, syscall.EFBIG) {
		return nil
	}
	return err
}

// A call is a single call, with the errors that the manager logs about it.
type call struct {
	*Manager
	foreign bool
	errs    complaints
	logger  klog.Logger
	ctx     context.Context //nolint:containedctx // of this call
}

// check asks for an image with a record. Where the concurrency is above 1, pods that have the right ask for the same
// image at the same time.
func (c *call) check() (out driver.Cost, err error) {
	c.node.drawing.Lock()
	c.draw(c.draws, 1)
	image, pod := int(c.image[0]), c.known[c.secret[0]]
	c.node.drawing.Unlock()
	asks := pod
	if c.foreign {
		image, asks = image%c.s.Records, stranger
	}
	of := &c.images[image]
	var beside sync.WaitGroup
	errs := make([]error, c.s.Concurrency)
	for k := 1; k < c.s.Concurrency; k++ {
		beside.Go(func() { _, errs[k] = c.must(of, pod) })
	}
	must, err := c.must(of, asks)
	beside.Wait()
	if must && image < c.s.Records {
		out.Refused = 1
	} else if !must {
		out.Permitted = 1
	}
	return out, errors.Join(append(errs, err)...)
}

// must reports whether a pod must pull an image. A panic is an error of it.
func (c *call) must(of *image, pod pullmanager.GetPodCredentials) (must bool, err error) {
	defer func() {
		if r := recover(); r != nil { // only this goroutine can recover it
			err = driver.Panicked(r)
		}
	}()
	return c.manager.MustAttemptImagePull(c.ctx, of.name, of.ref, pod)
}

// pull does what a kubelet does around a pull by a pod with the right, whose image and record are removed meanwhile, as
// the garbage collection of images does. It is refused if the manager cannot write that it pulls: then a kubelet does
// not pull.
func (c *call) pull() (out driver.Cost, err error) {
	n := c.node.next()
	of := &c.node.images[n]
	if err := c.manager.RecordPullIntent(c.logger, of.name); err != nil {
		out.Refused = 1
		return out, written(err)
	}
	if err := c.node.remove(n, c.accessor); err != nil {
		return out, err
	}
	time.Sleep(pulling)
	c.node.add(n)
	c.manager.RecordImagePulled(c.ctx, of.name, of.ref, c.credentials())
	out.Permitted = 1
	return out, nil
}

// populate pulls the images of the node that are not there.
func (m *Manager) populate() error {
	for i, of := range m.node.images {
		if m.node.there[i].is {
			continue
		}
		if err := m.manager.RecordPullIntent(m.logger, of.name); err != nil {
			return err
		}
		m.node.add(i)
		m.manager.RecordImagePulled(m.ctx, of.name, of.ref, m.credentials())
	}
	return m.errs.take()
}

// foreignPull asks for an image of the node as a pod without the right, and does what a kubelet does: the pull that it
// must make is refused by the registry, and it asks again. It is permitted if it gets the image without a pull.
func (c *call) foreignPull() (out driver.Cost, err error) {
	n, leave, err := c.node.visit(rand.IntN(nodeImages))
	if err != nil {
		return out, err
	}
	defer leave()
	of := &c.node.images[n]
	for range retries {
		must, err := c.must(of, stranger)
		if err != nil {
			return out, err
		}
		if !must {
			out.Permitted = 1
			return out, nil
		}
		if err := c.manager.RecordPullIntent(c.logger, of.name); err != nil {
			if err := written(err); err != nil {
				return out, err
			}
			continue // the kubelet does not pull
		}
		c.manager.RecordImagePullFailed(c.ctx, of.name)
	}
	out.Refused = 1
	return out, nil
}
