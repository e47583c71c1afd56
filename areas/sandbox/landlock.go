package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"

	"tare/area"
	"tare/areas/sandbox/workload"
)

// landlockRules is Landlock (landlock(7)): a process gives up rights on files, for itself and its descendants. The
// ruleset handles every file right of the kernel's ABI, and grants all on / except making named pipes, which no
// workload does. So workloads run as without it, each access is checked, and one refusal can be proved. N further rules
// name folders of the run's own.
type landlockRules struct{}

var _ Enforcer = landlockRules{}

// Landlock limits.
const (
	// maxLandlockRules bounds the number of folders and the time to start a worker; the kernel's own limit is 2³² − 1.
	maxLandlockRules = 10_000
	// newestABI is the newest known version of the ABI; file rights of later versions stay unhandled.
	newestABI = 5
)

// Name implements Enforcer.
func (landlockRules) Name() string { return enforcerLandlock }

// Help implements Enforcer.
func (landlockRules) Help() string {
	return "a Landlock ruleset on files, with N further path rules"
}

// Express implements Enforcer.
func (landlockRules) Express(p Policy) error {
	switch {
	case p.ownProfile():
		return errors.New("profile: only seccomp and apparmor take a profile")
	case p.Mode == RuntimeDefault:
		return errors.New("mode: landlock cannot express RuntimeDefault: no container runtime has a Landlock ruleset by " +
			"default")
	case p.Own != nil:
		return errors.New("rules: landlock takes a number; only bpf, apparmor and selinux take a file of rules")
	case p.Mode == Unconfined:
		return errors.New("mode: Unconfined is what enforcer: none is on a kernel with Landlock")
	case p.Mode == EnhanceProtect:
		return errors.New("mode: landlock cannot express EnhanceProtect: a ruleset can only grant, so a part of what is " +
			"granted cannot be taken away " +
			"(procfs, cgroups, tokens); capabilities and single addresses are not Landlock's")
	case p.Rules > maxLandlockRules:
		return fmt.Errorf("rules: landlock is measured with up to %d rules, not %d", maxLandlockRules, p.Rules)
	case p.Match > 0:
		return errors.New("match: not expressible by landlock: its rules name files, not text of paths, so there is no " +
			"near miss")
	}
	return nil
}

// Probe implements Enforcer.
func (l landlockRules) Probe(ctx context.Context, try func(context.Context, Policy) error) error {
	if _, err := ll.LandlockGetABIVersion(); err != nil {
		return noLandlock(err)
	}
	return try(ctx, Policy{Enforcer: l.Name(), Mode: AlwaysAllow, Rules: 1})
}

// noLandlock explains why there is no Landlock, from the error of asking for its version (landlock_create_ruleset(2)).
func noLandlock(err error) error {
	switch {
	case errors.Is(err, unix.ENOSYS):
		return area.WithHint(errors.New("kernel without Landlock (ENOSYS)"),
			"use a kernel from 5.13 on, built with CONFIG_SECURITY_LANDLOCK, or leave landlock out")
	case errors.Is(err, unix.EOPNOTSUPP):
		return area.WithHint(errors.New("the kernel has Landlock, and it is switched off (EOPNOTSUPP)"),
			"boot with landlock in lsm=…, or leave landlock out")
	}
	return area.WithHint(fmt.Errorf("ask for Landlock: %w", err),
		"a container's seccomp profile may refuse it: run tare outside of it")
}

// Install implements Enforcer: it makes the folders that the rules name.
func (landlockRules) Install(_ context.Context, p *Policy, _ *host) error {
	if err := needABI(*p); err != nil {
		return err
	}
	for i := range p.Rules {
		if err := os.MkdirAll(ruleDir(p.Dir, i), 0o700); err != nil {
			return fmt.Errorf("make the folder of rule %d: %w", i, err)
		}
	}
	return nil
}

func ruleDir(dir string, i int) string { return filepath.Join(dir, "rules", fmt.Sprintf("%05d", i)) }

// Confine implements Enforcer. It restricts this thread only, which suffices, since the thread is about to execute the
// worker. It does not use a library: rulesets for all threads may include the library's own rules, and the number of
// rules is what is measured.
func (l landlockRules) Confine(p Policy) error { return confineStaged(l, p) }

