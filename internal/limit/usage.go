package limit

import "tare/internal/signature"

// A usage is what the target used up while it had all that it can do, as shares of what it may use; -1: not known.
type usage struct {
	account *Account // nil: tare may not look
	// processors is of all processors that it may use, busiest of one processor, by its busiest thread, cpu in processors.
	processors, busiest, cpu float64
	throttled, quota         float64 // of the quota's periods, and of the quota's time
	collecting, diskWait     float64
	host                     float64 // of all processors' time, by anything
}

// usageOf returns the usage during x, and what was seen during the search where x says nothing. x may be nil.
func usageOf(x *Experiment, local *signature.Local) usage {
	u := usage{
		processors: -1, busiest: -1, cpu: -1, throttled: -1, quota: -1, collecting: -1, diskWait: -1, host: -1,
	}
	read := func(to *float64, from *float64, of float64) {
		if from != nil && of > 0 {
			*to = *from / of
		}
	}
	read(&u.throttled, local.Throttled, 1)
	read(&u.collecting, local.Paused, 1)
	if x == nil || x.Account == nil {
		return u
	}
	a := x.Account
	u.account = a
	available := a.Seconds // of one processor: the hypervisor may have taken some
	if a.Stolen != nil && *a.Stolen < 0.5 {
		available *= 1 - *a.Stolen
	}
	read(&u.cpu, a.CPU, available)
	read(&u.busiest, a.Busiest, available)
	read(&u.processors, a.CPU, available*float64(a.Processors))
	read(&u.quota, a.CPU, a.Seconds*a.Quota)
	read(&u.throttled, a.Throttled, 1)
	read(&u.collecting, a.Collecting, 1)
	read(&u.diskWait, a.DiskWait, 1)
	read(&u.host, a.HostBusy, 1)
	return u
}

// crowded reports whether the processors were seen to be busy enough to make each call wait for one.
func (u *usage) crowded() bool { return u.host >= crowdedFrom }

// idles reports whether the target was seen to leave most of its processors' time unused. Where others keep the host
// busy, it must need so little that it gets that all the same.
func (u *usage) idles() bool {
	needs := 0.5
	if u.crowded() {
		needs = 0.15
	}
	return u.cpu >= 0 && u.cpu < needs && u.throttled < 0.2
}

// mostThrottled is the usage in the experiment on the plateau in which the target was throttled most: with many calls
// in flight, a busy host may give it less than its quota.
func (f *facts) mostThrottled() usage {
	most := f.usage
	for _, x := range f.all {
		if x.InFlight < f.least.InFlight || x.Account == nil {
			continue
		}
		if u := usageOf(x, &f.Local); u.throttled > most.throttled {
			most = u
		}
	}
	return most
}
