// Package report is the model of a result and its output formats. Field names and meanings are a public format:
// additions are allowed within v1, a rename or a changed meaning is v2. What is unknown is absent, never 0.
package report

import (
	"time"

	"tare/internal/design"
	"tare/internal/metric"
	"tare/internal/signature"
)

// Schema names this version of the format.
const Schema = "tare.report/v1"

// Report is everything that one run has to say. Times are in seconds, rates in 1/s, sizes in bytes.
type Report struct {
	Schema     string          `json:"schema"`
	Tool       Tool            `json:"tool"`
	Experiment Experiment      `json:"experiment"`
	Area       string          `json:"area"`
	Question   design.Question `json:"question"`
	Started    time.Time       `json:"started"`
	Seconds    float64         `json:"seconds"`
	// Status says whether the run came to its end: "complete", "interrupted", "killed" or "error". Only complete runs are
	// judged whole.
	Status  Status  `json:"status"`
	Verdict Verdict `json:"verdict"`
	// Reason says in one sentence why the verdict is what it is.
	Reason     string      `json:"reason,omitempty"`
	Treatments []Treatment `json:"treatments"`
	// Quantities describe what only the area measures.
	Quantities []metric.Metric `json:"quantities,omitempty"`
	Operations []Operation     `json:"operations,omitempty"`
	Effects    []Effect        `json:"effects,omitempty"`
	// Additions are what one control of several costs in the presence of the others. They decide nothing.
	Additions   []Effect      `json:"additions,omitempty"`
	Growth      []Growth      `json:"growth,omitempty"`
	Design      *Design       `json:"design,omitempty"`
	Diff        *Diff         `json:"diff,omitempty"`
	Blocks      []BlockValues `json:"blocks,omitempty"`
	Percentiles []Percentiles `json:"percentiles,omitempty"`
	Harness     []Harness     `json:"harness,omitempty"`
	Capacity    []Capacity    `json:"capacity,omitempty"`
	Guard       []Guard       `json:"guard,omitempty"`
	Soak        []Soak        `json:"soak,omitempty"`
	Timeline    []Timeline    `json:"timeline,omitempty"`
	SLO         []SLO         `json:"slo,omitempty"`
	Attribution []Attribution `json:"attribution,omitempty"`
	Phases      []Phase       `json:"phases,omitempty"`
	Served      []Served      `json:"served,omitempty"`
	Target      []Target      `json:"target,omitempty"`
	Generator   *Generator    `json:"generator,omitempty"`
	AA          *AA           `json:"aa,omitempty"`
	Budgets     []Budget      `json:"budgets,omitempty"`
	Answers     []AnswerCheck `json:"answers,omitempty"`
	Notes       []string      `json:"notes,omitempty"`
	Warnings    []string      `json:"warnings,omitempty"`
	Environment Environment   `json:"environment"`
}

// Tool is the tare that took the measurements.
type Tool struct {
	Version string `json:"version"`
	Commit  string `json:"commit,omitempty"`
}

// Experiment names what was run.
type Experiment struct {
	Name   string `json:"name"`
	File   string `json:"file,omitempty"`
	SHA256 string `json:"sha256,omitempty"`
	Seed   uint64 `json:"seed"`
}

// Status is how the run ended.
type Status string

// The statuses.
const (
	Complete    Status = "complete"
	Interrupted Status = "interrupted" // somebody asked it to stop
	Killed      Status = "killed"      // its record simply ends
	Errored     Status = "error"
)

// Verdict judges a budget or a whole run.
type Verdict string

// The verdicts. Invalid and None are for the run only.
const (
	Pass         Verdict = "pass"
	Fail         Verdict = "fail"
	Inconclusive Verdict = "inconclusive"
	NotMeasured  Verdict = "not-measured" // of a run: it failed before it had measured what it was asked
	Invalid      Verdict = "invalid"      // generator saturated, control not in force, A/A differs
	None         Verdict = "none"         // no budget was given
)

// Verdicts are all verdicts.
func Verdicts() []Verdict { return []Verdict{Pass, Fail, Inconclusive, NotMeasured, Invalid, None} }

