package load

// mix draws operations by weight. The draw depends only on the seed and the call's number, so it is the same whatever
// the shards do.
type mix struct {
	seed  uint64
	upTo  []uint64 // cumulative weights
	total uint64
}

func newMix(ops []Operation, seed uint64) mix {
	m := mix{seed: seed}
	for _, o := range ops {
		m.total += uint64(o.Weight)
		m.upTo = append(m.upTo, m.total)
	}
	return m
}

func (m *mix) pick(i uint64) uint8 {
	if len(m.upTo) == 1 {
		return 0
	}
	x := splitmix(m.seed+i*0x9e3779b97f4a7c15) % m.total
	for k, u := range m.upTo {
		if x < u {
			return uint8(k)
		}
	}
	return 0
}

// splitmix is the finalizer of SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014).
func splitmix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
