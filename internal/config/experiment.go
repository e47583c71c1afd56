package config

import (
	"tare/area"
	"tare/internal/design"
	"tare/internal/unit"
)

// An Experiment is one experiment file. Fields that the file leaves out are zero; WithDefaults fills them in.
type Experiment struct {
	// Name becomes the name of the run's folder.
	Name string `yaml:"name" json:"name" jsonschema:"required,pattern=^[A-Za-z0-9][A-Za-z0-9._-]*$,maxLength=64" jsonschema_description:"Name of the experiment; results go to results/<name>-<UTC stamp>/."`
	// Area is the family of controls under test.
	Area string `yaml:"area" json:"area" jsonschema:"required" jsonschema_description:"Family of controls under test."`
	// Question is what the experiment asks.
	Question design.Question `yaml:"question" json:"question" jsonschema:"required"`
	// Target is the area's own section.
	Target area.Spec `yaml:"target" json:"target" jsonschema:"required" jsonschema_description:"The system under test; its fields depend on the area."`
	// Baseline is the treatment that the others are compared with.
	Baseline Levels `yaml:"baseline,omitempty" json:"baseline,omitempty" jsonschema_description:"Levels of the baseline, the treatment that the others are compared with: {factor: level}."`
	// Alternatives are the treatments besides the baseline.
	Alternatives []Levels `yaml:"treatments,omitempty" json:"treatments,omitempty" jsonschema:"minItems=1" jsonschema_description:"Treatments besides the baseline, each as {factor: level}. Each names every factor of the baseline."`
	// Factors are crossed with each other and with every treatment.
	Factors Factors `yaml:"factors,omitempty" json:"factors,omitempty" jsonschema_description:"Factors to vary, each with its levels in order: {policies: [1, 10, 100]}. Every combination becomes a treatment."`
	// Fixed are levels that all treatments share.
	Fixed Levels `yaml:"fixed,omitempty" json:"fixed,omitempty" jsonschema_description:"Levels that all treatments share: {factor: level}."`
	// Margin is the largest effect that still counts as equivalent, as a share of the baseline.
	Margin unit.Percent `yaml:"margin,omitempty" json:"margin,omitempty" jsonschema_description:"Largest effect that still counts as equivalent, as a share of the baseline: 2%."`
	// DefaultMargin reports that WithDefaults set the margin, since the file does not.
	DefaultMargin bool `yaml:"-" json:"-"`
	// Budget holds one limit per entry, in the grammar of package budget; Budgets parses them.
	Budget []string `yaml:"budget,omitempty" json:"budget,omitempty" jsonschema_description:"Limits to be held: [treatment:] [operation.]metric[.quantile] <= limit [at rate]. A limit with a sign (+5%) is against the baseline."`
	// Load says how calls are offered.
	Load Load `yaml:"load,omitempty" json:"load,omitzero" jsonschema_description:"How calls are offered to the target."`
	// Pin binds processes to CPUs.
	Pin Pin `yaml:"pin,omitempty" json:"pin,omitzero" jsonschema_description:"CPUs for the generator and for the target, so that they do not disturb each other."`
	// Seed draws the plan, arrivals and mix; nil: the run draws one and records it.
	Seed *uint64 `yaml:"seed,omitempty" json:"seed,omitempty" jsonschema_description:"Draws the order of trials, arrivals and the mix. Without it the run draws one and records it."`
	// Blocks is how often every treatment is measured at most; 0: the question's default.
	Blocks int `yaml:"blocks,omitempty" json:"blocks,omitempty" jsonschema:"minimum=1,maximum=10000" jsonschema_description:"How often every treatment is measured at most, in random order within each block; a run stops earlier when it has its answer. Default 40."`

	// Full is what the experiment is on request, where the file itself is a shortened form of it.
	Full *Full `yaml:"full,omitempty" json:"full,omitempty" jsonschema_description:"The whole of an experiment that is shortened by default: with --full, these fields take the place of the file's own."`

	kept  []string    // treatments by ID that are measured; nil: all
	whole *Experiment // with Full in place; nil: there is none

	quantities []area.Quantity // that only the area measures
}

// Full holds the fields that --full puts in the place of the file's own.
type Full struct {
	Alternatives []Levels `yaml:"treatments,omitempty" json:"treatments,omitempty" jsonschema:"minItems=1" jsonschema_description:"Treatments besides the baseline."`
	Factors      Factors  `yaml:"factors,omitempty" json:"factors,omitempty" jsonschema_description:"Factors to vary."`
	Fixed        Levels   `yaml:"fixed,omitempty" json:"fixed,omitempty" jsonschema_description:"Levels that all treatments share."`
	Blocks       int      `yaml:"blocks,omitempty" json:"blocks,omitempty" jsonschema:"minimum=1,maximum=10000" jsonschema_description:"How often every treatment is measured at most."`
	Load         Load     `yaml:"load,omitempty" json:"load,omitzero" jsonschema_description:"Fields of the load that change; the others stay as they are."`
}