// EffectVerdict judges a difference between a treatment and the baseline.
type EffectVerdict string

// The verdicts of effects. Slower and Faster are differences from zero that may lie within the margin. NotJudged
// effects have an interval that no verdict rests on: there were too few blocks for one.
const (
	Regressed          EffectVerdict = "regressed"
	Improved           EffectVerdict = "improved"
	Equivalent         EffectVerdict = "equivalent"
	Slower             EffectVerdict = "slower"
	Faster             EffectVerdict = "faster"
	EffectInconclusive EffectVerdict = "inconclusive"
	NotJudged          EffectVerdict = "not-judged"
)

// EffectVerdicts are all verdicts of effects.
func EffectVerdicts() []EffectVerdict {
	return []EffectVerdict{Regressed, Improved, Equivalent, Slower, Faster, EffectInconclusive, NotJudged}
}

// Interval is a confidence interval.
type Interval struct {
	Lo float64 `json:"lo"`
	Hi float64 `json:"hi"`
}

// Treatment is one arm of the experiment.
type Treatment struct {
	ID       string            `json:"id"`
	Baseline bool              `json:"baseline"`
	Control  design.Control    `json:"control,omitempty"`
	Levels   map[string]string `json:"levels,omitempty"`
	Verified bool              `json:"verified"` // proved in force
	// NotInForce says why the check of a control failed; empty: it did not fail, or there was none.
	NotInForce string `json:"not_in_force,omitempty"`
	// Unproved says what was seen in place of a proof: nothing that must be refused was asked; empty: there was a proof.
	Unproved string `json:"unproved,omitempty"`
	// Permits are the requests that the baseline's control refuses and this one permits, of all that both were asked.
	Permits []string `json:"permits,omitempty"`
	// Refuses are the requests that this control refuses and the baseline's permits, of all that both were asked.
	Refuses []string `json:"refuses,omitempty"`
	// Unshown says what this control may permit although it must refuse it, or the baseline's does: no request shows it.
	Unshown []string `json:"unshown,omitempty"`
	// Alters are the requests of which this control makes another object than the baseline's, of all that both were asked.
	Alters  []Alteration `json:"alters,omitempty"`
	Metrics []Metric     `json:"metrics,omitempty"`
}

// Alteration is a request of which two controls make different objects.
type Alteration struct {
	Request string `json:"request"`
	// Here are the changes that only this control makes, and Baseline those that only the baseline's makes:
	// "metadata.labels.team = \"a\"".
	Here     []string `json:"only_here,omitempty"`
	Baseline []string `json:"only_baseline,omitempty"`
}

// Metric is an estimate over blocks, or over the windows of a soak.
type Metric struct {
	Name      string   `json:"name"`
	Quantile  string   `json:"quantile,omitempty"` // "p99"
	Operation string   `json:"operation,omitempty"`
	Unit      string   `json:"unit"`
	Value     float64  `json:"value"`
	Lo        *float64 `json:"lo,omitempty"`
	Hi        *float64 `json:"hi,omitempty"`
	Level     *float64 `json:"level,omitempty"` // of confidence, 0.95
	N         int      `json:"n"`               // blocks or windows, never requests
	// Harness is the share of Value that the harness itself costs; nothing is subtracted from Value.
	Harness *float64 `json:"harness,omitempty"`
}

// Operation is what happened to the calls of one operation under one treatment.
type Operation struct {
	Treatment string   `json:"treatment"`
	Operation string   `json:"operation"`
	Outcomes  Outcomes `json:"outcomes"`
	Offered   *float64 `json:"offered,omitempty"`  // calls due per second of the window
	Achieved  *float64 `json:"achieved,omitempty"` // calls sent per second of the window
	Goodput   *float64 `json:"goodput,omitempty"`  // ok and denied per second of the window, counted when they ended within it
	// Response is done − intended of the calls that ended, where a timeout counts as long as it took; Service is done −
	// sent of those that were sent; PoolWait is the wait for a connection.
	Response *Distribution `json:"response,omitempty"`
	Service  *Distribution `json:"service,omitempty"`
	PoolWait *Distribution `json:"pool_wait,omitempty"`
	// Causes count the calls that did not end well by what was seen, the most frequent first.
	Causes   []Cause `json:"causes,omitempty"`
	BytesIn  *uint64 `json:"bytes_in,omitempty"`
	BytesOut *uint64 `json:"bytes_out,omitempty"`
	Little   *Little `json:"little,omitempty"`
	// Answers count what the answers said, where the area tells more than good and bad apart: {"permit": 120, "deny": 3}.
	Answers map[string]uint64 `json:"answers,omitempty"`
}

