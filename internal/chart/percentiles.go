package chart

import (
	"math"
	"strconv"
)

// panel returns the chart as a panel with a tail axis.
func (p Percentiles) panel() Panel {
	y := p.Y
	y.Log = true
	return Panel{
		Title: p.Title, Desc: p.Desc,
		X:      Axis{Label: "percentile", Format: percentile, tail: true},
		Y:      y,
		Series: p.Series, Rules: p.Rules, Height: p.Height, Legend: p.Legend, Empty: p.Empty,
	}
}

// percentile writes a quantile the way people say it: 0.999 is p99.9.
func percentile(q float64) string {
	return "p" + strconv.FormatFloat(math.Round(q*1e9)/1e7, 'g', 9, 64)
}
