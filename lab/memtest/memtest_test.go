package memtest

import "testing"

// probe is a test that only remembers whether it failed.
type probe struct {
	testing.TB
	failed bool
}

func (p *probe) Helper()               {}
func (p *probe) Errorf(string, ...any) { p.failed = true }

var kept []byte

func TestBound(t *testing.T) {
	for _, c := range []struct {
		read, takes int
		fails       bool
	}{{0, 0, false}, {0, AnyCase / 2, false}, {0, 2 * AnyCase, true}, {4096, 2 * AnyCase, false}, {4096, 16 << 20, true}} {
		p := &probe{TB: t}
		end := Bound(p, c.read)
		kept = make([]byte, c.takes)
		if end(); p.failed != c.fails {
			t.Errorf("%d bytes read and %d taken: failed %v, want %v", c.read, len(kept), p.failed, c.fails)
		}
	}
}
