package pull

import (
	"errors"
	"sync"

	"k8s.io/kubernetes/pkg/kubelet/images/pullmanager"

	"tare/plane/batch"
	"tare/plane/driver"
)

// foreign is the trespass: a pod asks for an image with a credential that no record names.
const foreign = "foreign"

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

// single performs one check of guard, without clocks and over whatever heap there is. Where the concurrency is above 1,
// pods that have the right ask for the same image at the same time.
func (m *Manager) single(o operation) (out driver.Cost, err error) {
	if o.Name != foreign && o.Name != "check" {
		return out, errors.New("guard asks for check and foreign only")
	}
	m.draw(m.draws, 1)
	of, pod := &m.images[m.image[0]], stranger
	if o.Trespass == "" {
		pod = m.known[m.secret[0]]
	}
	var beside sync.WaitGroup
	errs := make([]error, m.s.Concurrency)
	for k := 1; k < m.s.Concurrency; k++ {
		beside.Go(func() { _, errs[k] = m.guard(of, m.known[m.secret[0]]) })
	}
	must, err := m.guard(of, pod)
	beside.Wait()
	if err := errors.Join(append(errs, err, m.errs.take())...); err != nil {
		return out, blame(m.folder, err)
	}
	known := int(m.image[0]) < m.s.Records
	switch {
	case o.Trespass != "" && must, o.Trespass == "" && must && known:
		out.Refused = 1
	case !must:
		out.Permitted = 1
	}
	return out, nil
}

// guard performs a check. A panic is an error of it.
func (m *Manager) guard(of *image, pod pullmanager.GetPodCredentials) (must bool, err error) {
	defer func() {
		if r := recover(); r != nil { // only this goroutine can recover it
			err = driver.Panicked(r)
		}
	}()
	return m.manager.MustAttemptImagePull(m.ctx, of.name, of.ref, pod)
}
