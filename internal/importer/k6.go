package importer

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"tare/internal/metric"
)

// durations are k6's metrics of single calls, in milliseconds, with the operation's name where a point has no tag.
var durations = map[string]string{"http_req_duration": "http", k6GRPC: "grpc"}

const k6GRPC = "grpc_req_duration"

// k6Line is a line of k6's JSON output: the declaration of a metric, or a point of one.
type k6Line struct {
	Type   string `json:"type"`
	Metric string `json:"metric"`
	Data   struct {
		Time  time.Time         `json:"time"`
		Value float64           `json:"value"` // ms
		Tags  map[string]string `json:"tags"`
	} `json:"data"`
}

// k6Lines reads k6's points. http_req_duration is from the sending of a request to its last byte, without the
// connection's making, and is stamped when it ended.
type k6Lines struct{}

func (*k6Lines) level() string { return "scenario" }

func (*k6Lines) read(p *parser, line []byte) (x sample, ok bool, err error) {
	var kind struct {
		Type   string `json:"type"`
		Metric string `json:"metric"`
	}
	if err := json.Unmarshal(line, &kind); err != nil {
		return x, false, fmt.Errorf("it is no JSON: %w", err)
	}
	operation, timed := durations[kind.Metric]
	switch {
	case kind.Type == "Metric":
		return x, false, nil // declarations have other fields
	case kind.Type != "Point":
		return x, false, fmt.Errorf("type %q is neither Metric nor Point", kind.Type)
	case !timed:
		p.ignore("metric " + kind.Metric)
		return x, false, nil
	}
	var l k6Line
	if err := json.Unmarshal(line, &l); err != nil {
		return x, false, fmt.Errorf("its point cannot be read: %w", err)
	}
	if l.Data.Time.IsZero() || !good(l.Data.Value) {
		return x, false, fmt.Errorf("%v ms at %s is no call", l.Data.Value, l.Data.Time.Format(time.RFC3339))
	}
	tags := l.Data.Tags
	for _, name := range []string{tags["name"], tags["url"]} {
		if name != "" {
			operation = name
			break
		}
	}
	if m := tags["method"]; m != "" {
		operation = m + " " + operation
	}
	took := l.Data.Value / 1000
	failed, said := k6Failed(kind.Metric, tags)
	return sample{
		stream: stream{level: tags["scenario"], operation: operation},
		call:   callAt(l.Data.Time.Add(-time.Duration(took*float64(time.Second))), took, failed || !said),
		unsaid: !said,
	}, true, nil
}

// k6Failed says whether the answer was not the expected one: of gRPC by its code, of which 0 is OK; of HTTP by k6's own
// word for it, or without that by the status.
func k6Failed(of string, tags map[string]string) (failed, said bool) {
	status, err := strconv.Atoi(tags["status"])
	if of == k6GRPC {
		return status != 0, err == nil
	}
	if e := tags["expected_response"]; e != "" {
		return e != "true", true
	}
	return status == 0 || status >= 400, err == nil
}

// k6Export is a summary: --summary-export has the figures beside one another, handleSummary below "values".
type k6Export struct {
	Metrics map[string]k6Trend `json:"metrics"`
}

type k6Trend map[string]json.RawMessage

// number is a figure of a metric, in either form.
func (t k6Trend) number(name string) (float64, bool) {
	var v float64
	if raw, ok := t[name]; ok && json.Unmarshal(raw, &v) == nil {
		return v, good(v)
	}
	var values map[string]json.RawMessage
	if raw, ok := t["values"]; ok && json.Unmarshal(raw, &values) == nil && json.Unmarshal(values[name], &v) == nil {
		return v, good(v)
	}
	return 0, false
}

// k6Summary takes the medians and keeps the rest as notes: a summary has no repetitions, so nothing can be said about
// how sure it is.
func (p *parser) k6Summary(f *k6Export) error {
	p.data.Unit = "summary"
	for _, name := range slices.Sorted(maps.Keys(f.Metrics)) {
		operation, timed := durations[name]
		if !timed {
			if name != "http_req_failed" && name != "http_reqs" {
				p.ignore("metric " + name)
			}
			continue
		}
		t := f.Metrics[name]
		median, ok := t.number("med")
		if !ok {
			p.ignore("metric " + name + " without med")
			continue
		}
		if err := p.summary(operation, metric.Service.Name, median/1000); err != nil {
			return err
		}
		for _, q := range []string{"avg", "p(90)", "p(95)", "p(99)", "max"} {
			if v, ok := t.number(q); ok {
				p.note("%s %s: %v ms, as the tool says", name, q, v)
			}
		}
	}
	if _, ok := p.index[seriesKey{Treatment, "http", metric.Service.Name}]; !ok {
		return nil
	}
	for _, name := range []string{"rate", "value"} { // of handleSummary, of --summary-export
		if v, ok := f.Metrics["http_req_failed"].number(name); ok {
			if err := p.summary("http", metric.Error.Name, v); err != nil {
				return err
			}
			break
		}
	}
	if v, ok := f.Metrics["http_reqs"].number("rate"); ok {
		p.note("http_reqs rate: %v /s, as the tool says", v)
	}
	return nil
}

// summary adds a figure that stands alone.
func (p *parser) summary(operation, name string, v float64) error {
	p.warn("summary only, without single values: no interval")
	return p.add(treatment(nil), operation, name, Repetition{N: 1, Values: []float64{v}})
}
