// Package record keeps what a run did in one folder: an append-only journal, raw calls and histograms. Reports are
// computed from records alone, so records must stay readable in later versions.
package record

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"tare/area"
	"tare/internal/design"
	"tare/internal/load"
	"tare/internal/metric"
)

// Schema is carried by every line that this version writes.
const Schema = schemaName + "/v1"

const (
	schemaName    = "tare.record"
	schemaVersion = 1
)

// The files of a record's folder. Raw calls are in further files, calls-*.bin.
const (
	JournalFile    = "record.jsonl"
	LatencyFile    = "latency.hlog"
	ExperimentFile = "experiment.yaml"
)

// Kind says what a line of the journal holds.
type Kind string

// The kinds. A reader keeps lines of unknown kinds uninterpreted.
const (
	KindHeader     Kind = "header"
	KindPlan       Kind = "plan"
	KindPrepare    Kind = "prepare"
	KindVerify     Kind = "verify"
	KindTrialBegin Kind = "trial-begin"
	KindStep       Kind = "step"
	KindSamples    Kind = "samples"
	KindGenerator  Kind = "generator"
	KindCalls      Kind = "calls"
	KindCells      Kind = "cells"
	KindBatches    Kind = "batches"
	KindWindow     Kind = "window"
	KindLook       Kind = "look"
	KindHost       Kind = "host"
	KindSlice      Kind = "slice"
	KindAnswers    Kind = "answers"
	KindServed     Kind = "served"
	KindTrialEnd   Kind = "trial-end"
	KindChange     Kind = "change"
	KindNote       Kind = "note"
	KindWarning    Kind = "warning"
	KindResume     Kind = "resume"
	KindFinish     Kind = "finish"
)

// Entry is one line of the journal.
type Entry struct {
	Schema string          `json:"schema"`
	Kind   Kind            `json:"kind"`
	At     time.Time       `json:"at"`
	Data   json.RawMessage `json:"data,omitempty"`
}

// Header says what was run, with which tare, and where. It is the first line.
type Header struct {
	Tool       Tool            `json:"tool"`
	Experiment Experiment      `json:"experiment"`
	Area       string          `json:"area"`
	Question   design.Question `json:"question"`
	Started    time.Time       `json:"started"`
	Host       Host            `json:"host"`
	// ID identifies the run and is drawn at random; "": an early record has none. Seal is the header's seal by the
	// key of the user who ran it (Key), absent if there was no key.
	ID   string `json:"id,omitempty"`
	Seal string `json:"seal,omitempty"`
	// Key seals what is written; it is not written itself.
	Key Key `json:"-"`
	// Program identifies the program that makes the calls (area.Program.Identity); nil: there is none, or the record
	// is an early one.
	Program map[string]string `json:"program,omitempty"`
}

// Tool is the tare that wrote the record.
type Tool struct {
	Version string `json:"version"`
	Commit  string `json:"commit,omitempty"`
}

// Experiment names the experiment file. Create fills SHA256 from the file's content.
type Experiment struct {
	Name   string `json:"name"`
	File   string `json:"file,omitempty"` // as given on the command line
	SHA256 string `json:"sha256,omitempty"`
	Seed   uint64 `json:"seed"`
	// Full says that the run used the section "full" of the experiment.
	Full bool `json:"full,omitempty"`
}

// Host is the machine on which the generator ran.
type Host struct {
	Name   string `json:"name,omitempty"`
	Kernel string `json:"kernel,omitempty"`
	CPUs   int    `json:"cpus,omitempty"`
	Go     string `json:"go,omitempty"`
	Arch   string `json:"arch,omitempty"`
}

// Plan is what the run was to do.
type Plan struct {
	Treatments []design.Treatment `json:"treatments"`
	Trials     []design.Trial     `json:"trials,omitempty"`
	Load       Load               `json:"load"`
	Budget     []string           `json:"budget,omitempty"` // as written in the file
	// Notes are limits of the target that every report must carry.
	Notes []string `json:"notes,omitempty"`
	// Margin is the largest effect, as a share of the baseline, that counts as equivalent.
	Margin float64 `json:"margin,omitempty"`
	// MarginGiven says that somebody set the margin; otherwise it is the default.
	MarginGiven bool `json:"margin_given,omitempty"`
	// Factors are what is varied, with the levels in the order of the file.
	Factors []Factor `json:"factors,omitempty"`
	// Blocks is the maximum number of blocks; Looks are the numbers of blocks after which the run is judged.
	Blocks int   `json:"blocks,omitempty"`
	Looks  []int `json:"looks,omitempty"`
	// Quantities describe what only the area measures, so that a report needs no area.
	Quantities []metric.Metric `json:"quantities,omitempty"`
	// Unblocked says that the trials were not taken in interleaved blocks: results of another tool.
	Unblocked bool `json:"unblocked,omitempty"`
	// Made is what another tool's file says of where and with what all of its results were made: "cpu", "JVM".
	Made map[string]string `json:"made,omitempty"`
}

