// Package probe reads what a target and its host use: processes, control groups, listen queues, pressure.
package probe

import (
	"tare/area"
)

// A Probe reads counters of one subject.
type Probe = area.Probe
