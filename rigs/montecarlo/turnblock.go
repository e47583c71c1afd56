package montecarlo

import (
	"math"
	"math/rand/v2"
	"slices"

	"tare/internal/stat"
)

// The arms of a comparison by turns.
const (
	baseArm = iota
	sameArm // the A/A arm
	treatedArm
	turnArms
)

// turnPlan is how the calls of a block are made.
type turnPlan struct {
	rounds, calls int     // turns of each arm in a block, calls in each turn
	skip          int     // the calls at the beginning of a turn that are left out
	turn          float64 // seconds
}

// usualTurns are blocks of 3 s: 20 rounds of three turns of 50 ms, with calls at 200/s.
func usualTurns() turnPlan { return turnPlan{rounds: 20, calls: 10, skip: 2, turn: 0.05} }

const betweenBlocks = 0.1 // seconds in which connections are opened

// turnCase is one kind of comparison by turns.
type turnCase struct {
	host    TurnHost
	service TurnService
	plan    turnPlan
	treated change
	after   float64 // by how much (a logarithm) a turn of the treated arm slows the turn that follows
	layout  float64 // standard deviation of what a process adds for as long as it lives
	restart int     // after how many blocks the processes of the baseline and of the treatment are restarted; 0: never
}

// comparison is a turnCase in progress.
type comparison struct {
	turnCase
	r       *rand.Rand
	m       machine
	now     float64
	block   int
	process [turnArms]float64 // what the process of each arm adds
	last    int               // the arm that had the last turn
}

func (c turnCase) start(r *rand.Rand) *comparison {
	return &comparison{turnCase: c, r: r, m: c.host.draw(r), last: -1}
}

// armBlock is what one arm did in one block, by round.
type armBlock struct {
	calls  [][]float64
	late   []int // calls that the generator sent more than 1 ms late
	before []int // the arm that had the turn before
	// What values of blocks are computed from:
	medians, means []float64
	pooled         []float64 // all calls, ascending
}

// next runs the next block.
func (c *comparison) next() *[turnArms]armBlock {
	c.restartProcesses()
	c.now += betweenBlocks
	var out [turnArms]armBlock
	var levels [turnArms]float64
	shared := c.m.common * c.r.NormFloat64()
	for a := range out {
		levels[a] = shared + c.m.connection(c.r) + c.process[a]
		out[a].calls = make([][]float64, c.plan.rounds)
		out[a].late, out[a].before = make([]int, c.plan.rounds), make([]int, c.plan.rounds)
	}
	order := [turnArms]int{0, 1, 2}
	for round := range c.plan.rounds {
		c.r.Shuffle(turnArms, func(i, j int) { order[i], order[j] = order[j], order[i] })
		for _, a := range order {
			level := levels[a]
			if c.last == treatedArm {
				level += c.after
			}
			out[a].before[round] = c.last
			out[a].calls[round], out[a].late[round] = c.turn(a, level)
			c.last = a
		}
	}
	for a := range out {
		out[a].summarize()
	}
	c.block++
	return &out
}

// restartProcesses draws what processes add, where the next block has new ones. The A/A arm is the baseline's process.
func (c *comparison) restartProcesses() {
	if c.block > 0 && (c.restart == 0 || c.block%c.restart != 0) {
		return
	}
	c.process[baseArm], c.process[treatedArm] = c.layout*c.r.NormFloat64(), c.layout*c.r.NormFloat64()
	c.process[sameArm] = c.process[baseArm]
}

// turn makes the calls of one turn: at even distances, and timed from when they were due, on a server that can serve
// all of them at once. The next turn begins when the last call has ended.
func (c *comparison) turn(a int, level float64) (times []float64, late int) {
	times = make([]float64, 0, c.plan.calls-c.plan.skip)
	c.m.forget(c.now)
	begin, over := c.now, c.now+c.plan.turn
	for i := range c.plan.calls {
		due := begin + c.plan.turn*float64(i)/float64(c.plan.calls)
		work := c.service.draw(c.r)
		if a == treatedArm {
			work = c.treated(c.r, work)
		}
		work *= math.Exp(level + c.m.slower(c.r, due))
		end := c.m.run(c.r, due, work)
		over = max(over, end)
		if c.m.late(due) {
			late++
		}
		if i >= c.plan.skip {
			times = append(times, end-due)
		}
	}
	c.now = over
	return times, late
}

func (b *armBlock) summarize() {
	for _, calls := range b.calls {
		b.medians = append(b.medians, stat.TurnMedian(calls))
		b.means = append(b.means, stat.Mean(calls))
		b.pooled = append(b.pooled, calls...)
	}
	slices.Sort(b.pooled)
}
