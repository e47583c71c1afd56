package importer

import (
	"errors"
	"fmt"
	"slices"

	"tare/internal/clock"
	"tare/internal/design"
	"tare/internal/record"
)

// Write keeps d as a record in a folder of its own below results. h has the name, the importing tool and the file; its
// area, its question and, where the file says it, its start are filled in. A series' repetition b is in the trial of
// block b of its treatment, as Batches. Blocks only number repetitions here: the plan says that nothing was
// interleaved.
func (d *Data) Write(results string, h record.Header, c clock.Clock) (dir string, err error) {
	h.Area, h.Question = Area, design.Compare
	if h.Started = d.Started; h.Started.Year() < 1970 || h.Started.Year() > 9000 { // unknown, or nonsense
		h.Started = c.Now()
	}
	w, err := record.Create(results, h, nil, c)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	plan := record.Plan{Treatments: d.treatments(), Blocks: d.blocks(), Unblocked: true, Notes: d.notes(), Made: d.Made}
	if err := w.Plan(plan); err != nil {
		return w.Dir(), err
	}
	for _, text := range d.Warnings {
		if err := w.Warning(record.Warning{Text: text}); err != nil {
			return w.Dir(), err
		}
	}
	index, of := 0, map[string][]*Series{}
	for _, s := range d.Series {
		of[s.Treatment.ID] = append(of[s.Treatment.ID], s)
	}
	for b := range plan.Blocks {
		for _, t := range plan.Treatments {
			written, err := trial(w, of[t.ID], design.Trial{Index: index, Block: b, Treatment: t.ID})
			if err != nil {
				return w.Dir(), err
			}
			if written {
				index++
			}
		}
	}
	return w.Dir(), w.Finish(record.Finish{Status: record.Complete})
}

// trial writes one repetition of a treatment's series; false when there is none.
func trial(w *record.Writer, series []*Series, t design.Trial) (written bool, err error) {
	begin := record.TrialBegin{Trial: t}
	var batches []record.Batches
	for _, s := range series {
		if t.Block >= len(s.Repetitions) {
			continue
		}
		if !slices.Contains(begin.Operations, s.Operation) {
			begin.Operations = append(begin.Operations, s.Operation)
		}
		r := &s.Repetitions[t.Block]
		batches = append(batches, record.Batches{
			Treatment: t.Treatment, Block: t.Block, Operation: s.Operation, Metric: s.Metric, N: r.N, Unread: r.Unread,
			Step: s.Step, Values: r.Values,
		})
	}
	if len(batches) == 0 {
		return false, nil
	}
	if err := w.TrialBegin(begin); err != nil {
		return false, err
	}
	for _, b := range batches {
		if err := w.Batches(b); err != nil {
			return false, err
		}
	}
	return true, w.TrialEnd(record.TrialEnd{Treatment: t.Treatment, Block: t.Block, Status: record.Complete})
}

// treatments are the arms, in the order of the file.
func (d *Data) treatments() []design.Treatment {
	var out []design.Treatment
	for _, s := range d.Series {
		if !slices.ContainsFunc(out, func(t design.Treatment) bool { return t.ID == s.Treatment.ID }) {
			out = append(out, s.Treatment)
		}
	}
	return out
}

func (d *Data) blocks() int {
	most := 0
	for _, s := range d.Series {
		most = max(most, len(s.Repetitions))
	}
	return most
}

func (d *Data) notes() []string {
	head := fmt.Sprintf("imported from %s; one repetition is one %s", d.Format, d.Unit)
	return append([]string{head}, d.Notes...)
}
