package report

// guard writes what became of the trespasses of each treatment, and of each point.
func (e *exposition) guard(r *Report) {
	name := func(g *Guard) labels { return labels{{"treatment", g.Treatment}} }
	share := func(pick func(*Share) *float64) func(*Guard) *float64 {
		return func(g *Guard) *float64 { return within(g.Trespasses.Share, pick) }
	}
	write(e, pointers(r.Guard), name,
		counters("guard_refused", "", "Trespasses that were refused.",
			func(g *Guard) *float64 { return new(float64(g.Trespasses.Refused)) }),
		counters("guard_permitted", "", "Trespasses that were permitted: breaches.",
			func(g *Guard) *float64 { return new(float64(g.Trespasses.Permitted)) }),
		counters("guard_undecided", "", "Trespasses that were neither refused nor permitted.",
			func(g *Guard) *float64 { return new(float64(g.Trespasses.Undecided)) }),
		counters("guard_mixed_up", "", "Calls that must be allowed and got what is somebody else's: breaches.",
			func(g *Guard) *float64 { return new(float64(g.Foreign)) }),
		gauges("guard_permitted_share", inRatio, "Share of the decided trespasses that were permitted.",
			share(func(s *Share) *float64 { return &s.Value })),
		gauges("guard_permitted_share_lower", inRatio, "The lower bound of that share.",
			share(func(s *Share) *float64 { return &s.Lo })),
		gauges("guard_permitted_share_upper", inRatio, "The upper bound of that share.",
			share(func(s *Share) *float64 { return &s.Hi })),
		gauges("guard_onset", inPerSecond, "The lowest rate at which a trespass was permitted.",
			func(g *Guard) *float64 { return within(g.Onset, func(o *Onset) *float64 { return &o.Below }) }),
	)
}
