package stat

// LookAlpha is the two-sided error of each of five looks whose blocks double from look to look (10, 20, 40, 80, 160)
// that makes their overall error 5 %: Pocock's design of equal errors (Biometrika 64 (1977) 191). His constant for five
// looks, 0.0158, holds for looks that are evenly spaced; at doubling ones, which share less of their data, it would
// come to 6.0 %.
const LookAlpha = 0.013

// Test is an estimate with the two-sided p-value of the hypothesis that its true value is 0.
type Test struct {
	Estimate
	P float64
}
