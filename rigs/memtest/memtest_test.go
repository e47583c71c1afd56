package memtest

import "testing"

// A testRecorder is a test that only records whether it failed.
type testRecorder struct {
	testing.TB
	failed bool
}

func (p *testRecorder) Helper()               {}
func (p *testRecorder) Errorf(string, ...any) { p.failed = true }

var kept []byte

func TestBound(t *testing.T) {
	for _, c := range []struct {
		read, takes int
		fails       bool
	}{{0, 0, false}, {0, AnyCase / 2, false}, {0, 2 * AnyCase, true}, {4096, 2 * AnyCase, false}, {4096, 16 << 20, true}} {
		p := &testRecorder{TB: t}
		end := Bound(p, c.read)
		kept = make([]byte, c.takes)
		if end(); p.failed != c.fails {
			t.Errorf("%d bytes read and %d taken: failed %v, want %v", c.read, len(kept), p.failed, c.fails)
		}
	}
}
