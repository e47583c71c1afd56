package memtest

import (
	"bytes"
	"io"
	"testing"
)

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

func TestHeld(t *testing.T) {
	for _, c := range []struct {
		reads, most int
		fails       bool
	}{{0, AnyCase, false}, {4 << 20, AnyCase, true}, {4 << 20, 16 << 20, false}} {
		p := &testRecorder{TB: t}
		src := bytes.NewReader(make([]byte, c.reads))
		kept = nil
		all, err := io.ReadAll(Held(p, src, c.most))
		if kept = all; err != nil || p.failed != c.fails {
			t.Errorf("%d bytes kept: failed %v, want %v; error %v", len(kept), p.failed, c.fails, err)
		}
	}
}
