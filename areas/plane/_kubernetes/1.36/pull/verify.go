package pull

import (
	"errors"
	"fmt"

	"k8s.io/kubernetes/pkg/kubelet/images/pullmanager"

	"tare/plane/setting"
)

const (
	// fits is the number of records that a cache surely holds if asked to: half of the limit of upstream's cache in
	// v1.36.3.
	fits = 1000
	// scanned limits the checks of one proof.
	scanned = 5000
)

// Verify implements driver.Driver.
func (m *Manager) Verify() ([]string, error) {
	if m.station == nil {
		return nil, errors.New("nothing is prepared")
	}
	m.warm = false // the proofs leave their own images in the cache
	var checks []string
	for _, prove := range []func() (string, error){m.proveCount, m.proveAnswers, m.proveCopy, m.proveReads, m.proveCount} {
		said, err := prove()
		if err := errors.Join(err, m.errs.take()); err != nil {
			return nil, blame(m.folder, err)
		}
		if said != "" {
			checks = append(checks, said)
		}
	}
	return checks[:len(checks)-1], nil // it is counted again, since proofs write
}

func (m *Manager) proveCount() (string, error) {
	if m.s.Accessor == setting.Disabled {
		return "no record file: without a pull manager there is nothing to keep", nil
	}
	n, err := m.count()
	if err == nil && n != m.s.Records {
		err = fmt.Errorf("%d record files lie in %s, want %d", n, m.folder, m.s.Records)
	}
	if err != nil {
		return "", damaged(err)
	}
	return fmt.Sprintf("%d record files lie there, of %d secrets each", n, m.s.Secrets), nil
}

// must returns whether an image must be pulled.
func (m *Manager) must(i int, pod pullmanager.GetPodCredentials) (bool, error) {
	return m.manager.MustAttemptImagePull(m.ctx, m.images[i].name, m.images[i].ref, pod)
}

func (m *Manager) proveAnswers() (string, error) {
	strict := m.s.Accessor != setting.Disabled
	always := strict && m.s.Policy == setting.AlwaysVerify
	last := m.s.Records - 1
	for _, c := range []struct {
		what  string
		image int
		pod   pullmanager.GetPodCredentials
		pull  bool
	}{
		{"a known image with a known credential", 0, m.known[0], false},
		{"the last known image with the last known credential", last, m.known[m.s.Secrets-1], false},
		{"a known image with a credential that nobody knows", last, presents(strange()), strict},
		{"an image without a record", m.s.Records, m.known[0], always},
	} {
		pull, err := m.must(c.image, c.pod)
		if err != nil {
			return "", fmt.Errorf("%s: %w", c.what, err)
		}
		if pull != c.pull {
			return "", fmt.Errorf("%s: it must be pulled: %v, want %v", c.what, pull, c.pull)
		}
	}
	if !strict {
		return "nothing must be pulled: neither an image without a record, nor one with a credential that nobody knows", nil
	}
	if !always {
		return "a known credential, and an image without a record, need no pull; a credential that nobody knows must be " +
			"pulled", nil
	}
	return "a known credential needs no pull; a credential that nobody knows, and an image without a record, must be " +
		"pulled", nil
}

// proveCopy verifies the operation new-namespace, and undoes its effect.
func (m *Manager) proveCopy() (string, error) {
	before := m.secrets
	pull, err := m.must(0, m.copies[0])
	if err != nil || pull {
		return "", errors.Join(err, fmt.Errorf("a known credential in a new namespace: it must be pulled: %v, want false",
			pull))
	}
	if m.accessor == nil {
		return "", nil
	}
	r, ok, err := m.accessor.GetImagePulledRecord(m.images[0].ref)
	if err != nil || !ok {
		return "", errors.Join(err, errors.New("the record of a known image is gone"))
	}
	n := len(r.CredentialMapping[m.images[0].bare].KubernetesSecrets)
	if err := m.accessor.WriteImagePulledRecord(m.logger, recordOf(m.images[0], before)); err != nil {
		return "", fmt.Errorf("put the record back: %w", err)
	}
	if n > len(before) {
		return "a known credential in a new namespace needs no pull, and is recorded", nil
	}
	return fmt.Sprintf("a known credential in a new namespace needs no pull; in a record of %d secrets it is not "+
		"recorded any more", len(before)), nil
}

// scan checks n images from the first one on, each once, and returns how many checks read the directory.
func (m *Manager) scan(first, n int) (int64, error) {
	before := m.reads.Load()
	for i := first; i < first+n; i++ {
		if _, err := m.must(i%m.s.Records, m.known[0]); err != nil {
			return 0, err
		}
	}
	return m.reads.Load() - before, nil
}

// proveReads verifies where records are read from.
func (m *Manager) proveReads() (string, error) {
	switch m.s.Accessor {
	case setting.DirectFS:
		n := min(m.s.Records, 100)
		return m.reading(0, n, int64(n), "each of %d checks reads the directory")
	case setting.Cached:
		return m.proveCached()
	case setting.LRU:
		return m.proveLRU()
	}
	return "", nil
}

// reading scans, and fails unless the number of reads is as expected.
func (m *Manager) reading(first, n int, want int64, says string) (string, error) {
	got, err := m.scan(first, n)
	if err != nil {
		return "", err
	}
	if got != want {
		return "", fmt.Errorf("%d checks of as many images read the directory %d times, want %d", n, got, want)
	}
	return fmt.Sprintf(says, n), nil
}

func (m *Manager) proveCached() (string, error) {
	n := min(m.s.Records, fits)
	if _, err := m.scan(0, n); err != nil {
		return "", err
	}
	said, err := m.reading(0, n, 0, "none of %d checks of images that were asked for before reads the directory")
	if err != nil || m.s.Records <= fits {
		return said, err
	}
	all := min(m.s.Records, scanned)
	if _, err := m.scan(0, all); err != nil {
		return "", err
	}
	reads, err := m.scan(0, all)
	return fmt.Sprintf("%s; a scan of %d of the %d images, repeated, reads it %d times", said, all, m.s.Records, reads),
		err
}

// proveLRU verifies that a cache smaller than the scan evicts each image before the scan returns to it.
func (m *Manager) proveLRU() (string, error) {
	if m.s.Size >= m.s.Records {
		if m.s.Records > fits {
			return "", nil
		}
		return m.proveCached()
	}
	if _, err := m.scan(0, m.s.Size); err != nil {
		return "", err
	}
	return m.reading(m.s.Size, min(m.s.Records, 1000), int64(min(m.s.Records, 1000)),
		fmt.Sprintf("each of %%d checks of a scan reads the directory, since a cache of %d records holds fewer than the %d",
			m.s.Size, m.s.Records))
}