// Cause is one way in which calls did not end well.
type Cause struct {
	Outcome string `json:"outcome"` // a key of Outcomes
	Cause   string `json:"cause"`   // "status 503", "connection refused", "the answer is not HTTP/1.1"
	Calls   uint64 `json:"calls"`
}

// Outcomes counts calls. Unsent are those of the timeouts that never left; Outstanding had not ended when the record
// was written.
type Outcomes struct {
	OK          uint64 `json:"ok"`
	Denied      uint64 `json:"denied"`
	Wrong       uint64 `json:"wrong"`
	Refused     uint64 `json:"refused"`
	Timeout     uint64 `json:"timeout"`
	Unsent      uint64 `json:"unsent"`
	ConnFailed  uint64 `json:"conn_failed"`
	Failed      uint64 `json:"failed"`
	Permitted   uint64 `json:"permitted,omitempty"` // trespasses: a breach
	Outstanding uint64 `json:"outstanding,omitempty"`
}

// Good is goodput's count.
func (o Outcomes) Good() uint64 { return o.OK + o.Denied }

// Ended is how many calls ended, in whatever way.
func (o Outcomes) Ended() uint64 {
	return o.OK + o.Denied + o.Wrong + o.Refused + o.Timeout + o.ConnFailed + o.Failed + o.Permitted
}

// Add adds the counts of p.
func (o *Outcomes) Add(p *Outcomes) {
	o.OK, o.Denied, o.Wrong, o.Refused = o.OK+p.OK, o.Denied+p.Denied, o.Wrong+p.Wrong, o.Refused+p.Refused
	o.Timeout, o.Unsent, o.ConnFailed = o.Timeout+p.Timeout, o.Unsent+p.Unsent, o.ConnFailed+p.ConnFailed
	o.Failed, o.Permitted, o.Outstanding = o.Failed+p.Failed, o.Permitted+p.Permitted, o.Outstanding+p.Outstanding
}

// Distribution sums up times in seconds. Quantiles are nearest-rank; one that needs more calls than there were is
// absent, since it would only repeat the maximum.
type Distribution struct {
	N      uint64   `json:"n"`
	Min    float64  `json:"min"`
	Mean   float64  `json:"mean"`
	Stddev *float64 `json:"stddev,omitempty"`
	P50    *float64 `json:"p50,omitempty"`
	P90    *float64 `json:"p90,omitempty"`
	P95    *float64 `json:"p95,omitempty"`
	P99    *float64 `json:"p99,omitempty"`
	P999   *float64 `json:"p999,omitempty"`
	Max    float64  `json:"max"`
	// OwnAtMost bounds how much of a response time can be the generator's own delay, by quantile: {"p99": 0.0017}. Absent:
	// no bound is known.
	OwnAtMost map[string]float64 `json:"own_at_most,omitempty"`
}

// Little compares a closed loop's concurrency with rate × mean response.
type Little struct {
	Expected float64 `json:"expected"`
	Observed float64 `json:"observed"`
}

