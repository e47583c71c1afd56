package imagepull

import (
	"errors"
	"fmt"
	"strings"

	"tare/area"
	"tare/internal/design"
	"tare/internal/files"
	"tare/internal/unit"
)

// The memory of a tare-plane process, in bytes, measured with Kubernetes v1.36.3 and rounded up: its private memory
// (its code is shared), and what it keeps of each record, with each secret.
const (
	processBytes = 24 << 20
	heldBytes    = 2 << 10
	heldSecret   = 512
)

// memory estimates the memory of all treatments' processes, which run side by side.
func (s *Spec) memory(treatments []design.Treatment) (bytes int64, processes int) {
	s.any(treatments, func(p *plan) bool {
		processes++
		bytes += processBytes + int64(p.records)*int64(heldBytes+heldSecret*p.secrets)
		return false
	})
	return bytes, processes
}

// judgeMemory warns when the processes need more memory than is free.
func (s *Spec) judgeMemory(treatments []design.Treatment, file string) []area.Finding {
	need, processes := s.memory(treatments)
	free, err := available(file)
	if err != nil || need <= free {
		return nil // without a figure it cannot warn
	}
	return []area.Finding{{
		Severity: area.Warning, Hint: "take fewer treatments",
		Message: fmt.Sprintf("%s side by side: they need about %s of memory, and %s are free: what does not fit is "+
			"swapped or killed", unit.Count(processes, "process"), size(need), size(free)),
	}}
}

// available returns the memory that is available without swapping, in bytes, from /proc/meminfo.
func available(file string) (int64, error) {
	text, err := files.Kernel(file) //nolint:gosec // /proc/meminfo
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		var kilobytes int64
		if n, err := fmt.Sscanf(line, "MemAvailable: %d kB", &kilobytes); err == nil && n == 1 {
			return kilobytes << 10, nil
		}
	}
	return 0, errors.New("there is no MemAvailable")
}
