package load

import (
	"fmt"
	"net/netip"
)

// An Arm is one of several targets whose calls one stream carries. Its operations go to its own endpoint, over
// connections of its own. Only one arm is called at a time: see Turn.
type Arm struct {
	Endpoint   Endpoint
	Operations []Operation
}

// mostOperations bounds the operations of a stream: a Call has one byte for their number.
const mostOperations = 255

// A place is an arm's share of the operations and connection keys of a stream. Both are numbered over all arms.
type place struct {
	Endpoint
	mix      mix
	firstOp  int
	firstKey int
}

// places are where the calls of a stream go.
type places struct {
	arms []place
	ofOp []uint8 // the arm of each operation
	keys int     // of all arms
}

// newPlaces lays out the arms of c, which it fills in with all their operations.
func newPlaces(c *Config) (*places, error) {
	arms := c.Arms
	if len(arms) == 0 {
		arms = []Arm{{c.Endpoint, c.Operations}}
	} else if len(c.Operations) > 0 || c.Endpoint.Addr.IsValid() {
		return nil, fmt.Errorf("a stream has either arms or one endpoint with its operations: leave out one of them")
	}
	p := &places{}
	var all []Operation
	for k, a := range arms {
		if a.Endpoint.Keys == 0 {
			a.Endpoint.Keys = 1
		}
		if a.Endpoint.Keys < 0 {
			return nil, fmt.Errorf("endpoint has %d connection identities: set Keys to 1 or more", a.Endpoint.Keys)
		}
		p.arms = append(p.arms, place{
			Endpoint: a.Endpoint, mix: newMix(a.Operations, c.Seed), firstOp: len(all), firstKey: p.keys,
		})
		p.keys += a.Endpoint.Keys
		for range a.Operations {
			p.ofOp = append(p.ofOp, uint8(k))
		}
		all = append(all, a.Operations...)
		if len(a.Operations) == 0 || len(all) > mostOperations {
			return nil, fmt.Errorf("%d operations: give 1 to %d", len(all), mostOperations)
		}
	}
	c.Operations = all
	return p, nil
}

// pick draws the operation of an arm's call i.
func (p *places) pick(arm int, i uint64) uint8 {
	a := &p.arms[arm]
	return uint8(a.firstOp) + a.mix.pick(i)
}

// key returns the connection key that call i of an operation needs.
func (p *places) key(operation uint8, w Wire, i uint64) int {
	a := &p.arms[p.ofOp[operation]]
	if a.Keys == 1 {
		return a.firstKey
	}
	return a.firstKey + int(uint(w.ConnKey(i))%uint(a.Keys))
}

// endpoint returns the endpoint of a key.
func (p *places) endpoint(key int) *Endpoint {
	return &p.of(key).Endpoint
}

// local returns the source address for a key; if it is invalid, the kernel chooses.
func (p *places) local(key int) netip.Addr {
	a := p.of(key)
	if a.Local == nil {
		return netip.Addr{}
	}
	return a.Local(key - a.firstKey)
}

func (p *places) of(key int) *place {
	k := len(p.arms) - 1
	for p.arms[k].firstKey > key {
		k--
	}
	return &p.arms[k]
}

// sources returns the number of source addresses of the connections.
func (p *places) sources() int {
	seen := map[netip.Addr]bool{}
	for key := range p.keys {
		seen[p.local(key)] = true
	}
	return len(seen)
}

// A Turn offers Process to one arm. The segment ends when all its calls have ended, so that calls of two arms are never
// in flight together.
type Turn struct {
	Process

	Arm int
}