// SLO is a published service level objective of a control plane and what it came to by one of the published formulas,
// or by the time that tare's own clock took at the client. They can disagree on one run. Times in seconds.
type SLO struct {
	Treatment string   `json:"treatment,omitempty"`
	Name      string   `json:"name"`                // "mutating", "read", "pod-startup"
	Subject   string   `json:"subject,omitempty"`   // of API calls: "POST pods", "14 other kinds"
	Operation string   `json:"operation,omitempty"` // of the run, where it consists of such requests
	Formula   Formula  `json:"formula"`
	Verdict   Verdict  `json:"verdict"`
	Quantile  *float64 `json:"quantile,omitempty"` // that Value is of
	Value     *float64 `json:"value,omitempty"`
	// Lo and Hi bound Value: by the bucket of the server's histogram, or for the client as an interval at Level.
	Lo    *float64 `json:"lo,omitempty"`
	Hi    *float64 `json:"hi,omitempty"`
	Level *float64 `json:"level,omitempty"`
	Limit float64  `json:"limit"`
	N     uint64   `json:"n,omitempty"` // requests, or pods
	// Rate is the rate at which it was judged, in 1/s, and Held whether the target held that rate: of a search for a
	// capacity only, which goes to both sides of what the target can take. Both are absent elsewhere.
	Rate *float64 `json:"rate,omitempty"`
	Held *bool    `json:"held,omitempty"`
	// Basis says what the value is of, and by which clock; Note what it is not: the maximum of few, from a coarse
	// histogram.
	Basis string `json:"basis,omitempty"`
	Note  string `json:"note,omitempty"`
}

// Formula is a way to turn measurements into the verdict on a service level objective.
type Formula string

// The formulas. ClientClock is no published one.
const (
	Official       Formula = "official"
	ClusterLoader2 Formula = "clusterloader2"
	KubeBurner     Formula = "kube-burner"
	ClientClock    Formula = "client" // tare's own clock, around the whole call
)

// Formulas are all formulas, in the order in which they are told.
func Formulas() []Formula { return []Formula{Official, ClusterLoader2, KubeBurner, ClientClock} }

// Attribution splits the mean time of one call over the parts of a control plane, by what the control plane measured
// itself while the calls ran. Times in seconds; what is not known is absent.
type Attribution struct {
	Treatment string   `json:"treatment,omitempty"`
	Operation string   `json:"operation"`
	Total     *float64 `json:"total,omitempty"`     // as the client sees it, from when the call was sent
	Client    *float64 `json:"client,omitempty"`    // outside of the server's own clock: the client, TLS, the network
	Webhook   *float64 `json:"webhook,omitempty"`   // waiting for webhooks
	Admission *float64 `json:"admission,omitempty"` // admission within the server's process
	Storage   *float64 `json:"storage,omitempty"`   // etcd
	Other     *float64 `json:"other,omitempty"`     // the rest within the server: decoding, authorization, encoding
	Server    *float64 `json:"server,omitempty"`    // by the server's own clock: all but Client
	N         uint64   `json:"n,omitempty"`         // requests that the server counted
	Note      string   `json:"note,omitempty"`
}

// Phase is the distribution of one phase of an operation over all trials of a treatment. Times in seconds.
type Phase struct {
	Treatment string  `json:"treatment"`
	Operation string  `json:"operation"`
	Phase     string  `json:"phase"`
	N         uint64  `json:"n"`
	Mean      float64 `json:"mean"`
	P50       float64 `json:"p50"`
	P90       float64 `json:"p90"`
	P99       float64 `json:"p99"`
	Max       float64 `json:"max"`
}

// Served are the requests of one kind by the server's own clock, over all trials of a treatment, from the buckets of
// its histogram: quantiles are interpolated within a bucket, and absent where they lie beyond the last. Times in
// seconds.
type Served struct {
	Treatment string   `json:"treatment"`
	Verb      string   `json:"verb"`
	Resource  string   `json:"resource"`
	Scope     string   `json:"scope,omitempty"`
	N         uint64   `json:"n"`
	Mean      float64  `json:"mean"`
	P50       *float64 `json:"p50,omitempty"`
	P90       *float64 `json:"p90,omitempty"`
	P99       *float64 `json:"p99,omitempty"`
	First     *float64 `json:"first,omitempty"`    // the bound of the first bucket: of a quantile below it no more is known
	Last      *float64 `json:"last,omitempty"`     // the bound of the last bucket: an absent quantile lies beyond it
	Measured  bool     `json:"measured,omitempty"` // an operation of the run consists of such requests
}

