package arch

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"tare/rigs/hosttest"
)

// TestWithoutEachArea: without an area's folder and its lines in cmd/tare/main.go, cmd/tare compiles, its tests too: no
// other line of its files names the area. No other package can notice: see TestOnlyMainImportsAreas. With
// TARE_TEST_LONG=1 the tests of make quick pass as well: a minute of CPU time for each area.
func TestWithoutEachArea(t *testing.T) {
	list := []byte(read(t, mainFile))
	areas := regexp.MustCompile(`(?m)^\t"tare/areas/([a-z0-9]+)"$`).FindAllSubmatch(list, -1)
	if len(areas) < 2 {
		t.Fatalf("cmd/tare/main.go imports %d areas", len(areas))
	}
	for _, m := range areas {
		name := string(m[1])
		t.Run(name, func(t *testing.T) {
			lines := regexp.MustCompile(`(?m)^\t("tare/areas/` + name + `"|\t` + name + `\.Area\{\},)\n`)
			if n := len(lines.FindAll(list, -1)); n != 2 {
				t.Fatalf("cmd/tare/main.go has %d lines of area %s, want its import and its entry of the list", n, name)
			}
			without := lines.ReplaceAll(list, nil)
			if regexp.MustCompile(`(?m)^[^/\n]*\b` + name + `\.`).Match(without) {
				t.Errorf("cmd/tare/main.go uses area %s in further lines", name)
			}
			eachFile(t, filepath.Dir(mainFile), func(file string, imports []string) {
				for _, imp := range imports {
					of := imp == "tare/areas/"+name || strings.HasPrefix(imp, "tare/areas/"+name+"/")
					if of && (file != mainFile || imp != "tare/areas/"+name) {
						t.Errorf("%s imports %s", file, imp)
					}
				}
			})
			if !hosttest.IsLong() {
				return
			}
			cmd := quickWithout(t, filepath.Join("..", "..", "areas", name), without)
			if cmd.Err != nil {
				hosttest.Missing(t, cmd.Err.Error(), "have it on PATH")
			}
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("without area %s: %v: %v\n%s", name, cmd.Args, err, out)
			}
		})
	}
}

const mainFile = "../../cmd/tare/main.go"

// quickWithout returns a command that runs the tests of make quick with another main.go and without a folder.
func quickWithout(t *testing.T, folder string, main []byte) *exec.Cmd {
	t.Helper()
	dir := copyWithout(t, folder)
	write(t, filepath.Join(dir, "cmd", "tare", "main.go"), string(main))
	cmd := exec.CommandContext(t.Context(), "make", "-s", "quick")
	// -trimpath, so that what was compiled here is not compiled again there.
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOWORK=off", "GOFLAGS=-trimpath")
	return cmd
}

// copyWithout copies the module, without one of its folders and without what no package needs.
func copyWithout(t *testing.T, folder string) string {
	t.Helper()
	root, dir := filepath.Join("..", ".."), t.TempDir()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		to := filepath.Join(dir, path[len(root):])
		switch {
		case err != nil:
			return err
		case path == folder || d.IsDir() && (d.Name() == ".git" || d.Name() == "bin" || d.Name() == "results"):
			return fs.SkipDir
		case d.IsDir():
			return os.MkdirAll(to, 0o700)
		case !d.Type().IsRegular():
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(to, text, 0o600)
	})
	if err != nil {
		t.Fatal(err)
	}
	return dir
}
