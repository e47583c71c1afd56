package montecarlo

import (
	"math"
	"math/rand/v2"
	"slices"
)

// TurnHost is a class of hosts on which arms take turns. Every comparison draws a host of its class.
type TurnHost struct {
	Name string
	draw func(r *rand.Rand) machine
}

// machine is one host during one comparison: how fast it is at any instant, and when it stands still. All factors are
// logarithms; times are seconds.
type machine struct {
	modes  []mode
	drift  float64 // by how much it slows down in an hour
	stolen float64 // share of the time in which neither server nor generator runs, in stalls of 1 to 30 ms

	common, own float64 // standard deviation of the level of a block: what all arms share, and each connection's own
	placed      float64 // by how much a connection is slower that is placed badly, as half of them are

	stalls []stall // drawn and not forgotten, in order
}

// stall is a time in which nothing runs.
type stall struct{ from, to float64 }

// mode is an influence that comes and goes, such as a neighbour or a low clock rate: present for a mean time, then
// absent for another, both exponential.
type mode struct {
	slower          float64
	present, absent float64
	on              bool
	at              float64 // when on was last drawn
}

// TurnHosts are all classes of hosts.
func TurnHosts() []TurnHost {
	return []TurnHost{
		{"quiet", func(*rand.Rand) machine { return machine{common: 0.01, own: 0.003} }},
		{"modes of 2 ms to 2 min", func(r *rand.Rand) machine { return machine{modes: modes(r), common: 0.01, own: 0.003} }},
		{"spells of 0.1 to 1 s, half as slow again", func(*rand.Rand) machine {
			return machine{modes: []mode{{slower: math.Log(1.5), present: 0.3, absent: 0.3}}, common: 0.01, own: 0.003}
		}},
		{"10 % stolen", func(*rand.Rand) machine { return machine{stolen: 0.1, common: 0.01, own: 0.003} }},
		{"25 % stolen", func(*rand.Rand) machine { return machine{stolen: 0.25, common: 0.01, own: 0.003} }},
		{"connections placed well or badly", func(r *rand.Rand) machine {
			return machine{common: 0.05, own: 0.01, placed: 0.1 * r.Float64()}
		}},
		{"drift", func(r *rand.Rand) machine {
			return machine{drift: 4 * (r.Float64() - 0.5), common: 0.01, own: 0.003}
		}},
		{"all of these", func(r *rand.Rand) machine {
			return machine{
				modes: modes(r), drift: 4 * (r.Float64() - 0.5), stolen: 0.25 * r.Float64(), common: 0.05,
				own: 0.01 * r.Float64(), placed: 0.05 * r.Float64(),
			}
		}},
	}
}

// modes draws one to three influences that slow the host by 5 to 100 %.
func modes(r *rand.Rand) []mode {
	sojourn := func() float64 { return 2e-3 * math.Pow(60_000, r.Float64()) }
	out := make([]mode, 1+r.IntN(3))
	for i := range out {
		m := mode{present: sojourn(), absent: sojourn()}
		m.slower = math.Log(1.05) * math.Pow(math.Ln2/math.Log(1.05), r.Float64())
		m.on = r.Float64() < m.present/(m.present+m.absent)
		out[i] = m
	}
	return out
}

// slower is by how much the host is slower at an instant, which must not be before the one asked for last.
func (m *machine) slower(r *rand.Rand, at float64) float64 {
	sum := m.drift * at / 3600
	for i := range m.modes {
		o := &m.modes[i]
		rest := o.present / (o.present + o.absent) // the chance long after
		chance := rest
		if passed := (at - o.at) * (1/o.present + 1/o.absent); passed < 30 {
			now := 0.0
			if o.on {
				now = 1
			}
			chance += (now - rest) * math.Exp(-passed)
		}
		o.on, o.at = r.Float64() < chance, at
		if o.on {
			sum += o.slower
		}
	}
	return sum
}

// run returns when work ends that is to start at from, which no stall that was forgotten may overlap.
func (m *machine) run(r *rand.Rand, from, work float64) (end float64) {
	end = from + work
	if m.stolen == 0 {
		return end
	}
	for i := 0; ; i++ {
		if i == len(m.stalls) {
			m.drawStall(r)
		}
		s := m.stalls[i]
		if s.from >= end {
			return end
		}
		if s.to > from {
			end += s.to - max(s.from, from)
		}
	}
}

// drawStall appends the next stall.
func (m *machine) drawStall(r *rand.Rand) {
	const shortest, longest = 1e-3, 30e-3
	const mean = (shortest + longest) / 2
	last := 0.0
	if n := len(m.stalls); n > 0 {
		last = m.stalls[n-1].to
	}
	from := last + mean*(1-m.stolen)/m.stolen*r.ExpFloat64()
	m.stalls = append(m.stalls, stall{from, from + shortest + (longest-shortest)*r.Float64()})
}

// forget drops the stalls that were over at an instant, but for the last one.
func (m *machine) forget(at float64) {
	over := 0
	for over+1 < len(m.stalls) && m.stalls[over].to <= at {
		over++
	}
	m.stalls = append(m.stalls[:0], m.stalls[over:]...)
}

// late reports whether a call that was due at an instant could not be sent for more than 1 ms, since the generator
// stood still.
func (m *machine) late(due float64) bool {
	const tolerated = 1e-3
	return slices.ContainsFunc(m.stalls, func(s stall) bool { return s.from <= due && due < s.to-tolerated })
}

// connection is the level of a fresh connection, besides what the block's connections share.
func (m *machine) connection(r *rand.Rand) float64 {
	level := m.own * r.NormFloat64()
	if r.IntN(2) == 0 {
		level += m.placed
	}
	return level
}
