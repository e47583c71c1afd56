package drive

import (
	"strings"
	"testing"

	"tare/internal/record"
	"tare/internal/run"
)

// TestUnknownQuestionsAreNotMeasured: nothing is opened for a question that no drive answers.
func TestUnknownQuestionsAreNotMeasured(t *testing.T) {
	s := &exactTarget{}
	req, open := start(t, s, run.Blocks{Most: 1})
	req.Question = "guess"
	status, err := Do(t.Context(), req)
	if status != record.Errored || err == nil || !strings.Contains(err.Error(), `cannot measure question "guess"`) {
		t.Errorf("status %s, error %v", status, err)
	}
	if f := open().Finish; f == nil || f.Status != record.Errored || len(s.turns) > 0 {
		t.Errorf("the record ends with %+v after %d turns", f, len(s.turns))
	}
}