// Whole is the experiment with what --full asks for; ok is false where the file has no section full.
func (e *Experiment) Whole() (whole *Experiment, ok bool) { return e.whole, e.whole != nil }

// Load says how calls are offered to a target.
type Load struct {
	// Arrivals is the arrival process of an open loop.
	Arrivals Arrivals `yaml:"arrivals,omitempty" json:"arrivals,omitempty" jsonschema:"enum=constant,enum=poisson,enum=ramp" jsonschema_description:"Arrival process of the open loop: constant (default), poisson, or ramp (from 0 to rate over the duration)."`
	// Rate is what an open loop offers; where a capacity search starts.
	Rate unit.Rate `yaml:"rate,omitempty" json:"rate,omitempty" jsonschema_description:"Calls offered per second: 150/s. In a capacity search, the rate to start from."`
	// Rates makes a ladder of a capacity experiment: one trial of Duration at each, instead of a search.
	Rates []unit.Rate `yaml:"rates,omitempty" json:"rates,omitempty" jsonschema:"minItems=1,maxItems=1000" jsonschema_description:"A ladder instead of a search (capacity only): one trial at each rate."`
	// Workloads make a ladder of shapes that are more than a rate.
	Workloads []Workload `yaml:"workloads,omitempty" json:"workloads,omitempty" jsonschema:"minItems=1,maxItems=1000" jsonschema_description:"A ladder of workloads instead of a search (capacity only): pod starts, synchronised expiry, a reboot."`
	// Duration is the length of one trial.
	Duration unit.Duration `yaml:"duration,omitempty" json:"duration,omitempty" jsonschema_description:"How long each treatment is measured in a block. Default for compare and scale: 10s where treatments have trials of their own, or as long as 1,000 calls take, up to a minute, where no CPU time can be read; where they take turns, a share of the 3 s of a block. For soak, the time that is measured; the warm-up comes before it."`
	// DefaultDuration reports that WithDefaults set Duration, since the file does not.
	DefaultDuration bool `yaml:"-" json:"-"`
	// Turns says whether treatments that are called at a rate take turns.
	Turns Turns `yaml:"turns,omitempty" json:"turns,omitempty" jsonschema:"enum=auto,enum=on,enum=off" jsonschema_description:"Whether the treatments of compare and scale take turns of about 50 ms within a block (auto: where they can, the default; on: or the file is refused) or have one trial after another (off)."`
	// Timeout counts from the instant at which a call was due.
	Timeout unit.Duration `yaml:"timeout,omitempty" json:"timeout,omitempty" jsonschema_description:"When a call is given up, counted from the instant at which it was due. Default 30s."`
	// MaxRate bounds everything that is offered.
	MaxRate unit.Rate `yaml:"max_rate,omitempty" json:"max_rate,omitempty" jsonschema_description:"The most that is sent to targets, the load and all checks together. Required for a target off this machine."`
	// MaxConnections bounds the connection pool.
	MaxConnections int `yaml:"max_connections,omitempty" json:"max_connections,omitempty" jsonschema:"minimum=1,maximum=1000000" jsonschema_description:"Most connections open at once. Default 256; 4096 for capacity."`
	// Engine carries the calls.
	Engine Engine `yaml:"engine,omitempty" json:"engine,omitempty" jsonschema:"enum=auto,enum=fast,enum=std" jsonschema_description:"What carries the calls: auto (default), fast (HTTP/1.1 in plaintext), or std (TLS, HTTP/2, everything else)."`
	// Closed replaces the open loop by workers.
	Closed *Closed `yaml:"closed,omitempty" json:"closed,omitempty" jsonschema_description:"A closed loop instead of an open one: workers that each send the next call when the last has ended."`
	// Operations is the mix.
	Operations Operations `yaml:"operations,omitempty" json:"operations,omitempty" jsonschema_description:"The mix of operations with their weights: [{token: 3}, {identity: 1}]. Without it, the target's own mix."`
	// Trespass is the share of calls that the control must refuse.
	Trespass unit.Percent `yaml:"trespass,omitempty" json:"trespass,omitempty" jsonschema_description:"Share of the calls that the control must refuse, mixed into the others: 10% (the default of guard). Guard raises it where a point would have too few. In capacity there are none by default; in soak 1% where they only ask."`
	// KeepMix reports that WithDefaults set Trespass for a soak: the mix of the file stays as it is.
	KeepMix bool `yaml:"-" json:"-"`
	// Conditions are what happens to the target under load.
	Conditions []Condition `yaml:"conditions,omitempty" json:"conditions,omitempty" jsonschema:"maxItems=16" jsonschema_description:"What is done to the target under load (guard only): names of conditions such as restart, slow, starved, reload, partition, cold, revoke, and conditions of your own: {name: no-database, do: [docker, pause, db], undo: [docker, unpause, db]}. Default: all that the area can bring about on a target that tare started; [] for none."`
	// Abort ends a trial that does harm.
	Abort *Abort `yaml:"abort,omitempty" json:"abort,omitempty" jsonschema_description:"Ends the run when the target fails. Default off this machine: {error: 50%, for: 10s}; for soak, which outlives a restart of its target, {error: 50%, for: 5m}."`
	// SLO asks a capacity search for a second number.
	SLO *SLO `yaml:"slo,omitempty" json:"slo,omitempty" jsonschema_description:"Asks a capacity search also for the highest rate at which at most this share of calls is slower than the limit; on a ladder, the goodput within the limit is given for each point."`
	// Precise takes completion instants at the client's own wake-up.
	Precise bool `yaml:"precise,omitempty" json:"precise,omitempty" jsonschema_description:"Wake up for every answer instead of taking the kernel's receive timestamps: costs CPU, and includes the client's own wake-up."`
	// Spin is how long before a deadline a shard spins instead of sleeping.
	Spin unit.Duration `yaml:"spin,omitempty" json:"spin,omitempty" jsonschema_description:"How long before each send the generator spins instead of sleeping, at most 1ms: 60us. Needs a spare CPU."`
	// Shards is the number of event loops.
	Shards int `yaml:"shards,omitempty" json:"shards,omitempty" jsonschema:"minimum=1,maximum=1024" jsonschema_description:"Event loops of engine fast. Default: CPUs − 1, at least 1."`
	// MaxTime bounds a whole search, or all blocks of a comparison.
	MaxTime unit.Duration `yaml:"max_time,omitempty" json:"max_time,omitempty" jsonschema_description:"When a capacity search must end, with or without an answer. Compare and scale begin no block that would end later; default 30m. Guard begins no point that would end later, for each treatment; default 10m."`
}

