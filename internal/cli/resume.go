package cli

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"tare/internal/analyze"
	"tare/internal/clock"
	"tare/internal/config"
	"tare/internal/design"
	"tare/internal/doctor"
	"tare/internal/question"
	"tare/internal/record"
)

// resume continues a run that lacks blocks: it was interrupted or killed, or the user asks for more blocks.
func (a *app) resume(ctx context.Context, dir string, add int, yes string, outs []output) error {
	unlock, err := lockRecord(dir)
	if err != nil {
		return err
	}
	defer unlock()
	rec, err := record.Open(dir)
	if err != nil {
		return fmt.Errorf("read record: %w", err)
	}
	key := a.key()
	src, err := unchanged(rec)
	if err == nil {
		err = a.agreed(rec, key, toContinue, yes)
	}
	if err != nil {
		return err
	}
	ar, e, err := a.ready(src, rec.Header.Experiment.Full)
	if err != nil {
		return err
	}
	if len(rec.Plan.Treatments) > 0 {
		e = asPlanned(e, rec)
	}
	s := execution{area: ar, e: e, seed: rec.Header.Experiment.Seed, from: rec.CompleteBlocks(), sizes: rec.BatchSizes()}
	s.added = add > 0
	if s.lost, err = lostBlocks(rec); err != nil {
		return err
	}
	if s.most, err = blocksToCome(rec, s.from, s.lost, add); err != nil {
		return err
	}
	if len(rec.Pending()) > 0 {
		if err := a.undoBefore(ctx, dir, yes); err != nil {
			return err
		}
		if rec, err = record.Open(dir); err != nil { // it is longer now, and what follows is sealed after its last line
			return fmt.Errorf("read record: %w", err)
		}
	}
	if err := a.preflight(ctx, ar, e); err != nil {
		return startedIn(rec, err)
	}
	unknown, err := a.sameProgram(ctx, ar, e, rec)
	if err != nil {
		return err
	}
	if s.w, err = rec.Continue(key, clock.System{}); err != nil {
		return err
	}
	if err := warnOfOthers(s.w, rec, s.from, unknown); err != nil {
		return errors.Join(err, s.w.Close())
	}
	a.tell("continuing %s from block %d of %d\n", dir, s.from+1, s.most)
	return a.finish(dir, a.carryOut(ctx, &s), outs)
}

// undoBefore undoes what a run has left before it is continued. An interrupt does not end it: it says that the run does
// not go on.
func (a *app) undoBefore(ctx context.Context, dir, yes string) error {
	end := a.interrupts.undoing(dir)
	err := a.undo(context.WithoutCancel(ctx), dir, toContinue, yes)
	if end(); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return &exit{code: ExitInterrupted, cause: errors.New("interrupted; all was undone, and the run does not go on")}
	}
	return nil
}

// unchanged returns the experiment of a record, or an error if its file has changed since the run began.
func unchanged(rec *record.Record) (source, error) {
	file, err := rec.File()
	if err != nil {
		return source{}, fmt.Errorf("read the experiment of %s: %w", rec.Dir, err)
	}
	path := filepath.Join(rec.Dir, record.ExperimentFile)
	if sum := sha256.Sum256(file); hex.EncodeToString(sum[:]) != rec.Header.Experiment.SHA256 {
		return source{}, usage("%s has changed since the run began: restore it, or start a new run", path)
	}
	return source{name: path, file: path, text: file}, nil
}

// warnOfOthers writes into a continued record in what its first blocks, from of them, may differ from the others.
func warnOfOthers(w *record.Writer, rec *record.Record, from int, unknown string) error {
	var texts []string
	if v, _ := buildVersion(); v != rec.Header.Tool.Version {
		texts = append(texts, fmt.Sprintf("the first %d blocks were measured by tare %s, the others by %s",
			from, rec.Header.Tool.Version, v))
	}
	if unknown != "" {
		texts = append(texts, unknown)
	}
	for _, text := range texts {
		if err := w.Warning(record.Warning{Text: text}); err != nil {
			return err
		}
	}
	return nil
}

