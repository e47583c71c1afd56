package area

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
