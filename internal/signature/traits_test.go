package signature

import "testing"

func TestEveryClassHasTraits(t *testing.T) {
	for _, c := range Classes() {
		if _, ok := traits[c]; !ok {
			t.Errorf("nothing is said of how to search where the class is %s", c)
		}
	}
	for c, is := range traits {
		if is.Gradual && !is.Places {
			t.Errorf("%s is Gradual without Places", c)
		}
	}
	if len(traits) != len(Classes()) {
		t.Errorf("%d classes have traits, and %d are tried", len(traits), len(Classes()))
	}
}
