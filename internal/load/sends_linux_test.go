//go:build amd64 || arm64 || riscv64

package load

import (
	"sync"
	"time"
)

// blockLoops keeps the event loops of engine fast from doing anything for d.
func blockLoops(e carrier, d time.Duration) {
	var all sync.WaitGroup
	for _, s := range e.(*fast).shards {
		all.Add(1)
		s.post(func() {
			defer all.Done()
			time.Sleep(d)
		})
	}
	all.Wait()
}
