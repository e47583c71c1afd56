// Package pull has the kubelet's pull manager do what pods ask of it, and times that.
package pull

import (
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	config "k8s.io/kubernetes/pkg/kubelet/apis/config"
	"k8s.io/kubernetes/pkg/kubelet/images/pullmanager"

	"tare/plane/driver"
	"tare/plane/recordfile"
	"tare/plane/sequence"
	"tare/plane/setting"
)

// Serve is the driver's life; it returns the exit code.
func Serve(in io.Reader, out, log io.Writer, version string) int {
	silence()
	if err := driver.Serve(in, out, &Manager{version: version}); err != nil {
		_, _ = fmt.Fprintln(log, "pull-manager:", err) // whoever would read it may be gone
		return 1
	}
	return 0
}

// Manager drives one treatment's pull manager. All that its calls need is made when it is prepared.
type Manager struct {
	version string
	*station
	images  []image
	secrets []config.ImagePullSecret
	known   []pullmanager.GetPodCredentials // by secret: pods that the records know
	copies  []pullmanager.GetPodCredentials // pods with the same credentials that they do not know
	draws   *sequence.Sequence              // what the cache sees
	others  *sequence.Sequence              // for calls that it does not see
	inUse   []string                        // all references
	image   []int32                         // of each call of the batch
	secret  []int32
	began   time.Time // when the driver was prepared: after all records were written
	warm    bool      // the cache has seen the sequence
	readers int64     // calls of the batch that read a record from the directory
}

// Prepare implements driver.Driver.
func (m *Manager) Prepare(p driver.Preparation) ([]string, error) {
	s, err := setting.Parse(p.Levels)
	if err != nil {
		return nil, err
	}
	if !filepath.IsAbs(p.Folder) {
		return nil, fmt.Errorf("folder %q: want an absolute path", p.Folder)
	}
	m.station = nil
	m.table(s)
	if s.Accessor != setting.Disabled { // nobody would look at them
		if err := m.stock(s, p.Folder); err != nil {
			return nil, err
		}
	}
	visit, err := visits(p.Folder)
	if err != nil {
		return nil, unwritable(p.Folder, err)
	}
	if err := m.sequences(s, seed(p.Run, visit)); err != nil {
		return nil, err
	}
	t := newStation(s, filepath.Join(p.Folder, whole))
	if err := errors.Join(t.restart(), t.errs.take()); err != nil {
		return nil, damaged(err)
	}
	m.station, m.warm, m.began = t, false, time.Now()
	return notes(p), nil
}

// ext4 is its number in statfs(2).
const ext4 = 0xEF53

// notes are on what a folder adds to what is timed in it. After 20,000 files had been removed there, ext4 was seen to spend 450 µs of CPU on each new
// one for ten seconds and more, and 10 µs before: it does not use the inodes of files again that were just removed, and looks at each.
func notes(p driver.Preparation) []string {
	var s syscall.Statfs_t
	if err := syscall.Statfs(p.Folder, &s); err != nil || s.Type != ext4 {
		return nil
	}
	for _, o := range operations() {
		if o.writes && slices.Contains(p.Operations, o.Name) {
			return []string{"the records lie on ext4, where creating a file costs up to a millisecond of CPU more in the seconds after thousands were removed, by " +
				"whomever, and replacing one waits for the disk: operations that write are steadier in a folder in memory, as target.dir: /dev/shm"}
		}
	}
	return nil
}

// table makes everything that calls present.
func (m *Manager) table(s setting.Setting) {
	m.images = images(s.Records)
	m.secrets, m.known, m.copies = nil, nil, nil
	for k := range s.Secrets {
		m.secrets = append(m.secrets, secretOf(k))
		m.known = append(m.known, presents(secretOf(k)))
		m.copies = append(m.copies, presents(copyOf(k)))
	}
	m.inUse = nil
	for _, of := range m.images[:s.Records] {
		m.inUse = append(m.inUse, of.ref)
	}
}

// sequences starts what is drawn.
func (m *Manager) sequences(s setting.Setting, seed uint64) (err error) {
	c := sequence.Config{
		Pattern: s.Pattern, Records: s.Records, Unknown: unknownImages, Hits: s.Hits, Exponent: s.Exponent, Window: s.Window, Turnover: s.Turnover,
		Secrets: s.Secrets,
	}
	if m.draws, err = sequence.New(c, seed); err != nil {
		return err
	}
	m.others, err = sequence.New(c, seed+1)
	return err
}

// stock writes the records, or finds them. What interrupted calls of an earlier process have left is cleared.
func (m *Manager) stock(s setting.Setting, folder string) error {
	of := m.images[:s.Records]
	at := filepath.Join(folder, whole)
	if _, err := os.Stat(at); errors.Is(err, os.ErrNotExist) {
		if err := fill(folder, of, m.secrets); err != nil {
			return err
		}
	}
	found, err := wanted(of, s.Secrets).Look(at)
	if err != nil {
		return damaged(err)
	}
	for _, path := range found.Left {
		if err := os.Remove(path); err != nil {
			return unwritable(folder, err)
		}
	}
	return m.mend(newStation(s, at), found.Changed)
}

// mend writes changed records anew.
func (m *Manager) mend(t *station, changed []string) error {
	if len(changed) == 0 {
		return nil
	}
	accessor, err := pullmanager.NewFSPullRecordsAccessor(t.logger, t.folder)
	if err != nil {
		return damaged(err)
	}
	for _, of := range m.images[:t.s.Records] {
		if !slices.Contains(changed, of.ref) {
			continue
		}
		if err := accessor.WriteImagePulledRecord(t.logger, recordOf(of, m.secrets)); err != nil {
			return unwritable(t.folder, err)
		}
	}
	return nil
}

func damaged(err error) error {
	return &driver.Failure{Err: err, Next: "somebody other than the pull manager has changed the run's folder, or its disk is at fault; start the run again: it makes a new folder"}
}

// visits counts the processes that were prepared for a folder. Each draws another part of the sequences, so that repetitions differ as the patterns
// do, and the same visit to two treatments draws the same.
func visits(folder string) (int, error) {
	path := filepath.Join(folder, "visits")
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return 0, err
	}
	n, _ := strconv.Atoi(strings.TrimSpace(string(text))) // none yet, or half a line of a process that was killed: they may start again
	return n, os.WriteFile(path, []byte(strconv.Itoa(n+1)), 0o600)
}

func seed(run string, visit int) uint64 {
	h := fnv.New64a()
	_, _ = fmt.Fprintf(h, "%s %d", run, visit) // a hash takes everything
	return h.Sum64()
}

// Undo implements driver.Driver.
func (m *Manager) Undo(p driver.Preparation) error {
	m.station = nil
	if !filepath.IsAbs(p.Folder) {
		return fmt.Errorf("folder %q: want an absolute path", p.Folder)
	}
	var errs []error
	for _, name := range []string{whole, filling, "visits"} {
		errs = append(errs, os.RemoveAll(filepath.Join(p.Folder, name)))
	}
	return blame(p.Folder, errors.Join(errs...))
}

// count is how many records lie there.
func (m *Manager) count() (int, error) {
	if m.s.Accessor == setting.Disabled {
		return 0, nil
	}
	return recordfile.Count(m.folder)
}
