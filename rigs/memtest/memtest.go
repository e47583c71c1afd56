// Package memtest holds tests of readers to a bound on memory. Only tests import it.
package memtest

import (
	"errors"
	"io"
	"runtime"
	"testing"
)

// What a reader may allocate in all, in bytes: some for each byte that it reads, and some in any case.
const (
	PerByte = 1 << 10
	AnyCase = 2 << 20
)

// Bound notes what is allocated until the function that it returns is called, which fails the test where that is more
// than a reader of so many bytes may take: "defer memtest.Bound(t, len(b))()". What other goroutines allocate meanwhile
// counts as well.
func Bound(t testing.TB, read int) func() {
	t.Helper()
	before := allocated()
	return func() {
		t.Helper()
		if n, most := allocated()-before, uint64(read)*PerByte+AnyCase; n > most {
			t.Errorf("%d bytes were read and %d allocated, more than %d", read, n, most)
		}
	}
}

// allocated is all that was ever allocated. runtime.ReadMemStats stops the world for it; package metrics does not, and
// leaves out what each processor's cache has allocated since the last collection, some megabytes.
func allocated() uint64 {
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return s.TotalAlloc
}

// Held reads from src. Where src ends, t fails if more bytes are in use than at the call of Held and so many more. What
// other goroutines hold meanwhile counts as well.
func Held(t testing.TB, src io.Reader, most int) io.Reader {
	return &held{t: t, src: src, most: inUse() + uint64(most)}
}

type held struct {
	t    testing.TB
	src  io.Reader
	most uint64
}

// Read implements io.Reader.
func (h *held) Read(b []byte) (int, error) {
	n, err := h.src.Read(b)
	if errors.Is(err, io.EOF) {
		if now := inUse(); now > h.most {
			h.t.Errorf("%d bytes are in use where the source ends, more than %d", now, h.most)
		}
	}
	return n, err
}

// inUse is what is in use after a collection.
func inUse() uint64 {
	runtime.GC()
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return s.HeapAlloc
}
