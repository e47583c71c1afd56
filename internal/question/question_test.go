package question

import (
	"reflect"
	"slices"
	"testing"

	"tare/area"
	"tare/internal/budget"
	"tare/internal/design"
)

// TestEveryPropertyIsSet for every question, and names those that are not.
func TestEveryPropertyIsSet(t *testing.T) {
	seen := map[design.Question]bool{}
	for _, q := range All() {
		for _, name := range unsetProperties(q) {
			t.Errorf("%s leaves out %s", q.Name, name)
		}
		if seen[q.Name] {
			t.Errorf("two questions are called %s", q.Name)
		}
		seen[q.Name] = true
		if q.Budgets.Question != q.Name {
			t.Errorf("the budgets of %s speak of %s", q.Name, q.Budgets.Question)
		}
		for _, name := range q.Budgets.Probed {
			if !slices.ContainsFunc(budget.ProbedMetrics(), func(p budget.Probed) bool { return p.Name == name }) {
				t.Errorf("%s judges %s, which no probe reads", q.Name, name)
			}
		}
	}
	for _, name := range []design.Question{design.Compare, design.Scale, design.Capacity, design.Soak, design.Guard} {
		if !seen[name] {
			t.Errorf("%s is not in the list", name)
		}
	}
}

// TestUnsetPropertiesAreFound clears one property after another.
func TestUnsetPropertiesAreFound(t *testing.T) {
	for _, name := range []string{
		"Name", "Asks", "Drive", "Answer", "LeastTreatments", "Needs", "CheckTreatments", "CheckLoad", "Form",
		"MaxConnections", "AbortAfter", "Budgets", "Takes",
	} {
		q := *soak()
		reflect.ValueOf(&q).Elem().FieldByName(name).SetZero()
		if got := unsetProperties(&q); !slices.Equal(got, []string{name}) {
			t.Errorf("without %s the test sees %v left out", name, got)
		}
	}
}

// unsetProperties returns the properties of q that are not set.
func unsetProperties(q *Question) (out []string) {
	v := reflect.ValueOf(q).Elem()
	for i := range v.NumField() {
		name := v.Type().Field(i).Name
		optional := name == "Takes" && q.Drive == Blocks || name == "Trespass"
		if v.Field(i).IsZero() && !optional {
			out = append(out, name)
		}
	}
	return out
}

func TestUnknownQuestionsHaveDefaults(t *testing.T) {
	q := Of("guess")
	if q.Drive != (Drive{}) || q.Answer != (Answer{}) ||
		q.Needs(area.Offers{AnyRate: area.Yes}).Given || q.MaxConnections != 256 {
		t.Errorf("an unknown question has properties: %+v", q)
	}
	q.CheckTreatments(nil)
	q.CheckLoad(nil)
	if got := q.Takes(Forecast{}); got != "" {
		t.Errorf("an unknown question takes %q", got)
	}
}

func TestAddedQuestionsEndWithTheTest(t *testing.T) {
	t.Run("within", func(t *testing.T) {
		AddForTest(t, &Question{Name: "toy"})
		if _, ok := Find("toy"); !ok || len(All()) != 6 {
			t.Error("the question was not added")
		}
	})
	if _, ok := Find("toy"); ok {
		t.Error("the question outlives its test")
	}
}

func TestListed(t *testing.T) {
	for want, names := range map[string][]string{"": nil, "a": {"a"}, "a or b": {"a", "b"}, "a, b or c": {"a", "b", "c"}} {
		if got := Listed(names, "or"); got != want {
			t.Errorf("Listed(%v) = %q, want %q", names, got, want)
		}
	}
}
