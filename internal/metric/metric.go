// Package metric names what is measured: metrics, their base units, and samples of them.
package metric

import (
	"tare/area"
)

// A Metric is one measured quantity. Metrics are values: two packages that declare the same name must declare the same
// Metric.
type Metric struct {
	Name   string // "response", "cpu", "rss"
	Unit   Unit
	Better Better
	Noise  Noise
	Help   string // one sentence with its source; shown by "tare explain"
}

// Unit is a base unit. Values are always stored in base units.
type Unit string

// The base units.
const (
	Seconds    Unit = "s"
	CPUSeconds Unit = "CPU-s"
	Bytes      Unit = "B"
	PerSecond  Unit = "1/s"
	Count      Unit = "1"
	Ratio      Unit = "ratio"
)

// Better says which direction is an improvement.
type Better int8

// The directions.
const (
	Lower  Better = -1
	Higher Better = +1
)

// Noise says what may be assumed about repeated values.
type Noise uint8

// The kinds of noise.
const (
	Noisy Noise = iota // repeated values differ: only intervals may be reported
	Exact              // repeated values must not differ: variation is a warning
)

// A Sample is one value of one metric about one subject.
type Sample = area.Sample
