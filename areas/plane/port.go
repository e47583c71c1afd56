package plane

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"syscall"
	"time"

	"tare/internal/clock"
	"tare/internal/files"
	"tare/internal/probe"
)

// portsFreeWithin bounds the wait for ports after their listeners have ended.
const portsFreeWithin = 10 * time.Second

// awaitFree waits until no process listens on ports. One that started after a time, or that is not visible from here,
// has taken a port that was free again.
func awaitFree(ctx context.Context, c clock.Clock, ports []uint16, after ticks) error {
	until := c.Now().Add(portsFreeWithin)
	for _, p := range ports {
		for {
			l, err := listen(ctx, p)
			if err == nil {
				_ = l.Close() // it has accepted nothing
				break
			}
			if !errors.Is(err, syscall.EADDRINUSE) {
				return fmt.Errorf("check whether port %d is free again: %w", p, err)
			}
			if !c.Now().Before(until) {
				if isTakenByOthers(p, after) {
					break
				}
				return fmt.Errorf("a process still listens on 127.0.0.1:%d: find it with 'ss -ltnp sport = :%d'", p, p)
			}
			if err := c.Sleep(ctx, pollEvery); err != nil {
				return err
			}
		}
	}
	return nil
}

func listen(ctx context.Context, port uint16) (net.Listener, error) {
	var lc net.ListenConfig
	return lc.Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(int(port))))
}

// ticks is a time since the boot, as the kernel says when processes started; the largest: none has started later.
type ticks uint64

const never = ticks(math.MaxUint64)

// ticksNow is the time in hundredths of a second (proc(5): USER_HZ), or never where it is not known.
func ticksNow() ticks {
	text, err := files.Kernel("/proc/uptime")
	if err != nil {
		return never
	}
	first, _, _ := strings.Cut(string(text), " ")
	seconds, err := strconv.ParseFloat(first, 64)
	if err != nil || seconds < 0 {
		return never
	}
	return ticks(100 * seconds)
}

func isTakenByOthers(port uint16, after ticks) bool {
	_, start, err := probe.Listener(nil, netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), port))
	return errors.Is(err, probe.ErrHidden) || err == nil && ticks(start) > after
}
