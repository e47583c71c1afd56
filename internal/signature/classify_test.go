package signature

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tare/internal/load"
)

const ms = time.Millisecond

// scene is ten seconds of overload at rate, of which answer makes each call.
func scene(rate, capacity float64, answer func(i int, at time.Duration) load.Call) Evidence {
	e := Evidence{
		Capacity: capacity, BaseP50: 5 * ms, BaseP99: 10 * ms, Timeout: 30 * time.Second,
		Windows: []Window{
			{Role: "ramp", Rate: capacity / 2, Start: 0, End: time.Second},
			{Role: "overload", Rate: rate, Start: time.Second, End: 11 * time.Second},
		},
		Now: 11 * time.Second,
	}
	add := func(from time.Duration, rate float64, n int, answer func(int, time.Duration) load.Call) {
		for i := range n {
			at := from + time.Duration(float64(i)/rate*1e9)
			c := answer(i, at)
			c.Intended, c.Ready = at, max(at, c.Ready)
			if c.Sent == 0 && c.Outcome != load.ConnFailed {
				c.Sent = c.Ready
			}
			if c.Done != 0 && c.Outcome != load.ConnFailed && c.Outcome != load.Timeout {
				c.FirstByte = c.Done
			}
			e.Calls = append(load.CallsOf(e.Calls), c)
		}
	}
	add(0, capacity/2, int(capacity/2), func(_ int, at time.Duration) load.Call {
		return load.Call{Conn: 1, Done: at + 5*ms}
	})
	add(time.Second, rate, int(10*rate), answer)
	return e
}

// scenes are textbook cases of the classes.
func scenes() map[Class]Evidence {
	ended := func(o load.Outcome, errno syscall.Errno) func(int, time.Duration) load.Call {
		return func(i int, at time.Duration) load.Call {
			if i%3 == 0 {
				return load.Call{Done: at + ms, Outcome: o, Errno: uint16(errno)}
			}
			return load.Call{Conn: 1, Done: at + 5*ms}
		}
	}
	queue := func(_ int, at time.Duration) load.Call { return load.Call{Conn: 1, Done: fifo(at)} }
	m := map[Class]Evidence{
		Client: scene(130, 100, func(_ int, at time.Duration) load.Call {
			return load.Call{Conn: 1, Sent: at + 20*ms, Done: at + 25*ms}
		}),
		ConnectionRefused: scene(130, 100, ended(load.ConnFailed, syscall.ECONNREFUSED)),
		PortExhaustion:    scene(130, 100, ended(load.ConnFailed, syscall.EADDRNOTAVAIL)),
		FDExhaustion:      scene(130, 100, ended(load.ConnFailed, syscall.EMFILE)),
		AcceptQueue: scene(130, 100, func(i int, at time.Duration) load.Call {
			if i%4 == 0 {
				return load.Call{Conn: uint32(100 + i)} // a new connection, never answered
			}
			return load.Call{Conn: 1, Done: at + 9*ms}
		}),
		QuotaHang: scene(130, 100, func(i int, at time.Duration) load.Call {
			if i%4 == 3 {
				return load.Call{Conn: uint32(2 + i/40)}
			}
			return load.Call{Conn: uint32(2 + i/40), Done: at + 5*ms}
		}),
		TokenBucket: scene(130, 100, ended(load.Refused, 0)),
		FixedWindow: scene(200, 100, func(_ int, at time.Duration) load.Call {
			if (at-time.Second)%time.Second < time.Second/2 {
				return load.Call{Conn: 1, Done: at + 5*ms}
			}
			return load.Call{Conn: 1, Done: at + ms, Outcome: load.Refused}
		}),
		ConcurrencyLimit: scene(100, 50, func(i int, at time.Duration) load.Call {
			if i%20 < 10 { // ten are taken, each for 200 ms; then ten find them there
				return load.Call{Conn: 1, Done: at + 199*ms}
			}
			return load.Call{Conn: 1, Done: at + ms, Outcome: load.Refused}
		}),
		Collapse: scene(130, 100, func(i int, at time.Duration) load.Call {
			if slow := at - time.Second; i%4 != 0 && slow > 3*time.Second {
				return load.Call{Conn: 1, Done: at + 2*time.Second, Outcome: load.Failed}
			}
			return load.Call{Conn: 1, Done: at + 500*ms}
		}),
		CPUThrottling: scene(130, 100, func(_ int, at time.Duration) load.Call {
			done := fifo(at)
			return load.Call{Conn: 1, Done: done.Truncate(100*ms) + done%(100*ms)/5}
		}),
		Pauses: scene(130, 100, func(i int, at time.Duration) load.Call {
			done := fifo(at)
			for k := range 8 { // it stands still for 300 ms every now and then
				if begin := 2*time.Second + time.Duration(k)*1130*ms; done > begin && done < begin+300*ms {
					done = begin + 300*ms + time.Duration(i)*time.Microsecond
				}
			}
			return load.Call{Conn: 1, Done: done}
		}),
		Queue: scene(130, 100, queue),
		Unknown: scene(130, 100, func(i int, at time.Duration) load.Call {
			if i%25 == 0 {
				return load.Call{Conn: 1, Done: at + 5*ms, Outcome: load.Wrong}
			}
			return load.Call{Conn: 1, Done: at + 6*ms}
		}),
	}
	places := m[ConcurrencyLimit] // a place is taken for as long far below the limit
	places.BaseP50, places.BaseP99, places.BaseMean = 199*ms, 199*ms, 199*ms
	m[ConcurrencyLimit] = places
	return m
}

