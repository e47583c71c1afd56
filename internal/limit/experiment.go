package limit

// Step is the name of the steps of a record that hold an Experiment each.
const Step = "experiment"

// An Experiment is a few seconds of load after a search that tell limits apart. With its counts, each statement about
// the limit can be computed again.
type Experiment struct {
	// InFlight is how many calls were in flight at most; the others waited in the generator.
	InFlight int     `json:"in_flight"`
	Offered  float64 `json:"offered"` // 1/s
	// Seconds is how long it was measured, without its beginning; Counts has the calls that ended well in each of equal
	// parts of that time.
	Seconds float64 `json:"seconds"`
	Counts  []int   `json:"counts"`
	Bad     int     `json:"bad"` // calls that ended otherwise in that time
	// Service is the median time from sending to the answer's end of the good calls, Transfer that from its first byte to
	// its end, in seconds; 0: there were none.
	Service  float64 `json:"service,omitempty"`
	Transfer float64 `json:"transfer,omitempty"`
	// Bytes is the mean size of an answer with its head; 0: not known.
	Bytes float64 `json:"bytes,omitempty"`
	// Spread is the interquartile range of the times that Service is the median of, in seconds. Even is the share of the
	// times between the ends of good calls that are within a quarter of their mean: what lets calls pass at fixed
	// intervals has most of them, workers that are independent few. nil: too few calls ended.
	Spread *float64 `json:"spread,omitempty"`
	Even   *float64 `json:"even,omitempty"`
	// Lever is what had been changed; nil: nothing.
	Lever *Lever `json:"lever,omitempty"`
	// Sources is from how many source addresses the calls came; 0: from those of the search.
	Sources int `json:"sources,omitempty"`
	// Operation is the only operation of the mix that was called, and Idle the median response of a rare call of it, in
	// seconds; empty: all were.
	Operation string  `json:"operation,omitempty"`
	Idle      float64 `json:"idle,omitempty"`
	// Fresh says that the target was asked to close each connection after an answer, and Connections how many carried the
	// calls that ended well in that time.
	Fresh       bool `json:"fresh,omitempty"`
	Connections int  `json:"connections,omitempty"`
	// Account is what the target used meanwhile; nil: tare may not look.
	Account *Account `json:"account,omitempty"`
	// Late is why the generator did not do its part, so that the rate may be its own; "": it did.
	Late string `json:"late,omitempty"`
}

// isPlain reports whether nothing but the number of calls in flight differs from the search.
func (x *Experiment) isPlain() bool {
	return x.Lever == nil && x.Sources == 0 && x.Operation == "" && !x.Fresh
}

// A Lever is a setting of the target that was changed for an experiment.
type Lever struct {
	Kind   Kind    `json:"kind"`   // the limit that it moves
	From   string  `json:"from"`   // "100m"
	To     string  `json:"to"`     // "200m"
	Factor float64 `json:"factor"` // by which the rate changes if this is the limit
}

// An Account is what the target used during an experiment, and what it may use. A pointer is nil, and a number 0, where
// that could not be read.
type Account struct {
	Seconds float64 `json:"seconds"` // between the two readings
	// CPU is the processor time that the target used, in seconds; nil: not known. Busiest is that of its busiest thread.
	CPU     *float64 `json:"cpu,omitempty"`
	Busiest *float64 `json:"busiest,omitempty"`
	// Processors is how many processors the target may use; HostBusy is the share of their time in which they were busy
	// with anything, the generator included, Stolen the share that the hypervisor took.
	Processors int      `json:"processors,omitempty"`
	HostBusy   *float64 `json:"host_busy,omitempty"`
	Stolen     *float64 `json:"stolen,omitempty"`
	// Throttled is the share of the CPU quota's periods in which the target was throttled, Quota its setting in
	// processors.
	Throttled *float64 `json:"throttled,omitempty"`
	Quota     float64  `json:"quota,omitempty"`
	// Collecting is the share of the time in which garbage collection stopped the target.
	Collecting *float64 `json:"collecting,omitempty"`
	// DiskWait is the share of looks in which a thread of the target waited for a disk.
	DiskWait *float64 `json:"disk_wait,omitempty"`
	// ListenQueue is how many connections waited to be accepted at the end.
	ListenQueue *int `json:"listen_queue,omitempty"`
	// Descriptors are the most file descriptors that one process had open, of DescriptorLimit.
	Descriptors     int `json:"descriptors,omitempty"`
	DescriptorLimit int `json:"descriptor_limit,omitempty"`
}
