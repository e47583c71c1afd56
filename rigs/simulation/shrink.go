package simulation

import (
	"context"
	"maps"
	"math"
	"slices"
)

// Shrink removes parts and rounds numbers as long as the search still fails in the given way, and returns what is left.
// It asks still of every candidate whether it does; Still is that for a search.
func Shrink(c Composition, still func(Composition) bool) Composition {
	for again := true; again; {
		again = false
		for i := range slices.Backward(c.Parts) {
			if x := c.without(i); still(x) {
				c, again = x, true
			}
		}
	}
	for _, change := range simpler {
		if x := change(c.clone()); still(x) {
			c = x
		}
	}
	for i, p := range c.Parts {
		for _, name := range slices.Sorted(maps.Keys(p.With)) {
			for _, digits := range []float64{1, 2} {
				x := c.clone()
				if x.Parts[i].With[name] = digitsOf(p.With[name], digits); x.Parts[i].With[name] != p.With[name] && still(x) {
					c = x
					break
				}
			}
		}
	}
	return c
}

// Still returns whether a search of a composition fails in a given way.
func Still(ctx context.Context, f Failure) func(Composition) bool {
	return func(c Composition) bool {
		if ctx.Err() != nil || len(c.Parts) == 0 || c.Validate() != nil {
			return false
		}
		o, err := SearchWorld(ctx, c, c.Truth())
		return err == nil && slices.Contains(o.Failures(), f)
	}
}

// simpler are changes that leave less to explain.
var simpler = []func(Composition) Composition{
	func(c Composition) Composition { c.Seed = 1; return c },
	func(c Composition) Composition { c.Latency = 0.002; return c },
	func(c Composition) Composition { c.Timeout = 10; return c },
	func(c Composition) Composition { c.MaxRate = digitsOf(c.MaxRate, 1); return c },
	func(c Composition) Composition { return c.each(func(p *Part) { p.Distribution = "" }) },
	func(c Composition) Composition {
		return c.each(func(p *Part) {
			if p.Refusal != "" {
				p.Refusal = refuse429
			}
		})
	},
	func(c Composition) Composition { return c.each(func(p *Part) { delete(p.With, "per_client") }) },
	func(c Composition) Composition { return c.each(func(p *Part) { delete(p.With, "abandoned") }) },
}

func (c Composition) each(do func(*Part)) Composition {
	for i := range c.Parts {
		do(&c.Parts[i])
	}
	return c
}

// clone is a copy that shares nothing.
func (c Composition) clone() Composition {
	c.Parts = slices.Clone(c.Parts)
	return c.each(func(p *Part) { p.With = maps.Clone(p.With) })
}

// digitsOf rounds to so many digits.
func digitsOf(x, digits float64) float64 {
	if x == 0 {
		return 0
	}
	scale := math.Pow(10, digits-1-math.Floor(math.Log10(math.Abs(x))))
	return math.Round(x*scale) / scale
}
