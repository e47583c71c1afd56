package sandbox

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"tare/area"
	"tare/internal/design"
)

// A refusal is what a profile would refuse of an operation.
type refusal struct {
	operation string
	calls     []string
}

// tryProfiles finds, for each profile and file of rules of the treatments, the calls of the workloads that it would
// refuse, and then proves it.
func (s *Spec) tryProfiles(ctx context.Context, env area.Env, l launcher) (out []area.Finding) {
	tried := map[string]bool{}
	for _, t := range env.Treatments {
		p, err := s.plan(t)
		if err != nil || !p.policy.own() || tried[p.policy.tried().key] {
			continue // Validate has reported the error
		}
		tried[p.policy.tried().key] = true
		out = append(out, s.tryProfile(ctx, env, l, t, p)...)
	}
	return out
}

func (s *Spec) tryProfile(ctx context.Context, env area.Env, l launcher, t design.Treatment, p plan) []area.Finding {
	what := p.policy.tried()
	refusals, lost, err := s.refusals(ctx, env, l, p)
	found := what.finding(refusals, err)
	if p.policy.Own != nil && err == nil {
		found.Message += p.policy.Own.cannotTell(p.stack)
	}
	out := []area.Finding{found}
	if lost > 0 {
		out = append(out, area.Finding{
			Severity: area.Warning,
			Message: fmt.Sprintf("the kernel lost at least %d records of refusals meanwhile, so %s may refuse more than that",
				lost, what.name),
			Hint: "run it again; where AppArmor refuses, while fewer audit records are made (auditctl -s tells how many " +
				"were lost)",
		})
	}
	if failed := s.rehearse(ctx, env, l, p); failed != nil {
		hint := "allow there what the program needs; workloads and commands run in a worker of tare's, which " +
			"needs " + what.needs
		if err != nil {
			hint = "look at the warning first: what fails there, where every call is allowed, does not fail because of the " +
				"profile"
		}
		out = append(out, area.Finding{
			Severity: area.Error, Message: fmt.Sprintf("treatment %q: %s: %v", t.ID, what.name, failed), Hint: hint,
		})
	}
	return out
}

// finding says what the profile would refuse. err says why that is not known.
func (t tried) finding(refusals []refusal, err error) area.Finding {
	switch {
	case err != nil:
		return area.Finding{
			Severity: area.Warning,
			Message:  fmt.Sprintf("which %s of the workloads %s would refuse is not known: %v", t.many, t.name, err),
			Hint:     area.HintOf(err),
		}
	case len(refusals) > 0:
		return area.Finding{
			Severity: area.Warning,
			Message: fmt.Sprintf("%s refuses %s that were made when each workload ran once: %s", t.name, t.many,
				list(refusals)),
			Hint: fmt.Sprintf("a program may do without %s %s that is refused, or take another path: then its cost is that "+
				"path's; allow the %[2]s there if the workload needs it", t.article, t.one),
		}
	}
	return area.Finding{
		Severity: area.Info,
		Message:  fmt.Sprintf("%s refused no %s that the workloads made when each ran once", t.name, t.one),
	}
}

// tried says how findings speak of a profile of the user's.
type tried struct {
	key, name          string
	article, one, many string // what it refuses
	needs              string // what tare's worker needs of it
}

func (p Policy) tried() tried {
	if a := p.AppFile; a != nil {
		return tried{
			a.path + a.profile + a.file.Text, "profile " + a.profile + " of " + a.file.Name, "an", "access", "accesses",
			"its program, the files that the workloads open, and its folder " + folderPrefix + "*",
		}
	}
	if o := p.Own; o != nil {
		return tried{
			fmt.Sprint(p.Enforcer, p.Mode, o.Name, o.Sum), o.Name + " under " + p.Enforcer, "an", "access", "accesses",
			"its program, the files that the workloads open, and its folder " + folderPrefix + "*",
		}
	}
	return tried{
		p.Profile.Name + string(p.Profile.Text), p.Profile.Name, "a", "call", "calls", "the calls of the Go runtime",
	}
}

// rehearse proves the profile and makes one call of each operation under it.
func (s *Spec) rehearse(ctx context.Context, env area.Env, l launcher, p plan) error {
	return s.trial(ctx, l, p, func(x *sample) error {
		if err := x.start(ctx, env.Clock); err != nil {
			return err
		}
		if err := x.prove(ctx); err != nil {
			return err
		}
		for _, o := range s.workloadOperations(p) {
			if _, err := o.run(ctx, x, 1); err != nil {
				return fmt.Errorf("%s: %w", o.name, err)
			}
		}
		return nil
	})
}

