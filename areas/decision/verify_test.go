package decision

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"tare/areas/decision/engine"
	"tare/areas/decision/model"
	"tare/areas/decision/protocol"
	"tare/internal/unit"
	"tare/rigs/hosttest"
)

// TestVerifyRejectsPlantedAnswers: Verify rejects a decision point that does not decide, whatever its fault, and says
// what it does.
func TestVerifyRejectsPlantedAnswers(t *testing.T) {
	for _, c := range []struct {
		kind   engine.Kind
		answer string
		says   []string // all of them; none: the decision point is good
	}{
		{engine.Cedar, "", nil},
		{engine.Cedar, "always-permit", []string{"permits a request that must be refused", "permit everything"}},
		{engine.Cedar, "not-applicable-as-permit", []string{"permits a request that"}},
		// AuthZEN has no word for it
		{engine.Cedar, "indeterminate", []string{"no decision in the answer", "500", "could not be evaluated"}},
		{engine.PDPX, "", nil},
		{engine.PDPX, "always-permit", []string{"must be refused"}},
		{engine.PDPX, "not-applicable-as-permit", []string{
			"no policy is deployed for",
			"counts NotApplicable and answers Permit",
		}},
		{engine.PDPX, "indeterminate", []string{"Indeterminate", "neither yes nor no"}},
	} {
		t.Run(string(c.kind)+" "+c.answer, func(t *testing.T) {
			spec := embedded(c.kind, Planted{Answer: c.answer})
			spec.Policies = 5
			tg, _ := prepared(t, spec)
			err := tg.Verify(t.Context(), standard)
			if len(c.says) == 0 {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if err == nil {
				t.Fatal("a decision point that decides nothing was accepted")
			}
			for _, want := range c.says {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%v\nlacks %q", err, want)
				}
			}
		})
	}
}

// TestVerifyPositions verifies each position, and that every measured question has the known answer.
func TestVerifyPositions(t *testing.T) {
	for _, position := range []model.Position{model.First, model.Last, model.Absent} {
		for _, batch := range []int{1, 7} {
			spec := embedded(engine.Cedar, Planted{})
			spec.Policies, spec.Position, spec.Batch = 3, position, batch
			tg, _ := prepared(t, spec)
			if err := tg.Verify(t.Context(), standard); err != nil {
				t.Errorf("%s, batches of %d: %v", position, batch, err)
			}
			ops, err := tg.Operations(standard)
			if err != nil {
				t.Fatal(err)
			}
			names := ""
			for _, op := range ops {
				names += op.Name + "=" + op.Answer + " "
			}
			want := "permit=permit deny=deny "
			if position == model.Absent {
				want = "absent=deny "
			}
			if names != want {
				t.Errorf("%s: %q, want %q", position, names, want)
			}
		}
	}
}

// TestNotReadyIsAwaited: 409 is retried; when patience ends, the error says what to do.
func TestNotReadyIsAwaited(t *testing.T) {
	hosttest.SkipIfShortUnlessRaced(t)
	spec := embedded(engine.PDPX, Planted{NotReady: unit.Duration(1200 * time.Millisecond)})
	spec.Policies = 3
	tg, _ := prepared(t, spec)
	if err := tg.Verify(t.Context(), standard); err != nil {
		t.Error(err)
	}
	spec.Embedded.Planted.NotReady = unit.Duration(time.Hour)
	late, j := opened(t, spec, testEnv(t))
	late.patience = 600 * time.Millisecond
	err := late.Prepare(t.Context(), standard, j)
	if err == nil || !strings.Contains(err.Error(), "was not ready within 600ms") ||
		!strings.Contains(err.Error(), "409") {
		t.Errorf("prepare: %v", err)
	}
}

// TestExplain: each answer without a decision has a sentence with the next step.
func TestExplain(t *testing.T) {
	for status, want := range map[int]string{
		http.StatusUnauthorized: "check username, password or token", http.StatusForbidden: "may not ask",
		http.StatusNotFound: "check the url", http.StatusBadRequest: "do not", http.StatusConflict: "not ready",
		http.StatusFound: "redirects are not followed", http.StatusBadGateway: "log",
	} {
		got := explain(model.Question{Name: "permit", Want: model.Permit}, protocol.Answer{Status: status, Text: "what came"})
		if status == http.StatusBadRequest {
			want = "does not understand"
		}
		if !strings.Contains(got, want) || !strings.Contains(got, "what came") {
			t.Errorf("status %d: %s, want %q", status, got, want)
		}
	}
	got := explain(model.Question{Name: "mine", Want: model.Deny}, protocol.Answer{
		Decision: model.NotApplicable,
		Status:   200,
	})
	if !strings.Contains(got, "write expect: not-applicable") {
		t.Error(got)
	}
}
