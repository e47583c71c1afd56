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

// Since returns the difference between two totals of one target. A new row counts as a whole, and unchanged rows are
// left out. If the target restarted in between (a total is lower or missing, or Started differs), restarted is true and
// the result is s itself: the counts before the restart are lost.
func (s *Served) Since(before *Served) (diff Served, restarted bool) {
	if s.Started != before.Started {
		return *s, true
	}
	diff.Started = s.Started
	old := map[servedKey]*ServedRequests{}
	for i := range before.Requests {
		old[before.Requests[i].key()] = &before.Requests[i]
	}
	for i := range s.Requests {
		r := &s.Requests[i]
		o := old[r.key()]
		delete(old, r.key())
		d, ok := r.since(o)
		if !ok {
			return *s, true
		}
		if d.Count > 0 {
			diff.Requests = append(diff.Requests, d)
		}
	}
	if len(old) > 0 {
		return *s, true
	}
	var ok bool
	if diff.Parts, ok = partsSince(s.Parts, before.Parts); !ok {
		return *s, true
	}
	return diff, false
}

// key returns the row's key.
func (r *ServedRequests) key() servedKey {
	return servedKey{r.Verb, r.Resource, r.Scope}
}

// servedKey identifies a row.
type servedKey [3]string

// since returns the difference to o, an earlier total of the same row; ok is false if a total went down.
func (r *ServedRequests) since(o *ServedRequests) (d ServedRequests, ok bool) {
	if o == nil {
		return *r, true
	}
	d = *r
	d.Count, d.SLICount, d.DryRuns = d.Count-o.Count, d.SLICount-o.SLICount, d.DryRuns-o.DryRuns
	d.Seconds, d.SLISeconds = max(0, d.Seconds-o.Seconds), max(0, d.SLISeconds-o.SLISeconds)
	var ok1, ok2 bool
	d.Buckets, ok1 = bucketsSince(r.Buckets, o.Buckets)
	d.SLIBuckets, ok2 = bucketsSince(r.SLIBuckets, o.SLIBuckets)
	return d, o.Count <= r.Count && o.SLICount <= r.SLICount && o.DryRuns <= r.DryRuns && ok1 && ok2
}

// bucketsSince compares buckets with the same LE; both are in order of LE.
func bucketsSince(now, before []ServedBucket) (d []ServedBucket, ok bool) {
	for _, b := range now {
		for len(before) > 0 && before[0].LE < b.LE {
			before = before[1:]
		}
		if len(before) > 0 && before[0].LE == b.LE {
			if b.Count < before[0].Count {
				return nil, false
			}
			b.Count -= before[0].Count
		}
		d = append(d, b)
	}
	return d, true
}

func partsSince(now, before []ServedPart) (d []ServedPart, ok bool) {
	old := map[servedKey]ServedPart{}
	for _, p := range before {
		old[servedKey{p.Part, p.Name, p.Action}] = p
	}
	for _, p := range now {
		key := servedKey{p.Part, p.Name, p.Action}
		o := old[key]
		delete(old, key)
		if p.Count < o.Count {
			return nil, false
		}
		p.Count, p.Seconds = p.Count-o.Count, max(0, p.Seconds-o.Seconds)
		if p.Count > 0 {
			d = append(d, p)
		}
	}
	return d, len(old) == 0
}
