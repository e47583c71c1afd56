package run

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"tare/internal/design"
	"tare/internal/guard"
	"tare/internal/load"
)

const (
	// keptBreaches bounds the breaches of a trial that are kept whole; the raw calls have all.
	keptBreaches = 100
	// askedAgain bounds the breaches of each operation that are asked again, alone.
	askedAgain = 5
	// mixScale makes whole weights of shares.
	mixScale = 10_000
)

// withTrespasses adds the must-refuse twins of the operations to their mix, as the given share of all calls. An
// operation of the mix that is a trespass itself is taken out of it: it is no request that the control must allow.
func (x *Stage) withTrespasses(t design.Treatment, mix []load.Operation) ([]load.Operation, error) {
	share := x.Load.Trespass
	if share <= 0 {
		return mix, nil
	}
	trespass := x.Target.Can().Trespass
	if trespass == nil {
		return nil, fmt.Errorf("area %s cannot ask for what must be refused: leave out load.trespass", x.Area.Name())
	}
	twins, err := trespass(t)
	if err != nil {
		return nil, fmt.Errorf("trespasses of %s: %w", t.ID, err)
	}
	if x.Load.KeepMix {
		if mix, twins = swapTwins(mix, twins); len(twins) == 0 {
			return mix, nil
		}
		return addTwins(mix, twins, share)
	}
	mix = slices.DeleteFunc(slices.Clone(mix), func(o load.Operation) bool {
		return slices.ContainsFunc(twins, func(twin load.Operation) bool { return twin.Name == o.Name })
	})
	switch {
	case len(mix) == 0:
		return nil, errors.New("all operations of the mix must be refused: add one that the control must allow")
	case x.OnlyAllowed:
		return mix, nil
	}
	return addTwins(mix, twins, share)
}

// swapTwins returns the mix with its own trespasses in place, each with the weight that it had, and the twins of its
// operations that it leaves out.
func swapTwins(mix, twins []load.Operation) (out, more []load.Operation) {
	out = slices.Clone(mix)
	at := func(name string) int {
		return slices.IndexFunc(out, func(op load.Operation) bool { return op.Name == name })
	}
	for _, op := range twins {
		if i := at(op.Name); i >= 0 {
			op.Weight = out[i].Weight
			out[i] = op
		} else if at(op.Twin) >= 0 {
			more = append(more, op)
		}
	}
	return out, more
}

// addTwins weighs the operations and their twins, so that the twins are the given share of the calls: as many of each
// operation's as its own share is.
func addTwins(mix, twins []load.Operation, share float64) ([]load.Operation, error) {
	number, of := map[string]int{}, 0
	for _, op := range twins {
		number[op.Twin]++
	}
	for _, op := range mix {
		if number[op.Name] > 0 {
			of += op.Weight
		}
	}
	if of == 0 {
		return nil, fmt.Errorf("no operation of the mix has a request that must be refused: leave out load.trespass, or " +
			"choose other operations")
	}
	total := 0
	for _, op := range mix {
		total += op.Weight
	}
	var out []load.Operation
	for _, op := range mix {
		op.Weight = max(1, int((1-share)*mixScale*float64(op.Weight)))
		out = append(out, op)
	}
	for _, op := range twins {
		i := slices.IndexFunc(mix, func(o load.Operation) bool { return o.Name == op.Twin })
		if i < 0 {
			continue // its operation is not in the mix
		}
		part := float64(mix[i].Weight) / float64(of) / float64(number[op.Twin])
		op.Weight = max(1, int(share*mixScale*float64(total)*part))
		out = append(out, op)
	}
	return out, nil
}

// MixTrespasses changes the share of trespasses in the calls of a stream that is opened after it.
func (a *Arm) MixTrespasses(share float64) error {
	var mix, twins []load.Operation
	for _, op := range a.Ops {
		if op.Twin == "" {
			mix = append(mix, op)
		} else {
			twins = append(twins, op)
		}
	}
	ops, err := addTwins(mix, twins, share)
	if err == nil {
		a.Ops = ops
	}
	return err
}

// breaches collects the trespasses that were permitted in a trial.
type breaches struct {
	mu     sync.Mutex
	stream load.Stream // nil: not open
	kept   []guard.Breach
}

// follow says on which stream the calls are.
func (b *breaches) follow(s load.Stream) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stream = s
}

// watch returns ops with their trespasses watched.
func (b *breaches) watch(ops []load.Operation) []load.Operation {
	out := slices.Clone(ops)
	mixed := slices.ContainsFunc(ops, func(op load.Operation) bool { return op.Twin != "" })
	for i := range out {
		op := out[i]
		if op.Twin == "" && (len(op.Breaches) == 0 || !mixed) {
			continue
		}
		if op.Wire != nil {
			out[i].Wire = &watched{Wire: op.Wire, foreign: op.Breaches, note: func(call uint64, status int, body []byte) {
				b.note(&op, call, status, body)
			}}
		}
		if op.Call != nil {
			out[i].Call = func(ctx context.Context, call uint64) load.Result {
				r := op.Call(ctx, call)
				if r.Outcome == load.Permitted {
					b.note(&op, call, int(r.Status), nil)
				}
				return r
			}
		}
	}
	return out
}

// note keeps a breach. Of its answer, which may be a credential, it keeps only what the operation tells.
func (b *breaches) note(op *load.Operation, call uint64, status int, body []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.stream == nil || len(b.kept) == keptBreaches {
		return
	}
	p := b.stream.Progress()
	x := guard.Breach{
		Operation: op.Name, Call: call, At: p.Now, Status: status, AnswerBytes: len(body), InFlight: p.InFlight,
		Waiting: p.Waiting,
	}
	if op.Describe != nil {
		x.Request, x.Answer = op.Describe(call, status, body)
	}
	b.kept = append(b.kept, x)
}

// take returns the breaches so far, and forgets them.
func (b *breaches) take() []guard.Breach {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := b.kept
	b.kept = nil
	return out
}

// watched is a wire whose breaches are noted.
type watched struct {
	load.Wire
	foreign []int // see load.Operation.Breaches
	note    func(call uint64, status int, body []byte)
}

var _ load.Wire = (*watched)(nil)

// Check implements load.Wire.
func (w *watched) Check(i uint64, status int, body []byte) load.Outcome {
	o := w.Wire.Check(i, status, body)
	if o == load.Permitted ||
		o == load.Wrong && len(w.foreign) > 0 && slices.Contains(w.foreign, w.Explain(i, status, body)) {
		w.note(i, status, body)
	}
	return o
}

// ConfirmBreaches records the breaches since it was last called. It asks a few of them again, alone, to tell what
// does not need the load from what may. The stream must be idle.
func (a *Arm) ConfirmBreaches(ctx context.Context, s load.Stream) error {
	asked := map[string]int{}
	for _, b := range a.breaches.take() {
		if asked[b.Operation]++; asked[b.Operation] <= askedAgain && ctx.Err() == nil {
			op := slices.IndexFunc(a.Ops, func(o load.Operation) bool { return o.Name == b.Operation })
			if a.Ops[op].Twin != "" { // one that must be allowed is no test of what is mixed up
				if c := s.Fresh(ctx, op, b.Call, min(a.Load.Timeout, 5*time.Second)); c.Done != 0 {
					b.Again = c.Outcome.String()
				}
			}
		}
		if err := a.Writer.Step(a.Trial.Treatment, a.Trial.Block, guard.StepBreach, b); err != nil {
			return err
		}
	}
	a.breaches.take() // those that were asked again
	return nil
}
