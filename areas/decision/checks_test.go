package decision

import (
	"os"
	"path/filepath"
	"testing"

	"tare/area"
)

func TestCheckOfJava(t *testing.T) {
	dir := t.TempDir()
	java := filepath.Join(dir, "bin", "java")
	if err := os.MkdirAll(filepath.Dir(java), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(java, nil, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ variable, value, want string }{
		{"JAVA_HOME", dir, java}, {"PATH", "/nowhere:" + dir + "/bin", java}, {"HOME", dir, "not found in JAVA_HOME or PATH"},
	} {
		getenv := func(name string) (string, bool) {
			if name != c.variable {
				return "", false
			}
			return c.value, true
		}
		got := Area{}.Parts().Checks(t.Context(), area.Env{Getenv: getenv})
		if len(got) != 1 || got[0].Name != "Java" || got[0].Found != c.want || got[0].State != area.CheckInfo {
			t.Errorf("%s=%s: got %+v, want %s", c.variable, c.value, got, c.want)
		}
	}
}
