package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"tare/area"
	"tare/areas/sandbox/workload"
	"tare/internal/clock"
	"tare/internal/kit"
	"tare/internal/proc"
)

// sample is one treatment in one block: a new worker with a new folder. So the random placement of files and pages,
// which affects speed, is drawn again in every block.
type sample struct {
	plan    plan
	spec    *Spec
	journal area.Journal
	id      string
	dir     string
	launch  launcher

	outside *outside     // what the worker may try to reach
	change  *area.Change // the worker, once journaled
	worker  *confined
	// daemons run beside the worker, under the same policy.
	daemons []*served
	// setter confines threads of its own, for set-up costs; holder holds other policies. Both are samples of a process
	// each, and nil where the treatment needs none.
	setter, holder *sample
	// peers are the further workers of a treatment with several.
	peers  []*sample
	beside bool // this is one of those
}

// newSample returns a sample of the arm, with those beside it, none of which has been started.
func (t *target) newSample(a *arm) *sample {
	s := t.oneSample(a, "")
	if len(t.spec.SetUp) > 0 {
		s.setter = t.oneSample(a, serverSetUp)
	}
	if t.spec.needsHolder(a.plan) {
		s.holder = t.oneSample(a, serverOthers)
	}
	for _, cpu := range a.cpus[1:] {
		peer := t.oneSample(a, "")
		peer.launch.cpus = []int{cpu}
		s.peers = append(s.peers, peer)
	}
	for _, m := range s.mates() {
		m.spec, m.beside = &Spec{}, true // it serves no daemons
	}
	return s
}

// oneSample returns a sample of the arm by itself, whose process serves what server says; empty: it is a worker.
func (t *target) oneSample(a *arm, server string) *sample {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.entered++
	return &sample{
		plan: a.plan, spec: t.spec, journal: t.journal, id: fmt.Sprintf("worker-%05d", t.entered),
		dir: filepath.Join(t.folder, fmt.Sprintf("s%05d", t.entered)),
		launch: launcher{
			self: t.env.Self, log: filepath.Join(t.env.Dir, "workers.log"), cpus: t.cpus, patience: t.patience,
			host: t.host, server: server,
		},
	}
}

// start confines the worker, and the daemons of the spec.
func (s *sample) start(ctx context.Context, c clock.Clock) error {
	if err := s.setUp(); err != nil {
		return err
	}
	if s.beside || s.spec.needsWorker(s.plan) {
		if err := s.startWorker(ctx); err != nil {
			return err
		}
	}
	for _, name := range s.spec.daemons() {
		if err := s.serve(ctx, name, c); err != nil {
			return err
		}
	}
	for _, m := range s.mates() {
		if err := m.start(ctx, c); err != nil {
			return err
		}
	}
	return nil
}

// mates returns the samples beside this one that serve the same treatment.
func (s *sample) mates() []*sample {
	return slices.DeleteFunc(append([]*sample{s.setter, s.holder}, s.peers...), func(m *sample) bool { return m == nil })
}

// setUp makes the sample's folder and its files.
func (s *sample) setUp() error {
	if err := os.Mkdir(s.dir, 0o700); err != nil {
		return fmt.Errorf("make the worker's folder: %w", err)
	}
	if err := os.WriteFile(filepath.Join(s.dir, appArmorCanary), nil, 0o600); err != nil {
		return fmt.Errorf("make the file of a proof: %w", err)
	}
	if s.launch.server != "" {
		if err := os.WriteFile(filepath.Join(s.dir, compiledFile), s.plan.policy.compiled, 0o600); err != nil {
			return fmt.Errorf("write the compiled profile: %w", err)
		}
	}
	return workload.Setup(s.dir)
}

func (s *sample) startWorker(ctx context.Context) error {
	p := s.plan.policy
	p.Scratch = s.dir
	var err error
	if s.outside, err = openOutside(&p); err != nil {
		return err
	}
	s.worker, err = s.launch.start(ctx, p, func(id proc.ID) error {
		c := kit.ProcessChange(areaName, s.id, id)
		if err := s.journal.Intend(c); err != nil {
			return fmt.Errorf("journal the worker: %w", err)
		}
		s.change = &c
		return nil
	})
	return err
}

// end ends the worker and removes its files. It may be called again after an error.
func (s *sample) end(ctx context.Context) error {
	for _, m := range s.mates() {
		if err := m.end(ctx); err != nil {
			return err
		}
	}
	for len(s.daemons) > 0 {
		if err := s.daemons[0].end(ctx, s.journal); err != nil {
			return err
		}
		s.daemons = s.daemons[1:]
	}
	if s.worker != nil {
		if err := s.worker.stop(ctx); err != nil {
			return err
		}
		s.worker = nil
	}
	errs := []error{s.outside.close()}
	if s.change != nil {
		errs = append(errs, s.journal.Undone(*s.change))
		s.change = nil
	}
	if err := os.RemoveAll(s.dir); err != nil {
		errs = append(errs, fmt.Errorf("remove the worker's folder: %w", err))
	}
	return errors.Join(errs...)
}

// prove proves the policy in the worker, and a profile in each server too.
func (s *sample) prove(ctx context.Context) error {
	if s.worker != nil {
		if err := s.worker.prove(ctx, s.plan.stack); err != nil {
			return err
		}
	}
	for _, d := range s.daemons {
		if s.plan.policy.AppFile != nil {
			if err := d.proveLabel(ctx, s.plan.policy); err != nil {
				return fmt.Errorf("%s: %w", d.name, err)
			}
		}
		if d.proof == nil {
			continue
		}
		if err := s.plan.stack.prove(ctx, s.plan.policy, d.proof); err != nil {
			return fmt.Errorf("%s: %w", d.name, err)
		}
	}
	if s.setter != nil {
		if err := s.setter.prove(ctx); err != nil {
			return fmt.Errorf("in a thread that is confined for set-up costs: %w", err)
		}
	}
	for _, m := range s.peers {
		if err := m.prove(ctx); err != nil {
			return err
		}
	}
	return s.proveOthers(ctx)
}