// Factor is a property that the experiment varies.
type Factor struct {
	Name   string   `json:"name"`
	Levels []string `json:"levels"`
}

// Batches are the costs of one operation with its own clock in a trial.
type Batches struct {
	Treatment string `json:"treatment"`
	Block     int    `json:"block"`
	Operation string `json:"operation"`
	Metric    string `json:"metric"` // a known one, or one of Plan.Quantities
	N         int    `json:"n"`      // calls in each batch
	// Unread is how many further calls there may have been, at most, that nobody can read: lines of another tool's file.
	Unread int `json:"unread,omitempty"`
	// Step is the clock's resolution, of which all values are multiples, in the metric's base unit; 0: none was seen.
	Step float64 `json:"step,omitempty"`
	// Values are per call in the metric's base unit, one for each batch, in order of time.
	Values []float64 `json:"values"`
}

// Window is the measured part of a trial. Calls scheduled before it are warm-up. Instants are relative to the trial's
// stream.
type Window struct {
	Treatment string        `json:"treatment"`
	Block     int           `json:"block"`
	Start     time.Duration `json:"start"`
	End       time.Duration `json:"end"`
	// Turns are the parts of the window in which the treatment was called, where treatments take turns, in order. Those of
	// all treatments that have the same place are one round. Settle is the begin of each turn in which times do not count.
	Turns  []Turn        `json:"turns,omitempty"`
	Settle time.Duration `json:"settle,omitempty"`
}

// A Turn is one turn of a treatment: calls that are due in it belong to it, though they may end after it.
type Turn struct {
	Start time.Duration `json:"start"`
	End   time.Duration `json:"end"`
}

// Surroundings is what the host did during a block, for tare and for others, as differences.
type Surroundings struct {
	Block   int             `json:"block"`
	Seconds float64         `json:"seconds"`
	Samples []metric.Sample `json:"samples"`
}

// Look is one judgement of a growing run.
type Look struct {
	Blocks int    `json:"blocks"`
	Lost   int    `json:"lost,omitempty"` // of those, the blocks whose times could not be used
	Stop   bool   `json:"stop"`
	Reason string `json:"reason"` // why the run stopped, or what is still undecided
}

// Load is the experiment's load section with its defaults filled in. Times are in seconds, rates in 1/s; 0: none.
type Load struct {
	Engine         string    `json:"engine,omitempty"`
	Arrivals       string    `json:"arrivals,omitempty"` // "constant", "poisson"
	Timeout        float64   `json:"timeout,omitempty"`
	MaxRate        float64   `json:"max_rate,omitempty"`
	MaxConnections int       `json:"max_connections,omitempty"`
	Rates          []float64 `json:"rates,omitempty"` // of a ladder
	Rate           float64   `json:"rate,omitempty"`
	Workers        int       `json:"workers,omitempty"`  // of a closed loop
	Duration       float64   `json:"duration,omitempty"` // of one treatment in a block
	// Turns are the turns of the treatments within a block; nil: they had trials of their own, and NoTurns may say why.
	Turns   *design.Turns `json:"turns,omitempty"`
	NoTurns string        `json:"no_turns,omitempty"`
}

// Prepare is the result of preparing a treatment.
type Prepare struct {
	Treatment string  `json:"treatment"`
	Seconds   float64 `json:"seconds"`
	Error     string  `json:"error,omitempty"`
	// Permitted and Refused are the requests about which the treatment's control was asked, and what it decided; of those
	// in Undecided it is not known. They stand in an entry of their own, which follows when all treatments are prepared.
	Permitted []string `json:"permitted,omitempty"`
	Refused   []string `json:"refused,omitempty"`
	Undecided []string `json:"undecided,omitempty"`
	// Unasked says in what the control differs from the baseline's so that it may permit more, and what of it no trespass
	// tries.
	Unasked []string `json:"unasked,omitempty"`
	// Changed is what the control changed of requests that it permitted, for all of them of which that is known.
	Changed map[string][]string `json:"changed,omitempty"`
}

