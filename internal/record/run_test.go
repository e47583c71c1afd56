package record

import (
	"os"
	"regexp"
	"testing"

	"tare/internal/clock"
)

// TestRunsOfOnePathHaveOwnNames: two containers whose records have the same path, or that resume copies of one record,
// must not mistake each other's objects for their own.
func TestRunsOfOnePathHaveOwnNames(t *testing.T) {
	results := t.TempDir()
	names := map[string]string{}
	named := func(who string, w *Writer) {
		t.Helper()
		if !regexp.MustCompile(`^[a-z2-7]{12}$`).MatchString(w.Run()) {
			t.Errorf("%s is named %q", who, w.Run())
		}
		if other, taken := names[w.Run()]; taken {
			t.Errorf("%s and %s are both %s", who, other, w.Run())
		}
		names[w.Run()] = who
		must(t, w.Close())
	}
	var dir string
	for _, who := range []string{"one", "another"} {
		w, err := Create(results, testHeader(), nil, clock.NewFake(epoch))
		must(t, err)
		if dir != "" && w.Dir() != dir {
			t.Fatalf("%s lies in %s, not in %s", who, w.Dir(), dir)
		}
		dir = w.Dir()
		named(who, w)
		if who == "one" {
			must(t, os.RemoveAll(dir))
		}
	}
	r, err := Open(dir)
	must(t, err)
	if names[nameOf(r.Header.ID)] != "another" {
		t.Errorf("the header says %q, of %v", r.Header.ID, names)
	}
	for _, who := range []string{"a copy", "another copy"} {
		at := t.TempDir()
		must(t, os.CopyFS(at, os.DirFS(dir)))
		r, err := Open(at)
		must(t, err)
		w, err := r.Continue(nil, clock.NewFake(epoch))
		must(t, err)
		named(who, w)
	}
}
