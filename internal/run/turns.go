package run

import (
	"context"
	"slices"

	"tare/internal/load"
	"tare/internal/metric"
	"tare/internal/probe"
	"tare/internal/record"
)

// Turns is one stream of load that arms share. They are called in turns.
type Turns struct {
	load.Stream
	firstOp   []int           // of each arm among the operations of the stream, and their number at the end
	endpoints []load.Endpoint // of each arm; the zero value for Go calls
	brakes    []brake         // of each arm; nil: nothing aborts the run
}

// OpenTurns opens one stream of load to several arms. seed draws the mix of operations, which is the same for all arms.
func OpenTurns(ctx context.Context, arms []*Arm, seed uint64) (*Turns, error) {
	out := &Turns{firstOp: []int{0}}
	cfg := arms[0].Load.Config
	for i, a := range arms {
		one, err := a.streamConfig()
		if err != nil {
			return nil, err
		}
		if i == 0 {
			cfg.Limit, cfg.Host = one.Limit, one.Host
		}
		cfg.Arms = append(cfg.Arms, load.Arm{Endpoint: one.Endpoint, Operations: one.Operations})
		out.firstOp = append(out.firstOp, out.firstOp[i]+len(one.Operations))
		out.endpoints = append(out.endpoints, one.Endpoint)
	}
	cfg.Seed, cfg.KeepCalls = seed, true
	s, err := arms[0].open(ctx, cfg)
	if err != nil {
		return nil, err
	}
	for _, a := range arms {
		a.breaches.follow(s)
	}
	if abort := arms[0].Load.Abort; abort != nil {
		out.brakes = slices.Repeat([]brake{{abort: *abort}}, len(arms))
	}
	out.Stream = s
	return out, nil
}

// Harmed returns an error if the target of an arm suffers, given what happened in a turn of the arm.
func (t *Turns) Harmed(arm int, from, to *load.Progress) error {
	if t.brakes == nil {
		return nil
	}
	return t.brakes[arm].judge(from, to)
}

// Shared reports whether an arm's target may be another arm's, too: both have one address, or none.
func (t *Turns) Shared(arm int) bool {
	for k := range t.endpoints {
		if k != arm && t.endpoints[k].Addr == t.endpoints[arm].Addr {
			return true
		}
	}
	return false
}

// Keys returns the number of identities of an arm's callers.
func (t *Turns) Keys(arm int) int { return max(1, t.endpoints[arm].Keys) }

// OfArm returns the calls of one arm, with the numbers that its operations have in the arm.
func (t *Turns) OfArm(arm int, calls []load.Call) []load.Call {
	var out []load.Call
	for _, c := range calls {
		if op, ok := t.own(arm, int(c.Operation)); ok {
			c.Operation = uint8(op)
			out = append(out, c)
		}
	}
	return out
}

// CellsOf returns the histograms of one arm's calls.
func (t *Turns) CellsOf(arm int, cells []load.Cell) []load.Cell {
	var out []load.Cell
	for _, c := range cells {
		if op, ok := t.own(arm, c.Operation); ok {
			c.Operation = op
			out = append(out, c)
		}
	}
	return out
}

// own returns the number that an operation of the stream has in an arm; ok is false if it is another arm's.
func (t *Turns) own(arm, operation int) (op int, ok bool) {
	first, end := t.firstOp[arm], t.firstOp[arm+1]
	return operation - first, first <= operation && operation < end
}

// A Spending is the CPU time that the processes of an arm use in its turns, by subject. The processes of two arms may
// be the same, so what they use between two readings is not one arm's.
type Spending struct {
	*Arm
	shared bool
	first  []metric.Sample // of all probes, before the first turn
	clocks *probe.Clocks
	before map[string]float64
	spent  map[string]float64
	lost   map[string]bool // a clock could not be read
}

// Spending reads every probe of an arm before its first turn, and finds the clocks of its processes. shared says that
// they may be another arm's, too.
func (a *Arm) Spending(ctx context.Context, shared bool) (*Spending, error) {
	s := &Spending{
		Arm: a, shared: shared, before: map[string]float64{}, spent: map[string]float64{}, lost: map[string]bool{},
	}
	clocked, clocks := probe.WithClocks(ctx)
	var err error
	if s.first, err = a.read(clocked, record.Before); err != nil {
		return nil, err
	}
	s.clocks = clocks
	return s, s.writeSamples(record.Before, 0, s.first)
}

// Begin reads the clocks before a turn.
func (s *Spending) Begin() {
	s.clocks.Each(func(subject string, at float64, ok bool) {
		s.before[subject], s.lost[subject] = at, s.lost[subject] || !ok
	})
}

// End reads them after it, and adds what was used in it.
func (s *Spending) End() {
	s.clocks.Each(func(subject string, at float64, ok bool) {
		s.spent[subject] += at - s.before[subject]
		s.lost[subject] = s.lost[subject] || !ok
	})
}

// Close reads every probe after the last turn. The record then has CPU times as if processes with a clock had run in
// the arm's own turns only, and none of shared processes without one.
func (s *Spending) Close(ctx context.Context) error {
	after, err := s.read(ctx, record.After)
	if err != nil {
		return err
	}
	var kept []metric.Sample
	for _, x := range after {
		if x.Metric == probe.CPU.Name {
			clocked := s.clocks.Has(x.Subject)
			start, known := probe.Find(s.first, x.Subject, probe.CPU)
			switch {
			case clocked && known && !s.lost[x.Subject]:
				x.Value = start + s.spent[x.Subject]
			case s.shared || clocked:
				continue
			}
		}
		kept = append(kept, x)
	}
	return s.writeSamples(record.After, 0, kept)
}
