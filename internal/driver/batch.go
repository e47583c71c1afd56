package driver

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"tare/internal/design"
	"tare/internal/load"
	"tare/internal/metric"
	"tare/internal/proc"
)

// runningArm returns a treatment's arm with its running process.
func (t *Target) runningArm(tr design.Treatment) (*arm, *process, error) {
	a, err := t.arm(tr)
	if err != nil {
		return nil, nil, err
	}
	s := t.process(a)
	if s == nil {
		return nil, nil, fmt.Errorf("treatment %q has not been entered", tr.ID)
	}
	return a, s, nil
}

// batch makes the program perform n calls of an operation, and returns the cost of one.
func (t *Target) batch(ctx context.Context, a *arm, o Operation, n int) ([]load.BatchSample, error) {
	_, s, err := t.runningArm(a.treatment)
	if err != nil {
		return nil, err
	}
	before, known := a.counts[o.Name]
	var outside *cpuMeter
	if !o.NoCPU && (!known || !slices.Contains(before, metric.CPU.Name)) {
		outside = newMeter(s.roots())
	}
	var c Cost
	took, err := s.client.ask(ctx, t.c.Patience, Request{Do: DoOperate, Operation: o.Name, Calls: &n}, &c)
	if err != nil {
		return nil, err
	}
	cpu, cpuErr := outside.stop()
	if err := c.valid(n, took); err != nil {
		return nil, s.client.fail(fmt.Errorf("its answer to operate %s is wrong: %w", o.Name, err))
	}
	if c.Refused > 0 {
		return nil, fmt.Errorf("%s: %d of %d calls of %s were refused, which the control must allow", a.program.Name,
			c.Refused, n, o.Name)
	}
	if names := c.names(); known && !slices.Equal(names, before) {
		return nil, s.client.fail(fmt.Errorf("it counted %s of %s before, and %s now; what it counts is the same in all "+
			"answers", quotedNames(before), o.Name, quotedNames(names)))
	}
	if err := a.checkClock(o, c); err != nil {
		return nil, s.client.fail(err)
	}
	samples, from, err := c.complete(took, cpu, cpuErr, o.NoCPU)
	if err != nil {
		return nil, s.client.fail(fmt.Errorf("operate %s: %w", o.Name, err))
	}
	return samples, t.recordCost(a, o, c, from, took, samples)
}

func quotedNames(names []string) string {
	if len(names) == 0 {
		return "nothing"
	}
	return strings.Join(names, ", ")
}

// complete adds the times that tare measured where the program has not counted them; CPU time unless there is to be
// none.
func (c Cost) complete(took, cpu time.Duration, cpuErr error, noCPU bool) ([]load.BatchSample, sources, error) {
	from := sources{wall: byProgram, cpu: byProgram}
	samples, each := c.samples(), float64(c.Calls)
	if _, ok := c.Total[metric.CPU.Name]; !ok && noCPU {
		from.cpu = byNobody
	} else if !ok {
		if cpuErr != nil {
			return nil, from, fmt.Errorf("the program does not count cpu, and its CPU time cannot be read from outside: %w; "+
				"let it count \"cpu\" itself, its own and its "+
				"children's", cpuErr)
		}
		from.cpu = byTare
		samples = append([]load.BatchSample{{Metric: metric.CPU.Name, Value: cpu.Seconds() / each}}, samples...)
	}
	if _, ok := c.Total[metric.Wall.Name]; !ok {
		from.wall = byTare
		samples = append([]load.BatchSample{{Metric: metric.Wall.Name, Value: took.Seconds() / each}}, samples...)
	}
	return samples, from, nil
}

// recordCost records who measured and, for the notes, what the batch cost.
func (t *Target) recordCost(a *arm, o Operation, c Cost, from sources, took time.Duration,
	samples []load.BatchSample,
) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	a.counts[o.Name] = c.names()
	switch before, known := t.sources[o.Name]; {
	case !known:
		t.sources[o.Name] = from
	case before != from:
		return fmt.Errorf("%s: wall was counted by %s and cpu by %s under another treatment, and by %s and %s under this "+
			"one: they cannot be compared",
			a.program.Name, before.wall, before.cpu, from.wall, from.cpu)
	}
	if from.wall != byTare {
		return nil
	}
	if t.tallies[o.Name] == nil {
		t.tallies[o.Name] = &tally{}
	}
	t.tallies[o.Name].add(c.Calls, took.Seconds(), samples)
	return nil
}

// cpuMeter reads the CPU time of processes from outside. A nil meter measures nothing.
type cpuMeter struct {
	tree *proc.Tree
	from time.Duration
	err  error
}

// newMeter starts a measurement. stop reports its errors: they matter only if the program does not count CPU time
// itself.
func newMeter(roots []int) *cpuMeter {
	m := &cpuMeter{}
	if m.tree, m.err = proc.NewTree(roots...); m.err == nil {
		m.from, m.err = m.tree.CPU()
	}
	return m
}

// errUnmeasured means that tare did not measure, because the program counts itself.
var errUnmeasured = errors.New("not measured")

func (m *cpuMeter) stop() (time.Duration, error) {
	if m == nil {
		return 0, errUnmeasured
	}
	if m.err != nil {
		return 0, m.err
	}
	to, err := m.tree.CPU()
	if err != nil {
		return 0, err
	}
	return to - m.from, m.tree.Unchanged()
}
