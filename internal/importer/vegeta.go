package importer

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"tare/internal/metric"
)

// vegetaResult is a line of "vegeta encode --to json". Latency is in nanoseconds, from the sending on: a call that had
// to wait for a worker began later than it was due, and its wait is not in it.
type vegetaResult struct {
	Attack    string    `json:"attack"`
	Code      *int      `json:"code"`
	Timestamp time.Time `json:"timestamp"`
	Latency   *float64  `json:"latency"`
	Error     string    `json:"error"`
	Method    string    `json:"method"`
	URL       string    `json:"url"`
}

type vegetaLines struct{}

func (*vegetaLines) level() string { return "attack" }

func (*vegetaLines) read(_ *parser, line []byte) (x sample, ok bool, err error) {
	var r vegetaResult
	if err := json.Unmarshal(line, &r); err != nil {
		return x, false, fmt.Errorf("it is no JSON of a result: %w", err)
	}
	if r.Latency == nil || r.Code == nil || r.Timestamp.IsZero() {
		return x, false, errors.New("it has no latency, code or timestamp")
	}
	if !good(*r.Latency) {
		return x, false, fmt.Errorf("%v ns is no latency", *r.Latency)
	}
	// The query is often a number of its own.
	url, _, _ := strings.Cut(r.URL, "?")
	operation := strings.TrimSpace(r.Method + " " + url)
	if operation == "" {
		operation = everything
	}
	x.stream = stream{level: r.Attack, operation: operation}
	x.call = callAt(r.Timestamp, *r.Latency/1e9, r.Error != "" || *r.Code < 200 || *r.Code >= 400)
	return x, true, nil
}

// vegetaReport is "vegeta report -type=json". Times in nanoseconds.
type vegetaReport struct {
	Latencies map[string]float64 `json:"latencies"`
	Earliest  time.Time          `json:"earliest"`
	Requests  float64            `json:"requests"`
	Success   *float64           `json:"success"`
	Rate      float64            `json:"rate"`
}

// vegetaSummary takes the median and the share of failures, and keeps the rest as notes.
func (p *parser) vegetaSummary(r *vegetaReport) error {
	p.data.Unit = "summary"
	p.data.Started = r.Earliest
	median, ok := r.Latencies["50th"]
	if !ok || !good(median) {
		return p.finding(1, "write the file again with "+producers[VegetaSummary], "there is no latency \"50th\"")
	}
	if err := p.summary(everything, metric.Service.Name, median/1e9); err != nil {
		return err
	}
	for _, q := range []string{"mean", "90th", "95th", "99th", "max"} {
		if v, ok := r.Latencies[q]; ok && good(v) {
			p.note("latency %s: %v, as the tool says", q, time.Duration(min(v, 1e18)))
		}
	}
	p.note("%v requests at %v /s, as the tool says", r.Requests, r.Rate)
	if r.Success == nil || !good(1-*r.Success) {
		return nil
	}
	return p.summary(everything, metric.Error.Name, 1-*r.Success)
}
