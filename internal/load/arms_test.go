package load

import (
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"
)

// TestArmsTakeTurns: each arm's calls go to its own target and have the same numbers as the other's, and a call of one
// is in flight only while none of the other is.
func TestArmsTakeTurns(t *testing.T) {
	eachEngine(t, func(t *testing.T, set func(*Config)) {
		targets := []*target{newTarget(t, saysAfter(20*time.Millisecond)), newTarget(t, says(good))}
		seen := make([][]uint64, len(targets))
		s := open(t, netip.AddrPort{}, set, func(c *Config) {
			c.Endpoint, c.Operations = Endpoint{}, nil
			for k := range targets {
				n := numbering{wire: wire{keys: 2}, mu: new(sync.Mutex), seen: &seen[k]}
				c.Arms = append(c.Arms, Arm{
					Endpoint: Endpoint{Addr: targets[k].addr, Host: "test", Keys: 2},
					Operations: []Operation{
						{Name: "get", Weight: 3, Wire: n}, {Name: "list", Weight: 1, Wire: n},
					},
				})
			}
		})
		const rounds, calls = 3, 10
		p := Constant{Rate: 500, Duration: calls * 2 * time.Millisecond}
		for r := range rounds {
			for _, arm := range []int{r % 2, 1 - r%2} {
				offer(t, s, Turn{Process: p, Arm: arm})
				if p := s.Progress(); p.Open() > 0 {
					t.Errorf("a turn has left %d calls open", p.Open())
				}
			}
		}
		turns, arm := 0, -1
		var ended time.Duration
		for _, c := range audit(t, s, 30*time.Second) {
			if of := int(c.Operation) / 2; of != arm {
				if c.Intended < ended {
					t.Errorf("a call of arm %d was due at %v, before one of the other had ended at %v", of, c.Intended, ended)
				}
				arm = of
				turns++
			}
			if c.Outcome != OK {
				t.Errorf("%+v", c)
			}
			ended = max(ended, c.Done)
		}
		if len(seen[0]) != rounds*calls || len(seen[1]) != rounds*calls || turns < rounds+1 {
			t.Errorf("%d and %d calls were rendered, in %d turns", len(seen[0]), len(seen[1]), turns)
		}
		slices.Sort(seen[0])
		slices.Sort(seen[1])
		if !slices.Equal(seen[0], seen[1]) {
			t.Errorf("the arms' calls have the numbers %v and %v", seen[0], seen[1])
		}
	})
}

// TestTurnOfWorkers: a closed loop takes turns, too.
func TestTurnOfWorkers(t *testing.T) {
	eachEngine(t, func(t *testing.T, set func(*Config)) {
		x := newTarget(t, saysAfter(time.Millisecond))
		op := []Operation{{Name: "get", Weight: 1, Wire: wire{}}}
		s := open(t, netip.AddrPort{}, set, func(c *Config) {
			c.Endpoint, c.Operations = Endpoint{}, nil
			c.Arms = []Arm{{Endpoint{Addr: x.addr, Host: "test"}, op}, {Endpoint{Addr: x.addr, Host: "test"}, op}}
		})
		made := [2]int{}
		for made[0] == 0 || made[1] == 0 { // a busy host may let a whole turn pass
			for arm := range 2 {
				c := Closed{Workers: 2, Duration: 30 * time.Millisecond, Arm: arm}
				if _, err := s.Cycle(t.Context(), c, 0, nil); err != nil {
					t.Fatal(err)
				}
				if p := s.Progress(); p.Open() > 0 {
					t.Errorf("a turn has left %d calls open", p.Open())
				}
			}
			made = [2]int{}
			for _, c := range s.Calls(0) {
				made[c.Operation]++
			}
		}
		audit(t, s, 30*time.Second)
	})
}

// TestTurnOfASilentTarget ends by the timeout of its calls.
func TestTurnOfASilentTarget(t *testing.T) {
	eachEngine(t, func(t *testing.T, set func(*Config)) {
		op := []Operation{{Name: "get", Weight: 1, Wire: wire{}}}
		s := open(t, netip.AddrPort{}, set, func(c *Config) {
			c.Timeout = 50 * time.Millisecond
			c.Endpoint, c.Operations = Endpoint{}, nil
			c.Arms = []Arm{
				{Endpoint{Addr: newTarget(t, hang).addr, Host: "test"}, op},
				{Endpoint{Addr: newTarget(t, says(good)).addr, Host: "test"}, op},
			}
		})
		offer(t, s, Turn{Process: Constant{Rate: 100, Duration: 30 * time.Millisecond}, Arm: 0})
		if p := s.Progress(); p.Open() > 0 || p.Done[Timeout] != 3 {
			t.Errorf("after the turn: %+v", p)
		}
		none := Turn{Process: Constant{Rate: 1, Duration: time.Second}, Arm: 2}
		if _, err := s.Offer(t.Context(), none, 0, nil); err == nil {
			t.Error("an arm that does not exist had a turn")
		}
	})
}

func TestArmsAreChecked(t *testing.T) {
	e := Endpoint{Addr: netip.MustParseAddrPort("127.0.0.1:1")}
	op := []Operation{{Name: "get", Weight: 1, Wire: wire{}}}
	for name, c := range map[string]Config{
		"an arm without operations":     {Arms: []Arm{{e, op}, {e, nil}}},
		"an arm without an address":     {Arms: []Arm{{e, op}, {Endpoint{}, op}}},
		"arms beside an endpoint":       {Endpoint: e, Arms: []Arm{{e, op}}},
		"more operations than a number": {Arms: []Arm{{e, make([]Operation, 200)}, {e, make([]Operation, 100)}}},
	} {
		s, err := Open(t.Context(), c)
		if err == nil {
			t.Errorf("%s: accepted", name)
			_ = s.Close()
		}
	}
}
