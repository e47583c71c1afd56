package pull

import (
	"fmt"
	"math/rand/v2"

	"tare/plane/batch"
)

// checkCold checks each image once after a restart that is not timed, in a new order for each batch; with fewer records
// than calls, it restarts again.
func (m *Manager) checkCold(calls int) (batch.Cost, error) {
	m.warm = false
	order := rand.New(rand.NewPCG(uint64(m.image[0]), uint64(calls))).Perm(m.s.Records)
	for i := range m.image {
		m.image[i] = int32(order[i%len(order)])
	}
	var total batch.Cost
	for from := 0; from < calls; from += len(order) {
		if err := m.restart(); err != nil {
			return total, err
		}
		before := m.reads.Load()
		n := min(len(order), calls-from)
		c, err := batch.Together(n, m.s.Concurrency, func(i int) (bool, error) { return m.ask(from + i) })
		if err != nil {
			return total, err
		}
		total = total.Plus(c)
		m.readers += m.reads.Load() - before
	}
	return total, nil
}

// pull writes an intent and a record, as the kubelet does around each pull, and removes the record. Each goroutine has
// an image of its own.
func (m *Manager) pull(calls int) (batch.Cost, error) {
	creds, first := m.credentials(), m.s.Records+unknownImages
	call := func(i int) (bool, error) {
		of := &m.images[first+i%pulledImages]
		if err := m.manager.RecordPullIntent(m.logger, of.name); err != nil {
			return false, err
		}
		m.manager.RecordImagePulled(m.ctx, of.name, of.ref, creds)
		return true, nil
	}
	return batch.Apart(calls, m.s.Concurrency, call, func(from, to int) error {
		if m.accessor == nil {
			return nil
		}
		for i := from; i < to; i++ {
			if err := m.accessor.DeleteImagePulledRecord(m.logger, m.images[first+i%pulledImages].ref); err != nil {
				return fmt.Errorf("remove the record: %w", err)
			}
		}
		return nil
	})
}

// newNamespace checks known credentials of pods in a namespace that the record does not name: upstream records the
// namespace, and newNamespace undoes that.
func (m *Manager) newNamespace(calls int) (batch.Cost, error) {
	for i, n := range m.image {
		m.image[i] = n % int32(m.s.Records) // for images without a record it writes nothing
	}
	call := func(i int) (bool, error) {
		of := &m.images[m.image[i]]
		must, err := m.manager.MustAttemptImagePull(m.ctx, of.name, of.ref, m.copies[m.secret[i]])
		return !must, err
	}
	before := m.reads.Load()
	return batch.Apart(calls, m.s.Concurrency, call, func(from, to int) error {
		if m.accessor == nil {
			return nil
		}
		m.readers += min(m.reads.Load()-before, int64(to-from)) // a reader may read the record again before it writes it
		before = m.reads.Load()
		for i := from; i < to; i++ {
			of := m.images[m.image[i]]
			if err := m.accessor.WriteImagePulledRecord(m.logger, recordOf(of, m.secrets)); err != nil {
				return fmt.Errorf("put the record back: %w", err)
			}
		}
		return nil
	})
}