// fifo is when a queue is done with a call that is due at, with 1.3 times its capacity offered.
func fifo(at time.Duration) time.Duration {
	return time.Second + 5*ms + time.Duration(float64(at-time.Second)*1.3)
}

func TestClassify(t *testing.T) {
	for want, e := range scenes() {
		t.Run(string(want), func(t *testing.T) {
			v := Classify(e)
			if v.Class != want {
				t.Fatalf("class %s, scores %v, evidence %q", v.Class, v.Scores, v.Evidence)
			}
			if want != Unknown && v.Scores[want] < wins {
				t.Errorf("its score is %v", v.Scores[want])
			}
			if len(v.Evidence) == 0 || !strings.ContainsAny(v.Evidence[0], "0123456789") {
				t.Errorf("evidence without numbers: %q", v.Evidence)
			}
			if v.RunnerUp == v.Class && v.RunnerUp != "" {
				t.Error("it is its own runner-up")
			}
			if v.RunnerUp != "" && want != Unknown && v.Against == "" {
				t.Errorf("nothing speaks against %s", v.RunnerUp)
			}
			if d := cmp.Diff(v, Classify(e)); d != "" {
				t.Errorf("a second look differs:\n%s", d)
			}
		})
	}
}

func TestClassifyFindsParameters(t *testing.T) {
	s := scenes()
	// Whether pauses have a fixed period is not measured: these come every 1.13 s.
	if v := Classify(s[Pauses]); !strings.HasSuffix(v.Evidence[0], "of the time") {
		t.Errorf("of pauses it says %q", v.Evidence[0])
	}
	if v := Classify(s[FixedWindow]); math.Abs(v.Period-1) > 0.02 {
		t.Errorf("the window's period is %v s, want 1 s", v.Period)
	}
	if v := Classify(s[CPUThrottling]); v.Period != 0.1 {
		t.Errorf("the scheduler's period is %v s, want 0.1 s", v.Period)
	}
	if v := Classify(s[ConcurrencyLimit]); v.InFlight != 10 {
		t.Errorf("calls are refused from %d in flight, want 10", v.InFlight)
	}
}

