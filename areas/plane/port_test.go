package plane

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"tare/internal/clock"
	"tare/internal/kit"
)

// turning is a clock that calls back as time passes.
type turning struct {
	*clock.Fake
	sleeps int
	at     map[int]func()
}

func (c *turning) Sleep(ctx context.Context, d time.Duration) error {
	c.sleeps++
	if f := c.at[c.sleeps]; f != nil {
		f()
	}
	return c.Fake.Sleep(ctx, d)
}

func TestAwaitFree(t *testing.T) {
	l, err := listen(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	port := uint16(l.Addr().(*net.TCPAddr).Port)
	c := &turning{Fake: clock.NewFake(time.Now())}
	err = awaitFree(t.Context(), c, []uint16{port}, never)
	if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("127.0.0.1:%d", port)) {
		t.Errorf("error %v, want one that names port %d", err, port)
	}
	if want := int(portsFreeWithin / pollEvery); c.sleeps != want {
		t.Errorf("looked %d times, want %d", c.sleeps, want)
	}
	for after, mine := range map[ticks]bool{0: false, ticksNow(): true} { // this process has started before
		c = &turning{Fake: clock.NewFake(time.Now())}
		if err := awaitFree(t.Context(), c, []uint16{port}, after); (err != nil) != mine {
			t.Errorf("a process that started after %d ticks: %v", after, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	c = &turning{Fake: clock.NewFake(time.Now()), at: map[int]func(){3: cancel}}
	if err := awaitFree(ctx, c, []uint16{port}, never); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want %v", err, context.Canceled)
	}
	c = &turning{Fake: clock.NewFake(time.Now()), at: map[int]func(){5: func() { _ = l.Close() }}}
	if err := awaitFree(t.Context(), c, []uint16{port}, never); err != nil || c.sleeps != 5 {
		t.Errorf("after %d looks: %v", c.sleeps, err)
	}
}

// TestPortsOfOthers: a port on which no component of the plane has listened may be another process's when it stops.
func TestPortsOfOthers(t *testing.T) {
	p := &Plane{config: Config{Clock: clock.NewFake(time.Now())}}
	for _, port := range []*uint16{&p.ports.server, &p.ports.scheduler, &p.ports.controller} {
		l, err := listen(t.Context(), 0)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close() //nolint:errcheck // it never accepted anything
		*port = uint16(l.Addr().(*net.TCPAddr).Port)
	}
	if err := p.stopAll(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestTaken(t *testing.T) {
	l, err := listen(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() //nolint:errcheck // it never accepted anything
	_, err = listen(t.Context(), uint16(l.Addr().(*net.TCPAddr).Port))
	if !kit.IsPortTaken(err) || kit.IsPortTaken(nil) || kit.IsPortTaken(errors.New("permission denied")) {
		t.Errorf("kit.IsPortTaken(%v) = %v", err, kit.IsPortTaken(err))
	}
}
