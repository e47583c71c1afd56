package report

import (
	"tare/internal/design"
	"tare/internal/metric"
)

// Design is how an experiment of interleaved blocks was laid out, and how far it came.
type Design struct {
	Blocks  int     `json:"blocks"`  // complete ones: every treatment measured
	Planned int     `json:"planned"` // at most
	Looks   []int   `json:"looks,omitempty"`
	Alpha   float64 `json:"alpha"` // of one look, two-sided
	Margin  float64 `json:"margin"`
	// Factors are what was varied; a treatment's ID names the levels.
	Factors []string `json:"factors,omitempty"`
	Stopped string   `json:"stopped,omitempty"` // why it ended where it did
	// Unblocked: the values were not taken in interleaved blocks, so nothing may be called equivalent.
	Unblocked bool `json:"unblocked,omitempty"`
	// Undecidable says what so few blocks cannot decide, whatever they hold.
	Undecidable []string `json:"undecidable,omitempty"`
	// Late counts the blocks from which no times are taken, Dropped those from which nothing is: the generator was the
	// limit in them.
	Late    int `json:"late,omitempty"`
	Dropped int `json:"dropped,omitempty"`
	// Turn is the length of a turn in seconds, where treatments that are called at a rate took turns within a block; 0:
	// each had a trial of its own, or batches. Rounds is how many turns each had in a block.
	Turn   float64 `json:"turn,omitempty"`
	Rounds int     `json:"rounds,omitempty"`
	// Trials says why treatments that are called at a rate had trials of their own.
	Trials string `json:"trials,omitempty"`
	// Renewed counts the blocks before which tare started afresh what it had started for each treatment.
	Renewed int `json:"renewed,omitempty"`
	// SlowerRate is a rate in 1/s with which the target would keep up, where it did not in its turns; 0: it did.
	SlowerRate float64 `json:"slower_rate,omitempty"`
}

// BlockValues are one metric of one treatment, block by block: what effects are estimated from.
type BlockValues struct {
	Treatment string      `json:"treatment"`
	Operation string      `json:"operation,omitempty"`
	Metric    string      `json:"metric"`
	Quantile  string      `json:"quantile,omitempty"`
	Unit      metric.Unit `json:"unit"`
	Values    []*float64  `json:"values"` // by block; null: not measured in that block
	// Untold says why failed calls leave untold what the answered ones took; "" if they do not.
	Untold string `json:"-"`
}

// Percentiles are one metric's distribution over all calls or batches of a treatment.
type Percentiles struct {
	Treatment string       `json:"treatment"`
	Operation string       `json:"operation,omitempty"`
	Metric    string       `json:"metric"`
	Unit      metric.Unit  `json:"unit"`
	Of        string       `json:"of"` // "calls" or "batches"
	N         int          `json:"n"`  // of those
	Points    []Percentile `json:"points"`
}

// Percentile is one point of a distribution. An interval that cannot be estimated is absent.
type Percentile struct {
	Q     float64  `json:"q"` // 0.99
	Value float64  `json:"value"`
	Lo    *float64 `json:"lo,omitempty"`
	Hi    *float64 `json:"hi,omitempty"`
}

// Effect is the difference of a treatment from the baseline. Of kind "ratio" it is treated ÷ baseline − 1, so that 0.05
// is +5 %; of kind "difference" it is treated − baseline, in the metric's unit.
type Effect struct {
	Treatment string `json:"treatment"`
	// Baseline is the treatment it was compared with.
	Baseline       string        `json:"baseline,omitempty"`
	Metric         string        `json:"metric"`
	Quantile       string        `json:"quantile,omitempty"`
	Operation      string        `json:"operation,omitempty"`
	Unit           metric.Unit   `json:"unit,omitempty"` // of a quantity that only the area measures
	Kind           string        `json:"kind"`           // "ratio" or "difference"
	Estimate       float64       `json:"estimate"`
	Lo             float64       `json:"lo"`
	Hi             float64       `json:"hi"`
	Level          float64       `json:"level"`
	Verdict        EffectVerdict `json:"verdict"`
	Margin         *float64      `json:"margin,omitempty"`
	Measurable     bool          `json:"measurable"`
	MDE            *float64      `json:"mde,omitempty"` // smallest detectable effect
	BlocksToDecide *int          `json:"blocks_to_decide,omitempty"`
	// MarginGiven says that somebody set the margin; otherwise it is the default.
	MarginGiven bool `json:"margin_given,omitempty"`
	// BaselineHarness is the share of the harness in the baseline's figure.
	BaselineHarness *float64 `json:"baseline_harness,omitempty"`
	// Difference is what a ratio comes to on the baseline's median, or mean, in the metric's unit.
	Difference *float64 `json:"difference,omitempty"`
	// Gating effects decide budgets, verdicts and when to stop; the others are exploratory.
	Gating bool `json:"gating,omitempty"`
	// P is the p-value of no effect, Adjusted the same after Holm's (gating) or Benjamini and Hochberg's (exploratory)
	// correction.
	P        *float64 `json:"p,omitempty"`
	Adjusted *float64 `json:"adjusted,omitempty"`
	Blocks   int      `json:"blocks,omitempty"` // that it was estimated from
	// Control is set on the effect of an A/A arm or a negative control, where any effect is an artefact.
	Control design.Control `json:"control,omitempty"`
	// Reason says why there is no estimate, or what limits it.
	Reason string `json:"reason,omitempty"`
}

