package all

import (
	"slices"
	"testing"
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
