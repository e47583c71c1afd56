package signature

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"tare/internal/load"
)

// unequal is how long call i takes: very unequally long, and always the same for one i.
func unequal(i int) time.Duration { return 20*ms + time.Duration(i*7919%13)*60*ms }

// difficult are servers that a simpler look takes for others.
func difficult() map[string]struct {
	want Class
	e    Evidence
} {
	away := func(out load.Outcome, errno syscall.Errno, sent bool) Evidence {
		return scene(130, 100, func(_ int, at time.Duration) load.Call {
			if begin := at - time.Second; begin < 5*time.Second {
				return load.Call{Conn: 1, Done: at + 5*ms}
			}
			c := load.Call{Done: at + ms, Outcome: out, Errno: uint16(errno)}
			if sent {
				c.Sent = at
			}
			return c
		})
	}
	aged := scene(130, 100, func(i int, at time.Duration) load.Call { // the newest first
		switch {
		case i%4 == 0:
			return load.Call{Conn: 1, Done: at + 300*ms, Outcome: load.Refused}
		case i%40 == 1: // hardly in time
			return load.Call{Conn: 1, Done: at + 295*ms}
		}
		return load.Call{Conn: 1, Done: at + 6*ms}
	})
	late := scene(130, 100, func(_ int, at time.Duration) load.Call { // in order, but for one in nine calls
		return load.Call{Conn: 1, Done: fifo(at)}
	})
	late.Now = time.Minute
	behind := scene(200, 100, func(i int, at time.Duration) load.Call { // 130/s are admitted
		if i*13%20 >= 13 {
			return load.Call{Conn: 1, Done: at + ms, Outcome: load.Refused}
		}
		return load.Call{Conn: 1, Done: fifo(at)}
	})
	behind.Now = time.Minute
	groups := scene(160, 100, func(i int, at time.Duration) load.Call { // ten at once, each for 100 ms
		if i%16 < 10 {
			return load.Call{Conn: 1, Done: at + 100*ms}
		}
		return load.Call{Conn: 1, Done: at + ms, Outcome: load.Refused}
	})
	groups.BaseP50, groups.BaseP99, groups.BaseMean = 100*ms, 100*ms, 100*ms
	return map[string]struct {
		want Class
		e    Evidence
	}{
		"windows of calls that take unequally long": {FixedWindow, scene(60, 40, func(i int, at time.Duration) load.Call {
			if (at-time.Second)%(1500*ms) < time.Second {
				return load.Call{Conn: 1, Done: at + unequal(i)}
			}
			return load.Call{Conn: 1, Done: at + ms, Outcome: load.Refused}
		})},
		"a target that goes down":                    {Collapse, away(load.ConnFailed, syscall.ECONNREFUSED, false)},
		"a client without ports":                     {PortExhaustion, away(load.ConnFailed, syscall.EADDRNOTAVAIL, false)},
		"a queue that drops old calls":               {Shedding, aged},
		"places that are taken for the same time":    {ConcurrencyLimit, groups},
		"a queue that is answered late":              {Queue, late},
		"a queue behind a limit that is too high":    {Queue, behind},
		"calls that are cut off after they are sent": {Unknown, away(load.ConnFailed, syscall.ECONNRESET, true)},
	}
}

func TestDifficult(t *testing.T) {
	for name, c := range difficult() {
		t.Run(name, func(t *testing.T) {
			v := Classify(c.e)
			if f := v.Failure(); f.Class != c.want {
				t.Errorf("failure %s, want %s; scores %v, evidence %q", f.Class, c.want, v.Scores, f.Evidence)
			}
		})
	}
	v := Classify(difficult()["a target that goes down"].e)
	if want := "the target was down"; !strings.Contains(v.Evidence[0], want) {
		t.Errorf("evidence %q, want %q", v.Evidence[0], want)
	}
}

// A pool of connections that is full keeps callers waiting as a full listen queue does.
func TestFullPoolIsNoFullQueue(t *testing.T) {
	e := scenes()[AcceptQueue]
	for k, rate := range []float64{400, 800} {
		from := time.Duration(11+3*k) * time.Second
		e.Windows = append(e.Windows, Window{Role: "fill", Rate: rate, Start: from, End: from + 2*time.Second})
		for i := range 50 {
			at := from + time.Duration(i)*10*ms
			e.Calls = append(load.CallsOf(e.Calls), load.Call{
				Conn: 1, Intended: at, Ready: at, Sent: at, FirstByte: at + 9*ms,
				Done: at + 9*ms,
			}, load.Call{Intended: at, Ready: at})
		}
	}
	e.Now = 16 * time.Second
	for _, c := range []struct {
		conns int
		full  bool
	}{{0, true}, {4096, true}, {330, false}} {
		e.MaxConns = c.conns
		if got := Classify(e).Scores[AcceptQueue] == 1; got != c.full {
			t.Errorf("with at most %d connections the listen queue is full: %v, want %v", c.conns, got, c.full)
		}
	}
}
