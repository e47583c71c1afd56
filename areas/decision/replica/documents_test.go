package replica

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tare/rigs/hosttest"
)

// in gives the files of a bundle in the order of their names.
func in(files map[string]string) func(do func(string, []byte) error) error {
	return func(do func(string, []byte) error) error {
		for _, name := range slices.Sorted(maps.Keys(files)) {
			if err := do(name, []byte(files[name])); err != nil {
				return err
			}
		}
		return nil
	}
}

// office are the data of a bundle: people and what they may do.
func office() map[string]string {
	return map[string]string{
		"a.rego":         "package a",
		"data.json":      `{"on": true, "people": {"ann": {"boss": "bob", "big": 12345678901234567890}, "bob": {"boss": null}}}`,
		"rbac/data.yaml": "roles: [{of: {id: ann}, is: [bob, admin]}]\nadmins: [bob]\n",
	}
}

// TestGrow: a copy is of the entries alone, calls each by a name of its own wherever it is named, and leaves the rest.
func TestGrow(t *testing.T) {
	d := &Data{Of: []string{"people", "rbac/roles[].of/id", "rbac/admins[]"}, Times: 3}
	all, files := grown(t, d, office())
	if n := all.Entries(); n != 4 {
		t.Errorf("%d entries, want 4", n)
	}
	want := map[string]string{
		"data.json": `{"on": true, "people": {
			"ann": {"boss": "bob", "big": 12345678901234567890}, "bob": {"boss": null},
			"ann~2": {"boss": "bob~2", "big": 12345678901234567890}, "bob~2": {"boss": null},
			"ann~3": {"boss": "bob~3", "big": 12345678901234567890}, "bob~3": {"boss": null}}}`,
		"rbac/data.yaml": `{"admins": ["bob", "bob~2", "bob~3"], "roles": [{"of": {"id": "ann"}, "is": ["bob", "admin"]},
			{"of": {"id": "ann~2"}, "is": ["bob~2", "admin"]}, {"of": {"id": "ann~3"}, "is": ["bob~3", "admin"]}]}`,
	}
	if len(files) != len(want) {
		t.Errorf("%d files, want %d", len(files), len(want))
	}
	for name, text := range want {
		if diff := cmp.Diff(decoded(t, text), decoded(t, string(files[name]))); diff != "" {
			t.Errorf("%s: -want +got:\n%s", name, diff)
		}
	}
}

func grown(t *testing.T, d *Data, of map[string]string) (*Documents, map[string][]byte) {
	t.Helper()
	all, err := d.ReadDocuments(in(of))
	if err != nil {
		t.Fatal(err)
	}
	files, err := all.Grow(d.Times)
	if err != nil {
		t.Fatal(err)
	}
	return all, files
}

func decoded(t *testing.T, text string) (out any) {
	t.Helper()
	to := json.NewDecoder(strings.NewReader(text))
	to.UseNumber()
	if err := to.Decode(&out); err != nil {
		t.Fatalf("%v:\n%s", err, text)
	}
	return out
}

