// Package pull runs and times the operations of the kubelet's pull manager.
package pull

import (
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"os"
	"os/signal"
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

// Serve runs the driver and returns the exit code.
func Serve(in io.Reader, out, log io.Writer, version string) int {
	silence()
	signal.Ignore(syscall.SIGXFSZ) // see setFull
	if err := driver.Serve(in, out, &Manager{version: version}); err != nil {
		_, _ = fmt.Fprintln(log, "pull-manager:", err) // its reader may be gone
		return 1
	}
	return 0
}

// Manager drives the pull manager of one treatment. Prepare allocates everything that its calls need.
type Manager struct {
	version string
	*station
	images  []image
	secrets []config.ImagePullSecret
	known   []pullmanager.GetPodCredentials // by secret: pods whose secrets the records name
	copies  []pullmanager.GetPodCredentials // pods with the same credentials in namespaces that the records do not name
	draws   *sequence.Sequence              // the sequence that the cache sees
	others  *sequence.Sequence              // the sequence of calls that do not use the cache
	inUse   []string                        // all references
	image   []int32                         // of each call of the batch
	secret  []int32
	began   time.Time // when all records had been written
	warm    bool      // whether the cache has seen the sequence
	readers int64     // calls of the batch that read a record from the directory
	node    *node     // of guard: single calls are asked for; nil: batches
}

// Prepare implements driver.Driver.
func (m *Manager) Prepare(p driver.Preparation) (out driver.Prepared, err error) {
	s, err := setting.Parse(p.Levels)
	if err != nil {
		return out, err
	}
	if !filepath.IsAbs(p.Folder) {
		return out, fmt.Errorf("folder %q: want an absolute path", p.Folder)
	}
	m.station, m.node = nil, nil
	m.table(s)
	if slices.ContainsFunc(p.Operations, isTrespass) {
		m.node = newNode(len(m.images) + mostCached)
	}
	if s.Accessor != setting.Disabled { // nobody reads them
		if err := m.stock(s, p.Folder); err != nil {
			return out, err
		}
	}
	visit, err := visits(p.Folder)
	if err != nil {
		return out, unwritable(p.Folder, err)
	}
	if err := m.sequences(s, seed(p.Run, visit)); err != nil {
		return out, err
	}
	t := newStation(s, filepath.Join(p.Folder, whole))
	if m.node != nil {
		t.spare, t.runtime = nodeImages, m.node
		if err := m.node.find(t.folder); err != nil {
			return out, damaged(err)
		}
	}
	if err := errors.Join(t.restart(), t.errs.take()); err != nil {
		return out, damaged(err)
	}
	m.station, m.warm, m.began = t, false, time.Now()
	out.Notes = notes(p)
	if m.node == nil {
		return out, nil
	}
	if err := m.populate(); err != nil {
		return out, unwritable(p.Folder, err)
	}
	out.Conditions = m.offered(&out.Notes)
	return out, nil
}

// ext4 is its number in statfs(2).
const ext4 = 0xEF53

// notes warns about costs that a folder's file system adds. After 20,000 files had been removed from a folder, ext4
// spent 450 µs of CPU on each new file for ten seconds and more, and 10 µs before: it skips the inodes of recently
// removed files one by one.
func notes(p driver.Preparation) []string {
	var s syscall.Statfs_t
	if err := syscall.Statfs(p.Folder, &s); err != nil || s.Type != ext4 {
		return nil
	}
	for _, o := range operations() {
		if o.writes && slices.Contains(p.Operations, o.Name) {
			return []string{"the records lie on ext4, where creating a file costs up to a millisecond of CPU more in the " +
				"seconds after thousands were removed, by " +
				"whomever, and replacing one waits for the disk: operations that write are steadier in a folder in memory, as " +
				"target.dir: /dev/shm"}
		}
	}
	return nil
}

// table allocates everything that calls present.
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

// sequences starts the sequences that calls draw from.
func (m *Manager) sequences(s setting.Setting, seed uint64) (err error) {
	c := sequence.Config{
		Pattern: s.Pattern, Records: s.Records, Unknown: unknownImages, Hits: s.Hits, Exponent: s.Exponent, Window: s.Window,
		Turnover: s.Turnover,
		Secrets:  s.Secrets,
	}
	if m.node != nil { // a single call cannot be a share of a hit
		c.Hits = 1
	}
	if m.draws, err = sequence.New(c, seed); err != nil {
		return err
	}
	m.others, err = sequence.New(c, seed+1)
	return err
}

// stock writes the records, or reuses them. It removes the remains of interrupted calls of an earlier process.
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
		if m.node.keeps(path) {
			continue
		}
		if err := os.Remove(path); err != nil {
			return unwritable(folder, err)
		}
	}
	return m.mend(newStation(s, at), found.Changed)
}

// mend rewrites changed records.
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
	return &driver.Failure{Err: err, Next: "somebody other than the pull manager has changed the run's folder, or its " +
		"disk is at fault; start the run again: it makes a new folder"}
}

// visits counts the processes that were prepared for a folder. Each process draws another part of the sequences, so
// that repetitions vary, and the n-th process of each treatment draws the same part.
func visits(folder string) (int, error) {
	path := filepath.Join(folder, "visits")
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return 0, err
	}
	// missing, or incomplete because a process was killed: the count restarts
	n, _ := strconv.Atoi(strings.TrimSpace(string(text)))
	return n, os.WriteFile(path, []byte(strconv.Itoa(n+1)), 0o600)
}

func seed(run string, visit int) uint64 {
	h := fnv.New64a()
	_, _ = fmt.Fprintf(h, "%s %d", run, visit) // writing to a hash cannot fail
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

// count returns the number of records in the folder.
func (m *Manager) count() (int, error) {
	if m.s.Accessor == setting.Disabled {
		return 0, nil
	}
	n, err := recordfile.Count(m.folder)
	return n - m.node.recorded(m.folder), err
}