// Fill windows decide between a listen queue, which is full at last, and a quota, which is not.
func TestClassifyByFill(t *testing.T) {
	e := scenes()[AcceptQueue]
	for k, rate := range []float64{400, 800} {
		from := time.Duration(11+3*k) * time.Second
		e.Windows = append(e.Windows, Window{Role: "fill", Rate: rate, Start: from, End: from + 2*time.Second})
		for i := range 200 {
			at := from + time.Duration(i)*10*ms
			e.Calls = append(load.CallsOf(e.Calls), load.Call{Conn: 1, Intended: at, Ready: at, Sent: at, FirstByte: at +
				9*ms, Done: at + 9*ms})
			if k == 1 { // waits for a connection that the full queue does not take
				e.Calls = append(load.CallsOf(e.Calls), load.Call{Intended: at + ms, Ready: at + ms})
			}
		}
	}
	e.Now = 16 * time.Second
	v := Classify(e)
	if v.Class != AcceptQueue || v.Scores[AcceptQueue] != 1 || v.Stuck != 325 {
		t.Errorf("class %s, scores %v, %d stuck", v.Class, v.Scores, v.Stuck)
	}
	if want := "325 calls on established connections were never answered, at 400/s and at 800/s alike = a backlog of " +
		"324 + 1"; v.Evidence[0] != want {
		t.Errorf("evidence %q, want %q", v.Evidence[0], want)
	}
	if v.RunnerUp != QuotaHang || !strings.Contains(v.Against, "grow with the rate") {
		t.Errorf("runner-up %s, against it %q", v.RunnerUp, v.Against)
	}
}

func TestClassifyTakesLocalProbes(t *testing.T) {
	e := scenes()[AcceptQueue]
	e.Local = Local{ListenQueue: new(1025)}
	if v := Classify(e); !strings.Contains(strings.Join(v.Evidence, "; "), "held 1025 connections") {
		t.Errorf("the listen queue is not mentioned: %q", v.Evidence)
	}
	e = scenes()[Unknown]
	e.Local = Local{Throttled: new(0.9)}
	if v := Classify(e); v.Class != CPUThrottling {
		t.Errorf("a throttled cgroup gives %s", v.Class)
	}
}

func TestChoose(t *testing.T) {
	for name, c := range map[string]struct {
		scores        map[Class]float64
		likely, named Class
	}{
		"nothing":                            {map[Class]float64{Queue: 0.4}, "", Unknown},
		"the first in order":                 {map[Class]float64{Queue: 1, Shedding: 0.6}, Shedding, Shedding},
		"pauses that may be something else":  {map[Class]float64{Pauses: 0.9}, Pauses, Unknown},
		"pauses, or rather a queue":          {map[Class]float64{Pauses: 0.9, Queue: 0.6}, Pauses, Queue},
		"pauses for sure":                    {map[Class]float64{Pauses: 0.96, Queue: 1}, Pauses, Pauses},
		"a penalty that may be a limit only": {map[Class]float64{Penalty: 0.8}, Penalty, Unknown},
	} {
		found := map[Class]classScore{}
		for class, score := range c.scores {
			found[class] = classScore{score: score}
		}
		likely, named := choose(found)
		if likely != c.likely || named != c.named {
			t.Errorf("%s: likely %q, named %q; want %q, %q", name, likely, named, c.likely, c.named)
		}
		if method := (Verdict{Class: named, Likely: likely}).Method(); likely != "" && method != likely {
			t.Errorf("%s: the search follows %s", name, method)
		}
	}
}

func TestClassifyNothing(t *testing.T) {
	if v := Classify(Evidence{}); v.Class != Unknown || len(v.Evidence) != 1 {
		t.Errorf("nothing gives %+v", v)
	}
}