// TestEmptyCollections stay empty beside one that grows.
func TestEmptyCollections(t *testing.T) {
	d := &Data{Of: []string{"people", "none", "list[]"}, Times: 2}
	_, files := grown(t, d, map[string]string{"data.json": `{"people": {"ann": 1}, "none": {}, "list": []}`})
	want := `{"people": {"ann": 1, "ann~2": 1}, "none": {}, "list": []}`
	if diff := cmp.Diff(decoded(t, want), decoded(t, string(files["data.json"]))); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestWhatCannotGrow: each is said, with its place.
func TestWhatCannotGrow(t *testing.T) {
	for want, c := range map[string]struct {
		of, file, text string // a file that is another, or one more
		times          int
	}{
		"of: say what grows":                     {},
		"of: x: the bundle's data have no such":  {of: "x"},
		"of: on: it is neither a map nor a list": {of: "on"},
		"of: people[]: it is a map":              {of: "people[]"},
		"of: rbac/roles: it is a list":           {of: "rbac/roles"},
		"of: rbac/roles[].is: its entry 0 has":   {of: "rbac/roles[].is"},
		"of: rbac/roles[]is: want a place":       {of: "rbac/roles[]is"},
		"of: rbac/roles[].: want a place":        {of: "rbac/roles[]."},
		"of: []: want a place":                   {of: "[]"},
		"of: people/ann: it stands in people":    {of: "people people/ann"},
		"of: people: it stands in people/ann":    {of: "people/ann people"},
		"data.json: unexpected":                  {of: "people", file: "data.json", text: "{"},
		"the bundle is signed":                   {of: "people", file: ".signatures.json", text: "{}"},
		"there is nothing that could grow":       {of: "none", file: "data.json", text: `{"none": {}}`},
		"2 entries 500001 times are more":        {of: "people", times: 500_001},
		"more than 4 MiB: write it as data.json": {of: "people", file: "data.yml", text: strings.Repeat("#", MostYAML+1)},
		"it would be more than 4 MiB of YAML":    {of: "rbac/admins[]", times: 1_000_000},
		"ann~2 is there, and a copy":             {of: "people", file: "data.json", text: `{"people": {"ann": 1, "ann~2": 2}}`},
		"1048586 bytes of data 1000 times are more than 256 MiB": {
			of: "people", file: "data.json", text: `{"people": {"ann": "` + strings.Repeat("x", 1<<20) + `"}}`, times: 1000,
		},
	} {
		files := office()
		if c.file != "" {
			files[c.file] = c.text
		}
		d := &Data{Of: strings.Fields(c.of), Times: max(2, c.times)}
		all, err := d.ReadDocuments(in(files))
		if err == nil {
			_, err = all.Grow(d.Times)
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// FuzzDocuments: whatever the data and the places, the data as they are stand in what has grown.
func FuzzDocuments(f *testing.F) {
	f.Add(`{"people": {"ann": {"boss": "bob"}, "bob": 1}, "list": [{"id": "ann"}, {"id": "x"}]}`, "people", "list[].id")
	f.Add(`{"a": {"b": ["x", "y"]}}`, "a/b[]", "a")
	f.Fuzz(func(t *testing.T, text, first, second string) {
		d := &Data{Of: []string{first, second}, Times: 3}
		all, err := d.ReadDocuments(in(map[string]string{"data.json": text}))
		if err != nil {
			return
		}
		files, err := all.Grow(d.Times)
		if err != nil {
			return
		}
		was, is := decoded(t, text), decoded(t, string(files["data.json"]))
		if !within(was, is) {
			t.Errorf("%s is not in %s", text, files["data.json"])
		}
	})
}

// within reports whether a value stands in one that has grown.
func within(was, is any) bool {
	switch was := was.(type) {
	case map[string]any:
		now, ok := is.(map[string]any)
		for key, v := range was {
			in, there := now[key]
			ok = ok && there && within(v, in)
		}
		return ok
	case []any:
		now, ok := is.([]any)
		ok = ok && len(now) >= len(was)
		for i, v := range was {
			ok = ok && within(v, now[i])
		}
		return ok
	}
	return cmp.Equal(was, is)
}

// TestAliases: what a few lines of YAML stand for by aliases is bounded.
func TestAliases(t *testing.T) {
	const tooMuch = "its aliases stand for more than 256 KiB"
	for text, want := range map[string]string{
		"a: &a x\nb: *a\n": "",
		"a: &a " + strings.Repeat("x", 300_000) + "\nb: [" + strings.Repeat("*a,", 30_000) + "]\n": tooMuch,
		"a: &a [" + strings.Repeat("1,", 100_000) + "]\nb: [*a, *a, *a]\n":                         tooMuch,
		"a: &a [*a]\n": tooMuch,
		"a: &a [" + strings.Repeat("1,", 100_000) + "]\nb: [*a, *a, *a]\nc: \"x\"#y\n": "a comment without preceding",
	} {
		got, err := JSON([]byte(text))
		if want == "" && string(got) != `{"a":"x","b":"x"}` || (err != nil) != (want != "") ||
			err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%.20s: %.50s, %v, want %q", text, got, err, want)
		}
	}
}

func TestMain(m *testing.M) { hosttest.Main(m) }
