package sandbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"tare/area"
	"tare/areas/sandbox/workload"
	"tare/internal/design"
	"tare/internal/files"
	"tare/internal/kit"
	"tare/internal/spelling"
	"tare/internal/unit"
)

// Spec is the `target:` section of a sandbox experiment: what is timed. The treatments say what confines it.
type Spec struct {
	// Workloads are micro-workloads by name; package workload has them.
	Workloads []string `yaml:"workloads,omitempty" json:"workloads,omitempty" jsonschema:"minItems=1,maxItems=32" jsonschema_description:"Micro-workloads: exec, spawn, fork, shell, open, stat, create, connect, udpconnect, read, pipe, switch, copy, copy1024, copy256, syscall, compute."`
	// Commands are command lines.
	Commands []Command `yaml:"commands,omitempty" json:"commands,omitempty" jsonschema:"minItems=1,maxItems=32" jsonschema_description:"Command lines, each timed from its fork to its end. Its CPU time is that of all processes that it waited for, and of those left behind that ended within 0.2 s; one that goes on is an error."`
	// Real are workloads of installed programs.
	Real []string `yaml:"real,omitempty" json:"real,omitempty" jsonschema:"minItems=1,maxItems=32" jsonschema_description:"Real workloads, of programs that are installed: redis, redis-get, redis-set, redis-lpop, nginx, apache, sysbench. redis-get-50 is redis-get on 50 connections at the same time."`
	// Connections are numbers of connections to each server of Real that names none itself.
	Connections []int `yaml:"connections,omitempty" json:"connections,omitempty" jsonschema:"minItems=1,maxItems=16" jsonschema_description:"Numbers of connections, 1 to 1000, on which a server of real is asked at the same time. Each makes an operation: redis-get-50. Default: one connection."`
	// On is where to measure: on this host, or in a lab VM.
	On string `yaml:"on,omitempty" json:"on,omitempty" jsonschema:"enum=host,enum=lab" jsonschema_description:"Where to measure: host (default), or lab: a virtual machine with a kernel of the distribution, in which guest instructions are counted."`
	// SetUp are costs of putting a process under the policy.
	SetUp []string `yaml:"setup,omitempty" json:"setup,omitempty" jsonschema:"minItems=1,maxItems=6" jsonschema_description:"What it costs to put a process under the policy: confine (apply it to a thread), first (the first open under it), later (the same after a hundred), start (apply it, fork, execute a tiny program, wait for it), load (an AppArmor profile or BPF programs into the kernel), memory (of the kernel, for a policy)."`
	// Rounds is how many batches each treatment makes in a block.
	Rounds int `yaml:"rounds,omitempty" json:"rounds,omitempty" jsonschema:"minimum=3,maximum=1000" jsonschema_description:"Batches of each operation and treatment in a block. Default 16; 3 in a lab VM."`
	// Span is how long a batch lasts.
	Span unit.Duration `yaml:"span,omitempty" json:"span,omitempty" jsonschema_description:"How long a batch of calls lasts, from 1ms to 10s. Default: 5ms, 20ms for shell, 1ms in a lab VM; a call that takes longer is a batch of its own."`

	// guarded says that Validate was told a question that asks for trespasses; refused is what Preflight found the user's
	// profiles to refuse.
	guarded bool
	refused []string
}

// Command is a command line with a name.
type Command struct {
	// Name is the operation's name, and a level of the factor "command".
	Name string `yaml:"name" json:"name" jsonschema:"required,maxLength=64" jsonschema_description:"Name of the operation, and a level of the factor \"command\"."`
	// Run is the program with its arguments.
	Run []string `yaml:"run" json:"run" jsonschema:"required,minItems=1" jsonschema_description:"Program and arguments. No shell is involved unless one is named: [sh, -c, \"…\"]."`
	// Prepare is run before each run.
	Prepare []string `yaml:"prepare,omitempty" json:"prepare,omitempty" jsonschema:"minItems=1" jsonschema_description:"Program and arguments to run before each run, which are not timed. They run under the same enforcer."`
}

// code returns the files of the programs and scripts that the command names.
func (c *Command) code() (out []string) {
	for _, line := range [][]string{c.Prepare, c.Run} {
		for i, word := range line {
			if i == 0 {
				word, _ = exec.LookPath(word) // without one the command fails, and says so
			}
			if files.IsCode(word) {
				out = append(out, word)
			}
		}
	}
	return out
}

var _ area.Spec = (*Spec)(nil)

