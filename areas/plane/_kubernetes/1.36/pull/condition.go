package pull

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"tare/plane/driver"
	"tare/plane/setting"
)

// The conditions.
const (
	evict    = "evict"
	fullDisk = "full-disk"
)

// mostCached is how many records upstream's cache holds at most.
const mostCached = 2000

// offered returns the conditions that can be brought about under the treatment, after it has tried the one that this
// host may refuse: a note tells why.
func (m *Manager) offered(notes *[]string) map[string]string {
	out := map[string]string{}
	if m.size() > 0 {
		out[evict] = "as many other images as the cache holds are recorded and removed again: it has evicted all others"
	}
	if m.s.Accessor == setting.Disabled {
		return out
	}
	if err := tryFull(m.folder); err != nil {
		*notes = append(*notes, fmt.Sprintf("no condition %s: %v", fullDisk, err))
		return out
	}
	out[fullDisk] = "no record can be written, as on a full disk; the pull manager is started anew meanwhile"
	return out
}

// Impose implements driver.Driver.
func (m *Manager) Impose(condition string) error {
	if !m.Together() {
		return errors.New("nothing is prepared for guard")
	}
	switch condition {
	case evict:
		return m.evict()
	case fullDisk:
		if err := setFull(true); err != nil {
			return err
		}
		return m.replace()
	}
	return fmt.Errorf("there is no condition %q", condition)
}

// Lift implements driver.Driver.
func (m *Manager) Lift(condition string) error {
	if condition == fullDisk {
		return setFull(false)
	}
	return nil
}

// replace starts the pull manager anew over its records, once no call is under way.
func (m *Manager) replace() error {
	m.node.manager.Lock()
	defer m.node.manager.Unlock()
	return errors.Join(m.restart(), written(m.errs.take()))
}

// evict fills the cache with records of other images, and removes them.
func (m *Manager) evict() error {
	m.node.manager.RLock()
	defer m.node.manager.RUnlock()
	n, errs := min(m.size(), mostCached), []error{}
	for k := range n {
		errs = append(errs, m.accessor.WriteImagePulledRecord(m.logger, recordOf(imageOf(len(m.images)+k), m.secrets)))
	}
	for k := range n {
		errs = append(errs, m.accessor.DeleteImagePulledRecord(m.logger, imageOf(len(m.images)+k).ref))
	}
	return blame(m.folder, errors.Join(errs...))
}

// setFull lets this process write to no file, or to any again. Then a write fails with EFBIG in place of ENOSPC; the
// pull manager does not tell errors of writing apart. The limit ends with the process.
func setFull(full bool) error {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		return fmt.Errorf("read the limit of files: %w", err)
	}
	limit.Cur = limit.Max
	if full {
		limit.Cur = 0
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		return fmt.Errorf("set the limit of files: %w", err)
	}
	return nil
}

// tryFull returns an error unless setFull makes writes fail, and only until it is undone.
func tryFull(folder string) error {
	if err := setFull(true); err != nil {
		return err
	}
	path := folder + ".try"
	full := os.WriteFile(path, []byte("x"), 0o600)
	err := errors.Join(setFull(false), os.WriteFile(path, []byte("x"), 0o600), os.Remove(path))
	if err != nil || !errors.Is(full, syscall.EFBIG) {
		return errors.Join(fmt.Errorf("a write beyond the limit of files gives %w, want %w", full, syscall.EFBIG), err)
	}
	return nil
}

var _ driver.Driver = (*Manager)(nil)
