package sandbox

import (
	"context"
	"errors"

	"tare/area"
	"tare/areas/sandbox/workload"
)

// none is the baseline: nothing confines the worker. That is proved, since a container runtime may already confine this
// process.
type none struct{}

var _ Enforcer = none{}

// Name implements Enforcer.
func (none) Name() string { return enforcerNone }

// Help implements Enforcer.
func (none) Help() string { return "nothing is in force: the baseline" }

// Express implements Enforcer: it rejects all options.
func (none) Express(p Policy) error {
	switch {
	case p.ownProfile():
		return errors.New("profile: only seccomp and apparmor take a profile")
	case p.Mode != "":
		return errors.New("mode: not expressible without an enforcer")
	case p.Rules > 0 || p.Own != nil:
		return errors.New("rules: not expressible without an enforcer")
	case p.Match > 0:
		return errors.New("match: not expressible without an enforcer")
	}
	return nil
}

// Probe implements Enforcer.
func (n none) Probe(ctx context.Context, try func(context.Context, Policy) error) error {
	if err := try(ctx, Policy{Enforcer: n.Name()}); err != nil {
		return area.WithHint(err, "the baseline is not bare; run tare outside of containers and sandboxes, or with their "+
			"profiles switched off (docker run --security-opt seccomp=unconfined)")
	}
	return nil
}

// Install implements Enforcer.
func (none) Install(context.Context, *Policy, *host) error { return nil }

// Confine implements Enforcer.
func (none) Confine(Policy) error { return nil }

// Stage implements stager.
func (none) Stage(Policy) (workload.Steps, error) { return workload.Steps{}, nil }

// Prove implements Enforcer: nothing is to be proved beyond the absence of all others.
func (none) Prove(*proof, Policy) {}

// Absent implements Enforcer.
func (none) Absent(*proof, Policy) {}

// Inert implements Enforcer: without an enforcer no workload is affected.
func (none) Inert(string) bool { return true }

// Describe implements Enforcer.
func (none) Describe(Policy) string {
	return "nothing is in force, apart from no_new_privs, which all arms have"
}
