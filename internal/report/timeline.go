package report

// Timeline is how one trial went in time: at most a few hundred bins of equal length over everything that was offered.
// Bin k covers the seconds from k·Bin to (k+1)·Bin since the trial's load began; all series have one value for each
// bin.
type Timeline struct {
	Treatment string  `json:"treatment"`
	Bin       float64 `json:"bin"` // seconds
	// Calls per second: that were due in the bin, that were sent, and that ended well or badly in it.
	Offered []float64 `json:"offered"`
	Sent    []float64 `json:"sent"`
	Good    []float64 `json:"good"`
	Bad     []float64 `json:"bad"`
	// Outstanding is how many calls were due and had not ended at the bin's end.
	Outstanding []float64 `json:"outstanding"`
	// P50 and P99 are response times in seconds of the calls that ended well in the bin; null: there were none.
	P50 []*float64 `json:"p50"`
	P99 []*float64 `json:"p99"`
	// Steps are the parts of the search or the ladder.
	Steps []Stretch `json:"steps,omitempty"`
	// Marks are instants worth a line: where the signature shows.
	Marks []Mark `json:"marks,omitempty"`
}

// Stretch is one part of a timeline, in seconds since its beginning.
type Stretch struct {
	From float64 `json:"from"`
	To   float64 `json:"to"`
	Name string  `json:"name"`           // "ramp", "overload", "confirm-low", "drain", "point"
	Rate float64 `json:"rate,omitempty"` // offered, 1/s
}

// Mark is one instant of a timeline.
type Mark struct {
	At   float64 `json:"at"`
	Text string  `json:"text"` // "the first call got stuck here"
}
