package servers

import (
	"errors"
	"io"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tare/rigs/hosttest"
)

// TestWorkIsLimited calls each fixture whose limit takes real time over many connections at once: from the first call
// on it does not do more than its truth. No later moment would do as a beginning: 48 answers that take turns over one
// link end together, and a host that stood still shortly before makes more of them end after it. How much less a
// fixture does depends on the host: on a busy one it takes longer to do a twentieth.
func TestWorkIsLimited(t *testing.T) {
	hosttest.SkipIfShort(t)
	t.Parallel()
	const callers, length, longest = 48, 2500 * time.Millisecond, 30 * time.Second
	for _, f := range All() {
		if f.proxy != nil || !f.isReal() {
			continue
		}
		t.Run(f.Name, func(t *testing.T) {
			if err := f.Missing(); err != nil {
				hosttest.Missing(t, err.Error(), "install it")
			}
			r, err := f.Start(t.Context(), 1)
			if err != nil {
				t.Fatal(err)
			}
			var good, ended atomic.Int64 // ended: when, after begun
			var all sync.WaitGroup
			least, begun := int64(f.Truth.Rate/20*length.Seconds()), time.Now()
			goesOn := func() bool {
				since := time.Since(begun)
				if since < length || since < longest && good.Load() < least {
					return true
				}
				ended.CompareAndSwap(0, int64(since))
				return false
			}
			for range callers {
				all.Go(func() {
					c := http.Client{Timeout: length, Transport: &http.Transport{}}
					defer c.CloseIdleConnections()
					for goesOn() {
						ok := getToken(&c, r.Addr.String()) == http.StatusOK
						if ok && ended.Load() == 0 {
							good.Add(1)
						}
					}
				})
			}
			all.Wait()
			rate := float64(good.Load()) / time.Duration(ended.Load()).Seconds()
			if r.own != nil && r.own.group != nil {
				defer func(path string) {
					if _, err := os.Stat(path); !os.IsNotExist(err) {
						t.Errorf("the control group is left behind: %v", err)
					}
				}(r.own.group.Path())
			}
			if err := r.Stop(); err != nil {
				t.Error(err)
			}
			if t.Logf("%.1f/s, truth %.0f/s", rate, f.Truth.Rate); rate > 1.1*f.Truth.Rate || good.Load() < least {
				t.Errorf("%d good calls, at %.1f/s; the truth is %.0f/s", good.Load(), rate, f.Truth.Rate)
			}
		})
	}
}

// getToken asks for the token and returns the status; 0 is a call without a whole answer.
func getToken(c *http.Client, addr string) int {
	resp, err := c.Get("http://" + addr + "/token")
	if err != nil {
		return 0
	}
	_, err = io.Copy(io.Discard, resp.Body)
	if errors.Join(err, resp.Body.Close()) != nil {
		return 0
	}
	return resp.StatusCode
}
