package protocol

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"tare/areas/decision/engine"
	"tare/areas/decision/model"
	"tare/areas/decision/reference"
	"tare/internal/load"
	"tare/internal/proc"
	"tare/rigs/hosttest"
)

// startCedar serves a set behind AuthZEN until the test ends.
func startCedar(t *testing.T, set model.Set, answer string) *Session {
	t.Helper()
	file := filepath.Join(t.TempDir(), "policies.cedar")
	if err := os.WriteFile(file, set.Cedar(), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg := engine.Config{Addr: "127.0.0.1:0", File: file, N: set.N, Answer: answer}
	ctx, cancel := context.WithCancel(context.Background())
	addr, done := make(chan string, 1), make(chan error, 1)
	go func() {
		done <- reference.RunCedar(ctx, cfg, func(r engine.Ready) error { addr <- r.Addr; return nil })
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("cedar ended with %v", err)
		}
	})
	select {
	case a := <-addr:
		return &Session{Addr: netip.MustParseAddrPort(a), Host: a}
	case err := <-done:
		done <- context.Canceled
		t.Fatalf("cedar did not start: %v", err)
		return nil
	}
}

// knownQuestions returns questions about a set, at all its positions.
func knownQuestions(set model.Set) []model.Question {
	return []model.Question{
		set.Ask(model.First), set.Ask(model.Last), set.Ask(model.Absent), set.Forbidden(model.First),
		set.Forbidden(model.Last),
	}
}

// wantAllAnswers asks every question once, and then as the load asks, one and several at a time.
func wantAllAnswers(t *testing.T, a Adapter, s *Session, set model.Set) {
	t.Helper()
	for _, q := range knownQuestions(set) {
		want := Answer{Decision: q.Want, Outcome: load.Denied, Status: 200}
		if q.Want == model.Permit {
			want.Outcome = load.OK
		}
		got, err := a.Ask(t.Context(), s, q)
		text := got.Text
		got.Text = ""
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("N=%d, %s of %s: %+v %s, %v", set.N, q.Name, q.Resource.ID, got, text, err)
		}
	}
	batch := []int{1}
	if a.Batches() {
		batch = append(batch, 7)
	}
	for _, n := range batch {
		for _, kind := range []load.Engine{load.Fast, load.Std} {
			var ops []load.Operation
			for _, q := range []model.Question{set.Ask(model.Last), set.Forbidden(model.Last)} {
				op, err := a.Operation(s, q, n)
				if err != nil {
					t.Fatal(err)
				}
				ops = append(ops, op)
			}
			if seen := runOperations(t, s, kind, ops); seen["permit"] == 0 || seen["deny"] == 0 {
				t.Errorf("%d at once on %s: %v", n, kind, seen)
			}
		}
	}
}

func TestCedarAnswers(t *testing.T) {
	for _, n := range []int{1, 30} {
		wantAllAnswers(t, authZEN(), startCedar(t, model.Set{N: n}, ""), model.Set{N: n})
	}
}

func TestAlwaysPermitIsDetected(t *testing.T) {
	set := model.Set{N: 3}
	s := startCedar(t, set, "always-permit")
	for _, q := range knownQuestions(set) {
		got, err := authZEN().Ask(t.Context(), s, q)
		if err != nil || got.Decision != model.Permit || (got.Outcome == load.OK) != (q.Want == model.Permit) {
			t.Errorf("%s: got %+v, %v; want Permit, which is OK only if it is the known answer", q.Name, got, err)
		}
	}
}

// TestJavaEnginesAnswer runs if TARE_ENGINES names the engines, which may have to be fetched and built.
func TestJavaEnginesAnswer(t *testing.T) {
	if os.Getenv("TARE_ENGINES") == "" {
		hosttest.Missing(t, "TARE_ENGINES is not set", "set it to the engines, separated by commas")
	}
	for _, kind := range []engine.Kind{engine.ATT, engine.AuthzForce} {
		t.Run(string(kind), func(t *testing.T) {
			l, err := engine.Find(t.Context(), kind, engine.Host{
				Self: os.Args[0], Log: slog.New(slog.DiscardHandler),
				Getenv: os.LookupEnv,
			})
			if err != nil {
				t.Fatal(err)
			}
			set := model.Set{N: 30}
			dir := t.TempDir()
			cfg, err := l.Prepare(dir, set)
			if err != nil {
				t.Fatal(err)
			}
			child, err := proc.Start(t.Context(), proc.Spec{
				Name: string(kind), Path: l.Path, Args: l.Args, Config: cfg, LogFile: filepath.Join(dir, "log"),
				ReadyWithin: 2 * time.Minute,
			})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = child.Stop(context.Background()) })
			var ready engine.Ready
			if err := json.Unmarshal(child.Ready, &ready); err != nil {
				t.Fatal(err)
			}
			wantAllAnswers(t, xacml(), &Session{Addr: netip.MustParseAddrPort(ready.Addr), Host: ready.Addr}, set)
		})
	}
}
