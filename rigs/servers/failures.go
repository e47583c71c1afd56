package servers

import (
	"time"

	"tare/internal/capacity"
	"tare/internal/limit"
	"tare/internal/signature"
)

// failures do not survive an overload.
func failures() []Fixture {
	down := []capacity.FindingKind{capacity.StaysDown}
	return []Fixture{
		{
			Name: "stops",
			Truth: Truth{
				Rate: 150, Formula: "1 ÷ 6.67 ms, stops when 300 wait",
				Classes: classes(signature.Queue, signature.Collapse),
				Limits:  limits(limit.Slots), Slots: 1, Seen: true, Findings: down,
			},
			build: func(r *rig) part {
				s := &station{servers: 1, service: constant(seconds(1.0 / 150))}
				s.grown = func(waiting int) { s.halted = s.halted || waiting >= 300 }
				return r.station(s)
			},
		},
		{
			Name: "restarts",
			Truth: Truth{
				Rate: 150, Formula: "1 ÷ 6.67 ms, crashes when 200 wait, back after 5 s",
				Classes: classes(signature.Queue, signature.Collapse, signature.ConnectionRefused),
				Limits:  limits(limit.Slots), Slots: 1, Seen: true,
			},
			build: func(r *rig) part {
				return r.station(&station{servers: 1, service: constant(seconds(1.0 / 150)), grown: func(waiting int) {
					if waiting >= 200 {
						r.crash(5 * time.Second)
					}
				}})
			},
		},
		{
			Name: "dies", MaxRate: 640,
			Truth: Truth{
				Rate: 560, Formula: "crashes at over 1680 calls in 3 s",
				Classes: classes(signature.ConnectionRefused, signature.Collapse), Findings: down,
			},
			build: func(r *rig) part {
				return r.log(1680, 3*time.Second, false, func(*call) { r.crash(forever) }, r.delay(2*ms, serve))
			},
		},
	}
}
