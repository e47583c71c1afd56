package capacity

// Next says what to do after a search or a ladder that ended in this way without a capacity. bounded: a rate is known
// that holds. It is empty where nothing needs to be done, and for an unknown stop.
func (s Stop) Next(bounded bool) string {
	switch {
	case s == StopFound && !bounded:
		return "no rate held or broke at every try: run it again while less else runs on this host, and give the search " +
			"more time (load.max_time)"
	case s == StopMaxRate:
		return "to find where it breaks, allow more: --max-rate (load.max_rate)"
	case s == StopClient && bounded:
		return "to search above that rate, give the generator more: processors of its own (pin), or a host other than the " +
			"target's; 'tare doctor' says what this host can do"
	case s == StopClient:
		return "give the generator processors of its own (pin), or a host other than the target's; 'tare doctor' says what " +
			"this host can do"
	case s == StopNoAnswer:
		return "see that the server answers one such call, made by hand, and within load.timeout"
	case s == StopFailing:
		return "the table of causes ('tare report RUN --all') says how the calls failed; for a server that takes fewer " +
			"calls, begin lower: --max-rate 2/s, or wait longer: load.timeout"
	case s == StopTime && bounded:
		return "more time narrows it: load.max_time (--set load.max_time=10m)"
	case s == StopTime:
		return "give the search more time: load.max_time (--set load.max_time=10m)"
	case s == StopDown:
		return "restart the target, and look in its log for the reason; a max_rate below the rate at which it broke keeps " +
			"it up"
	case s == StopNoRetry:
		return "restart the target, and measure the points that are missing in a run of their own (load.rates)"
	case s == StopCanceled:
		return "run it again: a search that was interrupted cannot be continued"
	}
	return ""
}