// The factors of treatments.
const (
	factorEnforcer = "enforcer"
	factorMode     = "mode"
	factorRules    = "rules"
	factorMatch    = "match"
	factorPlanted  = "planted"
	factorCommand  = "command"
	factorProfile  = "profile"
	factorKernel   = "kernel"
	factorOthers   = "others"
	factorWorkers  = "workers"
	factorRights   = "rights"
)

func factors() []string {
	return []string{
		factorEnforcer, factorMode, factorProfile, factorRules, factorMatch, factorPlanted, factorCommand, factorKernel,
		factorOthers, factorWorkers, factorRights,
	}
}

// commandOperation is the one operation of treatments that differ in their command.
const commandOperation = "command"

// commandWithin bounds a batch of commands or of a real workload.
const commandWithin = 15 * time.Minute

// Under implements area.Spec.
func (s *Spec) Under(area.Treatment) (area.Spec, error) { return s, nil }

// Says implements area.Spec: no traffic leaves this machine.
func (s *Spec) Says() area.Says {
	return area.Says{
		Loopback: true, Batches: s.Batches(), Conditions: s.Conditions(), WhyNot: s.WhyNot, Forecast: s.Forecast,
		Creates: s.Creates,
	}
}

// plan is a treatment with its levels parsed.
type plan struct {
	stack   stack
	policy  Policy
	planted share
	program plantedProgram
	command string // the command of the operation "command"; empty: each command is an operation
	workers int    // workers that run at the same time; 0: one, which begins when it is asked
	others  int    // further policies of the same kind in force on this host
}

// plan applies the levels of t. Errors name the level.
func (s *Spec) plan(t design.Treatment) (plan, error) {
	p := plan{planted: share{whole: 1}}
	for _, f := range slices.Sorted(maps.Keys(t.Levels)) {
		if !slices.Contains(factors(), f) {
			return p, fmt.Errorf("%s: the sandbox area has no such factor; there are %s%s", f, strings.Join(factors(), ", "),
				spelling.DidYouMean(f, factors()))
		}
	}
	if t.Levels[factorKernel] != "" && s.On != onLab {
		return p, errors.New("kernel: only a lab VM can boot another kernel: add on: lab to the target, or leave it out")
	}
	var err error
	if p.stack, err = findStack(levelOr(t, factorEnforcer, enforcerNone)); err != nil {
		return p, err
	}
	if err := p.policy.take(p.stack, t); err != nil {
		return p, err
	}
	if err := p.takePlanted(levelOr(t, factorPlanted, "0%"), s.On); err != nil {
		return p, fmt.Errorf("%s: %w", factorPlanted, err)
	}
	if p.command = t.Levels[factorCommand]; p.command != "" {
		if _, err := s.commandNamed(p.command); err != nil {
			return p, err
		}
	}
	if p.others, err = count(factorOthers, levelOr(t, factorOthers, "0")); err != nil {
		return p, err
	}
	if text, ok := t.Levels[factorWorkers]; ok {
		if p.workers, err = count(factorWorkers, text); err != nil || p.workers == 0 {
			return p, fmt.Errorf("%s: %q is not a number from 1 on", factorWorkers, text)
		}
	}
	return p, cmp.Or(expressRights(p.stack, p.policy), p.stack.express(p.policy), s.expressSELinux(p),
		s.expressSetUp(p), s.expressWorkers(p))
}

// levelOr returns the treatment's level of a factor, or otherwise if it has none.
func levelOr(t design.Treatment, factor, otherwise string) string {
	if v, ok := t.Levels[factor]; ok {
		return v
	}
	return otherwise
}

// take parses the levels that make up the policy.
func (p *Policy) take(s stack, t design.Treatment) (err error) {
	p.Enforcer, p.Rights = levelOr(t, factorEnforcer, enforcerNone), t.Levels[factorRights]
	if p.Mode, err = modeOf(t.Levels[factorMode]); err != nil {
		return err
	}
	if err := p.takeProfile(s, t.Levels[factorProfile]); err != nil {
		return fmt.Errorf("%s: %w", factorProfile, err)
	}
	if p.Mode == "" && !p.ownProfile() && p.Enforcer != enforcerNone {
		p.Mode = AlwaysAllow
	}
	if err := p.takeRules(levelOr(t, factorRules, "0")); err != nil {
		return err
	}
	p.Match, err = count(factorMatch, levelOr(t, factorMatch, "0"))
	return err
}

// takeProfile reads a profile of the user's: of AppArmor if that is the enforcer, or else of seccomp.
func (p *Policy) takeProfile(s stack, level string) (err error) {
	level, err = kit.ExpandHome(level)
	switch {
	case level == "" || err != nil:
	case len(s) > 1:
		return errors.New("not with several enforcers: it would be unclear whose profile it is")
	case s.has(enforcerAppArmor):
		p.AppFile, err = readAppFile(level)
	default:
		p.Profile, err = readProfile(level)
	}
	return err
}

