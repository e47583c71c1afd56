package record

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"

	"tare/area"
	"tare/internal/files"
	"tare/internal/load"
)

// A Record is the result of a run. Open fills it from the journal; raw calls and histograms stay on disk until
// requested.
type Record struct {
	Dir      string
	Header   Header
	Plan     Plan
	Prepared []Prepare
	Verified []Verify
	// Trials are in the order of their begin. A trial that was repeated, because its first attempt was dropped, is listed
	// twice.
	Trials []*Trial
	// Changes are the undo journal as written.
	Changes []Change
	Notes   []Note
	Warned  []Warning // warnings that the run wrote
	Looks   []Look
	Host    []Surroundings // by block
	Resumed []time.Time
	Finish  *Finish   // nil: the run was killed, or still runs
	Last    time.Time // the latest line, but for those of a process that only undid changes
	// Unknown are lines of unknown kinds.
	Unknown []Entry
	// Warnings say what could not be read: a torn last line, damaged lines by number, damaged files.
	Warnings []string
	// Damaged are the numbers of the unreadable lines, except a torn last one: its writer was killed before it acted on
	// the line.
	Damaged []int

	seals  []sealedLine        // after the header
	size   int64               // of the journal
	latest map[trialKey]*Trial // of each treatment and block
	named  map[string]bool     // calls files
	madeUp int                 // trials whose TrialBegin is missing
	begun  time.Time           // when the run was last resumed; zero: never
	before float64             // seconds that the run took until then
	// undoing says that another process continued the record to undo changes, and not to continue the run.
	undoing bool
}

// A Trial is the result of one trial.
type Trial struct {
	TrialBegin
	Begin     time.Time
	Finished  time.Time // when End was written
	End       *TrialEnd // nil: it never ended
	Steps     []Step
	Samples   []Samples
	Generator []Generator
	Batches   []Batches
	Window    *Window
	Slices    []Slice
	Answers   []Answers
	Served    []Served // the target's own measurements, one for each pair of readings around the trial
	Counts    []Count  // by operation and outcome, summed

	dir   string
	calls []string
	held  int // calls that the files of that name hold
	// chunks are where the calls lie in these files, in their order.
	chunks []callsChunk
	cells  []cellsRef
	// counted is where in Counts an operation's outcome is.
	counted map[counted]int
}

type counted struct {
	operation string
	outcome   load.Outcome
}

// Complete reports whether the trial ended as planned.
func (t *Trial) Complete() bool { return t.End != nil && t.End.Status == Complete }

// maxLine bounds the memory that a damaged journal can cost. A trace of an hour's search is far below it.
const maxLine = 256 << 20

// errNoHeader means that a folder holds no record.
var errNoHeader = errors.New("the journal has no header")

// Open reads the record in dir. It skips what is damaged and adds a warning. It fails if there is no journal, if the
// journal has no header, or, with a NewerError, if a newer tare wrote it.
func Open(dir string) (*Record, error) {
	f, err := openFile(filepath.Join(dir, JournalFile))
	if err != nil {
		return nil, fmt.Errorf("open record: %w", err)
	}
	r, err := readJournal(f, dir)
	if err := errors.Join(err, f.Close()); err != nil {
		return nil, fmt.Errorf("open record %s: %w", dir, err)
	}
	if err := r.checkCalls(); err != nil {
		return nil, fmt.Errorf("open record %s: %w", dir, err)
	}
	return r, nil
}

// OpenOwn is Open for a record that is acted upon: its folder and its journal must be this user's, and no links.
func OpenOwn(dir string) (r *Record, err error) {
	folder, err := files.Reach(dir)
	if err != nil {
		return nil, fmt.Errorf("open record: %w", err)
	}
	defer func() { err = errors.Join(err, folder.Close()) }()
	f, err := folder.Open(JournalFile, os.O_RDONLY)
	if err != nil {
		return nil, fmt.Errorf("open record: %w", err)
	}
	if r, err = readJournal(f, dir); err != nil {
		err = fmt.Errorf("open record %s: %w", dir, err)
	}
	return r, errors.Join(err, f.Close())
}

