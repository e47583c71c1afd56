package identity

import (
	"fmt"
	"sync"
	"testing"

	"tare/internal/probe"
)

func TestTallyCountsDifferentTokens(t *testing.T) {
	tally := newTally(10)
	read := func() float64 {
		t.Helper()
		samples, err := tally.Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		n, ok := probe.Find(samples, serverEndpoint, probe.Distinct)
		if !ok {
			t.Fatalf("no count among %v", samples)
		}
		return n
	}
	var wg sync.WaitGroup
	for worker := range 4 {
		wg.Go(func() {
			for i := range 1000 {
				key := (i + worker) % 10
				tally.saw(key, fmt.Appendf(nil, "token-%d-%d", key, i%3)) // 30 tokens, each from several sides
			}
		})
	}
	wg.Wait()
	if n := read(); n != 30 {
		t.Errorf("%v different tokens, want 30", n)
	}
	if n := read(); n != 30 {
		t.Errorf("%v after no token at all, want 30 still", n)
	}
	for key := range 10 {
		tally.saw(key, fmt.Appendf(nil, "token-%d-2", key))
	}
	if n := read(); n != 40 {
		t.Errorf("%v, want 40: the same tokens count again after a reading", n)
	}
	for i := range maxTokens + 1 {
		tally.saw(0, fmt.Appendf(nil, "t%d", i))
	}
	if samples, err := tally.Read(t.Context()); err != nil || len(samples) != 0 {
		t.Errorf("%v, %v: more than can be counted must be unknown", samples, err)
	}
}
