package record

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"tare/area"
	"tare/internal/clock"
	"tare/internal/files"
)

// A Writer appends to a record. Its methods may be called from several goroutines. After a failed write it writes
// nothing more, so that no line follows a torn one, and returns that failure from then on.
type Writer struct {
	folder  *files.Folder
	release func()
	clock   clock.Clock
	key     Key
	id      string // of the record, for seals
	run     string // see Run

	mu      sync.Mutex
	err     error
	sealed  string // the last seal of the journal
	journal *os.File
	latency *os.File
	calls   map[trialKey]*os.File
	trials  map[trialKey]openTrial
}

var _ area.Journal = (*Writer)(nil)

type trialKey struct {
	treatment string
	block     int
}

type openTrial struct {
	begin      time.Time
	operations []string
}

// Folder returns the name of a run's folder: the experiment's name, made safe for a path, and the start in UTC.
func Folder(name string, started time.Time) string {
	safe := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-', r == '_', r == '.':
			return r
		}
		return '-'
	}, name)
	safe = strings.TrimLeft(safe, ".")
	if safe == "" {
		safe = "run"
	}
	return safe + "-" + started.UTC().Format("20060102T150405Z")
}

// Create makes a new folder for a run below results and opens its journal. file is the experiment file as given. It
// holds no secrets by construction; still, only the owner can read the folder. A second run in the same second gets
// another folder.
func Create(results string, h Header, file []byte, c clock.Clock) (*Writer, error) {
	if h.Started.IsZero() {
		h.Started = c.Now()
	}
	if len(file) > 0 {
		sum := sha256.Sum256(file)
		h.Experiment.SHA256 = hex.EncodeToString(sum[:])
	}
	folder, err := makeFolder(results, Folder(h.Experiment.Name, h.Started))
	if err != nil {
		return nil, fmt.Errorf("create record: %w", err)
	}
	if len(file) > 0 {
		err = folder.Write(ExperimentFile, file)
	}
	var f *os.File
	if err == nil {
		f, err = folder.Open(JournalFile, os.O_CREATE|os.O_EXCL|os.O_WRONLY|os.O_APPEND)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("create record: %w", err), folder.Close())
	}
	w := newWriter(folder, f, c)
	h.ID = rand.Text()
	if h.Seal, err = h.Key.seal(h.ID, "", KindHeader, h); err != nil {
		return nil, errors.Join(err, w.Close())
	}
	w.key, w.id, w.run, w.sealed = h.Key, h.ID, nameOf(h.ID), h.Seal
	if err := errors.Join(w.put(KindHeader, h), w.Sync(), folder.Sync()); err != nil {
		return nil, errors.Join(err, w.Close())
	}
	return w, nil
}

// newWriter writes into the folder, which it holds until Close.
func newWriter(folder *files.Folder, journal *os.File, c clock.Clock) *Writer {
	return &Writer{
		folder: folder, release: folder.Hold(), clock: c, journal: journal,
		calls: map[trialKey]*os.File{}, trials: map[trialKey]openTrial{},
	}
}

func makeFolder(results, name string) (*files.Folder, error) {
	for i := 1; ; i++ {
		numbered := name
		if i > 1 {
			numbered += fmt.Sprintf("-%d", i)
		}
		folder, err := files.New(results, numbered)
		if err == nil || !errors.Is(err, os.ErrExist) || i == 1000 {
			return folder, err
		}
	}
}

// nameLength is how many characters of an id are part of names: 60 bits.
const nameLength = 12

// nameOf returns an id as part of an object's name: lower-case letters and digits.
func nameOf(id string) string { return strings.ToLower(id[:nameLength]) }

// Run returns the random prefix of the names of all that this process makes on servers and hosts. It is kept in the
// record. No other run has it, wherever its record lies, and neither does a process that continues a copy of the
// record.
func (w *Writer) Run() string { return w.run }

// Dir returns the record's folder.
func (w *Writer) Dir() string { return w.folder.Path() }

// Plan writes the plan.
func (w *Writer) Plan(p Plan) error { return w.put(KindPlan, p) }

// Prepare writes the result of a preparation.
func (w *Writer) Prepare(p Prepare) error { return w.put(KindPrepare, p) }

// Verify writes the result of a verification.
func (w *Writer) Verify(v Verify) error { return w.put(KindVerify, v) }

// TrialBegin opens a trial. Calls and Cells need an open trial.
func (w *Writer) TrialBegin(t TrialBegin) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	key := trialKey{t.Treatment, t.Block}
	w.trials[key] = openTrial{begin: w.clock.Now(), operations: t.Operations}
	return w.putLocked(KindTrialBegin, t)
}

