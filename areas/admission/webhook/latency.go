package webhook

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"time"
)

const (
	// LatencyPath is the path to which a Latency is POSTed.
	LatencyPath = "/latency"
	// MostLatency is the longest meaningful latency: the API server gives no webhook more than 30 s.
	MostLatency = 29 * time.Second
	// MostSpread bounds Latency.Spread: beyond it the 99th percentile is a thousand medians.
	MostSpread = 3.0
)

// A Latency is how long a webhook takes to answer: never less, and a few tenths of a millisecond more, due to timers.
type Latency struct {
	Median time.Duration `json:"median,omitempty"`
	// Spread is the standard deviation of the logarithm of a lognormal latency: each answer has its own. 0: always Median.
	// What is above MostLatency is cut.
	Spread float64 `json:"spread,omitempty"`
}

// Check rejects a latency that no webhook should have.
func (l Latency) Check() error {
	switch {
	case l.Median < 0 || l.Median > MostLatency:
		return fmt.Errorf("latency %v: want 0 to %v", l.Median, MostLatency)
	case !(l.Spread >= 0 && l.Spread <= MostSpread):
		return fmt.Errorf("spread %v of the latency: want 0 to %v", l.Spread, MostSpread)
	}
	return nil
}

// Above is the share of the answers that take longer than d.
func (l Latency) Above(d time.Duration) float64 {
	if l.Median <= 0 || l.Spread == 0 || d <= 0 {
		if l.Median > d {
			return 1
		}
		return 0
	}
	return math.Erfc(math.Log(d.Seconds()/l.Median.Seconds())/l.Spread/math.Sqrt2) / 2
}

// draw returns the latency of one answer.
func (l Latency) draw() time.Duration {
	if l.Spread == 0 {
		return l.Median
	}
	x := float64(l.Median) * math.Exp(l.Spread*rand.NormFloat64()) //nolint:gosec // no secret
	return time.Duration(min(x, float64(MostLatency)))
}

// String says the latency in a few words.
func (l Latency) String() string {
	if l.Spread == 0 {
		return l.Median.String()
	}
	return fmt.Sprintf("lognormal with a median of %v and a spread of %.3g", l.Median, l.Spread)
}

// setLatency answers the request that changes the latency of all further reviews.
func (h *handler) setLatency(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		http.Error(w, "a latency is POSTed", http.StatusMethodNotAllowed)
		return
	}
	var l Latency
	err := json.NewDecoder(http.MaxBytesReader(w, r.Body, mostHeaders)).Decode(&l)
	if err == nil {
		err = l.Check()
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	h.latency.Store(&l)
	w.WriteHeader(http.StatusNoContent)
}
