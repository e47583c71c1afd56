package webhook

import (
	"encoding/json"
	"maps"
	"net"
	"net/http"
	"sync"

	"tare/areas/admission/mechanism"
)

// CountsPath is the path of Counts, for GET.
const CountsPath = "/counts"

// Counts is what the webhook has served since its start. Reading it adds a connection, and nothing else.
type Counts struct {
	Reviews     int64            `json:"reviews"`     // answered, or about to be
	Bad         int64            `json:"bad"`         // requests that were no reviews
	Connections int64            `json:"connections"` // opened so far
	HTTP2       int64            `json:"http2"`       // of the reviews, those that came by HTTP/2
	Paths       map[string]int64 `json:"paths"`       // reviews by path
}

// counter counts. The map is bounded: paths beyond the possible number of policies count in the sum only.
type counter struct {
	mu    sync.Mutex
	total Counts
}

func newCounter() *counter { return &counter{total: Counts{Paths: map[string]int64{}}} }

func (c *counter) review(path string, protocol int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.total.Reviews++
	if protocol == 2 {
		c.total.HTTP2++
	}
	if _, known := c.total.Paths[path]; known || len(c.total.Paths) < 2*mechanism.MostPolicies {
		c.total.Paths[path]++
	}
}

func (c *counter) bad() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.total.Bad++
}

// connection is http.Server.ConnState.
func (c *counter) connection(_ net.Conn, state http.ConnState) {
	if state != http.StateNew {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.total.Connections++
}

func (c *counter) snapshot() Counts {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := c.total
	out.Paths = maps.Clone(c.total.Paths)
	return out
}

func (c *counter) serve(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet {
		http.Error(w, "counts are read by GET", http.StatusMethodNotAllowed)
		return
	}
	text, err := json.Marshal(c.snapshot())
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(text) // an error means that the caller has disconnected
}