func list(all []refusal) string {
	texts := make([]string, len(all))
	for i, r := range all {
		texts[i] = r.operation + ": " + strings.Join(r.calls, ", ")
	}
	return strings.Join(texts, "; ")
}

// trialJournal is that of trials before a run, which has no journal yet: sweep finds their folders by name.
type trialJournal struct{}

var _ area.Journal = trialJournal{}

// Intend implements area.Journal.
func (trialJournal) Intend(area.Change) error { return nil }

// Undone implements area.Journal.
func (trialJournal) Undone(area.Change) error { return nil }

// trial does something with a sample in a folder of its own, and removes both.
func (s *Spec) trial(ctx context.Context, l launcher, p plan, do func(*sample) error) error {
	return inTrialFolder(func(dir string) error {
		l.log = filepath.Join(dir, "worker.log")
		p.policy.Dir = dir
		return onTrialHost(ctx, p.stack, &p.policy, func(h *host) error {
			l.host = h
			x := &sample{
				plan: p, spec: s, journal: trialJournal{}, id: "worker-00000", dir: filepath.Join(dir, "s00000"), launch: l,
			}
			return errors.Join(do(x), x.end(context.WithoutCancel(ctx)))
		})
	})
}

// refusals makes one call of each operation while everything is allowed. It returns what the profile or the rules would
// refuse, each where a process first did it, and how many records of that were lost.
func (s *Spec) refusals(ctx context.Context, env area.Env, l launcher, p plan) (out []refusal, lost int, err error) {
	switch {
	case p.policy.AppFile != nil:
		p.policy.AppFile = p.policy.AppFile.complaining()
	case p.policy.Own != nil:
		if p, err = p.observed(); err != nil {
			return nil, 0, err
		}
	default:
		program, err := filterProgram(p.policy)
		if err != nil {
			return nil, 0, err
		}
		l.observer = newObserver(program, env.Clock)
		defer l.observer.close()
	}
	err = s.trial(ctx, l, p, func(x *sample) error {
		w := x.watcher()
		out, err = s.watch(ctx, env, x, w)
		lost = w.missed()
		return err
	})
	return out, lost, err
}

// watcher returns what finds out what would be refused to the sample, whose policy has been installed.
func (s *sample) watcher() watcher {
	p := s.plan.policy
	switch {
	case p.AppFile != nil:
		return &profileWatcher{namespace: p.AppArmor.Namespace, rules: p.Own}
	case p.Own != nil:
		return &ruleWatcher{rules: p.Own, programs: s.launch.host.programs}
	}
	return s.launch.observer
}

func (s *Spec) watch(ctx context.Context, env area.Env, x *sample, w watcher) ([]refusal, error) {
	r := refusalCollector{watcher: w, known: map[string][]string{}}
	err := r.run(ctx, env, s, x)
	return r.refusals, err
}

// A refusalCollector collects what would be refused while a sample runs.
type refusalCollector struct {
	watcher  watcher
	known    map[string][]string // by process, so that no call is named twice
	refusals []refusal
}

func (r *refusalCollector) run(ctx context.Context, env area.Env, s *Spec, x *sample) error {
	if err := x.setUp(); err != nil {
		return err
	}
	worker := processName("worker", x.plan.policy)
	if s.needsWorker(x.plan) {
		if err := r.step(ctx, "tare's worker", worker, func() error {
			if err := x.startWorker(ctx); err != nil {
				return err
			}
			_, err := micro(workCompute)(ctx, x, 1) // its meter makes calls of its own; the workload makes none
			return err
		}); err != nil {
			return err
		}
	}
	for _, name := range s.daemons() {
		start := func() error { return x.serve(ctx, name, env.Clock) }
		if err := r.step(ctx, "start of "+name, processName(name, x.plan.policy), start); err != nil {
			return err
		}
	}
	for _, o := range s.workloadOperations(x.plan) {
		process := worker
		if o.server != "" {
			process = processName(o.server, x.plan.policy)
		}
		if err := r.step(ctx, o.name, process, func() error { _, err := o.run(ctx, x, 1); return err }); err != nil {
			return err
		}
	}
	return nil
}

// step does something and notes what would have been refused to the process meanwhile.
func (r *refusalCollector) step(ctx context.Context, what, process string, do func() error) error {
	calls, err := r.watcher.during(ctx, process, do)
	calls = slices.DeleteFunc(calls, func(c string) bool { return slices.Contains(r.known[process], c) })
	r.known[process] = append(r.known[process], calls...)
	if len(calls) > 0 {
		r.refusals = append(r.refusals, refusal{what, calls})
	}
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}
