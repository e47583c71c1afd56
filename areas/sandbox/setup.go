package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"tare/areas/sandbox/workload"
	"tare/internal/spelling"
)

// A stager is an Enforcer that can confine one thread of a process any number of times. Stage does what is done once
// for all processes, such as compiling a filter; the steps that it returns are what has to be done for each process.
type stager interface {
	Stage(p Policy) (workload.Steps, error)
}

// confineStaged confines the calling thread once.
func confineStaged(s stager, p Policy) error {
	steps, err := s.Stage(p)
	if err != nil {
		return err
	}
	return steps.Confine()
}

// stage does once what all processes under the policy share, and returns what each takes.
func (s stack) stage(p Policy) (all workload.Steps, err error) {
	if err := s.canStage(); err != nil {
		return all, err
	}
	for _, e := range s {
		steps, err := e.(stager).Stage(p) //nolint:forcetypeassert // canStage has checked it
		if err != nil {
			return all, fmt.Errorf("prepare %s: %w", e.Name(), err)
		}
		all = all.And(steps)
	}
	return all, nil
}

// canStage returns an error if an enforcer cannot confine single threads.
func (s stack) canStage() error {
	for _, e := range s {
		if _, ok := e.(stager); !ok {
			return fmt.Errorf("%s cannot confine a single thread of a process, which this needs; leave it out for %[1]s",
				e.Name())
		}
	}
	return nil
}

// canLoad returns an error if an enforcer has nothing to load into the kernel beside what each process applies.
func (s stack) canLoad() error {
	for _, e := range s {
		if !slices.Contains([]string{enforcerNone, enforcerBPF, enforcerAppArmor}, e.Name()) {
			return fmt.Errorf("%s: %s loads nothing before a process applies it to itself; leave one of them out",
				workload.KindLoad, e.Name())
		}
	}
	return nil
}

// A setUpCost is an operation that puts something under a policy.
type setUpCost struct{ name, help string }

func setUpCosts() []setUpCost {
	return []setUpCost{
		{workload.KindConfine, "set-up: put a thread under the policy, by all system calls that a process makes for it; a " +
			"filter is compiled before"},
		{workload.KindFirst, "set-up: open and close a file, as the first access of a thread under the policy"},
		{workload.KindLater, "set-up: the same after a hundred times, to compare with first"},
		{workload.KindStart, "set-up: put a thread under the policy, fork, execute a program of one page that ends at " +
			"once, wait for it"},
		{workload.KindLoad, "set-up: load a compiled policy into the kernel: an AppArmor profile, or BPF programs, which " +
			"are attached too"},
		{kindMemory, "set-up: the kernel's memory for one of 500 threads under the policy; without a policy, for the thread"},
	}
}

func setUpNames() []string {
	var out []string
	for _, c := range setUpCosts() {
		out = append(out, c.name)
	}
	return out
}

// expressSetUp returns an error if the plan's enforcers cannot do what set-up costs or the factor "others" need.
func (s *Spec) expressSetUp(p plan) error {
	if len(s.SetUp) > 0 {
		if err := p.stack.canStage(); err != nil {
			return fmt.Errorf("setup: %w", err)
		}
	}
	if slices.Contains(s.SetUp, workload.KindLoad) {
		if err := p.stack.canLoad(); err != nil {
			return fmt.Errorf("setup: %w", err)
		}
	}
	if p.others > 0 && slices.Contains(s.SetUp, kindMemory) {
		return fmt.Errorf("%s: not with %s in setup, which holds policies itself; leave one of them out", factorOthers,
			kindMemory)
	}
	if p.others > mostOthers {
		return fmt.Errorf("%s: up to %d policies are held, not %d", factorOthers, mostOthers, p.others)
	}
	if p.others > 0 {
		if err := p.stack.canHold(); err != nil {
			return fmt.Errorf("%s: %w", factorOthers, err)
		}
	}
	return nil
}

// mostSetUps bounds the threads of a batch. Removing what a load has attached can take seconds.
const (
	mostSetUps = 200
	mostLoads  = 1
)

// setUpSpan is how long a batch of set-ups lasts, at most.
const setUpSpan = 5 * time.Millisecond

// setUpOperations returns the operations of target.setup.
func (s *Spec) setUpOperations() []operation {
	var out []operation
	for _, c := range setUpCosts() {
		switch {
		case !slices.Contains(s.SetUp, c.name):
		case c.name == kindMemory:
			out = append(out, memoryOperation(c.help))
		default:
			most := mostSetUps
			if c.name == workload.KindLoad {
				most = mostLoads
			}
			out = append(out, operation{
				name: c.name, expect: c.help, span: s.span(setUpSpan), most: most, run: setUpBatch(c.name),
			})
		}
	}
	return out
}

// workloadOperations returns the operations that a confined process performs. A trial has no others.
func (s *Spec) workloadOperations(p plan) []operation {
	return slices.DeleteFunc(s.operations(p), func(o operation) bool { return slices.Contains(setUpNames(), o.name) })
}

func setUpBatch(kind string) func(context.Context, *sample, int) (workload.Cost, error) {
	return func(ctx context.Context, s *sample, n int) (workload.Cost, error) {
		if s.setter == nil {
			return workload.Cost{}, errors.New("the process for set-ups has not been started")
		}
		return micro(kind)(ctx, s.setter, n)
	}
}

// checkSetUp checks target.setup.
func (s *Spec) checkSetUp(wrong func(path, hint, format string, args ...any), take func(path, name string)) {
	for i, name := range s.SetUp {
		path := fmt.Sprintf("setup[%d]", i)
		if !slices.Contains(setUpNames(), name) {
			wrong(path, "", "there is no set-up cost %q; there are %s%s", name, strings.Join(setUpNames(), ", "),
				spelling.DidYouMean(name, setUpNames()))
			continue
		}
		take(path, name)
	}
}

// The servers of unconfined processes whose threads are confined.
const (
	serverSetUp  = "setup"
	serverOthers = "others"
)

// serveThreads is a process that confines threads of its own, and none before a request for it.
func serveThreads(ctx context.Context, name string, config json.RawMessage, ready func(any) error) error {
	var c shimConfig
	if err := json.Unmarshal(config, &c); err != nil {
		return fmt.Errorf("serve %s: %w", name, err)
	}
	steps, err := threadSteps(c.Policy)
	if err != nil {
		return err
	}
	own := workload.NewOthers(steps).Own()
	if name == serverSetUp {
		f, err := workload.NewFresh(steps, c.Policy.Scratch)
		if err != nil {
			return err
		}
		own = f.Own()
	}
	unix.CloseOnExec(requestsFD)
	unix.CloseOnExec(answersFD)
	requests, answers := os.NewFile(requestsFD, "requests"), os.NewFile(answersFD, "answers")
	if err := ready(struct{}{}); err != nil {
		return err
	}
	return workload.Serve(ctx, requests, answers, c.Policy.Scratch, own)
}

func threadSteps(p Policy) (workload.Steps, error) {
	s, err := findStack(p.Enforcer)
	if err != nil {
		return workload.Steps{}, err
	}
	return s.stage(p)
}
