package area

import (
	"context"

	"tare/internal/design"
)

// A Witness is a Target that measures on its own clock the requests that it serves, and the parts of its work.
type Witness interface {
	// Witnessed is what the target has measured so far: totals that only grow until it is started anew. It may cost the target some work, and
	// is called right outside of what is measured. Without an error and without a result, the target measures nothing.
	Witnessed(ctx context.Context, t design.Treatment) (*Served, error)
}

// Served is what a target has measured of its requests: totals so far, or what came between two of them. Times in seconds.
type Served struct {
	Requests []ServedRequests `json:"requests,omitempty"`
	Parts    []ServedPart     `json:"parts,omitempty"`
}

// ServedRequests are requests of one kind: "POST", "pods", "resource".
type ServedRequests struct {
	Verb     string `json:"verb"`
	Resource string `json:"resource"`
	Scope    string `json:"scope,omitempty"` // "resource", "namespace", "cluster"
	Count    uint64 `json:"count"`
	// Seconds are all of their time; SLISeconds the time without what a service level indicator leaves out: webhooks, and waiting in queues
	// of priority and fairness.
	Seconds    float64 `json:"seconds"`
	SLISeconds float64 `json:"sli_seconds,omitempty"`
	// Buckets and SLIBuckets are the histograms of both: in order of LE.
	Buckets    []ServedBucket `json:"buckets,omitempty"`
	SLIBuckets []ServedBucket `json:"sli_buckets,omitempty"`
}

// ServedBucket counts the requests that took at most LE seconds. The bucket of +Inf, which JSON cannot say, is left out: it holds all.
type ServedBucket struct {
	LE    float64 `json:"le"`
	Count uint64  `json:"count"`
}

// ServedPart is one part of the target's work, such as "admission/ValidatingAdmissionPolicy validate CREATE", "webhook/NAME validating CREATE"
// or "storage create pods".
type ServedPart struct {
	Part    string  `json:"part"`   // "admission", "webhook", "storage"
	Name    string  `json:"name"`   // within the part: a plugin, a webhook, a resource
	Action  string  `json:"action"` // "admit CREATE", "validate CREATE", "create"
	Count   uint64  `json:"count"`
	Seconds float64 `json:"seconds"`
}