// readJournal reads a journal's lines to its end. dir holds the files that they name.
func readJournal(src io.ReadSeeker, dir string) (*Record, error) {
	r := &Record{Dir: dir, latest: map[trialKey]*Trial{}, named: map[string]bool{}}
	in := bufio.NewReaderSize(src, 1<<16)
	for n := 1; ; n++ {
		line, whole, err := readLine(in)
		if err != nil {
			return nil, err
		}
		if len(line) > 0 {
			if err := r.line(line, n, whole); err != nil {
				return nil, err
			}
		}
		if !whole {
			break
		}
	}
	r.latest, r.named = nil, nil
	var err error
	if r.size, err = src.Seek(0, io.SeekCurrent); err != nil {
		return nil, err
	}
	r.dropBeyond()
	if n := r.madeUp - mostWarned; n > 0 {
		r.warn("the beginnings of %d more trials are missing", n)
	}
	if n := len(r.Damaged) - mostWarned; n > 0 {
		r.warn("%s: %d more lines are damaged and were left out", JournalFile, n)
	}
	if r.Header.Started.IsZero() {
		return nil, errNoHeader
	}
	return r, nil
}

// dropBeyond drops trials with impossible block numbers: every block has at least one trial, so no record has more
// blocks than trials. Computations allocate values for every block, measured or not.
func (r *Record) dropBeyond() {
	const always = 1000 // blocks that may be missing from a record however short
	most, had := len(r.Trials)+len(r.Damaged)+always, len(r.Trials)
	r.Trials = slices.DeleteFunc(r.Trials, func(t *Trial) bool { return t.Block < 0 || t.Block >= most })
	if n := had - len(r.Trials); n > 0 {
		r.warn("%s: %d trials were left out, since their blocks have numbers that the record is too short for",
			JournalFile, n)
	}
}

// readLine returns a line without its break; whole is false for what follows the last break.
func readLine(in *bufio.Reader) (line []byte, whole bool, err error) {
	for {
		part, err := in.ReadSlice('\n')
		if len(line)+len(part) <= maxLine {
			line = append(line, part...)
		}
		switch {
		case err == nil:
			return bytes.TrimSuffix(line, []byte("\n")), true, nil
		case errors.Is(err, io.EOF):
			return line, false, nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, false, err
		}
	}
}

// line adds one line. It fails only for a line of a newer version.
func (r *Record) line(line []byte, n int, whole bool) error {
	var e Entry
	err := json.Unmarshal(line, &e)
	if err == nil {
		err = checkSchema(JournalFile, e.Schema)
	}
	if err == nil {
		err = r.entry(&e)
	}
	var newer *NewerError
	switch {
	case err == nil:
		if e.At.After(r.Last) && !r.undoing {
			r.Last = e.At
		}
	case errors.As(err, &newer):
		return err
	case !whole:
		r.warn("the last line of %s (line %d) is torn after %d bytes, as after a crash; it was dropped",
			JournalFile, n, len(line))
	case len(r.Damaged) >= mostWarned:
		r.Damaged = append(r.Damaged, n)
	default:
		r.Damaged = append(r.Damaged, n)
		r.warn("%s:%d is damaged and was left out: %v", JournalFile, n, err)
	}
	return nil
}

// mostWarned bounds the number of warnings about damaged lines.
const mostWarned = 20

func (r *Record) warn(format string, args ...any) {
	r.Warnings = append(r.Warnings, fmt.Sprintf(format, args...))
}

// into decodes an entry's data and passes it to add.
func into[T any](e *Entry, add func(T)) error {
	var v T
	if err := json.Unmarshal(e.Data, &v); err != nil {
		return fmt.Errorf("%s: %w", e.Kind, err)
	}
	add(v)
	return nil
}

