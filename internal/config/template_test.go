package config

import (
	"encoding/json"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"tare/area"
	"tare/internal/design"
)

func TestUnknownTemplate(t *testing.T) {
	ar := filedArea{files: fstest.MapFS{"templates/capacity.yaml": {Data: []byte("x")}}}
	for _, q := range []design.Question{"cookery", "../capacity", "", "capacity\x00"} {
		_, err := Template(ar, q)
		if err == nil || !strings.Contains(err.Error(), "those for capacity") {
			t.Errorf("%q: the error does not say which there are: %v", q, err)
		}
	}
	if text, err := Template(ar, design.Capacity); err != nil || string(text) != "x" {
		t.Errorf("%q, %v", text, err)
	}
}

type filedArea struct {
	fakeArea

	files fs.FS
}

func (f filedArea) Parts() area.Parts { return area.Parts{Files: f.files} }

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
		`"factors":{"zeta":["1","true","x y"],"alpha":["0.5"]}`, `"operations":[{"token":3},{"turnpike":1}]`,
		`"password":{"env":"PDP_PASSWORD"}`,
		`"rate":"150/s"`, `"margin":"2%"`, `"treatments":[{`,
	} {
		if !strings.Contains(string(out), want) {
			t.Errorf("lacks %s:\n%s", want, out)
		}
	}
}
