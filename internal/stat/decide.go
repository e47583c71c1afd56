package stat

import (
	"math"
	"sort"
)

// mostBlocks is the largest number of blocks that it is sensible to tell somebody to run.
const mostBlocks = 100_000

// Equivalent is the decision of two one-sided tests (Schuirmann, J. Pharmacokin. Biopharm. 15 (1987) 657): e, an
// interval at level 1 − α, lies strictly inside (lo, hi). The error of calling equivalent what lies at or beyond a
// margin is at most α/2.
func Equivalent(e Estimate, lo, hi float64) bool { return e.Lo > lo && e.Hi < hi }

// StandardError is the standard error to plan with: of a normal estimate that would have e's interval, its length over
// 2·z with z the normal quantile of its level, times 1 + 1/N. For the wider intervals of few blocks (signed rank,
// Student) the first exceeds the plain standard error by just the factor by which those intervals are wider, so that
// what is planned with it (DetectableEffect, BlocksToDecide) matches the interval that will decide. The second allows
// for both that interval's length and this one's being random: a mean of normal values would need 1 + 0.7/N for the
// promised power, the signed rank's ends vary a little more. +Inf for an infinite interval, NaN for a level that is not
// between 0 and 1.
func StandardError(e Estimate) float64 {
	if math.IsInf(e.Lo, 0) || math.IsInf(e.Hi, 0) {
		return math.Inf(1)
	}
	return (e.Hi - e.Lo) / 2 / NormalQuantile((1+e.Level)/2) * (1 + 1/float64(max(e.N, 1)))
}

// DetectableEffect is the smallest true effect whose interval at level 1−alpha excludes 0 with the given power, for an
// estimate with standard error se: (z(1−α/2) + z(power))·se; 3.33·se at α = 0.013 and power 0.8. NaN when alpha or
// power is not between 0 and 1.
func DetectableEffect(se, alpha, power float64) float64 {
	return (NormalQuantile(1-alpha/2) + NormalQuantile(power)) * se
}

// BlocksToDecide is how many blocks in all – e has N of them – would decide with the given power that the effect is
// beyond ±margin or, where the estimate lies inside ±margin, that it is equivalent within it (both by the interval at
// 1−alpha), if the estimate is the truth and its standard error shrinks as 1/√blocks. It is never less than e.N. False
// when more than 100 000 would be needed or e has no finite interval, or no block.
func BlocksToDecide(e Estimate, margin, alpha, power float64) (int, bool) {
	se := StandardError(e)
	if e.N < 1 || !(decisionPower(e.Value, margin, alpha, se*math.Sqrt(float64(e.N)/mostBlocks)) >= power) {
		return 0, false
	}
	more := sort.Search(mostBlocks-e.N, func(k int) bool {
		return decisionPower(e.Value, margin, alpha, se*math.Sqrt(float64(e.N)/float64(e.N+k))) >= power
	})
	return e.N + more, true
}

// decisionPower is the chance that an estimate of the true value v with standard error se is decided: beyond the
// margin, or equivalent, for which both one-sided tests must reject.
func decisionPower(v, margin, alpha, se float64) float64 {
	if d := math.Abs(v) - margin; d >= 0 {
		return NormalCDF(d/se + NormalQuantile(alpha/2))
	}
	z := NormalQuantile(alpha / 2)
	return NormalCDF((margin-v)/se+z) + NormalCDF((margin+v)/se+z) - 1
}

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