func (r *Record) entry(e *Entry) error {
	switch e.Kind {
	case KindHeader:
		return into(e, func(h Header) { r.Header = h })
	case KindPlan:
		return into(e, func(p Plan) { r.Plan = p })
	case KindHost:
		return into(e, func(s Surroundings) { add(&r.Host, s) })
	case KindLook:
		return into(e, func(l Look) { add(&r.Looks, l) })
	case KindPrepare:
		return into(e, func(p Prepare) { add(&r.Prepared, p) })
	case KindVerify:
		return into(e, func(v Verify) { add(&r.Verified, v) })
	case KindChange:
		return into(e, func(c Change) {
			add(&r.Changes, c)
			seal := c.Seal
			c.Seal = ""
			add(&r.seals, sealedLine{seal, e.Kind, c})
		})
	case KindNote:
		return into(e, func(n Note) { add(&r.Notes, n) })
	case KindWarning:
		return into(e, func(w Warning) { add(&r.Warned, w) })
	case KindResume:
		return r.resumed(e)
	case KindFinish:
		return into(e, func(f Finish) {
			r.Finish = &f
			unsealed := f
			unsealed.Seal = ""
			add(&r.seals, sealedLine{f.Seal, e.Kind, unsealed})
		})
	case KindTrialBegin:
		return into(e, func(b TrialBegin) { r.begin(e.At, b) })
	case KindStep:
		return into(e, func(s Step) { add(&r.trial(s.Treatment, s.Block).Steps, s) })
	case KindSamples:
		return into(e, func(s Samples) { add(&r.trial(s.Treatment, s.Block).Samples, s) })
	case KindGenerator:
		return into(e, func(g Generator) { add(&r.trial(g.Treatment, g.Block).Generator, g) })
	case KindCalls:
		return r.callsEntry(e)
	case KindCells:
		return into(e, func(c cellsRef) { r.trial(c.Treatment, c.Block).addCells(c) })
	case KindBatches:
		return into(e, func(b Batches) { add(&r.trial(b.Treatment, b.Block).Batches, b) })
	case KindWindow:
		return into(e, func(w Window) { r.trial(w.Treatment, w.Block).Window = &w })
	case KindSlice:
		return r.sliceEntry(e)
	case KindAnswers:
		return into(e, func(n Answers) { add(&r.trial(n.Treatment, n.Block).Answers, n) })
	case KindServed:
		return into(e, func(s Served) { add(&r.trial(s.Treatment, s.Block).Served, s) })
	case KindTrialEnd:
		return into(e, func(end TrialEnd) { r.end(e.At, end) })
	default:
		r.Unknown = append(r.Unknown, *e)
		return nil
	}
}

// resumed adds that another process continued the run. Older releases did not write it.
func (r *Record) resumed(e *Entry) error {
	var x resumption
	if len(e.Data) > 0 {
		if err := json.Unmarshal(e.Data, &x); err != nil {
			return fmt.Errorf("%s: %w", e.Kind, err)
		}
	}
	r.Resumed = append(r.Resumed, e.At)
	if r.undoing = x.Undo; !r.undoing {
		r.before, r.begun = r.Seconds(), e.At
		r.Finish = nil // the run continues
	}
	return nil
}

// Seconds is how long the run took, without the pauses before it was resumed. One that was killed took until its latest
// line.
func (r *Record) Seconds() float64 {
	if r.Finish != nil {
		return r.before + r.Finish.Seconds
	}
	begun := r.begun
	if begun.IsZero() {
		begun = r.Header.Started
	}
	return r.before + max(0, r.Last.Sub(begun).Seconds())
}

func add[T any](list *[]T, v T) { *list = append(*list, v) }

func (r *Record) begin(at time.Time, b TrialBegin) {
	t := &Trial{TrialBegin: b, Begin: at, dir: r.Dir}
	r.Trials = append(r.Trials, t)
	r.latest[trialKey{b.Treatment, b.Block}] = t
}

func (r *Record) end(at time.Time, end TrialEnd) {
	t := r.trial(end.Treatment, end.Block)
	t.End, t.Finished = &end, at
}

// sliceEntry adds a slice. It cannot have more operations than a load.Call can distinguish.
func (r *Record) sliceEntry(e *Entry) error {
	var s Slice
	if err := json.Unmarshal(e.Data, &s); err != nil {
		return fmt.Errorf("%s: %w", e.Kind, err)
	}
	if n := len(s.Operations); n > math.MaxUint8+1 {
		return fmt.Errorf("%s: it is of %d operations, and calls have %d at most", e.Kind, n, math.MaxUint8+1)
	}
	r.trial(s.Treatment, s.Block).addSlice(s)
	return nil
}

