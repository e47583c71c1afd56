package area

import (
	"context"
	"time"
)

// A Target is an opened system under test.
type Target interface {
	// Prepare does the slow work, once per treatment: start a child process, fill a control plane, log in. Everything that
	// it creates is journaled first. The treatments coexist.
	Prepare(ctx context.Context, t Treatment, j Journal) error
	// Verify proves the treatment in force: what it must refuse is refused, what it must allow is allowed. What it cannot
	// prove is Can.Unproved.
	Verify(ctx context.Context, t Treatment) error
	// Operations is the mix. The first call follows Prepare.
	Operations(t Treatment) ([]Operation, error)
	// Close undoes all Prepares. It is called once, also after errors, with a context that outlives an interrupt.
	Close(ctx context.Context) error
	// Can is what the target can do besides.
	Can() Can
}

// Can is what a target may be able to do.
type Can struct {
	// Enter does the cheap work before each trial, and Leave undoes it after each.
	Enter, Leave func(ctx context.Context, t Treatment) error
	// Endpoint is where Wire operations go.
	Endpoint func(t Treatment) (*Endpoint, error)
	// Renew ends what the target started for a treatment and starts it afresh, in the state that Prepare left, at the same
	// addresses; it reports whether there is such a thing. Enter and Verify follow. It is called for several treatments at
	// one time. nil: the target starts nothing.
	Renew func(ctx context.Context, t Treatment) (bool, error)
	// Unproved says what Verify has seen of a treatment in place of a refusal, so that no report calls it proved in force:
	// "the endpoint answers as expected; nothing that must be refused was asked". "": it is proved; nil: all are. The call
	// follows Verify.
	Unproved func(t Treatment) string
	// Probes read what the target uses.
	Probes func(t Treatment) []Probe
	// Notes are limits of this target that every report must carry: "control plane only".
	Notes func() []string
	// Warnings are what is wrong with what the target holds, or could mislead about its figures, so that each report says
	// it before them: "2 policies cannot decide, and refuse".
	Warnings func() []string
	// Trespass returns the must-refuse twins of the treatment's operations: operations with Twin set, at least one for
	// each operation that has something to refuse, as large and from the same callers. The first call follows Prepare.
	Trespass func(t Treatment) ([]Operation, error)
	// Rulings are what the controls decided about requests that were asked under every treatment, by the treatments' IDs;
	// nil: none were. It is called once, when all treatments are prepared, and asks again what they decide differently.
	Rulings func(ctx context.Context) (map[string]Rulings, error)
	// Conditions are those that the target can bring about under a treatment, by itself and on what it started itself.
	Conditions func(t Treatment) []Condition
	// Stage brings the target into a stage before load that asks for it.
	Stage func(ctx context.Context, t Treatment, s Stage) error
	// Counted returns the target's own counts of answers so far, by the words of Operation.Answer, without adding to them;
	// nil without an error if this target keeps none.
	Counted func(ctx context.Context, t Treatment) (map[string]float64, error)
	// Witnessed returns what the target has timed of its requests so far: totals that grow until it restarts. It may cost
	// the target some work. nil without an error if this target times nothing.
	Witnessed func(ctx context.Context, t Treatment) (*Served, error)
	// Observe reads what only a probe on the target's own host can see.
	Observe func(ctx context.Context, t Treatment) Local
	// Levers are limits of what the target itself started, each of which can be moved for a moment.
	Levers func(t Treatment) []Lever
}

// Rulings are what a control decided about requests.
type Rulings struct {
	Of []Ruling
	// Unasked says in what the control differs from the baseline's so that it may permit more, and what of it no trespass
	// tries, a sentence each.
	Unasked []string
}

// A Ruling is what a control decided about one request.
type Ruling struct {
	Request string // what is asked for: "pod privileged"
	Refused bool   // by the control; false: it was permitted
	// Undecided says that neither is known: answers differ, or came too late to show it.
	Undecided bool
	// Changes are what the control changed of a request that it permitted: "metadata.labels.team = \"a\"". Known: that was
	// looked at.
	Changes []string
	Known   bool
}

// A Lever moves one limit of a target, so that a prediction can be tried.
type Lever struct {
	Limit  string  // what it moves, by the report's word for such a limit: "cpu-quota"
	From   string  // the setting: "100m"
	To     string  // the other setting: "200m"
	Factor float64 // by which the rate of calls changes if this limit sets it
	// Move sets it, and returns what sets it back; after an error nothing has changed. It is called while no load is
	// offered. Whatever outlives this process is journaled first.
	Move func(ctx context.Context) (back func(context.Context) error, err error)
}

