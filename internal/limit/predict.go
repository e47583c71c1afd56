package limit

// doubled says of each limit what twice of it is, and how one may try that.
var doubled = map[Kind]struct{ change, how string }{
	CPUQuota:    {"twice the CPU quota", "double the quota"},
	Processors:  {"twice the processors", "give it twice the processors"},
	Slots:       {"twice the places", "double the workers or the pool, in it or behind it"},
	Connections: {"twice the connections", "double the limit on connections"},
	RateLimit:   {"twice the limit", "double the limit"},
	Bandwidth:   {"twice the bandwidth", "double the bandwidth"},
}

// predict adds what follows from the limit for another setting, and what came of it where a lever was moved.
func (v *Verdict) predict(f *facts) {
	base := f.before()
	if v.Kind == Connections && f.beyond() != nil {
		return // how many connections break it depends on how many the callers open
	}
	if base.rate == 0 || v.Kind == Unknown || !f.searched && base.rate <= 1.96*base.err {
		return
	}
	for i := range f.Experiments {
		x := &f.Experiments[i]
		rise, least, ok := f.rise(x)
		if !ok || x.Lever.Kind != v.Kind {
			continue
		}
		p := prediction(x.Lever.To, base, x.Lever.Factor)
		rate, lo, hi := x.interval()
		p.Tried = &Tried{Rate: rate, Lo: lo, Hi: hi, Came: came(rise, least)}
		v.Prediction = p
		return
	}
	d, ok := doubled[v.Kind]
	if !ok || v.Kind == Processors && f.processors < full {
		return // others would use some of twice the processors
	}
	switch {
	case len(v.Operations) == 0:
	case !f.searched: // of the calls in flight at most, those of other operations are more than in the mix
		return
	default:
		base = measured{f.Rate, (f.Hi - f.Lo) / 4}
	}
	p := prediction(d.change, base, 2)
	if f.Rate > 0 { // what a limiter has saved up raises the rate of short experiments
		p.Rate, p.Lo, p.Hi = 2*f.Rate, min(p.Lo, 2*f.Lo), max(p.Hi, 2*f.Hi)
	}
	p.How = d.how + ", and ask again"
	v.Prediction = p
}

func prediction(change string, base measured, factor float64) *Prediction {
	return &Prediction{
		Change: change, Rate: base.rate * factor,
		Lo: max(0, base.rate-1.96*base.err) * factor, Hi: (base.rate + 1.96*base.err) * factor,
	}
}
