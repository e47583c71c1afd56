package run

import (
	"errors"
	"testing"
	"time"

	"tare/internal/load"
)

func TestGuard(t *testing.T) {
	// Each look: how many calls ended well and badly since the one before, a second apart.
	type look struct{ good, bad uint64 }
	for _, c := range []struct {
		name  string
		looks []look
		want  int // the look at which it aborts, −1: never
	}{
		{"healthy", []look{{10, 0}, {10, 1}, {10, 0}, {10, 0}, {10, 0}}, -1},
		{"keeps failing", []look{{10, 0}, {0, 10}, {0, 10}, {0, 10}, {0, 10}}, 4},
		{"a better moment resets", []look{{0, 10}, {0, 10}, {0, 10}, {9, 1}, {0, 10}, {0, 10}, {0, 10}, {0, 10}}, 7},
		{"half is enough", []look{{5, 5}, {5, 5}, {5, 5}, {5, 5}}, 3},
		{"silence says nothing", []look{{0, 10}, {0, 0}, {0, 0}, {0, 0}, {9, 1}}, -1},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := &brake{abort: Abort{Share: 0.5, For: 3 * time.Second}}
			var p load.Progress
			for i, l := range c.looks {
				p.Now += time.Second
				p.Done[load.OK] += l.good
				p.Done[load.Timeout] += l.bad
				err := g.check(p)
				if (err != nil) != (i == c.want) {
					t.Fatalf("look %d: %v, want an abort at look %d", i, err, c.want)
				}
				if err != nil {
					if !errors.Is(err, ErrAborted) {
						t.Errorf("%v is not ErrAborted", err)
					}
					return
				}
			}
		})
	}
}
