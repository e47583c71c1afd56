package sandbox

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"tare/area"
	"tare/areas/sandbox/workload"
	"tare/internal/design"
	"tare/internal/kit"
	"tare/internal/unit"
)

// How long before a common start the workers are asked: first, and at most, when some are not ready in time.
const (
	firstLead = 5 * time.Millisecond
	mostLead  = 320 * time.Millisecond
)

// workerCPUs returns a processor for each of n workers, the last allowed one first: the host's own tasks tend to run on
// the first.
func workerCPUs(env area.Env, n int) ([]int, error) {
	cpus, err := kit.Processors(env)
	if err != nil {
		return nil, err
	}
	if n > len(cpus) {
		return nil, area.WithHint(fmt.Errorf("%s: %d workers need a processor each, and %d are allowed", factorWorkers, n,
			len(cpus)), "use fewer workers, a larger host, or more processors in pin.target")
	}
	var out []int
	for i := range n {
		out = append(out, cpus[len(cpus)-1-i])
	}
	return out, nil
}

// expressWorkers returns an error if the experiment cannot be run by several workers.
func (s *Spec) expressWorkers(p plan) error {
	switch {
	case p.workers <= 1:
		return nil
	case len(s.Commands) > 0:
		return fmt.Errorf("%s: only workloads run in several workers at once: the processes of a command line use "+
			"several processors by themselves; leave commands out", factorWorkers)
	case len(s.Real) > 0:
		return fmt.Errorf("%s: only workloads run in several workers at once: a server of real shares its processor "+
			"with its client; leave real out", factorWorkers)
	case len(s.SetUp) > 0:
		return fmt.Errorf("%s: only workloads run in several workers at once: setup is measured one thread after "+
			"another; leave setup out", factorWorkers)
	}
	return nil
}

// checkWorkers reports treatments that have more workers than there are processors.
func (s *Spec) checkWorkers(env area.Env) (out []area.Finding) {
	for _, t := range env.Treatments {
		p, err := s.plan(t)
		if err != nil {
			continue // Validate reports it
		}
		if _, err := workerCPUs(env, p.count()); err != nil {
			return []area.Finding{area.Fault("", fmt.Errorf("treatment %q: %w", t.ID, err), "")}
		}
	}
	return nil
}

// count is the number of workers.
func (p plan) count() int { return max(1, p.workers) }

// workers returns the number of workers of all treatments.
func (s *Spec) workers(treatments []design.Treatment) (n int) {
	for _, t := range treatments {
		p, _ := s.plan(t) // of a treatment that is invalid, one
		n += p.count()
	}
	return n
}

// besidesAlike reports whether the same runs beside two treatments, so that a difference can be their enforcers'.
func (p plan) besidesAlike(q plan) bool { return p.workers == q.workers && p.others == q.others }

// together runs a micro-workload in all workers of a sample at once.
func together(name string) func(context.Context, *sample, int) (workload.Cost, error) {
	return func(ctx context.Context, s *sample, n int) (workload.Cost, error) {
		for lead := firstLead; ; lead *= 2 {
			cost, err := s.atOnce(ctx, name, n, lead)
			if !late(err) || lead >= mostLead {
				return cost, err
			}
		}
	}
}

// late reports whether workers were not ready at the common start, and nothing else is wrong.
func late(err error) bool {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return false
	}
	for _, e := range joined.Unwrap() {
		if f, ok := errors.AsType[*workload.Failure](e); !ok || f.Call != workload.CommonStart {
			return false
		}
	}
	return true
}

// atOnce runs n calls in each worker, from a common start. Wall is the time from it until all have ended; CPU and
// Instructions are the means of the workers.
func (s *sample) atOnce(ctx context.Context, name string, n int, lead time.Duration) (workload.Cost, error) {
	now, err := workload.Now()
	if err != nil {
		return workload.Cost{}, err
	}
	all := append([]*sample{s}, s.peers...)
	costs, errs := make([]workload.Cost, len(all)), make([]error, len(all))
	var running sync.WaitGroup
	for i, w := range all {
		running.Go(func() {
			errs[i] = w.worker.ask(ctx, batchWithin, func(ctx context.Context) (err error) {
				costs[i], err = w.worker.client.RunAt(ctx, name, n, now+lead)
				return err
			})
		})
	}
	running.Wait()
	return sumOf(costs), errors.Join(errs...)
}

// sumOf returns the cost of a batch from those of its workers.
func sumOf(costs []workload.Cost) workload.Cost {
	out := workload.Cost{N: costs[0].N, Counted: true}
	for _, c := range costs {
		out.Wall = max(out.Wall, c.Wall)
		out.CPU += c.CPU
		out.Instructions += c.Instructions
		out.Counted = out.Counted && c.Counted
	}
	out.CPU /= time.Duration(len(costs))
	out.Instructions /= uint64(len(costs))
	return out
}

// cpuNotes says on which processors workers run, and what that leaves out.
func (t *target) cpuNotes() []string {
	var many []int // the processors of the arm with most workers
	alone := false
	for _, a := range t.order {
		if len(a.cpus) > len(many) {
			many = a.cpus
		}
		alone = alone || (len(a.cpus) == 1 && a.treatment.Control == design.None)
	}
	if t.env.Trespasses {
		return []string{fmt.Sprintf("%s of a treatment, each on its own CPU (of %v) and with one call at a "+
			"time: what is offered above that waits and times out in tare", unit.Count(len(many), "worker"), many)}
	}
	if len(many) <= 1 {
		return []string{fmt.Sprintf("all workers run on CPU %v, one at a time; contention between CPUs is not measured",
			t.cpus[0])}
	}
	out := []string{fmt.Sprintf("the workers of a treatment run at the same time, each on its own CPU (of %v) and with "+
		"files of its own; treatments take turns; wall is the time until all have ended, by the calls of one", many)}
	if alone {
		out = append(out, fmt.Sprintf("treatments with one worker run on CPU %v, alone", t.cpus[0]))
	}
	return out
}

// outside is what this process keeps beside a worker that cannot get it under every policy: a TCP port, which the
// worker may listen on, and an abstract socket, which the worker may try to reach.
type outside struct {
	port     *kit.HeldPort
	abstract int // a descriptor
}

// openOutside reserves them and completes the policy. The worker binds the port, too (SO_REUSEPORT).
func openOutside(p *Policy) (*outside, error) {
	o := &outside{abstract: -1}
	if err := o.open(p); err != nil {
		return nil, errors.Join(fmt.Errorf("reserve a port and an abstract socket for a worker: %w", err), o.close())
	}
	return o, nil
}

func (o *outside) open(p *Policy) (err error) {
	if o.port, err = kit.HoldPort(); err != nil {
		return err
	}
	p.Port = int(o.port.Addr.Port())
	if o.abstract, err = unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0); err != nil {
		return err
	}
	return unix.Bind(o.abstract, &unix.SockaddrUnix{Name: "@" + outsideName(*p)})
}

// close releases both. It may be called twice.
func (o *outside) close() error {
	if o == nil {
		return nil
	}
	err := o.port.Close()
	if o.abstract >= 0 {
		err = errors.Join(err, unix.Close(o.abstract))
		o.abstract = -1
	}
	return err
}
