package decision

import (
	"slices"
	"strings"
	"testing"

	"tare/areas/decision/protocol"
	"tare/internal/hist"
	"tare/internal/load"
)

// FuzzParseURL: an accepted URL has a host and neither credentials nor a query; the error of one with credentials does
// not quote it.
func FuzzParseURL(f *testing.F) {
	for _, seed := range []string{
		"http://127.0.0.1:8181", "pdp:6969", "https://[::1]:6969/policy/pdpx/v1/", "http://me:hunter2@pdp", "grpc://x", "http://pdp?x=1", "://", "http://%zz", "",
	} {
		f.Add(seed)
	}
	schemes := []string{"http", "https"}
	f.Fuzz(func(t *testing.T, text string) {
		u, err := parseURL(text, schemes)
		if err != nil {
			return
		}
		if u.Hostname() == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || !slices.Contains(schemes, u.Scheme) {
			t.Errorf("%q is taken as %v", text, u)
		}
	})
}

// TestOneWrongAnswerFails: a single wrong answer is an error, and the error of an operation that fails says why.
func TestOneWrongAnswerFails(t *testing.T) {
	one := func() *hist.Histogram {
		h := &hist.Histogram{}
		h.Record(1000)
		return h
	}
	ops := []load.Operation{{Name: "permit", Answer: "permit", Causes: protocol.Causes()}, {Name: "deny", Answer: "deny", Causes: protocol.Causes()}}
	good := []load.Cell{{Operation: 0, Outcome: load.OK, Response: one()}, {Operation: 1, Outcome: load.Denied, Response: one()}}
	says := func(v protocol.Verdict) []load.CauseCount {
		return []load.CauseCount{{Cause: load.OwnCauses + load.Cause(v), Status: 200, Count: 1}}
	}
	for _, c := range []struct {
		name  string
		cells []load.Cell
		want  string // empty: all is well
	}{
		{"all good", good, ""},
		{"good with a failure", append(slices.Clone(good), load.Cell{Operation: 0, Outcome: load.Timeout, Response: one()}), ""},
		{"one wrong", append(slices.Clone(good), load.Cell{Operation: 1, Outcome: load.Wrong, Response: one(), Causes: says(protocol.SaysPermit)}), "the decision is Permit"},
		{"none good", []load.Cell{good[0], {Operation: 1, Outcome: load.Refused, Response: one(), Causes: []load.CauseCount{{Status: 429, Count: 1}}}}, "status 429"},
	} {
		err := judgeCells(ops, c.cells)
		if (err == nil) != (c.want == "") || (err != nil && !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

// TestURLErrorsHoldNoCredentials, since errors are logged.
func TestURLErrorsHoldNoCredentials(t *testing.T) {
	for _, text := range []string{"http://me:hunter2@pdp", "http://me:hunter2@pdp:x", "http://me:hunter2@/", "http://me:hunter2@pdp/%zz", "ftp://me:hunter2@pdp"} {
		if _, err := parseURL(text, []string{"http"}); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("error %v; want one without the password", err)
		}
	}
}
