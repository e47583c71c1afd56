package reference

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"tare/internal/clock"
)

const (
	leakEvery = 100 * time.Millisecond
	leakChunk = 64 << 20 // bytes reserved at a time; only what has been touched is memory
)

// A leak is memory that is kept for ever and grows at a known rate. It is mapped outside of Go's heap: there the
// collector would grow the process by up to twice the leak, in steps of its own.
type leak struct {
	clock   clock.Clock
	began   time.Time
	perSec  float64
	chunk   []byte
	touched int64 // bytes touched in all chunks
	kept    [][]byte
	cancel  context.CancelFunc
	done    sync.WaitGroup
	err     error
}

// startLeak keeps perSec further bytes every second until stop.
func startLeak(c clock.Clock, perSec float64) *leak {
	ctx, cancel := context.WithCancel(context.Background())
	l := &leak{clock: c, began: c.Now(), perSec: perSec, cancel: cancel}
	if perSec > 0 {
		l.done.Go(func() { l.err = l.run(ctx) })
	}
	return l
}

func (l *leak) run(ctx context.Context) error {
	for l.clock.Sleep(ctx, leakEvery) == nil {
		if err := l.grow(); err != nil {
			return err
		}
	}
	return nil
}

// grow touches every page up to what is due by now.
func (l *leak) grow() error {
	page := int64(unix.Getpagesize())
	for due := int64(l.perSec * l.clock.Now().Sub(l.began).Seconds()); l.touched+page <= due; l.touched += page {
		at := l.touched % leakChunk
		if at == 0 {
			if err := l.reserve(); err != nil {
				return err
			}
		}
		l.chunk[at] = 1
	}
	return nil
}

// reserve maps a chunk of small pages: huge ones would make the leak a staircase.
func (l *leak) reserve() error {
	chunk, err := unix.Mmap(-1, 0, leakChunk, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return fmt.Errorf("planted leak: %w", err)
	}
	_ = unix.Madvise(chunk, unix.MADV_NOHUGEPAGE) // a kernel without huge pages refuses, and needs it not
	l.chunk, l.kept = chunk, append(l.kept, chunk)
	return nil
}

// stop ends the growth and gives the memory back, which matters only where the server is not a process of its own.
func (l *leak) stop() error {
	l.cancel()
	l.done.Wait()
	for _, chunk := range l.kept {
		if err := unix.Munmap(chunk); err != nil && l.err == nil {
			l.err = fmt.Errorf("planted leak: %w", err)
		}
	}
	l.kept = nil
	return l.err
}
