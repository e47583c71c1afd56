package config

import (
	"encoding/json"
	"strings"
	"testing"

	"tare/internal/design"
)

func TestUnknownTemplate(t *testing.T) {
	for _, area := range []string{"cookery", "../identity", "", "identity\x00"} {
		_, err := Template(area, design.Capacity)
		if err == nil || !strings.Contains(err.Error(), "identity-capacity") {
			t.Errorf("%q: the error does not say which there are: %v", area, err)
		}
	}
}

// TestExperimentAsJSON: factors keep their order, and a secret stays a reference.
func TestExperimentAsJSON(t *testing.T) {
	e, ds := Parse("full.yaml", read(t, "testdata/good/full.yaml"), testAreas())
	if e == nil {
		t.Fatal(ds)
	}
	out, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`"factors":{"zeta":["1","true","x y"],"alpha":["0.5"]}`, `"operations":[{"token":3},{"identity":1}]`,
		`"password":{"env":"PDP_PASSWORD"}`,
		`"rate":"150/s"`, `"margin":"2%"`, `"treatments":[{`,
	} {
		if !strings.Contains(string(out), want) {
			t.Errorf("lacks %s:\n%s", want, out)
		}
	}
}