// takeRules parses a number of rules, or reads a file of them.
func (p *Policy) takeRules(level string) (err error) {
	if strings.ContainsAny(level, "./") {
		if level, err = kit.ExpandHome(level); err == nil {
			p.Own, err = readOwnRules(level)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", factorRules, err)
		}
		return nil
	}
	p.Rules, err = count(factorRules, level)
	return err
}

func modeOf(level string) (Mode, error) {
	if level == "" || slices.Contains(modes(), Mode(level)) {
		return Mode(level), nil
	}
	names := make([]string, 0, len(modes()))
	for _, m := range modes() {
		names = append(names, string(m))
	}
	return "", fmt.Errorf("mode: there is no %q; there are %s%s", level, strings.Join(names, ", "),
		spelling.DidYouMean(level, names))
}

func count(factor, level string) (int, error) {
	n, err := strconv.Atoi(level)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("%s: %q is not a number from 0 on", factor, level)
	}
	return n, nil
}

func (s *Spec) commandNamed(name string) (Command, error) {
	var names []string
	for _, c := range s.Commands {
		if c.Name == name {
			return c, nil
		}
		names = append(names, c.Name)
	}
	return Command{}, fmt.Errorf("command: there is no %q under target.commands%s", name, spelling.DidYouMean(name, names))
}

// operation is an operation, and how a worker performs it.
type operation struct {
	name   string
	expect string
	micro  bool // a micro-workload, whose system calls are known
	span   time.Duration
	most   int    // calls in a batch; 0: unbounded
	server string // that is asked; empty: none
	whole  int    // calls of which a batch is a multiple; 0: 1
	run    func(ctx context.Context, s *sample, n int) (workload.Cost, error)
}

// operations returns the operations of a treatment, in the order of the file.
func (s *Spec) operations(p plan) []operation {
	var out []operation
	for _, name := range s.Workloads {
		k, _ := workload.Find(name) // Validate has checked the name
		o := operation{name: name, expect: k.Help, micro: true, span: s.span(k.Span), run: micro(name)}
		if p.workers > 0 {
			o.run = together(name)
		}
		out = append(out, o)
	}
	out = append(out, s.setUpOperations()...)
	if p.command != "" {
		c, _ := s.commandNamed(p.command)
		out = append(out, operation{name: commandOperation, expect: "exit status 0", span: s.span(0), run: commandLine(c)})
	} else {
		for _, c := range s.Commands {
			out = append(out, operation{name: c.Name, expect: "exit status 0", span: s.span(0), run: commandLine(c)})
		}
	}
	for _, name := range s.programs() {
		if c, err := workload.NewProgram(name); err == nil { // Preflight has checked it
			out = append(out, operation{name: name, expect: "exit status 0", span: s.span(0), run: program(c)})
		}
	}
	for _, l := range s.loads() {
		out = append(out, operation{
			name: l.Name(), expect: "the right answer", span: s.span(daemonSpan), whole: l.Width(), run: requests(l),
			server: l.Daemon(),
		})
	}
	return out
}

// needsWorker reports whether a worker runs under the plan's policy: where only servers run under a profile, each
// proves it itself.
func (s *Spec) needsWorker(p plan) bool {
	return !p.policy.ownProfile() || len(s.operations(p)) > len(s.loads())
}

func (s *Spec) span(own time.Duration) time.Duration {
	if s.Span > 0 {
		return time.Duration(s.Span)
	}
	return own
}

func micro(name string) func(context.Context, *sample, int) (workload.Cost, error) {
	return func(ctx context.Context, s *sample, n int) (cost workload.Cost, err error) {
		err = s.worker.ask(ctx, batchWithin, func(ctx context.Context) error {
			cost, err = s.worker.client.Run(ctx, name, n)
			return err
		})
		return cost, err
	}
}

func commandLine(c Command) func(context.Context, *sample, int) (workload.Cost, error) {
	return program(workload.Command{Name: c.Name, Run: c.Run, Prepare: c.Prepare})
}

func program(line workload.Command) func(context.Context, *sample, int) (workload.Cost, error) {
	return func(ctx context.Context, s *sample, n int) (cost workload.Cost, err error) {
		err = s.worker.ask(ctx, commandWithin, func(ctx context.Context) error {
			cost, err = s.worker.client.Command(ctx, line, n)
			return err
		})
		return cost, err
	}
}
