package bpflsm

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"github.com/cilium/ebpf/rlimit"
)

// MaxPlanted bounds the instructions of a planted program.
const MaxPlanted = 100_000

// Planted is a program that adds a known cost to each open(2) of every process, for a positive control.
type Planted struct {
	program  *ebpf.Program
	attached link.Link
}

// LoadPlanted loads a program of file_open that executes n instructions, which each become one machine instruction, and
// the few with which every program begins and ends. It refuses nothing.
func LoadPlanted(n int) (*Planted, error) {
	if n < 0 || n > MaxPlanted {
		return nil, fmt.Errorf("plant %d instructions: want 0 to %d", n, MaxPlanted)
	}
	if err := requireLSM(); err != nil {
		return nil, err
	}
	if err := rlimit.RemoveMemlock(); err != nil {
		return nil, noMemlock(err)
	}
	p, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Name: "tare_planted", Type: ebpf.LSM, AttachType: ebpf.AttachLSMMac, AttachTo: string(FileOpen),
		License: "Dual MIT/GPL", Instructions: plantedInstructions(n),
	})
	if err != nil {
		return nil, noPrograms(err)
	}
	return &Planted{program: p}, nil
}

// plantedInstructions returns n exclusive-ors of 64-bit registers, each of which becomes one instruction on x86-64 and
// arm64. There is no loop, since its jumps would be further instructions.
func plantedInstructions(n int) asm.Instructions {
	all := asm.Instructions{asm.Mov.Imm(asm.R2, 1), asm.Mov.Imm(asm.R3, 2)}
	for range n {
		all = append(all, asm.Xor.Reg(asm.R2, asm.R3))
	}
	const before = 8 // the argument after the file: what earlier programs decided
	return append(all, asm.LoadMem(asm.R0, asm.R1, before, asm.DWord), asm.Return())
}

// Attach makes the kernel run the program. It does nothing if it is attached.
func (p *Planted) Attach() (err error) {
	if p.attached == nil {
		if p.attached, err = link.AttachLSM(link.LSMOptions{Program: p.program}); err != nil {
			p.attached = nil
			return noAttachment(FileOpen, err)
		}
	}
	return nil
}

// Detach makes the kernel run the program no longer.
func (p *Planted) Detach() error {
	if p.attached == nil {
		return nil
	}
	err := closeAll([]link.Link{p.attached})
	p.attached = nil
	return err
}

// Close detaches the program and frees it.
func (p *Planted) Close() error { return errors.Join(p.Detach(), p.program.Close()) }