// Verify says whether a treatment was verified to be in force.
type Verify struct {
	Treatment string `json:"treatment"`
	Block     int    `json:"block"`
	OK        bool   `json:"ok"`
	Error     string `json:"error,omitempty"` // what failed verification
	// Unproved says what was seen in place of a proof, where nothing that must be refused was asked; see area.Can.
	Unproved string `json:"unproved,omitempty"`
	// After says that it was verified when its trial had ended; before, it was so once already.
	After bool `json:"after,omitempty"`
}

// When says when it was verified, behind "not in force".
func (v *Verify) When() string {
	if v.After {
		return " any more after its load"
	}
	return ""
}

// TrialBegin opens a trial. Later entries with the same treatment and block belong to it.
type TrialBegin struct {
	design.Trial
	Operations []string `json:"operations"` // names, in the order of load.Call.Operation
	// Causes are the operations' names of their causes of failure, by load.Call.Cause − load.OwnCauses.
	Causes [][]string `json:"causes,omitempty"`
	// Negative are the negative controls: operations that the treatment cannot affect.
	Negative []string `json:"negative,omitempty"`
	// Harness are the operations that do nothing: their cost is what the harness adds to the others.
	Harness []string `json:"harness,omitempty"`
	// Twins names, by trespass, the operation whose must-refuse twin it is; see load.Operation.
	Twins map[string]string `json:"twins,omitempty"`
	// Breaches are, by operation that must be allowed, those of its causes that break the control; see load.Operation.
	Breaches map[string][]int `json:"breaches,omitempty"`
	// Overhead names, by operation, the one of Harness whose cost it includes; for an operation not listed it is the most
	// expensive one.
	Overhead map[string]string `json:"overhead,omitempty"`
	// Answers are the expected answer of each operation, CauseAnswers the answers that have causes; see load.Operation.
	Answers      []string   `json:"answers,omitempty"`
	CauseAnswers [][]string `json:"cause_answers,omitempty"`
	// Renewed: what tare started for the treatment was started afresh before this trial.
	Renewed bool `json:"renewed,omitempty"`
}

// Step is an entry of a question's own. Its payload is opaque here: the question's package encodes and decodes it.
type Step struct {
	Treatment string          `json:"treatment"`
	Block     int             `json:"block"`
	Name      string          `json:"name"` // "step", "trace"
	Payload   json.RawMessage `json:"payload"`
}

// When is the moment of a reading in its trial.
type When string

// The readings of a trial. Costs are the differences of the first two.
const (
	Before When = "before"
	During When = "during"
	After  When = "after"
)

// Samples is one reading of the probes.
type Samples struct {
	Treatment string          `json:"treatment"`
	Block     int             `json:"block"`
	When      When            `json:"when"`
	Point     int             `json:"point,omitempty"` // of a ladder, from 1; 0: the reading frames the whole trial
	Samples   []metric.Sample `json:"samples"`
}

// Generator is the audit of the load generator over a trial, with what only the runner knows. Times in seconds.
type Generator struct {
	Treatment string `json:"treatment"`
	Block     int    `json:"block"`
	Engine    string `json:"engine,omitempty"`
	Offered   uint64 `json:"offered"` // calls that were scheduled
	Sent      uint64 `json:"sent"`
	// scheduled and unsent because no connection was free: not the generator's fault
	Unsendable uint64  `json:"unsendable,omitempty"`
	Seconds    float64 `json:"seconds"`
	CPUSeconds float64 `json:"cpu_seconds"`
	BytesIn    uint64  `json:"bytes_in,omitempty"`
	BytesOut   uint64  `json:"bytes_out,omitempty"`
	// Reason says why the trial shows the generator's limit instead of the target's; empty: it does not.
	Reason string `json:"reason,omitempty"`
	// Workers is the number of workers of a closed loop; 0: it was an open loop.
	Workers int `json:"workers,omitempty"`
	// Effort is what the generator's threads did in the same period; nil: unknown, or recorded step by step.
	Effort *load.Effort `json:"effort,omitempty"`
	// Placement is where generator and target ran; nil: an early record does not say it.
	Placement *Placement `json:"placement,omitempty"`
}

// Placement says on which processors, numbered from 0, generator and target may run.
type Placement struct {
	Generator []int `json:"generator"`
	// Local says that the target runs on the generator's host, and Target on which processors; empty: all.
	Local  bool  `json:"local"`
	Target []int `json:"target,omitempty"`
}

