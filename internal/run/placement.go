package run

import (
	"net"
	"net/netip"

	"tare/internal/design"
	"tare/internal/load"
	"tare/internal/probe"
	"tare/internal/proc"
	"tare/internal/record"
)

// placement returns where generator and target run. It is determined once for each treatment: processes are not pinned
// again while they are measured.
func (x *Stage) placement(t design.Treatment, e *load.Endpoint) *record.Placement {
	if p, known := x.placed[t.ID]; known {
		return p
	}
	p := &record.Placement{}
	own, err := proc.Allowed()
	if err != nil {
		p = nil
	} else {
		p.Generator = own
		p.Local, p.Target = x.targetProcessors(t, e)
	}
	if x.placed == nil {
		x.placed = map[string]*record.Placement{}
	}
	x.placed[t.ID] = p
	return p
}

// SharesProcessors reports whether generator and target share processors, as far as that was determined when a stream
// was opened.
func (a *Arm) SharesProcessors() bool {
	p := a.placed[a.Treatment.ID]
	return p != nil && len(p.Shared()) > 0
}

// targetProcessors reports whether the target runs on this host, and on which processors; none: all. A target without
// an address is on this host if any part of it can be probed here.
func (x *Stage) targetProcessors(t design.Treatment, e *load.Endpoint) (local bool, cpus []int) {
	if e == nil || !e.Addr.IsValid() {
		return len(x.Probes(t)) > 0, nil
	}
	if !isLocal(e.Addr.Addr()) {
		return false, nil
	}
	pid, _, err := probe.Listener(nil, e.Addr)
	if err != nil {
		return true, nil // in a container, or not accessible
	}
	cpus, err = proc.AllowedTo(pid)
	if err != nil {
		return true, nil
	}
	return true, cpus
}

// isLocal reports whether a is an address of this host.
func isLocal(a netip.Addr) bool {
	if a = a.Unmap().WithZone(""); a.IsLoopback() {
		return true
	}
	own, err := net.InterfaceAddrs()
	if err != nil {
		return false
	}
	for _, n := range own {
		if p, err := netip.ParsePrefix(n.String()); err == nil && p.Addr().Unmap() == a {
			return true
		}
	}
	return false
}

// accounts returns a reader of the processors that generator and target share or, if they share none, of the
// generator's; nil: unknown.
func accounts(p *record.Placement) func() *load.Processors {
	if p == nil {
		return nil
	}
	cpus := p.Shared()
	if len(cpus) == 0 {
		cpus = p.Generator
	}
	return Accounts(cpus)
}

// Accounts returns a reader of the CPU times of some processors, numbered from 0, and of this process's throttled time.
func Accounts(cpus []int) func() *load.Processors {
	return func() *load.Processors {
		busy, all, stolen, ok := probe.Host{}.Processors(cpus)
		if !ok {
			return nil
		}
		return &load.Processors{All: all, Busy: busy, Stolen: stolen, Throttled: probe.Generator{}.Throttled()}
	}
}