func TestAuditCalls(t *testing.T) {
	calls := func(n int, late, response time.Duration) load.Calls {
		c := make(load.Calls, n)
		for i := range c {
			at := time.Duration(i) * 10 * ms
			c[i] = load.Call{Conn: 1, Intended: at, Ready: at, Sent: at + 1, FirstByte: at + response, Done: at + response}
			if i%50 == 7 { // 2 %
				c[i].Sent = at + late
			}
		}
		return c
	}
	lagging := func(n int, late time.Duration) load.Calls {
		c := calls(n, 0, 5*ms)
		for i := range c {
			c[i].Sent, c[i].Done = c[i].Intended+late, c[i].Intended+late+5*ms
		}
		return c
	}
	if a := AuditCalls(calls(500, 2*ms, 5*ms).All(), time.Hour, 0); !a.Late || a.OnTime().Valid {
		t.Errorf("late in the tail, where times are compared: %+v", a.OnTime())
	}
	end := time.Hour
	for name, c := range map[string]struct {
		audit Audit
		valid bool
	}{
		"punctual":                {AuditCalls(calls(500, ms/2, 5*ms).All(), end, 0), true},
		"late in the tail":        {AuditCalls(calls(500, 2*ms, 5*ms).All(), end, 0), true},
		"late in the median":      {AuditCalls(lagging(500, 25*ms).All(), end, 0), false},
		"late, but one at a time": {AuditCalls(lagging(500, 5*ms).All(), end, 0), true},
		"late, but target slow":   {AuditCalls(calls(500, 2*ms, 50*ms).All(), end, 0), true},
		"one hiccup":              {AuditCalls(calls(50, 90*ms, 5*ms).All(), end, 0), true},
		"fewer than were due":     {AuditCalls(calls(500, 0, 5*ms).All(), end, 520), false},
		"fewer, as after a stall": {AuditCalls(calls(500, 0, 5*ms).All(), end, 504), true},
		"one at the window's end": {AuditCalls(calls(50, 0, 5*ms).All(), end, 51), true},
		"none":                    {AuditCalls(load.Calls(nil).All(), end, 0), true},
	} {
		if c.audit.Valid != c.valid || c.audit.Valid != (c.audit.Reason == "") {
			t.Errorf("%s: %+v", name, c.audit)
		}
	}
	// A call that waits for a connection is the target's doing; one that has a connection and is not sent is the
	// generator's.
	waits := calls(100, 0, 5*ms)
	for i := range waits {
		waits[i] = load.Call{Intended: waits[i].Intended}
	}
	if a := AuditCalls(waits.All(), end, 0); !a.Valid {
		t.Errorf("waiting for connections: %+v", a)
	}
	for i := range waits {
		waits[i].Ready = max(1, waits[i].Intended)
	}
	if a := AuditCalls(waits.All(), end, 0); a.Valid {
		t.Error("calls with a connection that are never sent pass")
	}
}

// TestAuditorInLittleMemory: an auditor holds a few bytes of each call.
func TestAuditorInLittleMemory(t *testing.T) {
	const n = 1_000_000
	held := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := held()
	a := Auditor{Now: time.Hour}
	for i := range n {
		at := time.Duration(i) * time.Microsecond
		a.Add(&load.Call{
			Conn: 1, Intended: at, Ready: at, Sent: at + time.Duration(i%9973), Done: at + ms + time.Duration(i%99991),
		})
	}
	if perCall := float64(held()-before) / n; perCall > 8 {
		t.Errorf("it holds %.1f bytes of each call", perCall)
	}
	// 101 calls are late by each of the first 2700 ns, and 100 by each of the others.
	if out := a.Audit(0); out.LatenessMax != 9.972e-6 || out.LatenessP50 != 4.972e-6 {
		t.Errorf("%+v", out)
	}
}

