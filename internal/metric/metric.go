// Package metric names what is measured: metrics, their base units, and samples of them.
package metric

import (
	"tare/area"
)

// A Metric is one measured quantity.
type Metric = area.Quantity

// Unit is a base unit.
type Unit = area.Unit

// The base units.
const (
	Seconds    = area.Seconds
	CPUSeconds = area.CPUSeconds
	Bytes      = area.Bytes
	PerSecond  = area.PerSecond
	Count      = area.Count
	Ratio      = area.Ratio
)

// The directions of improvement, and the kinds of noise.
const (
	Lower  = area.Lower
	Higher = area.Higher
	Noisy  = area.Noisy
	Exact  = area.Exact
)

// A Sample is one value of one metric about one subject.
type Sample = area.Sample
