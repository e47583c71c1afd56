package sandbox

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"

	"tare/area"
	"tare/internal/design"
	"tare/internal/spelling"
)

// The levels of the factor "rights": what a Landlock ruleset handles.
const (
	rightFiles   = "files"
	rightNetwork = "network"
	rightScopes  = "scopes"
)

// A landlockRight is a kind of access that Landlock can handle.
type landlockRight struct {
	name  string
	abi   int    // the first version of Landlock's ABI that has it
	since string // the first Linux that has that
	text  string
	// acts are the workloads that it may affect, beside those that change credentials.
	acts []string
}

func landlockRightsKnown() []landlockRight {
	return []landlockRight{
		{
			name: rightFiles, abi: 1, since: "5.13",
			acts: []string{"open", "stat", "create", "read", "pipe", "switch", "copy", "copy1024", "copy256"},
		},
		{
			name: rightNetwork, abi: 4, since: "6.7", acts: []string{"connect", "udpconnect"},
			text: "binding and connecting TCP sockets, granted on one port of the worker's own",
		},
		{
			name: rightScopes, abi: 6, since: "6.12",
			text: "abstract Unix sockets and signals, which reach no process outside; no workload uses them",
		},
	}
}

// rightsOf parses a level of the factor "rights", such as "files+network"; empty is "files".
func rightsOf(level string) ([]landlockRight, error) {
	if level == "" {
		level = rightFiles
	}
	all := landlockRightsKnown()
	var out []landlockRight
	for name := range strings.SplitSeq(level, design.LevelMark) {
		i := slices.IndexFunc(all, func(r landlockRight) bool { return r.name == name })
		if i < 0 {
			names := []string{rightFiles, rightNetwork, rightScopes}
			return nil, fmt.Errorf("rights: there is no %q; there are %s%s", name, strings.Join(names, ", "),
				spelling.DidYouMean(name, names))
		}
		if slices.ContainsFunc(out, func(r landlockRight) bool { return r.name == name }) {
			return nil, fmt.Errorf("rights: %s is named twice in %q", name, level)
		}
		out = append(out, all[i])
	}
	return out, nil
}

// handles reports whether the policy's ruleset handles a right.
func (p Policy) handles(right string) bool {
	all, _ := rightsOf(p.Rights) // Express has checked it
	return slices.ContainsFunc(all, func(r landlockRight) bool { return r.name == right })
}

// expressRights returns an error if the policy's rights cannot be expressed.
func expressRights(s stack, p Policy) error {
	if p.Rights == "" {
		return nil
	}
	if !s.has(enforcerLandlock) {
		return errors.New("rights: only landlock handles rights")
	}
	if _, err := rightsOf(p.Rights); err != nil {
		return err
	}
	if p.Rules > 0 && len(s) == 1 && !p.handles(rightFiles) && !p.handles(rightNetwork) {
		return errors.New("rules: scopes have no rules: leave them out, or add files or network to rights")
	}
	return nil
}

// needABI returns an error if this kernel's Landlock does not have the policy's rights.
func needABI(p Policy) error {
	abi, err := ll.LandlockGetABIVersion()
	if err != nil {
		return noLandlock(err)
	}
	return rightsNeed(p, abi)
}

func rightsNeed(p Policy, abi int) error {
	all, err := rightsOf(p.Rights)
	for _, r := range all {
		if abi < r.abi {
			return area.WithHint(fmt.Errorf("rights: %s needs version %d of Landlock's ABI, and this kernel has version %d",
				r.name, r.abi, abi), fmt.Sprintf("use Linux %s or newer, or leave %s out", r.since, r.name))
		}
	}
	return err
}

// checkRights reports treatments whose rights this kernel does not have.
func (s *Spec) checkRights(env area.Env) []area.Finding {
	for _, t := range env.Treatments {
		p, err := s.plan(t)
		if err != nil || p.policy.Rights == "" {
			continue // Validate reports the error
		}
		if err := needABI(p.policy); err != nil {
			return []area.Finding{area.Fault("", fmt.Errorf("treatment %q: %w", t.ID, err), "")}
		}
	}
	return nil
}

// rulesetOf returns what the policy's ruleset handles on this kernel.
func rulesetOf(p Policy) (ll.RulesetAttr, error) {
	var out ll.RulesetAttr
	if err := needABI(p); err != nil {
		return out, err
	}
	if p.handles(rightFiles) {
		files, err := landlockRights()
		if err != nil {
			return out, err
		}
		out.HandledAccessFS = files
	}
	if p.handles(rightNetwork) {
		out.HandledAccessNet = ll.AccessNetBindTCP | ll.AccessNetConnectTCP
	}
	if p.handles(rightScopes) {
		out.Scoped = ll.ScopeAbstractUnixSocket | ll.ScopeSignal
	}
	return out, nil
}