// Step writes v, encoded as JSON, as an entry of the question's own.
func (w *Writer) Step(treatment string, block int, name string, v any) error {
	payload, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return w.put(KindStep, Step{Treatment: treatment, Block: block, Name: name, Payload: payload})
}

// Samples writes a reading of the probes.
func (w *Writer) Samples(s Samples) error { return w.put(KindSamples, s) }

// Generator writes the audit of the generator in a trial.
func (w *Writer) Generator(g Generator) error { return w.put(KindGenerator, g) }

// Batches writes the costs of an operation with its own clock in a trial.
func (w *Writer) Batches(b Batches) error { return w.put(KindBatches, b) }

// Window writes which part of a trial is measured.
func (w *Writer) Window(x Window) error { return w.put(KindWindow, x) }

// Surroundings writes what the host did during a block.
func (w *Writer) Surroundings(s Surroundings) error { return w.put(KindHost, s) }

// Look writes a judgement of the growing run.
func (w *Writer) Look(l Look) error { return w.put(KindLook, l) }

// Note writes a remark.
func (w *Writer) Note(n Note) error { return w.put(KindNote, n) }

// Warning writes a doubt about a result.
func (w *Writer) Warning(x Warning) error { return w.put(KindWarning, x) }

// TrialEnd closes a trial and syncs it to disk.
func (w *Writer) TrialEnd(t TrialEnd) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	key := trialKey{t.Treatment, t.Block}
	delete(w.trials, key)
	if err := w.putLocked(KindTrialEnd, t); err != nil {
		return err
	}
	if err := w.syncLocked(); err != nil {
		return err
	}
	if f := w.calls[key]; f != nil {
		delete(w.calls, key)
		return w.fail(f.Close())
	}
	return nil
}

// Intend implements area.Journal: c is on disk when it returns.
func (w *Writer) Intend(c area.Change) error { return w.change(Intended, c) }

// Undone implements area.Journal.
func (w *Writer) Undone(c area.Change) error { return w.change(Undone, c) }

func (w *Writer) change(s ChangeState, c area.Change) error {
	x := Change{State: s, Change: c}
	return w.putSealed(KindChange, &x, &x.Seal)
}

// putSealed appends a line with its seal, which is a field of it, and syncs it to disk.
func (w *Writer) putSealed(k Kind, data any, field *string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	seal, err := w.key.seal(w.id, w.sealed, k, data)
	if err != nil {
		return err
	}
	*field = seal
	if err := w.putLocked(k, data); err != nil {
		return err
	}
	w.sealed = seal
	return w.syncLocked()
}

// Finish ends the journal of a run and syncs it to disk.
func (w *Writer) Finish(f Finish) error {
	return w.putSealed(KindFinish, &f, &f.Seal)
}

// Sync syncs all that was written to disk.
func (w *Writer) Sync() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.syncLocked()
}

// syncLocked syncs the journal last: the files that it refers to must be on disk first.
func (w *Writer) syncLocked() error {
	if w.err != nil {
		return w.err
	}
	var err error
	for _, f := range w.calls {
		err = errors.Join(err, f.Sync())
	}
	if w.latency != nil {
		err = errors.Join(err, w.latency.Sync())
	}
	return w.fail(errors.Join(err, w.journal.Sync()))
}

// Close syncs and closes the files. The Writer must not be used afterwards.
func (w *Writer) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	err := w.syncLocked()
	for _, f := range w.calls {
		err = errors.Join(err, f.Close())
	}
	if w.latency != nil {
		err = errors.Join(err, w.latency.Close())
	}
	w.release()
	err = errors.Join(err, w.journal.Close(), w.folder.Close())
	if w.err == nil {
		w.err = os.ErrClosed
	}
	return err
}

func (w *Writer) put(k Kind, data any) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.putLocked(k, data)
}

// putLocked appends one line in a single write.
func (w *Writer) putLocked(k Kind, data any) error {
	if w.err != nil {
		return w.err
	}
	raw, err := json.Marshal(data)
	if err != nil {
		return fmt.Errorf("write %s: %w", k, err)
	}
	line, err := json.Marshal(Entry{Schema: Schema, Kind: k, At: w.clock.Now(), Data: raw})
	if err != nil {
		return fmt.Errorf("write %s: %w", k, err)
	}
	if _, err := w.journal.Write(append(line, '\n')); err != nil {
		return w.fail(fmt.Errorf("write %s: %w", k, err))
	}
	return nil
}

// fail keeps the first failure of a file.
func (w *Writer) fail(err error) error {
	if err != nil && w.err == nil {
		w.err = err
	}
	return err
}