// Target is what one part of the system under test used over the trials of a treatment: differences, never lifetime
// totals.
type Target struct {
	Treatment    string     `json:"treatment"`
	Name         string     `json:"name"`
	PID          *int       `json:"pid,omitempty"`
	CPUSeconds   *float64   `json:"cpu_seconds,omitempty"`
	CPUPerOp     *float64   `json:"cpu_per_op,omitempty"` // CPU-seconds per call that was answered well
	RSS          *RSS       `json:"rss,omitempty"`
	GC           []GC       `json:"gc,omitempty"`
	Throttled    *Throttled `json:"throttled,omitempty"`
	StartSeconds *float64   `json:"start_seconds,omitempty"`
	LoadSeconds  *float64   `json:"load_seconds,omitempty"` // of the policies, part of StartSeconds
	Heap         *Heap      `json:"heap,omitempty"`
	Restarts     int        `json:"restarts,omitempty"` // times that its process was replaced
	// Other are the remaining probed metrics by name: the difference of a counter, the last value of a gauge.
	Other map[string]float64 `json:"other,omitempty"`
}

// RSS is resident memory.
type RSS struct {
	Before *float64 `json:"before,omitempty"`
	After  *float64 `json:"after,omitempty"`
	Peak   *float64 `json:"peak,omitempty"`
}

// GC is one collector's work.
type GC struct {
	Name    string  `json:"name"`
	Count   float64 `json:"count"`
	Seconds float64 `json:"seconds"`
}

// Throttled is what a CPU limit took.
type Throttled struct {
	Periods *float64 `json:"periods,omitempty"`
	Seconds *float64 `json:"seconds,omitempty"`
}

// Generator is the audit of the load generator itself.
type Generator struct {
	Valid         bool      `json:"valid"`
	Lateness      *Lateness `json:"lateness,omitempty"`
	AchievedRatio *float64  `json:"achieved_ratio,omitempty"` // sent ÷ due, of what could be sent
	CPUSeconds    *float64  `json:"cpu_seconds,omitempty"`
	Reason        string    `json:"reason,omitempty"`
	// Verdict is what can be said of the generator's part in the result; empty: nothing, as in early reports.
	Verdict signature.GeneratorVerdict `json:"verdict,omitempty"`
	// Doubts are why the generator is not ruled out, Evidence is what was measured of its threads.
	Doubts   []string `json:"doubts,omitempty"`
	Evidence []string `json:"evidence,omitempty"`
}

// Lateness is sent − max(intended, ready), the generator's own fault.
type Lateness struct {
	P50 float64 `json:"p50"`
	P99 float64 `json:"p99"`
	Max float64 `json:"max"`
}

// AA is what the experiment's checks of itself found.
type AA struct {
	Effects          []Effect `json:"effects,omitempty"`
	Reliable         bool     `json:"reliable"`
	NegativeControls []Effect `json:"negative_controls,omitempty"`
	// Unchecked says why no effect of the baseline on itself could be estimated; empty: one was.
	Unchecked string `json:"unchecked,omitempty"`
	// Remedy says what to change in the experiment so that one can be; empty: nothing but more blocks.
	Remedy string `json:"remedy,omitempty"`
}

// Budget is a limit from the experiment file and what it came to for one treatment. Numbers are in Unit; those of a
// limit against the baseline are changes: a ratio of 0.05 is +5 %.
type Budget struct {
	Text      string      `json:"text"`
	Line      int         `json:"line,omitempty"` // of the experiment file
	Treatment string      `json:"treatment,omitempty"`
	Verdict   Verdict     `json:"verdict"`
	Unit      metric.Unit `json:"unit,omitempty"`
	Estimate  *float64    `json:"estimate,omitempty"`
	Lo        *float64    `json:"lo,omitempty"`
	Hi        *float64    `json:"hi,omitempty"`
	Limit     *float64    `json:"limit,omitempty"`
	Reason    string      `json:"reason,omitempty"`
}

// Environment is where it was measured.
type Environment struct {
	Host   string            `json:"host,omitempty"`
	Kernel string            `json:"kernel,omitempty"`
	CPUs   int               `json:"cpus,omitempty"`
	Go     string            `json:"go,omitempty"`
	Tare   string            `json:"tare,omitempty"`
	Target map[string]string `json:"target,omitempty"` // versions
}