// Arrivals names an arrival process.
type Arrivals string

// The arrival processes.
const (
	Constant Arrivals = "constant" // evenly spaced
	Poisson  Arrivals = "poisson"  // exponentially distributed gaps
	Ramp     Arrivals = "ramp"     // linearly from 0 to the rate
)

// Turns says whether treatments take turns.
type Turns string

// The ways.
const (
	TurnsAuto Turns = "auto" // where they can
	TurnsOn   Turns = "on"   // or the file is refused
	TurnsOff  Turns = "off"  // each treatment has a trial of its own in a block
)

// Engine names the machinery that carries calls, as the file spells it.
type Engine string

// The engines.
const (
	Auto Engine = "auto"
	Fast Engine = "fast"
	Std  Engine = "std"
)

// Closed describes a closed loop.
type Closed struct {
	// Workers is how many callers there are.
	Workers int `yaml:"workers" json:"workers" jsonschema:"required,minimum=1,maximum=100000" jsonschema_description:"How many workers call one after another."`
	// Ramp is the time over which the workers start.
	Ramp unit.Duration `yaml:"ramp,omitempty" json:"ramp,omitempty" jsonschema_description:"Time over which the workers start evenly."`
}

// Abort says when a run does harm and must end.
type Abort struct {
	// Error is the share of calls that fail.
	Error unit.Percent `yaml:"error" json:"error" jsonschema:"required" jsonschema_description:"Share of failing calls."`
	// For is how long that share lasts.
	For unit.Duration `yaml:"for" json:"for" jsonschema:"required" jsonschema_description:"How long the share must last."`
}

// SLO is a service-level objective on the response time.
type SLO struct {
	// Limit is the response time, from the instant at which a call was due.
	Limit unit.Duration `yaml:"limit" json:"limit" jsonschema:"required" jsonschema_description:"Response time that a call should keep, from the instant at which it was due: 500ms."`
	// Share is how many calls may break it. Default 1 %.
	Share unit.Percent `yaml:"share,omitempty" json:"share,omitempty" jsonschema_description:"Share of calls that may be slower. Default 1%."`
}

// Pin binds processes to CPUs.
type Pin struct {
	// Generator is where the load generator runs.
	Generator CPUs `yaml:"generator,omitempty" json:"generator,omitempty" jsonschema_description:"CPUs of the load generator: \"0\" or \"0-1,4\"."`
	// Target is where embedded servers run.
	Target CPUs `yaml:"target,omitempty" json:"target,omitempty" jsonschema_description:"CPUs of the embedded target."`
}
