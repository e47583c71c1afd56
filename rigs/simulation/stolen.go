package simulation

import (
	"math/rand/v2"
	"sort"
	"time"

	"tare/internal/load"
)

// A stolen processor stands still in bursts of 1 to 30 ms, as one does that a hypervisor takes away.
type stolen struct {
	rng   *rand.Rand
	share float64
	begin []time.Duration
	end   []time.Duration
}

// The shortest and the longest burst.
const shortestBurst, longestBurst = time.Millisecond, 30 * time.Millisecond

// resume returns when the processor runs again that is at t: t itself unless a burst is under way.
func (s *stolen) resume(t time.Duration) time.Duration {
	if s == nil {
		return t
	}
	for len(s.end) == 0 || s.end[len(s.end)-1] <= t {
		last := time.Duration(0)
		if n := len(s.end); n > 0 {
			last = s.end[n-1]
		}
		burst := shortestBurst + time.Duration(s.rng.Float64()*float64(longestBurst-shortestBurst))
		rest := s.rng.ExpFloat64() * float64(burst) * (1 - s.share) / s.share
		s.begin = append(s.begin, last+time.Duration(rest))
		s.end = append(s.end, last+time.Duration(rest)+burst)
	}
	i := sort.Search(len(s.end), func(i int) bool { return s.end[i] > t })
	if s.begin[i] <= t {
		return s.end[i]
	}
	return t
}

// effort is what the kernel accounts for a segment of load on two processors; nil where nothing is stolen.
func (w *World) effort(d time.Duration) *load.Effort {
	if w.generator == nil || d <= 0 {
		return nil
	}
	all := 2 * d.Seconds()
	return &load.Effort{Seconds: d.Seconds(), Host: &load.Processors{All: all, Stolen: w.generator.share * all}}
}

// Steal takes a share of the generator's and, by itself, of the server's processor away. The generator sends and the
// server answers late; the server's capacity stays what it is.
func (w *World) Steal(share float64, seed uint64) {
	if share > 0 {
		w.generator = &stolen{rng: rand.New(rand.NewPCG(seed, 1)), share: share}
		w.host = &stolen{rng: rand.New(rand.NewPCG(seed, 2)), share: share}
	}
}