func TestBeat(t *testing.T) {
	bursts := func(period float64) []float64 {
		var x []float64
		for k := range 40 {
			for i := range 20 {
				x = append(x, float64(k)*period+float64(i)*period*0.02)
			}
		}
		return x
	}
	for _, p := range []float64{0.02, 0.05, 0.1, 0.25} {
		if got, r := Beat(bursts(p)); got != p || r < 0.5 {
			t.Errorf("bursts every %v s: period %v, R %v", p, got, r)
		}
	}
	even := make([]float64, 2000)
	for i := range even {
		even[i] = float64(i) * 0.01
	}
	if p, _ := Beat(even); p != 0 {
		t.Errorf("even events have a period of %v s", p)
	}
}

// FuzzClassify feeds arbitrary calls: there must be no panic, and no number that JSON cannot hold.
func FuzzClassify(f *testing.F) {
	f.Add([]byte("seed corpus: any bytes make calls, eight for each"), 130.0, 100.0, int64(1e9))
	f.Add([]byte{}, 0.0, 0.0, int64(0))
	f.Add([]byte{255, 255, 255, 255, 255, 255, 255, 255, 0, 0, 0, 0, 0, 0, 0, 0}, math.Inf(1), math.NaN(), int64(-5))
	f.Fuzz(func(t *testing.T, raw []byte, rate, capacity float64, span int64) {
		e := Evidence{
			Calls: callsFrom(raw), Now: time.Duration(span), Capacity: capacity, BaseP50: time.Duration(span % 1e9), BaseP99: ms,
			Windows: []Window{
				{Role: "ramp", Rate: rate, Start: 0, End: time.Duration(span / 2)},
				{Role: "overload", Rate: rate, Start: time.Duration(span / 4), End: time.Duration(span)},
				{Role: "fill", Rate: rate, Start: time.Duration(span), End: time.Duration(span) + time.Second},
				{Role: "fill", Rate: 2 * rate, Start: time.Duration(span), End: time.Duration(span) + 2*time.Second},
			},
		}
		v := Classify(e)
		if _, err := json.Marshal(v); err != nil {
			t.Errorf("%+v: %v", v, err)
		}
		for c, s := range v.Scores {
			if !(s >= 0 && s <= 1) {
				t.Errorf("the score of %s is %v", c, s)
			}
		}
	})
}

// callsFrom makes a call of every eight bytes, in order of the intended instant as the contract has it.
func callsFrom(raw []byte) load.Calls {
	var calls load.Calls
	at := time.Duration(0)
	for ; len(raw) >= 8; raw = raw[8:] {
		at += time.Duration(raw[0]) * ms
		c := load.Call{
			Intended: at, Conn: uint32(raw[1] % 8), Outcome: load.Outcome(raw[2] % byte(load.Outcomes)),
			Errno: uint16(raw[3]),
		}
		if raw[4] > 20 {
			c.Ready = at + time.Duration(raw[4])*ms/8
		}
		if raw[5] > 20 {
			c.Sent = at + time.Duration(raw[5])*ms/4
		}
		if raw[6] > 50 {
			c.FirstByte = at + time.Duration(raw[6])*ms
		}
		if raw[7] > 50 {
			c.Done = at + time.Duration(raw[7])*ms
		}
		calls = append(calls, c)
	}
	return calls
}

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

func TestDefinitions(t *testing.T) {
	seen := map[Class]bool{}
	for _, d := range definitions {
		if seen[d.class] {
			t.Errorf("%s is defined twice", d.class)
		}
		seen[d.class] = true
		if d.traits.Gradual && !d.traits.Places {
			t.Errorf("%s is Gradual without Places", d.class)
		}
		if fails := d.class != Client && d.class != Unknown && !d.traits.OnlyRate; fails != (d.phrase != "") {
			t.Errorf("%s is described as %q", d.class, d.phrase)
		}
	}
	for c := range scenes() {
		if !seen[c] {
			t.Errorf("%s is not defined", c)
		}
	}
	if Class("?").Traits() != Unknown.Traits() || definitions[len(definitions)-1].class != Unknown {
		t.Error("what is no class is not treated as unknown")
	}
}

