package load

import (
	"sync"
	"testing"
	"time"
)

// numbering is a wire that notes the numbers of the calls that are rendered.
type numbering struct {
	wire

	mu   *sync.Mutex
	seen *[]uint64
}

func (n numbering) Render(dst []byte, i uint64) []byte {
	n.mu.Lock()
	*n.seen = append(*n.seen, i)
	n.mu.Unlock()
	return n.wire.Render(dst, i)
}

// TestAloneIsOneCaller: between calls of all three callers only the first one's are made, and no number comes twice.
func TestAloneIsOneCaller(t *testing.T) {
	eachEngine(t, func(t *testing.T, set func(*Config)) {
		var seen []uint64
		n := numbering{wire: wire{keys: 3}, mu: new(sync.Mutex), seen: &seen}
		s := open(t, newTarget(t, says(good)).addr, set, func(c *Config) {
			c.Endpoint.Keys = 3
			c.Operations = []Operation{{Name: "get", Weight: 1, Wire: n}}
		})
		all := Constant{Rate: 500, Duration: 40 * time.Millisecond}
		var counts []int
		for _, p := range []Process{all, Alone{Process: all, Callers: 3}, all} {
			offer(t, s, p)
			drain(t, s)
			counts = append(counts, len(seen))
		}
		if counts[0] != 20 || counts[1] != 40 || counts[2] != 60 {
			t.Fatalf("%v calls were rendered after each stretch", counts)
		}
		once := map[uint64]bool{}
		others := 0
		for k, i := range seen {
			if once[i] {
				t.Errorf("call %d was made twice", i)
			}
			once[i] = true
			switch alone := k >= 20 && k < 40; {
			case alone && i%3 != 0:
				t.Errorf("call %d is not the first caller's", i)
			case !alone && i%3 != 0:
				others++
			}
		}
		if others == 0 {
			t.Error("the first caller has made all calls")
		}
	})
}
