package signature

import "testing"

func TestDefinitions(t *testing.T) {
	seen := map[Class]bool{}
	for _, d := range definitions {
		if seen[d.class] {
			t.Errorf("%s is defined twice", d.class)
		}
		seen[d.class] = true
		if d.traits.Gradual && !d.traits.Places {
			t.Errorf("%s is Gradual without Places", d.class)
		}
		if fails := d.class != Client && d.class != Unknown && !d.traits.OnlyRate; fails != (d.phrase != "") {
			t.Errorf("%s is described as %q", d.class, d.phrase)
		}
	}
	for c := range scenes() {
		if !seen[c] {
			t.Errorf("%s is not defined", c)
		}
	}
	if Class("?").Traits() != Unknown.Traits() || definitions[len(definitions)-1].class != Unknown {
		t.Error("what is no class is not treated as unknown")
	}
}