// burstsAt are events in short bursts that begin at some instants.
func burstsAt(begins ...float64) (t []float64) {
	for _, b := range begins {
		for k := range 5 {
			t = append(t, b+0.004*float64(k))
		}
	}
	return t
}

// TestCycle: bursts are a limiter's windows if their beginnings are evenly spaced, and not if chance has spaced them.
func TestCycle(t *testing.T) {
	for name, c := range map[string]struct {
		begins []float64 // of which the first is not seen to begin
		period float64   // 0: none
		cycles int
	}{
		"even":                   {[]float64{1, 2, 3, 4, 5}, 1, 3},
		"nearly even":            {[]float64{1, 2.02, 3.01, 4.02, 5}, 1, 3},
		"uneven by a tenth":      {[]float64{1, 2, 3.1, 4, 5.1}, 0, 0},
		"one of them was missed": {[]float64{1, 2, 4, 5, 6}, 0, 0},
		"a second apart":         {[]float64{1, 2.5, 4}, 1.5, 1},
		"soon after":             {[]float64{1, 1.5, 2}, 0, 0},
		"one":                    {[]float64{1}, 0, 0},
	} {
		period, from, to, cycles := Cycle(burstsAt(c.begins...))
		if math.Abs(period-c.period) > 0.02 || cycles != c.cycles || cycles > 0 && (from != c.begins[1] ||
			to != c.begins[len(c.begins)-1]) {
			t.Errorf("%s: period %v from %v to %v, %d cycles", name, period, from, to, cycles)
		}
	}
	rhythms := 0
	for seed := range uint64(1000) {
		r := rand.New(rand.NewPCG(seed, 3))
		var begins []float64
		for at := 0.0; len(begins) < 6; at += 0.2 + r.ExpFloat64() {
			begins = append(begins, at)
		}
		if _, _, _, cycles := Cycle(burstsAt(begins...)); cycles > 0 {
			rhythms++
		}
	}
	if rhythms > 10 {
		t.Errorf("in %d of 1000 bursts by chance there is a rhythm", rhythms)
	}
}

// TestCountsAreSorted: counts of any spread are sorted, and those of the window before leave no trace.
func TestCountsAreSorted(t *testing.T) {
	rng, c := rand.New(rand.NewPCG(1, 1)), counter{}
	for _, most := range []int{1, 2, 50, 400, 401, 1_000_000} {
		for _, n := range []int{0, 1, 2, 100} {
			counts := make([]int, n)
			for i := range counts {
				counts[i] = rng.IntN(most)
			}
			want := slices.Sorted(slices.Values(counts))
			if c.sort(counts); !slices.Equal(counts, want) {
				t.Errorf("%d counts below %d: %v, want %v", n, most, counts, want)
			}
		}
	}
}

// TestLeftBehind: calls were left behind if later ones were answered meanwhile, and not if earlier ones were. A damaged
// record, here with a negative timeout, does not make it panic.
func TestLeftBehind(t *testing.T) {
	call := func(sent, done time.Duration) load.Call {
		return load.Call{Intended: sent, Sent: sent, Done: done, Outcome: load.OK}
	}
	const ms = time.Millisecond
	late := call(100*ms, 900*ms)
	of := []answer{{late.Sent, late.Done}}
	var newest, inOrder load.Calls
	for i := range 50 {
		then := time.Duration(200+10*i) * ms
		inOrder = append(inOrder, call(time.Duration(i)*ms, then))
		newest = append(newest, call(then, then+5*ms))
	}
	if newest = append(load.Calls{late}, newest...); !leftBehind(newest, of, time.Second) {
		t.Error("later calls were answered meanwhile: it was left behind")
	}
	if inOrder = append(inOrder, late); leftBehind(inOrder, of, time.Second) {
		t.Error("earlier calls were answered meanwhile: it was not left behind")
	}
	leftBehind(load.Calls{call(10*ms, 20*ms), late, call(950*ms, 960*ms)}, of, -time.Hour)
}
