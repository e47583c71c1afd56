package record

import "tare/area"

// Served is what the target itself measured of the requests in a trial, as the difference of two readings, one right
// before the trial's probes and one right after. The period is: in a comparison, the window, with warm-up calls that
// ended in it; in a capacity search, the whole trial; in a soak, the measured part. It includes the requests of other
// clients.
type Served struct {
	Treatment string `json:"treatment"`
	Block     int    `json:"block"`
	area.Served
	// Restarted says that the target restarted meanwhile: its totals begin with the restart, and earlier ones are lost.
	Restarted bool `json:"restarted,omitempty"`
	// Error says why it could not be read.
	Error string `json:"error,omitempty"`
}

// Served writes the target's own measurements.
func (w *Writer) Served(s Served) error { return w.put(KindServed, s) }
