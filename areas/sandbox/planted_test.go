package sandbox

import (
	"strings"
	"testing"

	"tare/areas/sandbox/vm"
)

func TestPlantedPrograms(t *testing.T) {
	for _, c := range []struct {
		on, level string
		want      plantedProgram
		wrong     string
	}{
		{onLab, "1000 instructions", plantedProgram{true, 1000}, ""},
		{onGuest, "0 instructions", plantedProgram{true, 0}, ""},
		{onLab, "2%", plantedProgram{}, ""},
		{onHost, "1000 instructions", plantedProgram{}, "every process of this host; add on: lab"},
		{"", "1000 instructions", plantedProgram{}, "every process of this host; add on: lab"},
		{onLab, "100001 instructions", plantedProgram{}, "want 0 to 100000 instructions"},
		{onLab, "-1 instructions", plantedProgram{}, "want 0 to 100000 instructions"},
		{onLab, "1k instructions", plantedProgram{}, "want 0 to 100000 instructions"},
		{onLab, "1000 instruction", plantedProgram{}, "want 0 to 100000 instructions"},
		{onLab, "1000", plantedProgram{}, "1000"},
	} {
		s := &Spec{On: c.on, Workloads: []string{"open"}}
		p, err := s.plan(treatment(factorEnforcer, enforcerNone, factorPlanted, c.level))
		if c.wrong == "" && (err != nil || p.program != c.want) {
			t.Errorf("%s on %q: %+v, %v; want %+v", c.level, c.on, p.program, err, c.want)
		}
		if c.wrong != "" && (err == nil || !strings.Contains(err.Error(), c.wrong) ||
			!strings.HasPrefix(err.Error(), "planted: ")) {
			t.Errorf("%s on %q: %v, want %q", c.level, c.on, err, c.wrong)
		}
	}
}

// TestPlantedProgramsHaveTheirMachine: a program acts on all processes of its machine.
func TestPlantedProgramsHaveTheirMachine(t *testing.T) {
	seen := map[string]bool{}
	for _, k := range []labKind{
		{},
		{bpf: true},
		{planted: plantedProgram{true, 0}},
		{planted: plantedProgram{true, 10}},
		{bpf: true, planted: plantedProgram{true, 10}},
	} {
		k.kernel = vm.Kernel{Release: "6.1"}
		seen[k.name()] = true
	}
	if len(seen) != 5 {
		t.Errorf("the names of five machines: %v", seen)
	}
}
