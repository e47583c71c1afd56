package simulation

import (
	"runtime"
	"sync"
	"testing"

	"tare/internal/capacity"
	"tare/rigs/hosttest"
)

// TestSearchOnAStolenHost: where a tenth of both processors is stolen in bursts of up to 30 ms, hardly a search is lost
// that a quiet host answers, numbers and classes are hardly ever worse, none is given for the client's limit, and all
// together take at most 1.5 times as long.
func TestSearchOnAStolenHost(t *testing.T) {
	hosttest.SkipIfShort(t)
	const share = 0.1
	each := 1
	if hosttest.IsLong() {
		each = 4
	}
	var s stolenStudy
	var all sync.WaitGroup
	turns := make(chan bool, runtime.GOMAXPROCS(0))
	for _, k := range Kinds() {
		for i := range each {
			all.Go(func() {
				turns <- true
				defer func() { <-turns }()
				quiet, err := RunStolen(t.Context(), k, 11, i, 0)
				if err != nil {
					t.Error(err)
				}
				stolen, err := RunStolen(t.Context(), k, 11, i, share)
				if err != nil {
					t.Error(err)
				}
				s.take(t, k, i, quiet, stolen)
			})
		}
	}
	all.Wait()
	t.Logf("%d searches were answered, %d not; %d numbers and %d classes are worse; %.2f times as long",
		s.answered, s.lost, s.off, s.misnamed, s.stolen/s.quiet)
	n := s.answered + s.lost
	if 20*s.lost > n || 20*s.off > n || 20*s.misnamed > n || s.stolen > 1.5*s.quiet {
		t.Error("more than 5 % of the searches are worse, or they take more than 1.5 times as long")
	}
}

// stolenStudy counts what a stolen host changes.
type stolenStudy struct {
	sync.Mutex

	answered, lost, off, misnamed int
	quiet, stolen                 float64 // seconds
}

// take compares a search on a stolen host with the same one on a quiet host.
func (s *stolenStudy) take(t *testing.T, k Kind, i int, quiet, stolen Outcome) {
	t.Helper()
	s.Lock()
	defer s.Unlock()
	s.quiet, s.stolen = s.quiet+quiet.Result.Seconds, s.stolen+stolen.Result.Seconds
	if stolen.Result.Stop == capacity.StopClient && quiet.Result.Stop != capacity.StopClient {
		t.Errorf("%s %d: %s", k.Name, i, stolen.Result.Reason)
	}
	answers := func(o Outcome) bool {
		return o.Result.Rate > 0 || o.Truth.Stop != capacity.StopFound && o.Result.Stop == o.Truth.Stop
	}
	if !answers(quiet) {
		return
	}
	r := stolen.Result
	if !answers(stolen) {
		s.lost++
		t.Logf("%s %d: no answer: %s %s %q", k.Name, i, r.Stop, r.Reason, r.Warnings)
		return
	}
	s.answered++
	if quiet.Error() < 0.05 && stolen.Error() >= 0.05 {
		s.off++
		t.Logf("%s %d: %.4g/s [%.4g, %.4g] instead of %.4g/s", k.Name, i, r.Rate, r.Lo, r.Hi, stolen.Truth.Capacity)
	}
	if quiet.Right() && !stolen.Right() {
		s.misnamed++
		t.Logf("%s %d: %s", k.Name, i, r.Signature.Class)
	}
}
