package record

import "tare/internal/area"

// Served is what the target measured itself of the requests that it served in a trial's window.
type Served struct {
	Treatment string `json:"treatment"`
	Block     int    `json:"block"`
	area.Served
	// Error says why it could not be read.
	Error string `json:"error,omitempty"`
}
