package sandbox

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"tare/areas/sandbox/bpflsm"
	"tare/internal/unit"
)

// takePlanted parses the level of the factor "planted": a share of further calls, "2%", or the length of a program of
// the kernel, "1000 instructions".
func (p *plan) takePlanted(level, on string) (err error) {
	if !strings.Contains(level, "instruction") {
		p.planted, err = parseShare(level)
		return err
	}
	if p.program, err = parseProgram(level); err != nil {
		return err
	}
	if on != onLab && on != onGuest {
		return fmt.Errorf("%q: the kernel would execute them at each open of every process of this host; add on: lab to "+
			"the target, or plant a share of calls, such as 2%%", level)
	}
	return nil
}

// plantedProgram is a planted cost: a BPF program of so many instructions at each open(2) of every process of a
// machine, which it needs for itself. The zero plantedProgram is not attached.
type plantedProgram struct {
	attached     bool
	instructions int // besides those with which every program begins and ends
}

// note says what the program does, for the report.
func (p plantedProgram) note() string {
	if p.instructions == 0 {
		return "an empty BPF program is executed at each open: compare planted instructions with it"
	}
	return fmt.Sprintf("a BPF program executes %d instructions at each open: a known cost, planted on purpose",
		p.instructions)
}

// parseProgram parses "1000 instructions".
func parseProgram(text string) (plantedProgram, error) {
	number, found := strings.CutSuffix(text, " instructions")
	n, err := strconv.Atoi(number)
	if !found || err != nil || n < 0 || n > bpflsm.MaxPlanted {
		return plantedProgram{}, fmt.Errorf("%q cannot be planted: want 0 to %d instructions, as \"1000 instructions\"", text,
			bpflsm.MaxPlanted)
	}
	return plantedProgram{attached: true, instructions: n}, nil
}

// plant attaches the program of the first treatment: no treatment of this machine has another, see labKind.
func (h *host) plant(p plantedProgram) error {
	if !p.attached || h.planted {
		return nil
	}
	program, err := bpflsm.LoadPlanted(p.instructions)
	if err != nil {
		return fmt.Errorf("plant a program: %w", err)
	}
	if err := program.Attach(); err != nil {
		return errors.Join(fmt.Errorf("plant a program: %w", err), program.Close())
	}
	h.planted = true
	h.onClose(func(context.Context) error {
		h.planted = false
		return program.Close()
	})
	return nil
}

// share is a planted cost: for every `whole` reported calls, `part` additional ones are made. It is a positive control:
// the cost of the arm is known, so an instrument that does not find it is wrong.
type share struct{ part, whole int }

const (
	// finestShare is the largest denominator. A batch is a multiple of it.
	finestShare = 1000
	// largestShare is the most that can be planted, as a ratio.
	largestShare = 10
	// mostMultiple bounds the least common multiple of all treatments' shares.
	mostMultiple = 10_000
)

// parseShare parses "2%" as 1 of 50.
func parseShare(text string) (share, error) {
	p, err := unit.ParsePercent(text)
	if err != nil {
		return share{}, err
	}
	const scale = 1_000_000
	exact := p.Ratio() * scale
	part := math.Round(exact)
	if math.Abs(exact-part) > 1e-3 || p.Ratio() > largestShare {
		return share{}, fmt.Errorf("%q cannot be planted: want a share up to %d%%, of no more than four decimals", text,
			largestShare*100)
	}
	d := greatestCommonDivisor(int(part), scale)
	s := share{part: int(part) / d, whole: scale / d}
	if s.whole > finestShare {
		return share{}, fmt.Errorf("%q is too fine to be planted: it would take batches of %d calls, and %d is the most",
			text, s.whole, finestShare)
	}
	return s, nil
}

// of returns the share of n calls; n must be a multiple of whole.
func (s share) of(n int) int { return n / s.whole * s.part }

func greatestCommonDivisor(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

func leastCommonMultiple(a, b int) int { return a / greatestCommonDivisor(a, b) * b }
