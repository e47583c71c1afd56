package remote

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"tare/area"
	"tare/internal/clock"
	"tare/internal/design"
	"tare/internal/load"
	"tare/rigs/hosttest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(hosttest.Sharing(m)) }

// far is an area whose target tells what it was asked.
type far struct {
	area.Area

	said   chan string
	target area.Target // nil: a farTarget
}

type farSpec struct {
	area.Spec

	Word string `json:"word"`
}

func (far) NewSpec() area.Spec { return &farSpec{} }

func (f far) Preflight(_ context.Context, s area.Spec, env area.Env) []area.Finding {
	return []area.Finding{{Severity: area.Error, Message: s.(*farSpec).Word + " " + env.Run, Hint: "look"}}
}

func (f far) Open(context.Context, area.Spec, area.Env) (area.Target, error) {
	if f.target != nil {
		return f.target, nil
	}
	return &farTarget{said: f.said, values: []float64{5, 3, 4}}, nil
}

type farTarget struct {
	area.Target

	said   chan string
	values []float64
}

func (t *farTarget) tell(what string, tr design.Treatment) error {
	t.said <- what + " " + tr.Levels["x"]
	return nil
}

func (t *farTarget) Prepare(_ context.Context, tr design.Treatment, j area.Journal) error {
	return errors.Join(j.Intend(area.Change{}), t.tell("prepare", tr))
}

func (t *farTarget) Enter(_ context.Context, tr design.Treatment) error { return t.tell("enter", tr) }

func (t *farTarget) Verify(context.Context, design.Treatment) error {
	return area.WithHint(errors.New("not enforced"), "use another kernel")
}

func (t *farTarget) Leave(_ context.Context, tr design.Treatment) error { return t.tell("leave", tr) }

func (t *farTarget) Can() area.Can { return area.Can{Enter: t.Enter, Leave: t.Leave, Notes: t.Notes} }

func (t *farTarget) Notes() []string { return []string{"a note"} }

func (t *farTarget) Close(context.Context) error { return t.tell("close", design.Treatment{}) }

func (t *farTarget) Operations(design.Treatment) ([]load.Operation, error) {
	return []load.Operation{{
		Name: "open", Weight: 1, Expect: "a file", Span: time.Second, Rounds: 3, Negative: true,
		Batch: func(_ context.Context, n int) ([]load.BatchSample, error) {
			v := t.values[0]
			t.values = append(t.values[1:], v)
			return []load.BatchSample{{Metric: "cpu", Value: v * float64(n)}}, nil
		},
	}}, nil
}

// connect returns a target whose agent serves the area.
func connect(t *testing.T, f far, repeat int) *Target {
	t.Helper()
	here, there := net.Pipe()
	served := make(chan error, 1)
	go func() { served <- Serve(t.Context(), f, slog.New(slog.DiscardHandler), there, there) }()
	t.Cleanup(func() {
		_ = here.Close()
		if err := <-served; err != nil && !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("the agent ended with %v", err)
		}
	})
	return New(Peer{Name: "the far side", Stream: here, Patience: time.Minute, Repeat: repeat, RepeatWithin: time.Minute})
}

func TestTargetIsServed(t *testing.T) {
	f := far{said: make(chan string, 10)}
	tg := connect(t, f, 2)
	ctx := t.Context()
	setup := Setup{Spec: json.RawMessage(`{"word":"hello"}`), Run: "run1", Dir: t.TempDir()}
	if _, err := tg.peer.Stream.Write([]byte("\n")); err != nil { // as who wakes the machine
		t.Fatal(err)
	}
	findings, err := tg.Preflight(ctx, setup)
	if err != nil || len(findings) != 1 || findings[0].Message != "hello run1" || findings[0].Hint != "look" {
		t.Fatalf("preflight: %+v, %v", findings, err)
	}
	tr := design.Treatment{ID: "a", Levels: map[string]string{"x": "1"}}
	if err := tg.Enter(ctx, tr); err == nil || !strings.Contains(err.Error(), "nothing is open") {
		t.Fatalf("before open: %v", err)
	}
	err = errors.Join(tg.Open(ctx, setup), tg.Prepare(ctx, tr, nil), tg.Enter(ctx, tr), tg.Leave(ctx, tr))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"prepare 1", "enter 1", "leave 1"} {
		if got := <-f.said; got != want {
			t.Errorf("the target was asked to %q, want %q", got, want)
		}
	}
	if err := tg.Verify(ctx, tr); err == nil || err.Error() != "not enforced" || area.HintOf(err) != "use another kernel" {
		t.Errorf("verify: %v, next %q", err, area.HintOf(err))
	}
	ops, err := tg.Operations(tr)
	if err != nil || len(ops) != 1 || !ops[0].Negative || ops[0].Span != time.Second || ops[0].Rounds != 3 {
		t.Fatalf("operations: %+v, %v", ops, err)
	}
	for _, want := range []float64{30, 40} { // the least of 5 and 3, then of 4 and 5
		s, err := ops[0].Batch(ctx, 10)
		if err != nil || len(s) != 1 || s[0].Metric != "cpu" || s[0].Value != want {
			t.Errorf("batch: %+v, %v, want %g", s, err, want)
		}
	}
	if n := tg.Notes(); len(n) != 1 || n[0] != "a note" {
		t.Errorf("notes: %q", n)
	}
	if err := tg.Close(ctx); err != nil || <-f.said != "close " {
		t.Errorf("close: %v", err)
	}
}