// Growth is the law by which a metric grows with a factor.
type Growth struct {
	Factor         string       `json:"factor"`
	Treatment      string       `json:"treatment"`
	Metric         string       `json:"metric"`
	Part           string       `json:"part,omitempty"` // of the target, whose metric it is; empty: all of it
	Quantile       string       `json:"quantile,omitempty"`
	Operation      string       `json:"operation,omitempty"`
	Unit           metric.Unit  `json:"unit,omitempty"`
	Law            string       `json:"law,omitempty"`  // named only with 10 sizes over 3 decades
	Best           string       `json:"best,omitempty"` // the form that fits best over the measured range
	Tied           []string     `json:"tied,omitempty"` // laws that fit as well
	Range          Interval     `json:"range"`
	Coefficients   Coefficients `json:"coefficients"`
	C0Lo           *float64     `json:"c0_lo,omitempty"` // of c0
	C0Hi           *float64     `json:"c0_hi,omitempty"`
	Lo             *float64     `json:"lo,omitempty"` // of c1
	Hi             *float64     `json:"hi,omitempty"`
	Level          *float64     `json:"level,omitempty"`
	BreaksBudgetAt *Crossing    `json:"breaks_budget_at,omitempty"`
	Budget         string       `json:"budget,omitempty"` // the one that it breaks
	// Knee is where the slope changes, if two segments fit much better than one.
	Knee *Crossing `json:"knee,omitempty"`
	// Bend is what the cost is like on both sides of the knee.
	Bend *Bend `json:"bend,omitempty"`
	// Step is a jump between two neighbouring sizes; with one, best and the coefficients are of the sizes before it. Never
	// together with a knee.
	Step   *Step         `json:"step,omitempty"`
	Points []GrowthPoint `json:"points,omitempty"`
	// Constant bounds the growth over the range, as a share of the smallest size's cost. A law is called constant only
	// where Exact.
	Constant *Interval `json:"constant,omitempty"`
	// Exact: all sizes cost the same in all blocks, to the last digit.
	Exact bool `json:"exact,omitempty"`
	// Reason says why no law is named.
	Reason string `json:"reason,omitempty"`
}

// A Step is a jump of a cost between two neighbouring sizes: up to From it follows one form, from To on Factor times
// that.
type Step struct {
	From   float64  `json:"from"`
	To     float64  `json:"to"`
	Factor float64  `json:"factor"`
	Lo     *float64 `json:"lo,omitempty"` // of the factor
	Hi     *float64 `json:"hi,omitempty"`
	// Across is the cost at To as a multiple of that at From, as it was measured, whatever the form.
	Across   *float64 `json:"across,omitempty"`
	AcrossLo *float64 `json:"across_lo,omitempty"`
	AcrossHi *float64 `json:"across_hi,omitempty"`
	// Before and After are the sizes of each side by themselves, where there are at least 6 of them.
	Before *GrowthSide `json:"before,omitempty"`
	After  *GrowthSide `json:"after,omitempty"`
}

// A GrowthSide is how a cost grows on one side of a step. Its fields are those of a Growth.
type GrowthSide struct {
	Range        Interval     `json:"range"`
	Law          string       `json:"law,omitempty"`
	Best         string       `json:"best"`
	Tied         []string     `json:"tied,omitempty"`
	Coefficients Coefficients `json:"coefficients"`
	C0Lo         *float64     `json:"c0_lo,omitempty"`
	C0Hi         *float64     `json:"c0_hi,omitempty"`
	Lo           *float64     `json:"lo,omitempty"`
	Hi           *float64     `json:"hi,omitempty"`
	Constant     *Interval    `json:"constant,omitempty"`
	Reason       string       `json:"reason,omitempty"`
}

// A Bend is the form of a cost with a knee: linear with Slope and from the knee on with Steeper, or constant at Base up
// to the knee and from there on approaching Ceiling, as Base + (Ceiling−Base)·(1 − knee/N) does.
type Bend struct {
	Base    Coefficient  `json:"base"` // at N = 0
	Slope   *Coefficient `json:"slope,omitempty"`
	Steeper *Coefficient `json:"steeper,omitempty"`
	Ceiling *Coefficient `json:"ceiling,omitempty"`
}

// A Coefficient is an estimated constant of a form.
type Coefficient struct {
	Value float64  `json:"value"`
	Lo    *float64 `json:"lo,omitempty"`
	Hi    *float64 `json:"hi,omitempty"`
}

// GrowthPoint is what one size cost.
type GrowthPoint struct {
	N     float64  `json:"n"`
	Value float64  `json:"value"`
	Lo    *float64 `json:"lo,omitempty"`
	Hi    *float64 `json:"hi,omitempty"`
	// Fitted is the law's value, with its band.
	Fitted   *float64 `json:"fitted,omitempty"`
	FittedLo *float64 `json:"fitted_lo,omitempty"`
	FittedHi *float64 `json:"fitted_hi,omitempty"`
}

// Coefficients of a growth law c0 + c1·g(N).
type Coefficients struct {
	C0 float64 `json:"c0"`
	C1 float64 `json:"c1"`
}

// Crossing is the level at which a law reaches a budget.
type Crossing struct {
	Value float64  `json:"value"`
	Lo    *float64 `json:"lo,omitempty"`
	Hi    *float64 `json:"hi,omitempty"`
	// Extrapolated: it lies beyond the measured sizes.
	Extrapolated bool `json:"extrapolated,omitempty"`
	// InStep: it lies between the two sizes of a step, and no nearer is known.
	InStep bool `json:"in_step,omitempty"`
}
