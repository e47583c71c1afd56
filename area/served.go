package area

// Served is what a target has measured of its requests: totals so far, or the difference of two. Times are in seconds.
// Rows of one key (verb, resource, scope; part, name, action) are unique.
type Served struct {
	// Started is when the target began to count, in seconds since the epoch by its own clock; 0: unknown. It distinguishes
	// servers that take turns.
	Started  float64          `json:"started,omitempty"`
	Requests []ServedRequests `json:"requests,omitempty"`
	Parts    []ServedPart     `json:"parts,omitempty"`
}

// ServedRequests are requests of one kind: "POST", "pods", "resource".
type ServedRequests struct {
	Verb     string `json:"verb"`
	Resource string `json:"resource"`
	Scope    string `json:"scope,omitempty"` // "resource", "namespace", "cluster"
	Count    uint64 `json:"count"`
	// DryRuns are the dry runs among Count.
	DryRuns uint64 `json:"dry_runs,omitempty"`
	// Seconds are all of their time; SLISeconds the time without what a service level indicator leaves out: webhooks, and
	// waiting in queues of priority and fairness. SLICount is how many requests SLISeconds and SLIBuckets are of, which
	// may be fewer than Count: kube-apiserver 1.36 leaves dry runs out, 1.24 does not. Seconds − SLISeconds means
	// something only where SLICount is Count.
	Seconds    float64 `json:"seconds"`
	SLICount   uint64  `json:"sli_count,omitempty"`
	SLISeconds float64 `json:"sli_seconds,omitempty"`
	// Buckets and SLIBuckets are the histograms of both: in order of LE.
	Buckets    []ServedBucket `json:"buckets,omitempty"`
	SLIBuckets []ServedBucket `json:"sli_buckets,omitempty"`
}

// ServedBucket counts the requests that took at most LE seconds. The bucket of +Inf, which JSON cannot say, is left
// out: it holds all.
type ServedBucket struct {
	LE    float64 `json:"le"`
	Count uint64  `json:"count"`
}

// Undecided is the Part of requests that a control should have decided, and did not answer, so that the target let them
// pass; Name is the control.
const Undecided = "undecided"

// ServedPart is one part of the target's work, such as "admission/ValidatingAdmissionPolicy validate CREATE",
// "webhook/NAME validating CREATE" or "storage create pods". Parts overlap: the plugins of "admission" that call
// webhooks wait for them, and webhooks of one request may run side by side. A control plane distinguishes the
// operations of admission, not the resources.
type ServedPart struct {
	Part string `json:"part"` // "admission", "webhook", "storage", Undecided
	Name string `json:"name"` // within the part: a plugin, a webhook, a resource
	// of a plugin "admit CREATE", "validate CREATE", of a webhook "admit CREATE", "validating CREATE", of storage "create"
	Action  string  `json:"action"`
	Count   uint64  `json:"count"`
	Seconds float64 `json:"seconds"`
}
