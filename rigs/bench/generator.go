//go:build linux

// Package bench measures the load engines themselves: requests per CPU-second against other generators, lateness in
// open loop, and whether what they report is true.
package bench

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/netip"
	"time"

	"tare/internal/hist"
	"tare/internal/load"
)

// Job is one run of one engine, in a process of its own.
type Job struct {
	Engine   load.Engine   `json:"engine"`
	Port     int           `json:"port"`
	Workers  int           `json:"workers,omitempty"` // closed loop
	Rate     float64       `json:"rate,omitempty"`    // open loop
	Length   time.Duration `json:"length"`
	Warm     time.Duration `json:"warm,omitempty"` // open loop: at its rate before what is measured
	Spin     time.Duration `json:"spin,omitempty"`
	Precise  bool          `json:"precise,omitempty"`
	MaxConns int           `json:"max_conns,omitempty"`
	Timeout  time.Duration `json:"timeout,omitempty"`
	Keep     bool          `json:"keep,omitempty"`
	Start    int64         `json:"start,omitempty"` // the server's, to compare with its schedule
	Stall    *Server       `json:"stall,omitempty"`
	TLS      bool          `json:"tls,omitempty"`
	// Host reads the accounts of the processors for Effort; nil: they are not known.
	Host func() *load.Processors `json:"-"`
}

// Outcome is what a Job found about its measured segment; in closed loop calls of the warm-up may end in it.
type Outcome struct {
	Offered, Sent, Ended, Good, Unsent, Recorded int
	Seconds                                      float64 // of the segment
	CPU                                          float64 // seconds, in the segment
	LateP50, LateP99, LateMax                    float64 // µs
	Mean                                         float64 // s, of responses
	// s, of responses of calls that were answered well; 0: there were none
	GoodP50  float64
	Effort   *load.Effort
	Response []float64 // s, at Quantiles
	Truth    []float64 // the same by the server's schedule
}

// Quantiles are those at which response times are compared.
var Quantiles = []float64{0.5, 0.99, 0.999}

type get struct{ request []byte }

func (get) Explain(uint64, int, []byte) int      { return -1 }
func (get) ConnKey(uint64) int                   { return 0 }
func (g get) Render(dst []byte, _ uint64) []byte { return append(dst, g.request...) }
func (get) Check(_ uint64, status int, body []byte) load.Outcome {
	if status == 200 && len(body) == 2 {
		return load.OK
	}
	return load.Wrong
}

// Run performs the job in this process.
func (j Job) Run(ctx context.Context) (Outcome, error) {
	addr := netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), uint16(j.Port))
	s, err := load.Open(ctx, load.Config{
		Engine: j.Engine, Timeout: j.Timeout, MaxConns: j.MaxConns, Spin: j.Spin, Precise: j.Precise, KeepCalls: j.Keep,
		Shards: 1, Host: j.Host,
		Endpoint: load.Endpoint{Addr: addr, Host: addr.String(), TLS: j.secure()},
		Operations: []load.Operation{{
			Name: "get", Weight: 1,
			Wire: get{[]byte("GET / HTTP/1.1\r\nHost: " + addr.String() + "\r\n\r\n")},
		}},
	})
	if err != nil {
		return Outcome{}, err
	}
	defer func() { _ = s.Close() }()
	var g load.Segment
	if j.Workers > 0 {
		// The pool grows by one connection a millisecond: that is over before the measurement begins.
		warm := time.Duration(j.Workers)*time.Millisecond + 100*time.Millisecond
		if _, err = s.Cycle(ctx, load.Closed{Workers: j.Workers, Duration: warm}, 0, nil); err != nil {
			return Outcome{}, err
		}
		s.Take()
		g, err = s.Cycle(ctx, load.Closed{Workers: j.Workers, Duration: j.Length}, 0, nil)
	} else {
		if g, err = s.Offer(ctx, load.Constant{Rate: 100, Duration: 200 * time.Millisecond}, 0, nil); err == nil {
			err = s.Wait(ctx, time.Second, time.Millisecond, func() bool { return s.Progress().Open() == 0 })
		}
		if err == nil && j.Warm > 0 {
			_, err = s.Offer(ctx, load.Constant{Rate: j.Rate, Duration: j.Warm}, 0, nil)
		}
		s.Take()
		if err == nil {
			g, err = s.Offer(ctx, load.Constant{Rate: j.Rate, Duration: j.Length}, 0, nil)
		}
	}
	if err != nil {
		return Outcome{}, err
	}
	return j.finish(ctx, s, g)
}

// secure returns what the client needs for a server with TLS and a certificate of its own; nil: plaintext.
func (j Job) secure() *tls.Config {
	if !j.TLS {
		return nil
	}
	return &tls.Config{InsecureSkipVerify: true} //nolint:gosec // it talks to its own server
}

func (j Job) finish(ctx context.Context, s load.Stream, g load.Segment) (Outcome, error) {
	settle := j.Timeout + time.Second
	if err := s.Wait(ctx, settle, 5*time.Millisecond, func() bool { return s.Progress().Open() == 0 }); err != nil {
		return Outcome{}, err
	}
	o := Outcome{
		Offered: g.Offered, Sent: g.Sent, Seconds: (g.End - g.Start).Seconds(), CPU: g.CPU, Recorded: len(s.Calls(g.Start)),
		Effort: g.Effort,
	}
	var late, response, good hist.Histogram
	for _, c := range s.Take() {
		o.Ended += int(c.Response.Count())
		o.Unsent += int(c.Unsent)
		if c.Outcome == load.OK {
			o.Good += int(c.Response.Count())
			good.Merge(c.Response)
		}
		late.Merge(c.Lateness)
		response.Merge(c.Response)
	}
	o.LateP50, o.LateP99, o.LateMax = late.Quantile(0.5)/1e3, late.Quantile(0.99)/1e3, float64(late.Max())/1e3
	o.Mean = response.Mean() / 1e9
	if good.Count() > 0 {
		o.GoodP50 = good.Quantile(0.5) / 1e9
	}
	for _, q := range Quantiles {
		o.Response = append(o.Response, response.Quantile(q)/1e9)
	}
	if j.Stall != nil {
		opened := realtime() - int64(s.Now())
		truth, err := j.truth(opened + int64(g.Start))
		if err != nil {
			return Outcome{}, err
		}
		o.Truth = truth
	}
	return o, nil
}

// truth computes the quantiles that a user would see, from the server's schedule alone. begin is the segment's start on
// CLOCK_REALTIME.
func (j Job) truth(begin int64) ([]float64, error) {
	if begin < j.Start {
		return nil, fmt.Errorf("the segment began %v before the server", time.Duration(j.Start-begin))
	}
	var h hist.Histogram
	a := load.Constant{Rate: j.Rate, Duration: j.Length}.Start()
	for at, ok := a.Next(); ok; at, ok = a.Next() {
		t := time.Duration(begin-j.Start) + at
		h.Record(int64(j.Stall.Due(t) - t))
	}
	var out []float64
	for _, q := range Quantiles {
		out = append(out, h.Quantile(q)/1e9)
	}
	return out, nil
}
