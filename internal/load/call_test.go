package load

import (
	"testing"
	"time"
)

// TestWhoseDelayItIs: what a call waits until it is sent is the generator's, but for the wait for a connection, which
// is the target's.
func TestWhoseDelayItIs(t *testing.T) {
	const ms = time.Millisecond
	at := func(intended, ready, sent, done int) Call {
		d := func(n int) time.Duration { return time.Duration(n) * ms }
		return Call{Intended: d(intended), Ready: d(ready), Sent: d(sent), Done: d(done)}
	}
	for name, c := range map[string]struct {
		call                              Call
		lateness, wait, response, service time.Duration
	}{
		"on time":                  {at(10, 0, 10, 15), 0, 0, 5 * ms, 5 * ms},
		"late":                     {at(10, 0, 12, 15), 2 * ms, 0, 5 * ms, 3 * ms},
		"a connection was awaited": {at(10, 13, 13, 15), 0, 3 * ms, 5 * ms, 2 * ms},
		"and then it was late":     {at(10, 13, 14, 15), ms, 3 * ms, 5 * ms, ms},
		"a connection was free":    {at(10, 9, 11, 15), ms, 0, 5 * ms, 4 * ms},
		"never sent":               {at(10, 0, 0, 15), 0, 0, 5 * ms, 0},
		"outstanding":              {at(10, 0, 11, 0), ms, 0, 0, 0},
	} {
		l, w, r, s := c.call.Lateness(), c.call.PoolWait(), c.call.Response(), c.call.Service()
		if l != c.lateness || w != c.wait || r != c.response || s != c.service {
			t.Errorf("%s: lateness %v, wait %v, response %v, service %v", name, l, w, r, s)
		}
	}
}