// TestBrokenPeers asks peers that answer wrongly: each ends the conversation with the cause.
func TestBrokenPeers(t *testing.T) {
	for title, c := range map[string]struct{ answer, want string }{
		"garbage":        {"\x00\x01 what\n", "invalid character"},
		"another answer": {`{"id":7}` + "\n", "answered request 7, which does not wait"},
		"too long":       {strings.Repeat("x", maxLine+1), "a line of more than"},
		"its end":        {"", "the machine has ended"},
		"half a line":    {`{"id":1`, "the machine has ended"},
	} {
		t.Run(title, func(t *testing.T) {
			here, there := net.Pipe()
			done := make(chan struct{})
			go func() {
				defer close(done)
				_, _ = bufio.NewReader(there).ReadString('\n')
				_, _ = io.WriteString(there, c.answer)
				_ = there.Close()
			}()
			tg := New(Peer{
				Name: "the far side", Stream: here, Patience: time.Minute,
				Failed: func() error { return errors.New("the machine has ended") },
			})
			for range 2 { // the second request is refused with the same cause
				err := tg.Enter(t.Context(), design.Treatment{})
				if err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "the far side: ") {
					t.Errorf("got %v, want %q", err, c.want)
				}
			}
			if err := errors.Join(tg.Leave(t.Context(), design.Treatment{}), tg.Close(t.Context())); err != nil {
				t.Errorf("leave and close: %v", err) // the same cause once more
			}
			_ = here.Close()
			<-done
		})
	}
}

func TestSilentPeerEndsWithPatience(t *testing.T) {
	here, there := net.Pipe()
	go func() { _, _ = io.Copy(io.Discard, there) }()
	tg := New(Peer{Name: "the far side", Stream: here, Patience: 20 * time.Millisecond})
	err := tg.Enter(t.Context(), design.Treatment{})
	if err == nil || !strings.Contains(err.Error(), "no answer to enter within 20ms") {
		t.Error(err)
	}
	_, _ = here.Close(), there.Close()
}

// TestStalledPeerEndsBeforePatience: a machine that is stopped is noticed long before a slow answer would be.
func TestStalledPeerEndsBeforePatience(t *testing.T) {
	here, there := net.Pipe()
	go func() { _, _ = io.Copy(io.Discard, there) }()
	asked := 0
	tg := New(Peer{
		Name: "the far side", Stream: here, Patience: time.Hour, Check: time.Millisecond,
		Stalled: func() error {
			if asked++; asked < 3 {
				return nil
			}
			return errors.New("it is stopped")
		},
	})
	err := tg.Enter(t.Context(), design.Treatment{})
	if err == nil || err.Error() != "the far side: no answer to enter: it is stopped" || asked != 3 {
		t.Errorf("after %d questions: %v", asked, err)
	}
	_, _ = here.Close(), there.Close()
}

func FuzzAgent(f *testing.F) {
	f.Add([]byte(`{"id":1,"do":"open","setup":{"spec":{},"dir":"/"}}` + "\n" + `{"id":2,"do":"batch","treatment":{"id":"a"},"operation":"open","calls":-1}`))
	f.Add([]byte(`{"id":1,"do":"close"}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		a := &agent{area: far{said: make(chan string, 1000)}, env: area.Env{Dir: t.TempDir(), Clock: clock.System{}}}
		for i, line := range strings.Split(string(text), "\n") {
			var q request
			if i > 100 || json.Unmarshal([]byte(line), &q) != nil {
				return
			}
			if q.Setup != nil {
				q.Setup.Dir = t.TempDir()
			}
			a.handle(t.Context(), q)
		}
	})
}