// callsEntry adds the name of a calls file. The file must lie in the record's folder and belong to one trial only: a
// record may come from another person.
func (r *Record) callsEntry(e *Entry) error {
	var c callsRef
	if err := json.Unmarshal(e.Data, &c); err != nil {
		return fmt.Errorf("%s: %w", e.Kind, err)
	}
	if ok, err := filepath.Match("calls-*.bin", c.File); err != nil || !ok || c.File != filepath.Base(c.File) {
		return fmt.Errorf("%s: %q is not a calls file", e.Kind, c.File)
	}
	if r.named[c.File] {
		return fmt.Errorf("%s: %q was named before", e.Kind, c.File)
	}
	r.named[c.File] = true
	t := r.trial(c.Treatment, c.Block)
	t.calls = append(t.calls, c.File)
	return nil
}

// trial returns the latest trial: entries after its end and before a new begin still belong to it. If the begin was
// lost, it makes up a trial, so that the results are kept.
func (r *Record) trial(treatment string, block int) *Trial {
	key := trialKey{treatment, block}
	if t := r.latest[key]; t != nil {
		return t
	}
	if r.madeUp++; r.madeUp <= mostWarned {
		r.warn("the beginning of the trial of %q in block %d is missing", treatment, block)
	}
	t := &Trial{dir: r.Dir}
	t.Index, t.Treatment, t.Block = len(r.Trials), treatment, block
	r.Trials = append(r.Trials, t)
	r.latest[key] = t
	return t
}

func (t *Trial) addCells(c cellsRef) {
	t.cells = append(t.cells, c)
	if t.counted == nil {
		t.counted = map[counted]int{}
	}
	for _, n := range c.Counts {
		of := counted{n.Operation, n.Outcome}
		if i, ok := t.counted[of]; ok {
			t.Counts[i].Count += n.Count
			t.Counts[i].Unsent += n.Unsent
			continue
		}
		t.counted[of] = len(t.Counts)
		t.Counts = append(t.Counts, n)
	}
}

// Pending returns the changes that were intended and not undone, the latest first: what area.Area.Undo must undo.
func (r *Record) Pending() []area.Change {
	pending := map[string]bool{}
	for _, c := range r.Changes {
		pending[changeKey(c.Change)] = c.State != Undone
	}
	var out []area.Change
	for _, c := range slices.Backward(r.Changes) {
		if key := changeKey(c.Change); c.State == Intended && pending[key] {
			out = append(out, c.Change)
			delete(pending, key) // once, even if it was intended again
		}
	}
	return out
}

func changeKey(c area.Change) string { return c.Area + "\x00" + c.Kind + "\x00" + c.ID }

// mostExperiment bounds an experiment file, in bytes.
const mostExperiment = 16 << 20

// File reads the experiment file as given; nil without an error when the record has none.
func (r *Record) File() (b []byte, err error) {
	f, err := openFile(filepath.Join(r.Dir, ExperimentFile))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	b, err = io.ReadAll(io.LimitReader(f, mostExperiment+1))
	if err == nil && len(b) > mostExperiment {
		err = fmt.Errorf("%s is longer than %d bytes", f.Name(), mostExperiment)
	}
	return b, err
}

// openFile opens a file of a record for reading. It rejects pipes and devices, which may never end: a record may come
// from another person.
func openFile(path string) (*os.File, error) {
	f, isHeld, err := files.OpenHeld(path)
	if !isHeld {
		f, err = files.ForReading(path)
	}
	if err != nil {
		return nil, err
	}
	st, err := f.Stat()
	if err == nil && !st.Mode().IsRegular() {
		err = fmt.Errorf("%s is a %s, and not a file of a record", path, kindOf(st.Mode()))
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func kindOf(m os.FileMode) string {
	switch {
	case m.IsDir():
		return "folder"
	case m&os.ModeNamedPipe != 0:
		return "pipe"
	}
	return "device"
}
