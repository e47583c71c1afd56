package imagepull

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"tare/internal/area"
	"tare/internal/design"
)

// What a process of tare-plane takes of memory, in bytes, measured with Kubernetes v1.36.3 and rounded up: what is its own alone (its code
// is shared), and what it keeps of each record, with each secret.
const (
	processBytes = 24 << 20
	heldBytes    = 2 << 10
	heldSecret   = 512
)

// memory is about what the processes of all treatments take, which stand side by side.
func (s *Spec) memory(treatments []design.Treatment) (bytes int64, processes int) {
	s.any(treatments, func(p *plan) bool {
		processes++
		bytes += processBytes + int64(p.records)*int64(heldBytes+heldSecret*p.secrets)
		return false
	})
	return bytes, processes
}

// judgeMemory warns when the processes that stand side by side need more memory than is free.
func (s *Spec) judgeMemory(treatments []design.Treatment, file string) []area.Finding {
	need, processes := s.memory(treatments)
	free, err := available(file)
	if err != nil || need <= free {
		return nil // without a figure there is nothing to warn of
	}
	return []area.Finding{{
		Severity: area.Warning, Hint: "take fewer treatments",
		Message: fmt.Sprintf("%d process(es) side by side need about %s of memory, and %s are free: what does not fit is swapped or killed", processes, size(need), size(free)),
	}}
}

// available is the memory that can be had without swapping, in bytes, by /proc/meminfo.
func available(file string) (int64, error) {
	text, err := os.ReadFile(file) //nolint:gosec // /proc/meminfo
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
