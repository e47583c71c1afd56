package simulation

import (
	"fmt"
	"os"
	"sync"
	"testing"
)

func TestSummary(t *testing.T) {
	share, n := 0.1, 6
	fmt.Sscan(os.Getenv("SHARE"), &share)
	fmt.Sscan(os.Getenv("N"), &n)
	var mu sync.Mutex
	var quiet, answered, num, class, wrongclass, excl, qexcl int
	var qs, ss float64
	var wg sync.WaitGroup
	sem := make(chan bool, 2)
	for _, k := range Kinds() {
		for i := range n {
			wg.Go(func() {
				sem <- true
				defer func() { <-sem }()
				q, _ := RunStolen(t.Context(), k, 11, i, 0)
				s, _ := RunStolen(t.Context(), k, 11, i, share)
				mu.Lock()
				defer mu.Unlock()
				qs += q.Result.Seconds
				ss += s.Result.Seconds
				out := func(o Outcome) bool {
					return o.Result.Rate > 0 && o.Truth.Capacity > 0 && (o.Result.Lo > 1.02*o.Truth.Capacity || o.Result.Hi < 0.98*o.Truth.Capacity) || o.Result.VerifiedHigh > 0 && o.Result.VerifiedHigh < 0.95*o.Truth.Capacity || o.Result.VerifiedLow > 1.05*o.Truth.Capacity && o.Truth.Capacity > 0
				}
				if out(q) {
					qexcl++
				}
				if out(s) {
					excl++
					fmt.Printf("EXCL %s %d truth %.4g: %.4g [%.4g %.4g] low %.4g high %.4g %s\n", k.Name, i, s.Truth.Capacity, s.Result.Rate, s.Result.Lo, s.Result.Hi, s.Result.VerifiedLow, s.Result.VerifiedHigh, s.Result.Signature.Class)
				}
				if q.Result.Rate > 0 || q.Result.Stop == q.Truth.Stop && q.Truth.Stop != "found" {
					quiet++
					if s.Result.Rate > 0 || s.Result.Stop == q.Result.Stop && q.Truth.Stop != "found" {
						answered++
					} else {
						fmt.Printf("LOST %s %d %s %s %v\n", k.Name, i, s.Result.Stop, s.Result.Reason, s.Result.Warnings)
					}
					if q.Error() > 0.05 || s.Error() < 0.05 {
						num++
					} else {
						fmt.Printf("OFF %s %d truth %.4g quiet %.4g: %.4g [%.4g %.4g] %s\n", k.Name, i, s.Truth.Capacity, q.Result.Rate, s.Result.Rate, s.Result.Lo, s.Result.Hi, s.Result.Signature.Class)
					}
				}
				if q.Right() {
					class++
					if !s.Right() {
						wrongclass++
						fmt.Printf("CLASS %s %d: %s\n", k.Name, i, s.Result.Signature.Class)
					}
				}
			})
		}
	}
	wg.Wait()
	fmt.Printf("share %v: quiet answered %d, stolen answered %d, number as good %d; class right quiet %d, not stolen %d; excluded quiet %d stolen %d; seconds %.0f %.0f ratio %.2f\n", share, quiet, answered, num, class, wrongclass, qexcl, excl, qs, ss, ss/qs)
}
