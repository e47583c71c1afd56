package sandbox

import (
	"os"
	"path/filepath"
	"testing"

	"tare/internal/design"
)

// TestContentsOfCommands: blocks before and after a change of a command's program or script are not of one command.
func TestContentsOfCommands(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	program, script, data := write("run", "one", 0o700), write("prepare.py", "one", 0o600), write("in.txt", "one", 0o600)
	spec := &Spec{Commands: []Command{{Name: "c", Run: []string{program, "-v", data}, Prepare: []string{"sh", script}}}}
	contents := func() map[string]string {
		all, err := Area{}.Contents(spec, []design.Treatment{baseline()})
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	before := contents()
	for _, path := range []string{program, script} {
		write(filepath.Base(path), "two", 0o700)
		if after := contents(); len(after) != 3 || after["content of "+path] == before["content of "+path] {
			t.Errorf("%s was changed: %v, then %v", path, before, after)
		}
	}
	if _, ok := before["content of "+data]; ok {
		t.Error("what may be data, which a run may write, counts as code")
	}
}