// lostBlocks counts the blocks of a record whose times are unusable.
func lostBlocks(rec *record.Record) (int, error) {
	if !question.Of(rec.Header.Question).Drive.InBlocks {
		return 0, nil
	}
	rep, err := analyze.Analyze(rec, analyze.Options{})
	if err != nil {
		return 0, fmt.Errorf("read the blocks of %s: %w", rec.Dir, err)
	}
	lost, _ := analyze.LostBlocks(rep, 0, 0)
	return lost, nil
}

// blocksToCome returns the number of usable blocks that the record needs in the end, or why it cannot be continued. The
// record has from blocks, of which lost are unusable.
func blocksToCome(rec *record.Record, from, lost, add int) (int, error) {
	h := &rec.Header
	if !question.Of(h.Question).Drive.InBlocks {
		inBlocks := question.Names(func(q *question.Question) bool { return q.Drive.InBlocks })
		return 0, usage("%s is a %s experiment; only %s have blocks that a later run can continue: run it again",
			rec.Dir, h.Question, question.Listed(inBlocks, "and"))
	}
	if kernel := doctor.Kernel(); h.Host.Kernel != kernel || h.Host.CPUs != runtime.NumCPU() {
		return 0, usage("%s was measured on %s with %d CPUs, and this is %s with %d: blocks of two hosts cannot be mixed; "+
			"run it again",
			rec.Dir, h.Host.Kernel, h.Host.CPUs, kernel, runtime.NumCPU())
	}
	if name, _ := os.Hostname(); h.Host.Name != name {
		return 0, usage("%s was measured on host %q, and this is %q: blocks of two hosts cannot be mixed; run it again",
			rec.Dir, h.Host.Name, name)
	}
	most := rec.Plan.Blocks
	if add > 0 {
		if most = design.NextLook(from - lost + add); most == 0 { // results are judged at looks only
			return 0, usage("%s has %d blocks, and the last look is after %d: another one would use more of the error than is "+
				"allowed; begin a new run", rec.Dir, from-lost, design.MaxBlocks)
		}
	}
	if most <= from-lost || from >= most+design.Spare(most) {
		return 0, usage("%s has all its %d blocks; ask for more with --add-blocks N", rec.Dir, from)
	}
	return most, nil
}

// latest finds the newest record of the experiment file src below results.
func latest(results string, src []byte) (string, error) {
	sum := sha256.Sum256(src)
	want := hex.EncodeToString(sum[:])
	dir, err := newest(results, func(h *record.Header) bool { return h.Experiment.SHA256 == want })
	if err == nil && dir == "" {
		err = usage("there is no run of this file below %s to add blocks to; run it first, or name the run with --resume",
			results)
	}
	return dir, err
}

// newest finds the record below results that began last among those that match wanted, from their headers alone; "" if
// there is none.
func newest(results string, wanted func(*record.Header) bool) (string, error) {
	dirs, err := os.ReadDir(results)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("look for earlier runs: %w", err)
	}
	best, at := "", int64(0)
	for _, d := range dirs {
		dir := filepath.Join(results, d.Name())
		h, err := record.ReadHeader(dir)
		if err == nil && wanted(&h) && h.Started.UnixNano() > at {
			best, at = dir, h.Started.UnixNano()
		}
	}
	return best, nil
}

// factors returns the factors of the experiment for the record.
func factors(e *config.Experiment) []record.Factor {
	var out []record.Factor
	for _, f := range e.Factors {
		out = append(out, record.Factor{Name: f.Name, Levels: f.Levels})
	}
	return out
}

// key returns this user's key for sealing records. If there can be none, it warns and returns an empty key: records
// without a seal are undone and continued with --yes only.
func (a *app) key() record.Key {
	state := a.Getenv("XDG_STATE_HOME")
	if state == "" && a.Getenv("HOME") != "" {
		state = filepath.Join(a.Getenv("HOME"), ".local", "state")
	}
	if state == "" {
		a.tell("the record is not sealed: neither XDG_STATE_HOME nor HOME says where to keep a key\n")
		return nil
	}
	key, err := record.LoadKey(filepath.Join(state, "tare"))
	if err != nil {
		a.tell("the record is not sealed: %v\n", err)
		return nil
	}
	return key
}
