package record

import "tare/internal/area"

// Served is what the target measured itself of the requests that it served in a trial: what came between a reading right before the trial's
// probes and one right after them. That is the window of a trial of a comparison, with the calls of the warm-up that ended in it; all of a
// capacity search; what is measured of a soak. It counts whatever the target served, other clients' requests included.
type Served struct {
	Treatment string `json:"treatment"`
	Block     int    `json:"block"`
	area.Served
	// Restarted says that the target was started anew in between: its totals are since then, and what came before is lost.
	Restarted bool `json:"restarted,omitempty"`
	// Error says why it could not be read.
	Error string `json:"error,omitempty"`
}

// Served writes what the target measured itself.
func (w *Writer) Served(s Served) error { return w.put(KindServed, s) }
