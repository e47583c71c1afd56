package cli

import (
	"context"
	"fmt"
	"math"
	"os"
	"strings"
	"time"

	"tare/area"
	"tare/internal/analyze"
	"tare/internal/config"
	"tare/internal/design"
	"tare/internal/doctor"
	"tare/internal/record"
	"tare/internal/report"
	"tare/internal/stat"
	"tare/internal/unit"
)

// Time that a trial takes in addition to its load: to apply the treatment and to verify that it is in force.
const (
	trialOverhead = 250 * time.Millisecond
	batchOverhead = 60 * time.Millisecond // of an arm that times its operations itself
	turnsOverhead = 80 * time.Millisecond // of an arm that takes turns
)

// rehearsal is how long a plan measures this host's noise; a busy one takes longer.
const rehearsal = 3 * time.Second

// power is the probability that a run finds an effect of the size that a plan calls visible.
const power = 0.8

// planBlocks prints the design of a comparison, how long it takes, and how small an effect it can detect, and returns
// how long all its blocks take. made is the program that makes its calls, if there is one.
func (a *app) planBlocks(ctx context.Context, e *config.Experiment, made area.Program,
	p func(label, format string, args ...any),
) time.Duration {
	arms, looks := len(e.Arms()), design.Looks(e.Blocks)
	var parts []string
	for _, l := range looks {
		parts = append(parts, fmt.Sprint(l))
	}
	p("blocks", "at most %d, each with all %d arms in random order; results are judged after %s, and the run ends when "+
		"they are decided", e.Blocks, arms, strings.Join(parts, ", "))
	if t, why := e.LayTurns(); t != nil {
		p("turns", "of %s, %d of each arm in a block, in an order drawn for each round; calls of two arms are never in "+
			"flight together", unit.Duration(t.Length), t.Rounds)
	} else if why != "" {
		p("trials", "each arm has its own in a block, one after another: %s", why)
	}
	block := blockTime(e, made)
	blocks := time.Duration(e.Blocks) * block
	first, last := made.Once+time.Duration(looks[0])*block, made.Once+blocks
	line := fmt.Sprintf("about %s", rounded(last))
	if first < last {
		line = fmt.Sprintf("about %s to the first look, %s for all blocks", rounded(first), rounded(last))
	}
	if e.Afresh() > 0 {
		line += "; what is started and proved before the first block comes on top"
	}
	if most := time.Duration(e.Load.MaxTime); blocks > most {
		line += fmt.Sprintf("; no block starts if it would end after max_time, %s", unit.Duration(most))
		if made.Once > 0 {
			line += ", counted from the first block"
		}
	}
	p("takes", "%s", line)
	if made.Counts != "" {
		p("", "%s", made.Counts)
	}
	planGates(e, made, p)
	batches := e.Target.Says().Batches != nil
	if !batches {
		p("replaces", "blocks in which the generator was late, with at most %d more, within max_time", design.Spare(e.Blocks))
	}
	for _, text := range analyze.Undecidable(e.Blocks, !batches) {
		p("undecidable", "%s", text)
	}
	if seen := a.visible(ctx, e, made, looks); seen != "" {
		p("sees", "%s", seen)
	}
	return last
}

func rounded(d time.Duration) time.Duration {
	if d > time.Minute {
		return d.Round(time.Second)
	}
	return d.Round(100 * time.Millisecond)
}

// batchesOf returns the batches of each trial: those that the program describes, else those of the file. ok: the area
// measures batches.
func batchesOf(e *config.Experiment, made area.Program) (batches []area.Batches, ok bool) {
	own := e.Target.Says().Batches
	if own == nil || len(made.Batches) > 0 {
		return made.Batches, own != nil
	}
	return own, true
}

// blockTime predicts the duration of a block.
func blockTime(e *config.Experiment, made area.Program) time.Duration {
	trial := trialOverhead
	if batches, ok := batchesOf(e, made); ok {
		trial = batchOverhead
		for _, op := range batches {
			trial += time.Duration(op.Rounds+1) * op.Span
		}
	} else {
		d := time.Duration(e.Load.Duration)
		warm := min(max(d/5, 500*time.Millisecond), 10*time.Second)
		if turns, _ := e.LayTurns(); turns != nil {
			d, warm, trial = turns.Block(1), turns.Length, turnsOverhead
		}
		trial += d + warm
	}
	return e.Afresh() + time.Duration(len(e.Arms()))*trial + made.Block
}

// visible describes the smallest effect that the experiment can detect: from an earlier run of the same name if there
// is one, otherwise from the noise of this host.
func (a *app) visible(ctx context.Context, e *config.Experiment, made area.Program, looks []int) string {
	if s := visibleFromEarlier(e, looks); s != "" {
		return s
	}
	batches, _ := batchesOf(e, made)
	if len(batches) == 0 || onlyWall(made) || countsInstructions(e.Scope()) {
		return "unknown before the first run: only its blocks show how much the figures vary; a later plan uses them"
	}
	self, err := os.Executable()
	if err != nil {
		return ""
	}
	noise, err := doctor.Rehearse(ctx, self, batches[0].Rounds, rehearsal)
	if err != nil || math.IsNaN(noise) {
		return "unknown: the noise of this host could not be measured"
	}
	at := func(blocks int) string {
		return unit.Decimal(100*stat.DetectableEffect(noise/math.Sqrt(float64(blocks)), stat.LookAlpha, power), 2) + " %"
	}
	return fmt.Sprintf("CPU effects of about %s, estimated from equal work on this host just now; the first run measures "+
		"it for each workload", inBlocks(at, looks))
}

// visibleFromEarlier describes the smallest detectable effects of the A/A arm of the latest run of the same name.
func visibleFromEarlier(e *config.Experiment, looks []int) string {
	dir, err := newest(resultsDir, func(h *record.Header) bool { return h.Experiment.Name == e.Name })
	if err != nil || dir == "" {
		return ""
	}
	rec, err := record.Open(dir)
	if err != nil {
		return ""
	}
	rep, err := analyze.Analyze(rec, analyze.Options{})
	if err != nil || rep.AA == nil {
		return ""
	}
	return fromAA(rep.AA.Effects, looks, dir)
}

func fromAA(effects []report.Effect, looks []int, dir string) string {
	worst, at, name := 0.0, 0, ""
	for _, x := range effects {
		if x.Gating && x.MDE != nil && *x.MDE > worst {
			worst, at, name = *x.MDE, x.Blocks, strings.TrimPrefix(x.Operation+"."+x.Metric, ".")
		}
	}
	if at == 0 {
		return ""
	}
	scaled := func(blocks int) string {
		return unit.Decimal(100*worst*math.Sqrt(float64(at)/float64(blocks)), 2) + " %"
	}
	return fmt.Sprintf("effects of about %s, on the noisiest gating metric (%s), by the A/A arm of %s",
		inBlocks(scaled, looks), name, dir)
}

// inBlocks prints an effect's size after the first and after the last look.
func inBlocks(size func(blocks int) string, looks []int) string {
	first, last := looks[0], looks[len(looks)-1]
	if first == last {
		return fmt.Sprintf("%s in %s", size(last), unit.Count(last, "block"))
	}
	return fmt.Sprintf("%s in %s, %s in %d", size(first), unit.Count(first, "block"), size(last), last)
}