// portsOf returns the ports on which the policy's ruleset grants TCP: the worker's own, and one for each further rule
// if those are not about files.
func portsOf(p Policy) []int {
	if !p.handles(rightNetwork) {
		return nil
	}
	out := []int{p.Port}
	if p.handles(rightFiles) {
		return out
	}
	for port := 1; len(out) <= p.Rules; port++ {
		if port != p.Port && port != otherPort(p) {
			out = append(out, port)
		}
	}
	return out
}

// landlockPort grants binding and connecting TCP sockets to a port.
func landlockPort(ruleset, port int) error {
	attr := &ll.NetPortAttr{AllowedAccess: ll.AccessNetBindTCP | ll.AccessNetConnectTCP, Port: uint64(port)}
	if err := ll.LandlockAddNetPortRule(ruleset, attr, 0); err != nil {
		return fmt.Errorf("add a Landlock rule for port %d: %w", port, err)
	}
	return nil
}

// otherPort returns a port that no ruleset grants, beside the worker's own.
func otherPort(p Policy) int {
	const last = 65535
	if p.Port == last {
		return last - 1
	}
	return p.Port + 1
}

// outsideName is the name of the abstract socket of this process that a worker tries to reach.
func outsideName(p Policy) string {
	return filepath.Base(filepath.Dir(p.Scratch)) + "-" + filepath.Base(p.Scratch)
}

// proveRights proves what the policy's ruleset handles: each right is refused where it is not granted.
func proveRights(x *proof, p Policy) {
	if p.handles(rightFiles) {
		x.wantRefused(unix.EACCES, tryFifo, fifoIn(p.Scratch))
	} else {
		absentFiles(x, p)
	}
	if p.handles(rightNetwork) {
		other, own := strconv.Itoa(otherPort(p)), strconv.Itoa(p.Port)
		x.wantRefused(unix.EACCES, tryBind, other)
		x.wantRefused(unix.EACCES, tryConnect, other)
		x.wantAllowed(tryBind, own)
		x.wantNot(unix.EACCES, tryConnect, own)
	} else {
		absentNetwork(x, p)
	}
	if p.handles(rightScopes) {
		x.wantRefused(unix.EPERM, tryAbstract, outsideName(p))
		x.wantRefused(unix.EPERM, trySignal, "parent")
		x.wantAllowed(tryOwnAbstract, outsideName(p)+"-own")
		x.wantAllowed(trySignal, "self")
	} else {
		absentScopes(x, p)
	}
}

// absentFiles proves that no ruleset handles files. A domain of SELinux refuses the same, so nothing is tried in one.
func absentFiles(x *proof, p Policy) {
	if p.SELinux == "" {
		x.wantNot(unix.EACCES, tryFifo, fifoIn(p.Scratch))
	}
}

// absentNetwork proves that no ruleset handles TCP. Where there is no port for the worker nothing is tried.
func absentNetwork(x *proof, p Policy) {
	if p.Port > 0 {
		x.wantNot(unix.EACCES, tryBind, strconv.Itoa(otherPort(p)))
		x.wantNot(unix.EACCES, tryConnect, strconv.Itoa(otherPort(p)))
	}
}

// absentScopes proves that nothing restricts abstract sockets and signals.
func absentScopes(x *proof, p Policy) {
	if p.Port > 0 {
		x.wantNot(unix.EPERM, tryAbstract, outsideName(p))
		x.wantNot(unix.EPERM, trySignal, "parent")
	}
}

// describeRights describes what the policy handles beside files.
func describeRights(p Policy) string {
	all, _ := rightsOf(p.Rights)
	var texts []string
	for _, r := range all {
		if r.text != "" {
			texts = append(texts, r.text)
		}
	}
	return strings.Join(texts, "; and ")
}

// A policyInert is an Enforcer for which the policy matters for what it can affect.
type policyInert interface {
	InertUnder(p Policy, workload string) bool
}

// InertUnder implements policyInert: a ruleset cannot affect workloads that do nothing which it handles. Workloads that
// execute programs are counted as affected, since credentials change.
func (landlockRules) InertUnder(p Policy, workload string) bool {
	if slices.Contains([]string{"exec", "spawn", "shell"}, workload) {
		return false
	}
	all, _ := rightsOf(p.Rights)
	return !slices.ContainsFunc(all, func(r landlockRight) bool { return slices.Contains(r.acts, workload) })
}
