package protocol

import (
	"context"
	"errors"
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tare/areas/decision/engine"
	"tare/areas/decision/model"
	"tare/areas/decision/reference"
	"tare/internal/load"
)

// startPDPX serves the reference decision point until the test ends.
func startPDPX(t *testing.T, cfg engine.Config) *Session {
	t.Helper()
	cfg.Addr = "127.0.0.1:0"
	ctx, cancel := context.WithCancel(context.Background())
	addr, done := make(chan string, 1), make(chan error, 1)
	go func() {
		done <- reference.RunPDPX(ctx, cfg, func(r engine.Ready) error { addr <- r.Addr; return nil })
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("the reference ended with %v", err)
		}
	})
	select {
	case a := <-addr:
		return &Session{Addr: netip.MustParseAddrPort(a), Host: a, Username: cfg.Username, Password: cfg.Password}
	case err := <-done:
		done <- context.Canceled
		t.Fatalf("the reference did not start: %v", err)
		return nil
	}
}

func pdpxQuestion(t *testing.T, questions []model.Question, name string) model.Question {
	t.Helper()
	for _, q := range questions {
		if q.Name == name {
			return q
		}
	}
	t.Fatalf("no question %s among %d", name, len(questions))
	return model.Question{}
}

// TestPDPXQuestionsGetTheKnownAnswers for each N and position, with and without the options of old releases.
func TestPDPXQuestionsGetTheKnownAnswers(t *testing.T) {
	for _, c := range []struct {
		name     string
		n        int
		position model.Position
		options  PDPX
	}{
		{"one policy", 1, model.Last, PDPX{}},
		{"last of 100", 100, model.Last, PDPX{}},
		{"first of 100", 100, model.First, PDPX{}},
		{"absent", 10, model.Absent, PDPX{}},
		{"recipe", 1, model.Last, PDPX{Recipe: true}},
		{"native", 1, model.Last, PDPX{XACML: true}},
		{"frequency denies", 1, model.Last, PDPX{FrequencyWant: "deny"}},
		{"own actor", 1, model.Last, PDPX{Actor: "SO"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := startPDPX(t, engine.Config{N: c.n, Username: "healthcheck", Password: "zb!XztG34"})
			questions := PDPXQuestions(c.options, model.Set{N: c.n}, c.position)
			if err := pdpx().Validate(Options{Section: &c.options}, questions); err != nil {
				t.Fatal(err)
			}
			for _, q := range questions {
				got, err := pdpx().Ask(t.Context(), s, q)
				if err != nil {
					t.Fatalf("ask %s: %v", q.Name, err)
				}
				want := load.OK
				if q.Want == model.Deny || q.Want == model.NotApplicable {
					want = load.Denied
				}
				if got.Outcome != want || got.Decision != q.Want {
					t.Errorf("%s: outcome %v, decision %v, want %v and %v: %s", q.Name, got.Outcome, got.Decision, want, q.Want,
						got.Text)
				}
			}
		})
	}
}

// TestPDPXUnderLoad runs the mix of the published test through the load engines: every call succeeds, and the decision
// point counts exactly what the callers saw.
func TestPDPXUnderLoad(t *testing.T) {
	for _, kind := range []load.Engine{load.Fast, load.Std} {
		t.Run(string(kind), func(t *testing.T) {
			s := startPDPX(t, engine.Config{N: 20, Username: "u", Password: "password"})
			questions := PDPXQuestions(PDPX{XACML: true}, model.Set{N: 20}, model.Last)
			var ops []load.Operation
			for _, q := range questions {
				o, err := pdpx().Operation(s, q, 1)
				if err != nil {
					t.Fatal(err)
				}
				ops = append(ops, o)
			}
			before, err := pdpx().Counted(t.Context(), s)
			if err != nil {
				t.Fatal(err)
			}
			seen := runOperations(t, s, kind, ops)
			after, err := pdpx().Counted(t.Context(), s)
			if err != nil {
				t.Fatal(err)
			}
			for word := range after {
				after[word] -= before[word]
			}
			if d := cmp.Diff(seen, after); d != "" {
				t.Errorf("what the callers saw (-) is not what the decision point counted (+):\n%s", d)
			}
		})
	}
}

// runOperations runs ops in a closed loop for a few hundred calls, all of which must succeed, and counts the answers by
// their words.
func runOperations(t *testing.T, s *Session, kind load.Engine, ops []load.Operation) map[string]float64 {
	t.Helper()
	stream, err := load.Open(t.Context(), load.Config{
		Engine: kind, Operations: ops, Seed: 1, Timeout: 20 * time.Second, KeepCalls: true,
		Endpoint: load.Endpoint{Addr: s.Addr, Host: s.Host, TLS: s.TLS},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close() //nolint:errcheck // the test has what it wants
	enough := func() bool { return stream.Progress().Ended() > 500 }
	if _, err := stream.Cycle(t.Context(), load.Closed{Workers: 8, Duration: 20 * time.Second}, 5*time.Millisecond,
		enough); err != nil {
		t.Fatal(err)
	}
	if err := stream.Wait(t.Context(), 10*time.Second, time.Millisecond,
		func() bool { return stream.Progress().Open() == 0 }); err != nil {
		t.Fatal(err)
	}
	seen := map[string]float64{"permit": 0, "deny": 0, "not-applicable": 0, "indeterminate": 0}
	called := map[string]bool{}
	for _, c := range stream.Calls(0) {
		o := ops[c.Operation]
		called[o.Name] = true
		if c.Outcome != load.OK && c.Outcome != load.Denied {
			t.Fatalf("%s: outcome %v, status %d, %s", o.Name, c.Outcome, c.Status, c.Cause.Text(o.Causes))
		}
		if o.Answer != "" {
			seen[o.Answer]++
		}
	}
	if len(called) != len(ops) {
		t.Fatalf("of %d operations only %v were called", len(ops), called)
	}
	return seen
}
