// Package sequence draws, before anything is timed, which image each call asks for, and with which secret.
package sequence

import (
	"fmt"
	"math"
	"math/rand/v2"
)

// The patterns.
const (
	Uniform    = "uniform"     // all images with equal probability
	Zipf       = "zipf"        // the k-th image in proportion to k^-Exponent
	WorkingSet = "working-set" // a share Inside of the calls goes to Window images, which move on by one every Step calls
	Scan       = "scan"        // one after the other, cyclically
	// each of Pods pods asks for its image; a share Turnover of the pods switch to another one, drawn from Zipf's
	// distribution
	Churn = "churn"
)

const (
	// Inside is the share of the calls of a working set that stay in it.
	Inside = 0.95
	// Step is the number of calls after which a working set moves on by one image.
	Step = 200
	// Pods is the number of concurrent pods under churn: the kubelet's default of maxPods.
	Pods = 110
)

// Patterns returns all patterns.
func Patterns() []string { return []string{Uniform, Zipf, WorkingSet, Scan, Churn} }

// Config configures a sequence.
type Config struct {
	Pattern  string
	Records  int     // images with a record: 0…Records-1
	Unknown  int     // images without one: Records…Records+Unknown-1, requested in turn
	Hits     float64 // share of the calls that ask for an image with a record, 0…1
	Exponent float64 // of Zipf and Churn, above 1
	Window   int     // of WorkingSet
	Turnover float64 // of Churn, 0…1
	Secrets  int     // per record; drawn uniformly
}

// A Sequence continues from batch to batch, so that a cache sees one long sequence. It is not safe for concurrent use.
type Sequence struct {
	c       Config
	r       *rand.Rand
	next    func() int
	unknown int // how many were requested
}

// New starts a sequence. The same seed draws the same one.
func New(c Config, seed uint64) (*Sequence, error) {
	if c.Records < 1 || c.Secrets < 1 || !(c.Hits >= 0 && c.Hits <= 1) || (c.Hits < 1 && c.Unknown < 1) {
		return nil, fmt.Errorf("sequence of %d records, %d unknown images, %d secrets, hits %v",
			c.Records, c.Unknown, c.Secrets, c.Hits)
	}
	s := &Sequence{c: c, r: rand.New(rand.NewPCG(seed, 0x7461_7265))}
	switch c.Pattern {
	case Uniform:
		s.next = func() int { return s.r.IntN(c.Records) }
	case Zipf:
		s.next = s.zipf()
	case WorkingSet:
		s.next = s.workingSet()
	case Scan:
		i := -1
		s.next = func() int { i = (i + 1) % c.Records; return i }
	case Churn:
		s.next = s.churn()
	default:
		return nil, fmt.Errorf("pattern %q: want one of %v", c.Pattern, Patterns())
	}
	if s.next == nil {
		return nil, fmt.Errorf("exponent %v: want more than 1", c.Exponent)
	}
	return s, nil
}

func (s *Sequence) zipf() func() int {
	z := rand.NewZipf(s.r, s.c.Exponent, 1, uint64(s.c.Records-1))
	if z == nil {
		return nil
	}
	return func() int { return int(z.Uint64()) }
}

func (s *Sequence) workingSet() func() int {
	base, n, window := 0, 0, max(1, min(s.c.Window, s.c.Records))
	return func() int {
		n++
		if n%Step == 0 {
			base = (base + 1) % s.c.Records
		}
		if s.r.Float64() < Inside {
			return (base + s.r.IntN(window)) % s.c.Records
		}
		return s.r.IntN(s.c.Records)
	}
}

func (s *Sequence) churn() func() int {
	draw := s.zipf()
	if draw == nil {
		return nil
	}
	var pods [Pods]int
	for i := range pods {
		pods[i] = draw()
	}
	return func() int {
		i := s.r.IntN(Pods)
		if s.r.Float64() < s.c.Turnover {
			pods[i] = draw()
		}
		return pods[i]
	}
}

// Fill draws a batch: the image of each call, and which of its record's secrets. It spreads calls for images without a
// record evenly; their number is the same in every batch of the same length.
func (s *Sequence) Fill(images, secrets []int32) {
	for i := range images {
		secrets[i] = 0
		if s.c.Secrets > 1 {
			secrets[i] = int32(s.r.IntN(s.c.Secrets))
		}
		if known(i, s.c.Hits) {
			images[i] = int32(s.next())
			continue
		}
		images[i] = int32(s.c.Records + s.unknown%s.c.Unknown)
		s.unknown++
	}
}

// known spreads the share over the calls with Bresenham's line algorithm.
func known(i int, share float64) bool {
	return math.Floor(float64(i+1)*share) > math.Floor(float64(i)*share)
}
