//go:build !linux || !(amd64 || arm64 || riscv64)

package load

import "runtime"

func usableProcessors() int { return min(runtime.GOMAXPROCS(0), runtime.NumCPU()) }

func (e *std) meter(m *Meter) { m.sched, m.bounds = goScheduler() }
