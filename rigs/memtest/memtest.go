// Package memtest holds tests of readers to a bound on memory. Only tests import it.
package memtest

import (
	"runtime/metrics"
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

// allocated is all that was ever allocated, without stopping the world as runtime.ReadMemStats does.
func allocated() uint64 {
	s := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}