// Local is what probes on the target's own host saw; nil where nothing could be read.
type Local struct {
	// connections waiting to be accepted, at the end of the last window
	ListenQueue *int     `json:"listen_queue,omitempty"`
	Throttled   *float64 `json:"throttled,omitempty"` // share of the CPU limit's periods in which the target was throttled
	Paused      *float64 `json:"paused,omitempty"`    // share of time in GC pauses
}

// A Probe reads counters of one subject. tare takes the difference of two readings; a probe never reports totals over a
// process's lifetime as costs.
type Probe interface {
	// Subject names what is read: "endpoint", "sts", "generator", "host".
	Subject() string
	// Read returns the present values, in base units. A value that cannot be read is absent, never 0.
	Read(ctx context.Context) ([]Sample, error)
}

// A Sample is one value of one metric about one subject.
type Sample struct {
	Subject string `json:"subject"` // "endpoint", "sts", "generator"
	Metric  string `json:"metric"`
	// Part tells values of one metric about one subject apart: the collector of a JVM, the series of an endpoint.
	// Usually empty.
	Part  string        `json:"part,omitempty"`
	At    time.Duration `json:"at"` // since the trial began
	Value float64       `json:"value"`
}

// A Stage is a state that a target is brought into before load that asks for it.
type Stage string

// The stages. The area knows what is cached, and how.
const (
	Warm     Stage = "warm"     // everything that can be cached is in the cache
	Cold     Stage = "cold"     // the cache is empty
	Renewed  Stage = "renewed"  // everything cached was obtained just now, all at once, so it also expires all at once
	Rebooted Stage = "rebooted" // the server was restarted: its cache and all connections are lost
)

// The names of conditions that several areas have.
const (
	Restart   = "restart"   // the control's process is killed, and started again
	Slow      = "slow"      // what the control depends on takes longer
	Starved   = "starved"   // the control gets a fraction of the CPU time that it needs
	Reload    = "reload"    // the control's policies are replaced
	Partition = "partition" // what the control depends on cannot be reached
	ColdStart = "cold"      // the control begins without anything in its caches
	Revoke    = "revoke"    // a permission is withdrawn
)

// A Condition is something that happens to a target under load.
type Condition struct {
	Name string
	// Title is the name in records and reports, which says to what it happens: "restart of kube-apiserver". "": Name.
	Title string
	Does  string // what is done, in a few words: "the endpoint's process is killed and started again"
	// Hold is how long it lasts once it has been imposed; 0: 5 s.
	Hold time.Duration
	// Idle says that it is brought about while no load is offered: its point begins when it is in force, and Hold does not
	// apply.
	Idle bool
	// Impose brings it about, and returns what ends it; nil: it has ended by itself. Both are called beside the load.
	// Whatever outlives this process is journaled first.
	Impose func(ctx context.Context) (lift func(context.Context) error, err error)
	// Figures returns what the area itself has measured while the condition lasted, by metric: "revoke". It is called
	// after the condition has ended. nil: nothing.
	Figures func() map[string][]Span
}

// A Span is a time in seconds that was measured by looking again and again: it had not ended after Least, and had ended
// after Most. Most is infinite where it was never seen to end.
type Span struct{ Least, Most float64 }

// A Journal keeps changes on disk before they are made.
type Journal interface {
	// Intend writes c durably. Only then may the change be made.
	Intend(c Change) error
	// Undone records that the change has been undone.
	Undone(c Change) error
}

// A Change describes something that an area creates, in enough detail to find and remove it in a new process. Journal
// containers (a namespace, a cgroup, a process), not their contents.
type Change struct {
	Area string            `json:"area"`
	Kind string            `json:"kind"` // "process", "cgroup", "namespace"
	ID   string            `json:"id"`   // unique within the run
	Data map[string]string `json:"data,omitempty"`
}

// A Treatment is one combination of levels. The baseline is a treatment; the A/A arm is the baseline again.
type Treatment struct {
	ID       string            `json:"id"`
	Baseline bool              `json:"baseline,omitempty"`
	Control  Control           `json:"control,omitempty"`
	Levels   map[string]string `json:"levels,omitempty"`
	// Of is the treatment that an A/A arm repeats.
	Of string `json:"of,omitempty"`
}

// Named reports whether a word names this treatment: its ID, one of its levels, or one of its factor=level.
func (t *Treatment) Named(word string) bool {
	if word == t.ID {
		return true
	}
	for factor, level := range t.Levels {
		if word == level || word == factor+"="+level {
			return true
		}
	}
	return false
}

// Control marks a treatment that checks the experiment itself.
type Control string

// The controls.
const (
	Ordinary Control = ""
	AA       Control = "aa"       // the baseline again: any effect is noise
	Negative Control = "negative" // where the control under test has no effect: any effect is an artefact
)
