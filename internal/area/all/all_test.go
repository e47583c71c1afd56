package all

import (
	"slices"
	"strings"
	"testing"

	"tare/internal/question"
)

func TestFind(t *testing.T) {
	names := List{}.Names()
	if want := []string{"identity", "decision", "sandbox", "admission", "imagepull", "exec"}; !slices.Equal(names, want) {
		t.Errorf("names %q, want %q", names, want)
	}
	for i, name := range names {
		if a, ok := (List{}).Find(name); !ok || a.Name() != name {
			t.Errorf("%s is not found", name)
		}
		if slices.Contains(names[:i], name) {
			t.Errorf("%s is listed twice", name)
		}
	}
	if _, ok := (List{}).Find("nothing"); ok {
		t.Error("an unknown area is found")
	}
}

// TestOffers: what an area does not offer has a reason, which says what to ask instead. All areas can be compared.
func TestOffers(t *testing.T) {
	refused := map[string]map[string]string{
		"sandbox":   {"capacity": "no queue that overflows", "soak": "nothing that could drift"},
		"imagepull": {"capacity": "no queue that overflows", "soak": "ask scale over records"},
		"exec":      {"capacity": "no queue can overflow", "soak": "nothing loads it steadily"},
	}
	for _, a := range Areas() {
		for _, q := range question.All() {
			o, why := question.AnsweredBy(a.Offers(), q.Name), refused[a.Name()][string(q.Name)]
			if o.Given != (why == "") || o.Given != (o.Reason == "") || !strings.Contains(o.Reason, why) {
				t.Errorf("%s × %s: %+v, want a refusal with %q", a.Name(), q.Name, o, why)
			}
		}
	}
}