// Stage implements stager: the rights and the paths of rules are known, and Landlock's system calls are left to do.
func (landlockRules) Stage(p Policy) (workload.Steps, error) {
	attr, err := rulesetOf(p)
	if err != nil {
		return workload.Steps{}, err
	}
	var dirs []string
	for i := range p.Rules {
		if p.handles(rightFiles) {
			dirs = append(dirs, ruleDir(p.Dir, i))
		}
	}
	ports := portsOf(p)
	return workload.Steps{Confine: func() error { return restrict(&attr, dirs, ports) }}, nil
}

// restrict puts this thread under a ruleset that grants almost everything on files, reading in dirs, and TCP on ports.
func restrict(attr *ll.RulesetAttr, dirs []string, ports []int) error {
	ruleset, err := ll.LandlockCreateRuleset(attr, 0)
	if err != nil {
		return fmt.Errorf("create a Landlock ruleset: %w", err)
	}
	defer unix.Close(ruleset) //nolint:errcheck // nothing to lose
	if files := attr.HandledAccessFS; files != 0 {
		if err := landlockRule(ruleset, "/", files&^ll.AccessFSMakeFifo); err != nil {
			return err
		}
	}
	for _, dir := range dirs {
		if err := landlockRule(ruleset, dir, ll.AccessFSReadFile|ll.AccessFSReadDir); err != nil {
			return err
		}
	}
	for _, port := range ports {
		if err := landlockPort(ruleset, port); err != nil {
			return err
		}
	}
	if err := ll.LandlockRestrictSelf(ruleset, 0); err != nil {
		return fmt.Errorf("restrict this thread by Landlock: %w", err)
	}
	return nil
}

// landlockRule grants rights beneath a folder.
func landlockRule(ruleset int, path string, rights uint64) error {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open %s for a Landlock rule: %w", path, err)
	}
	defer unix.Close(fd) //nolint:errcheck // nothing to lose
	if err := ll.LandlockAddPathBeneathRule(ruleset, &ll.PathBeneathAttr{AllowedAccess: rights, ParentFd: fd},
		0); err != nil {
		return fmt.Errorf("add a Landlock rule for %s: %w", path, err)
	}
	return nil
}

// landlockRights returns the file rights that this kernel can handle, up to newestABI (linux/landlock.h).
func landlockRights() (uint64, error) {
	abi, err := ll.LandlockGetABIVersion()
	if err != nil {
		return 0, fmt.Errorf("ask for Landlock: %w", err)
	}
	rights := uint64(ll.AccessFSMakeSym<<1 - 1) // ABI 1: all rights up to symbolic links
	for _, more := range []struct {
		abi   int
		right uint64
	}{{2, ll.AccessFSRefer}, {3, ll.AccessFSTruncate}, {newestABI, ll.AccessFSIoctlDev}} {
		if abi >= more.abi {
			rights |= more.right
		}
	}
	return rights, nil
}

// Prove implements Enforcer: of what the ruleset handles, something that it does not grant is refused, such as making a
// named pipe, and something that it grants is allowed, such as making a file in the same folder.
func (landlockRules) Prove(x *proof, p Policy) {
	proveRights(x, p)
	x.wantUsable(p)
}

// Absent implements Enforcer.
func (landlockRules) Absent(x *proof, p Policy) {
	absentFiles(x, p)
	absentNetwork(x, p)
	absentScopes(x, p)
}

// Inert implements Enforcer for the default rights.
func (l landlockRules) Inert(workload string) bool { return l.InertUnder(Policy{}, workload) }

// Describe implements Enforcer. The treatment gives the number of rules.
func (landlockRules) Describe(p Policy) string {
	if !p.handles(rightFiles) {
		return "a Landlock ruleset for " + describeRights(p) + "; files are not handled"
	}
	handled := newestABI
	if abi, err := ll.LandlockGetABIVersion(); err == nil {
		handled = min(abi, newestABI)
	}
	text := fmt.Sprintf("a Landlock ruleset for all rights on files of ABI %d: one rule grants them on /, but for "+
		"making named pipes; each rule more grants reading in a folder that no workload touches", handled)
	if more := describeRights(p); more != "" {
		text += "; it also handles " + more
	}
	if !p.handles(rightNetwork) {
		text += "; networking is not handled, so connect is not acted upon"
	}
	return text
}