// Shared returns the processors that both may use.
func (p *Placement) Shared() []int {
	switch {
	case !p.Local:
		return nil
	case len(p.Target) == 0:
		return p.Generator
	}
	var out []int
	for _, c := range p.Generator {
		if slices.Contains(p.Target, c) {
			out = append(out, c)
		}
	}
	return out
}

// callsRef names a file with raw calls of a trial.
type callsRef struct {
	Treatment string `json:"treatment"`
	Block     int    `json:"block"`
	File      string `json:"file"`
}

// cellsRef says where in LatencyFile a trial's histograms are, and counts them.
type cellsRef struct {
	Treatment string  `json:"treatment"`
	Block     int     `json:"block"`
	Offset    int64   `json:"offset"`
	Length    int64   `json:"length"`
	Counts    []Count `json:"counts"`
}

// Count is how many calls of an operation had an outcome.
type Count struct {
	Operation string       `json:"operation"`
	Outcome   load.Outcome `json:"outcome"`
	Count     uint64       `json:"count"`
	Unsent    uint64       `json:"unsent,omitempty"` // of a Timeout: how many calls were never sent
}

// resumption says that another process continues the record.
type resumption struct {
	ID   string `json:"id,omitempty"`   // of that process, as Header.ID of the first; see Writer.Run
	Undo bool   `json:"undo,omitempty"` // it only undoes: the run's status does not change
}

// Status is how a trial or a run ended.
type Status string

// The statuses. A trial or run without one was killed.
const (
	Complete    Status = "complete"
	Dropped     Status = "dropped"     // a trial that an interrupt cut short: not judged
	Interrupted Status = "interrupted" // a run that was asked to stop
	Errored     Status = "error"
)

// TrialEnd closes a trial.
type TrialEnd struct {
	Treatment string  `json:"treatment"`
	Block     int     `json:"block"`
	Seconds   float64 `json:"seconds"`
	Status    Status  `json:"status"`
	Error     string  `json:"error,omitempty"`
}

// Change is an entry of the undo journal.
type Change struct {
	State  ChangeState `json:"state"`
	Change area.Change `json:"change"`
	Seal   string      `json:"seal,omitempty"` // by the key of the user who made the change, with the seal before it
}

// ChangeState says whether a change may exist.
type ChangeState string

// The states: a change may exist from Intended until Undone.
const (
	Intended ChangeState = "intended"
	Undone   ChangeState = "undone"
)

// Note is a remark on a result that is no warning: a limit of the target, or a fallback.
type Note struct {
	Treatment string `json:"treatment,omitempty"`
	Text      string `json:"text"`
}

// Warning is a doubt about a result.
type Warning struct {
	Treatment string `json:"treatment,omitempty"`
	Text      string `json:"text"`
}

// Finish is the last line of a run that was not killed.
type Finish struct {
	Status  Status  `json:"status"`
	Seconds float64 `json:"seconds"`
	Error   string  `json:"error,omitempty"`
	Seal    string  `json:"seal,omitempty"` // as that of a change
}

// NewerError means that a record needs a newer tare than this one.
type NewerError struct {
	File   string
	Schema string
}

// Error implements error.
func (e *NewerError) Error() string {
	return fmt.Sprintf("%s is %s, written by a newer tare; this one reads %s/v1 to v%d: update tare to read it",
		e.File, e.Schema, schemaName, schemaVersion)
}

// checkSchema rejects lines that this version may not understand.
func checkSchema(file, schema string) error {
	v, ok := strings.CutPrefix(schema, schemaName+"/v")
	n, err := strconv.Atoi(v)
	if !ok || err != nil || n < 1 {
		return fmt.Errorf("schema %q is not a tare record", schema)
	}
	if n > schemaVersion {
		return &NewerError{File: file, Schema: schema}
	}
	return nil
}

// Served is what the target itself measured of the requests in a trial, as the difference of two readings, one right
// before the trial's probes and one right after. The period is: in a comparison, the window, with warm-up calls that
// ended in it; in a capacity search, the whole trial; in a soak, the measured part. It includes the requests of other
// clients.
type Served struct {
	Treatment string `json:"treatment"`
	Block     int    `json:"block"`
	area.Served
	// Restarted says that the target restarted meanwhile: its totals begin with the restart, and earlier ones are lost.
	Restarted bool `json:"restarted,omitempty"`
	// Error says why it could not be read.
	Error string `json:"error,omitempty"`
}

// Served writes the target's own measurements.
func (w *Writer) Served(s Served) error { return w.put(KindServed, s) }
