package sandbox

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"

	"tare/areas/sandbox/apparmor"
	"tare/areas/sandbox/bpflsm"
	"tare/areas/sandbox/policy"
	"tare/internal/kit"
)

// OwnRules is a policy of the user's, from a file.
type OwnRules struct {
	Name   string        `json:"name"` // the path, as the experiment gives it
	Sum    string        `json:"sum"`  // SHA-256 of the file
	Policy policy.Policy `json:"policy"`
}

// mostOwnRules bounds the size of the file.
const mostOwnRules = 1 << 20

// readOwnRules reads a policy. The error names the path.
func readOwnRules(path string) (*OwnRules, error) {
	text, err := kit.ReadText(path, mostOwnRules)
	if err != nil {
		return nil, err
	}
	p, err := policy.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	sum := sha256.Sum256(text)
	return &OwnRules{Name: path, Sum: hex.EncodeToString(sum[:]), Policy: p}, nil
}

// describe says that the rules are part of a policy; it is empty without any.
func (o *OwnRules) describe() string {
	if o == nil {
		return ""
	}
	return fmt.Sprintf("; the rules of %s (SHA-256 %.24s…) are among them", o.Name, o.Sum)
}

// refusal names what the rules refuse, with the rule.
func (o *OwnRules) refusal(a policy.Act) string {
	rule := o.Policy.Rule(a)
	if rule == "" {
		return a.String()
	}
	return a.String() + " by " + rule
}

// observed returns the plan with an enforcer that allows what the rules of the user's refuse, and reports it. Where
// several have the same rules, one reports.
func (p plan) observed() (plan, error) {
	rules := p.policy.Own
	p.policy.Mode, p.policy.Rules, p.policy.Match = AlwaysAllow, 0, 0
	switch {
	case p.stack.has(enforcerBPF):
		p.stack, p.policy.Enforcer, p.policy.observed = stack{bpfRules{}}, enforcerBPF, true
	case p.stack.has(enforcerAppArmor):
		const profile = "rules"
		text, _ := apparmor.Profile(profile, rules.Policy)
		file := &apparmor.File{Name: rules.Name, Text: text, Profiles: []string{profile}}
		p.stack, p.policy.Enforcer = stack{appArmor{}}, enforcerAppArmor
		p.policy.AppFile = (&appFile{path: rules.Name, file: file, profile: profile, opens: &opens{}}).complaining()
	default:
		return p, errors.New("SELinux reports labels, not rules")
	}
	return p, nil
}

// cannotTell says what an observation of the rules cannot tell; it is empty if there is nothing.
func (o *OwnRules) cannotTell(s stack) string {
	if o.Policy.Ptrace && !s.has(enforcerBPF) {
		return "; whether ptrace is refused cannot be told beforehand"
	}
	return ""
}

// ruleWatcher is the watcher of BPF programs that report what rules refuse.
type ruleWatcher struct {
	rules    *OwnRules
	programs *bpflsm.Programs
	lost     int
}

var _ watcher = (*ruleWatcher)(nil)

// during implements watcher: all processes with a profile are those of one sample.
func (w *ruleWatcher) during(_ context.Context, _ string, do func() error) (out []string, err error) {
	o, err := w.programs.Observe()
	if err != nil {
		return nil, err
	}
	err = do()
	acts, lost, stopped := o.Close()
	w.lost += int(lost) //nolint:gosec // far less
	for _, a := range acts {
		if text := w.rules.refusal(a); !slices.Contains(out, text) {
			out = append(out, text)
		}
	}
	return out, errors.Join(err, stopped)
}

// missed implements watcher.
func (w *ruleWatcher) missed() int { return w.lost }
