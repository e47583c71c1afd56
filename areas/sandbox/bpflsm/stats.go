package bpflsm

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// CountRuns makes the kernel count and time the runs of all BPF programs, which costs time itself, until it is closed.
func CountRuns() (io.Closer, error) {
	c, err := ebpf.EnableStats(unix.BPF_STATS_RUN_TIME)
	if err != nil {
		return nil, fmt.Errorf("make the kernel count the runs of BPF programs: %w", err)
	}
	return c, nil
}

// ProgramStats is what a hook's program has done while runs were counted.
type ProgramStats struct {
	Hook   Hook
	Runs   uint64
	Time   time.Duration
	Missed uint64 // runs that the kernel left out: before Linux 6.2, where the program had been interrupted
}

// Stats returns the runs of each program.
func (p *Programs) Stats() ([]ProgramStats, error) {
	var all []ProgramStats
	for _, h := range hooks {
		s, err := p.collection.Programs[h.program].Stats()
		if err != nil {
			return nil, fmt.Errorf("ask for the runs of the BPF program of %s: %w", h.hook, err)
		}
		all = append(all, ProgramStats{h.hook, s.RunCount, s.Runtime, s.RecursionMisses})
	}
	return all, nil
}

// Refused returns how many accesses the programs refused at each hook since they were loaded.
func (p *Programs) Refused() (map[Hook]uint64, error) {
	all := map[Hook]uint64{}
	for i, h := range hooks {
		n, err := p.counter(uint32(i))
		if err != nil {
			return nil, fmt.Errorf("read how many accesses %s refused: %w", h.hook, err)
		}
		all[h.hook] = n
	}
	return all, nil
}

// KernelMemory is what the kernel holds for the enforcer, in bytes.
type KernelMemory struct {
	Programs, Maps uint64
}

// Memory returns the kernel's memory of programs and maps, as it accounts for them in /proc/PID/fdinfo. Before
// Linux 6.4 that of maps is an estimate of the kernel's.
func (p *Programs) Memory() (KernelMemory, error) {
	var m KernelMemory
	for name, program := range p.collection.Programs {
		info, err := program.Info()
		if err != nil {
			return m, fmt.Errorf("ask for the memory of the BPF program %s: %w", name, err)
		}
		n, ok := info.Memlock()
		if !ok {
			return m, errNoMemory
		}
		m.Programs += n
	}
	for name, of := range p.collection.Maps {
		info, err := of.Info()
		if err != nil {
			return m, fmt.Errorf("ask for the memory of the BPF map %s: %w", name, err)
		}
		n, ok := info.Memlock()
		if !ok {
			return m, errNoMemory
		}
		m.Maps += n
	}
	return m, nil
}

var errNoMemory = errors.New("this kernel does not tell the memory of BPF programs and maps")
