package sandbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"tare/area"
	"tare/areas/sandbox/workload"
	"tare/internal/design"
	"tare/internal/unit"
)

// Preflight implements area.Area: with each enforcer that the experiment needs it confines a child and proves its
// policy. It leaves nothing behind.
func (Area) Preflight(ctx context.Context, s area.Spec, env area.Env) []area.Finding {
	spec, err := area.SpecOf[*Spec](s)
	if err != nil {
		return []area.Finding{area.Fault("", err, "")}
	}
	if spec.On == onLab {
		return spec.labPreflight(env)
	}
	cpus, err := workerCPUs(env, 1)
	if err != nil {
		return []area.Finding{area.Fault("", err, "")}
	}
	if err := errors.Join(sweep(), sweepAppArmor()); err != nil {
		env.Log.Warn("remove what a killed run left of its trials", slog.Any("err", err))
	}
	out := append(spec.missing(), spec.checkWorkers(env)...)
	out = slices.Concat(out, spec.checkRights(env), spec.checkConnections(len(env.Treatments)))
	if err := spec.loadSELinux(ctx, env.Treatments); err != nil {
		return append(out, area.Fault("", fmt.Errorf("%s: %w", enforcerSELinux, err), ""))
	}
	for _, e := range spec.needs(env.Treatments) {
		err := e.Probe(ctx, func(ctx context.Context, p Policy) error {
			return tryPolicy(ctx, stack{e}, p, launcher{self: env.Self, cpus: cpus})
		})
		if err == nil {
			continue
		}
		out = append(out, area.Fault("", fmt.Errorf("%s: %w", e.Name(), err), ""))
	}
	if slices.ContainsFunc(out, func(f area.Finding) bool { return f.Severity == area.Error }) {
		return out
	}
	refused := spec.tryProfiles(ctx, env, launcher{self: env.Self, cpus: cpus})
	spec.refused = nil
	for _, f := range refused {
		spec.refused = append(spec.refused, f.Message)
	}
	return append(out, refused...)
}

// needs returns the enforcers of the treatments; without treatments, all.
func (s *Spec) needs(treatments []design.Treatment) []Enforcer {
	var out []Enforcer
	for _, e := range enforcers() {
		if len(treatments) == 0 || slices.ContainsFunc(treatments, func(t design.Treatment) bool {
			p, err := s.plan(t)
			return err == nil && p.stack.has(e.Name())
		}) {
			out = append(out, e)
		}
	}
	return out
}

// tryPolicy confines a worker, proves the policy in it, and ends it.
func tryPolicy(ctx context.Context, s stack, p Policy, l launcher) error {
	return inTrialFolder(func(dir string) error {
		p.Dir, p.Scratch = dir, filepath.Join(dir, "s00000")
		if err := (&sample{dir: p.Scratch}).setUp(); err != nil {
			return err
		}
		l.log = filepath.Join(p.Dir, "worker.log")
		o, err := openOutside(&p)
		if err != nil {
			return err
		}
		defer o.close() //nolint:errcheck // nothing to lose
		return onTrialHost(ctx, s, &p, func(h *host) error {
			l.host = h
			c, err := l.start(ctx, p, nil)
			if err != nil {
				return err
			}
			return errors.Join(c.prove(ctx, s), c.stop(context.WithoutCancel(ctx)))
		})
	})
}

// Adapters lists the enforcers, with one line on each.
func (Area) Adapters() map[string]string {
	help := map[string]string{}
	for _, e := range enforcers() {
		help[e.Name()] = e.Help()
	}
	return help
}

// Presets lists the micro-workloads, with one line on each: they are this area's presets.
func (Area) Presets() map[string]string {
	help := map[string]string{}
	for _, k := range workload.Kinds() {
		help[k.Name] = k.Help
		if k.UnixBench != "" {
			help[k.Name] += " (UnixBench: " + k.UnixBench + ")"
		}
	}
	for _, c := range setUpCosts() {
		help[c.name] = c.help
	}
	return help
}

// Creates lists what a run of s creates on this host, for the plan.
func (s *Spec) Creates(treatments []area.Treatment) []string {
	if s.On == onLab {
		return s.createsInLab()
	}
	n := s.workers(treatments)
	out := []string{fmt.Sprintf("%s at a time, one for each treatment, or for each of its workers, anew in "+
		"every block; each is irrevocably confined and ends with its block", unit.Count(n, "process"))}
	if s.guarded {
		out = s.createsGuarded()
	}
	if len(s.daemons()) > 0 {
		out = append(out, fmt.Sprintf("%s beside them (%s), which listen on %s",
			unit.Count(len(treatments)*len(s.daemons()), "server"), strings.Join(s.daemons(), ", "), s.listensOn()))
	}
	out = append(out, s.createsThreads(treatments)...)
	return append(out, fmt.Sprintf("a folder %s* in %s, removed at the end", folderPrefix, os.TempDir()))
}

// listensOn says where the servers of `real` listen.
func (s *Spec) listensOn() string {
	var at []string
	if slices.ContainsFunc(s.daemons(), func(name string) bool { return name != serverApache }) {
		at = append(at, "sockets in the folder below")
	}
	if slices.Contains(s.daemons(), serverApache) {
		at = append(at, "a port of loopback (apache)")
	}
	return strings.Join(at, " and on ")
}

// Notes implements area.Target.
func (t *target) Notes() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	notes := t.cpuNotes()
	var texts []string
	under := map[string][]string{}
	for _, a := range t.order {
		if a.treatment.Control != design.None {
			continue
		}
		text := a.plan.stack.describe(a.plan.policy)
		if len(under[text]) == 0 {
			texts = append(texts, text)
		}
		under[text] = append(under[text], a.treatment.ID)
	}
	for _, text := range texts {
		who := under[text][0]
		if more := len(under[text]) - 1; more > 0 {
			who += fmt.Sprintf(" and %d like it", more)
		}
		notes = append(notes, who+": "+text)
	}
	return slices.Concat(notes, t.spec.refused, t.profileNotes(), t.plantedNotes(), t.threadNotes(), t.attributionNotes(),
		t.reloadNotes())
}

// profileNotes says what has proved the user's AppArmor profiles.
func (t *target) profileNotes() (notes []string) {
	for _, a := range t.order {
		if f := a.plan.policy.AppFile; f != nil && f.proved() != "" {
			notes = append(notes, a.treatment.ID+": "+f.proved())
		}
	}
	return notes
}

// plantedNotes names the arms with a planted cost.
func (t *target) plantedNotes() (notes []string) {
	for _, a := range t.order {
		if s := a.plan.planted; s.part > 0 {
			notes = append(notes, fmt.Sprintf("%s: makes %d calls for every %d that it reports: a known cost, planted on "+
				"purpose", a.treatment.ID, s.whole+s.part, s.whole))
		}
		if p := a.plan.program; p.attached && a.treatment.Control == design.None {
			notes = append(notes, a.treatment.ID+": "+p.note())
		}
	}
	return notes
}
